"""Finding faults in functions under trace: short tracebacks, printing programs, running without jit, searching NaN."""

import contextlib
import os

from . import _rlx, tree
from ._jit import _shapes, jit, tracebacks

_FOLDER = os.path.dirname(__file__) + os.sep


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


def _nans_of(function, results):
    for leaf in tree.leaves(results):
        if isinstance(leaf, _rlx.Array) and leaf.dtype.kind in "fc" and leaf.dtype.itemsize > 1:
            import numpy as np

            if bool(np.isnan(np.asarray(leaf)).any()):
                raise FloatingPointError(f"{function.__name__} gives NaN: {leaf.dtype.name}{list(leaf.shape)}")


class _Calls:
    """Calls of compiled functions with something before or after them, while a context is open. Outside of contexts the
    calls are those of the extension, without any cost.
    """

    def __init__(self):
        self.plain = _rlx.JitFunction.__dict__["__call__"]
        self.without_jit = self.nans = 0

    def update(self, name, step):
        setattr(self, name, getattr(self, name) + step)
        _rlx.JitFunction.__call__ = self._call() if self.without_jit > 0 or self.nans > 0 else self.plain

    def _call(self):
        def call(function, *args, **kwargs):
            if self.without_jit > 0 and function.of_user and not _rlx.tracing():
                return function.__wrapped__(*args, **kwargs)
            out = self.plain(function, *args, **kwargs)
            if self.nans > 0:
                _nans_of(function, out)
            return out

        return call


_calls = _Calls()


@contextlib.contextmanager
def disable_jit(disable=True):
    """Inside this context functions of rlx.jit run line by line in Python, so that print and a debugger see numbers.
    Transforms and loops (grad, vmap, scan, cond) still trace the functions that they take.
    """
    _calls.update("without_jit", int(bool(disable)))
    try:
        yield
    finally:
        _calls.update("without_jit", -int(bool(disable)))


@contextlib.contextmanager
def debug_nans(on=True):
    """Inside this context a compiled function, or an operation on arrays, whose result has a NaN raises
    FloatingPointError. Together with disable_jit the error is at the line that makes the NaN.
    """
    _calls.update("nans", int(bool(on)))
    try:
        yield
    finally:
        _calls.update("nans", -int(bool(on)))
