"""Finding faults in functions under trace: short tracebacks, printing programs, running without jit, searching NaN."""

import contextlib

from . import _rlx
from ._graph import nan_check
from ._faults import tracebacks
from ._jit import _shapes, jit


@contextlib.contextmanager
def full_tracebacks(on=True):
    """Inside this context tracebacks keep the frames of rlx. Otherwise they have the frames of other code alone."""
    before, tracebacks.full = tracebacks.full, bool(on)
    try:
        yield
    finally:
        tracebacks.full = before


def make_jaxpr(fun, static_argnums=(), return_shape=False):
    """A function of the arguments of fun that gives the graph of fun, which prints as text; with return_shape also the
    shapes and dtypes of its results. The name is JAX's, the text that of rlx graphs.
    """
    traced = jit(fun, static_argnums=static_argnums).trace

    def make(*args, **kwargs):
        out = traced(*args, **kwargs)
        return (out.graph, _shapes(out)) if return_shape else out.graph

    return make


class _Calls:
    """Calls of compiled functions while disable_jit is open. Otherwise they are those of the extension, at no cost."""

    def __init__(self):
        self.plain = _rlx.JitFunction.__dict__["__call__"]
        self.without_jit = 0

    def update(self, step):
        self.without_jit += step
        _rlx.JitFunction.__call__ = self._call() if self.without_jit > 0 else self.plain

    def _call(self):
        def call(function, *args, **kwargs):
            if self.without_jit > 0 and function.of_user and not _rlx.tracing():
                return function.__wrapped__(*args, **kwargs)
            return self.plain(function, *args, **kwargs)

        return call


_calls = _Calls()


@contextlib.contextmanager
def disable_jit(disable=True):
    """Inside this context functions of rlx.jit run line by line in Python, so that print and a debugger see numbers.
    Transforms and loops (grad, vmap, scan, cond) still trace the functions that they take.
    """
    _calls.update(int(bool(disable)))
    try:
        yield
    finally:
        _calls.update(-int(bool(disable)))


@contextlib.contextmanager
def debug_nans(on=True, infs=False):
    """Inside this context runs of this thread are checked: compiled functions and their run_async, operations on
    arrays, compiled graphs. If a result has a NaN (with infs: or an infinity), the run raises NotFinite, a
    FloatingPointError that names the op that made it from operands without NaN, the element, the operands there, the
    iteration of loops, and your line. With on=False nothing is checked, whatever the compile option nan_check says. A
    NaN that reaches no result is no error.
    """
    check, before = "off" if not on else "inf" if infs else "nan", nan_check.get()
    scope = _rlx.NanCheckScope(check)
    nan_check.set(check)
    try:
        yield
    finally:
        nan_check.set(before)
        scope.close()
