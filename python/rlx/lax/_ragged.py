"""Products of matrices whose rows, or contracted entries, belong to groups of given sizes."""

import typing

from .. import _control, _rlx
from .. import numpy as rnp
from .._nodes import cast, node
from .._op import op
from ._products import dot_general


class RaggedDotDimensionNumbers(typing.NamedTuple):
    """The axes of ragged_dot_general: those of dot_general, the ragged axis of lhs, and the axis of groups of rhs."""

    dot_dimension_numbers: tuple
    lhs_ragged_dimensions: typing.Sequence[int]
    rhs_group_dimensions: typing.Sequence[int]


@op("lhs", "rhs", "group_sizes")
def _ragged(lhs, rhs, group_sizes, numbers, wanted):
    contract, batch = numbers[0]
    (ragged,), groups = numbers[1], numbers[2]
    lhs, rhs, sizes = _rlx.value(lhs), _rlx.value(rhs), _rlx.value(group_sizes)
    if sizes.ndim != 1:
        raise NotImplementedError(f"ragged_dot: group_sizes of shape {sizes.shape}; one axis is supported")
    dtype = _rlx.result_type(lhs, rhs)[0]
    lhs, rhs = cast(lhs, dtype), cast(rhs, dtype)
    ends = rnp.cumsum(sizes)
    first, places = ends - sizes, rnp.arange(lhs.shape[ragged], dtype=ends.dtype)
    shape = tuple(-1 if a == ragged else 1 for a in range(lhs.ndim))
    contracting = ragged in contract[0]
    if contracting == bool(groups):
        raise ValueError(
            "ragged_dot_general: rhs has an axis of groups where the ragged axis of lhs is not contracted, and none "
            f"where it is; got rhs_group_dimensions {tuple(groups)}"
        )
    if groups:
        if rhs.shape[groups[0]] != sizes.shape[0]:
            raise ValueError(f"ragged_dot: {rhs.shape[groups[0]]} groups of rhs, {sizes.shape[0]} group_sizes")
        rhs = rnp.moveaxis(rhs, groups[0], 0)

    def product(low, high, part):
        inside = node("bit_and", node("ge", places, low), node("lt", places, high))
        mine = node("where", rnp.reshape(inside, shape), lhs, 0)
        return dot_general(mine, part, (contract, batch), None, wanted)

    if contracting:
        return _control.map(lambda g: product(*g, rhs), (first, ends))
    start = rnp.zeros_like(product(first[0], ends[0], rhs[0]))
    return _control.scan(lambda total, g: (total + product(*g), None), start, (first, ends, rhs))[0]


def ragged_dot(lhs, rhs, group_sizes, precision=None, preferred_element_type=None, group_offset=None):
    """The product [M, N] of [M, K] with [G, K, N]: the first group_sizes[0] rows of lhs with rhs[0], those behind them
    with rhs[1], and so on; rows behind all groups are 0.
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset)


def ragged_dot_general(
    lhs,
    rhs,
    group_sizes,
    ragged_dot_dimension_numbers,
    precision=None,
    preferred_element_type=None,
    group_offset=None,
):
    """dot_general, where an axis of lhs consists of groups: each meets its own part of rhs, or with a contracted axis
    gives a part of the result, along a new first axis.
    """
    if group_offset is not None:
        raise NotImplementedError("ragged_dot: group_offset is not supported")
    numbers = ragged_dot_dimension_numbers
    (contract, batch), ragged = numbers.dot_dimension_numbers, tuple(numbers.lhs_ragged_dimensions)
    groups = tuple(numbers.rhs_group_dimensions)
    if len(ragged) != 1 or len(groups) > 1:
        raise ValueError(f"ragged_dot_general: ragged axes {ragged} and axes of groups {groups}; there must be one")
    if groups:  # the axes of rhs without that of groups
        fix = lambda axes: tuple(a - (a > groups[0]) for a in axes)  # noqa: E731
        contract, batch = (contract[0], fix(contract[1])), (batch[0], fix(batch[1]))
    plain = ((tuple(map(tuple, contract)), tuple(map(tuple, batch))), ragged, groups)
    return _ragged(lhs, rhs, group_sizes, plain, preferred_element_type)
