"""Functions with derivative rules of their own, by the names of jax.custom_derivatives."""

from . import _rlx, tree
from ._control import custom_jvp, custom_vjp
from ._implicit import closure_convert, custom_gradient, ruled
from ._nodes import filled
from ._primals import CustomVJPPrimal
from ._transforms import _as_dtype, _is_inexact
from ._names import accept_names as _accept_names

__all__ = """CustomVJPPrimal SymbolicZero closure_convert custom_gradient custom_jvp custom_vjp
custom_vjp_primal_tree_values linear_call zero_from_primal""".split()


class SymbolicZero:
    """A tangent that is known to be zero. Rules of rlx get arrays, so no tangent is one."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype


def custom_vjp_primal_tree_values(t):
    """The tree with the values of its CustomVJPPrimal leaves."""
    known = lambda x: isinstance(x, CustomVJPPrimal)  # noqa: E731
    return tree.map(lambda x: x.value if known(x) else x, t, is_leaf=known)


def zero_from_primal(primal, symbolic_zeros=False):
    """A tangent of zeros for this value."""
    from . import numpy

    x = numpy.asarray(primal)
    return numpy.zeros(x.shape, x.dtype if x.dtype.kind in "fc" else "float32")


def linear_call(fun, fun_transpose, residual_args, linear_args):
    """fun(residual_args, linear_args), a function that is linear in linear_args and whose transpose is
    fun_transpose(residual_args, cotangent). It has no derivative by residual_args.
    """
    if not _rlx.tracing():
        from ._jit import cached_live

        run = lambda: lambda r, x: linear_call(fun, fun_transpose, r, x)  # noqa: E731
        return cached_live("linear_call", (fun, fun_transpose), run)(residual_args, linear_args)
    (fixed, fixed_def), (moving, moving_def) = tree.flatten(residual_args), tree.flatten(linear_args)
    values = [_rlx.value(x) for x in (*fixed, *moving)]
    n, found = len(fixed), {}
    floats = [i for i, v in enumerate(values) if _is_inexact(v)]

    def body(xs):
        outs, found["out"] = tree.flatten(fun(fixed_def.unflatten(xs[:n]), moving_def.unflatten(xs[n:])))
        return [_rlx.value(o) for o in outs]

    def again(xs):
        return list(ruled("linear_call", xs, body, **rules))

    def push(given):
        xs, tangents = given[: len(values)], dict(zip(floats, given[len(values) :]))
        return again(xs) + again(xs[:n] + [tangents[i] for i in range(n, len(values))])

    def forward(xs):
        return again(xs) + xs[:n]

    def backward(given):
        cts = found["out"].unflatten(given[n:])
        into = tree.leaves(fun_transpose(fixed_def.unflatten(given[:n]), cts))
        still = [filled(values[i].shape, 0, values[i].dtype) for i in floats if i < n]
        return still + [_as_dtype(c, v.dtype) for c, v in zip(into, values[n:])]

    if any(not _is_inexact(v) for v in values[n:]):
        raise TypeError("linear_call: an argument is no floating number")
    rules = {"jvp": push, "forward": forward, "backward": backward}
    outs = again(values)
    return found["out"].unflatten(outs)


_accept_names(globals())
