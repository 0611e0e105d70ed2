"""Arguments of forward rules with symbolic_zeros."""

import dataclasses
import functools

from . import tree


@dataclasses.dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument of a forward rule with symbolic_zeros: its value, and whether a derivative by it is asked for, which
    rlx does not know at that time: True.
    """

    value: object
    perturbed: bool = True


def with_primals(forward, nondiff):
    """A forward rule that gets CustomVJPPrimal leaves, as one of values."""

    @functools.wraps(forward)
    def call(*args):
        return forward(*(a if i in nondiff else tree.map(CustomVJPPrimal, a) for i, a in enumerate(args)))

    return call
