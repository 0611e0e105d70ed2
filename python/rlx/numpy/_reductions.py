"""Reductions and cumulative reductions, with variants that ignore NaN."""

import builtins as _b
import math as _math

from .. import _rlx
from ._base import axes_of, axis_of, cast, constant, extent_value, filled, float_of, inexact, named, node, op
from ._base import reduced, summed, truth, value
from . import _complex_functions
from ._complex import joined, parts
from ._shapes import broadcast_shapes, squeeze
from ._ufuncs import isnan, logical_not, sqrt


def _mask(where):
    """The argument `where`, which must be bool."""
    where = value(where)
    if where.dtype.kind != "b":
        raise TypeError(f"where: a mask of dtype {where.dtype.name}; it must be bool: compare first, as in x != 0")
    return where


def _first(initial, dtype, what):
    """The argument `initial` of a reduction, which must be one number."""
    initial = cast(initial, dtype)
    if initial.ndim:
        raise ValueError(f"{what}: initial has the shape {initial.shape}; it must be one number")
    return initial


def _masked(x, where, number):
    """x with a number where `where` is False."""
    return x if where is None else node("where", _mask(where), x, constant(number, x.dtype))


def _widened(x, where):
    """x of the shape that it and `where` broadcast to."""
    return x if where is None else _rlx.expand([x], broadcast_shapes(x.shape, value(where).shape))


@op("x", "initial", "where")
def sum(x, axis=None, dtype=None, *, keepdims=False, initial=None, where=None, promote_integers=True):
    """The sum over axes. Bools and small integers are summed as 32-bit integers, unless not promote_integers."""
    x = _masked(summed(x, dtype, promote_integers), where, 0)
    out = reduced(x, "max" if x.dtype.kind == "b" else "sum", axis, keepdims, "sum")
    if x.dtype.kind == "b":
        return out if initial is None else node("bit_or", out, _first(initial, x.dtype, "sum"))
    return out if initial is None else node("add", out, _first(initial, x.dtype, "sum"))


@op("x", "initial", "where")
def prod(x, axis=None, dtype=None, *, keepdims=False, initial=None, where=None, promote_integers=True):
    """The product over axes. Bools and small integers are multiplied as 32-bit integers, unless not
    promote_integers.
    """
    x = _masked(summed(x, dtype, promote_integers), where, 1)
    out = reduced(x, "min" if x.dtype.kind == "b" else "prod", axis, keepdims, "prod")
    if x.dtype.kind == "b":
        return out if initial is None else node("bit_and", out, _first(initial, x.dtype, "prod"))
    return out if initial is None else node("mul", out, _first(initial, x.dtype, "prod"))


def _count(x, axis, keepdims, where):
    """The number of elements of a reduction, as a number or a value of the dtype of x."""
    if where is None:
        count = _math.prod(x.shape[a] for a in axes_of(axis, x.ndim, "mean"))
        return cast(extent_value(count), float_of(x.dtype)) if isinstance(count, _rlx.Dim) else float(count)
    return cast(sum(_rlx.expand([_mask(where)], x.shape), axis, keepdims=keepdims), float_of(x.dtype))


@op("x", "where")
def mean(x, axis=None, dtype=None, *, keepdims=False, where=None):
    """The mean over axes."""
    x = _widened(inexact(x) if dtype is None else cast(x, dtype), where)
    if where is None and x.dtype.kind in "fc":
        return reduced(x, "mean", axis, keepdims, "mean")
    count = _count(x, axis, keepdims, where)
    if x.dtype.kind not in "fc":  # of a stated dtype: the quotient is rounded down to it
        return cast(node("div", cast(sum(_masked(x, where, 0), axis, keepdims=keepdims), "float32"), count), dtype)
    count = count if isinstance(count, float) else cast(count, x.dtype)
    out = node("div", sum(_masked(x, where, 0), axis, keepdims=keepdims), count)
    return out if dtype is None else cast(out, dtype)


def _extreme(x, fn, axis, keepdims, initial, where):
    x = value(x)
    if where is not None and initial is None:
        raise ValueError(f"{fn}: `where` needs `initial`, the result without elements")
    x = _widened(x, where)
    axes = axes_of(axis, x.ndim, fn)
    initial = None if initial is None else _first(initial, x.dtype, fn)
    if where is not None:
        x = node("where", _mask(where), x, cast(initial, x.dtype))
    if _b.any(x.shape[a] == 0 for a in axes):
        if initial is None:
            raise ValueError(f"{fn}: no elements along axes {axes} of shape {x.shape}; give `initial`")
        kept = tuple(1 if i in axes else d for i, d in enumerate(x.shape) if keepdims or i not in axes)
        return _rlx.expand([cast(initial, x.dtype)], kept)
    if x.dtype.kind == "c":
        out = _complex_extreme(x, fn, axes, keepdims)
        return out if initial is None else _complex_functions.extreme_of_two(fn, out, cast(initial, x.dtype))
    out = reduced(x, fn, axis, keepdims, fn)
    return out if initial is None else node(fn, out, cast(initial, x.dtype))


def _complex_extreme(x, fn, axes, keepdims):
    """The extreme by real parts and then by imaginary parts; NaN + NaN i if a part of an element is NaN."""
    if not axes:
        return x
    re, im = parts(x)
    bad = reduced(isnan(x), "max", tuple(axes), True, fn)
    out = reduced(re, fn, tuple(axes), True, fn)
    edge = -_math.inf if fn == "max" else _math.inf
    second = reduced(node("where", node("eq", re, out), im, edge), fn, tuple(axes), True, fn)
    out = node("where", bad, constant(complex(_math.nan, _math.nan), x.dtype), joined(out, second, x.dtype))
    return out if keepdims else squeeze(out, tuple(axes))


@op("x", "initial", "where")
def max(x, axis=None, *, keepdims=False, initial=None, where=None):
    """The maximum over axes; NaN if an element is NaN."""
    return _extreme(x, "max", axis, keepdims, initial, where)


@op("x", "initial", "where")
def min(x, axis=None, *, keepdims=False, initial=None, where=None):
    """The minimum over axes; NaN if an element is NaN."""
    return _extreme(x, "min", axis, keepdims, initial, where)


amax, amin = max, min


@op("x")
def ptp(x, axis=None, *, keepdims=False):
    """The maximum minus the minimum over axes."""
    return node("sub", max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


@op("x", "where")
def any(x, axis=None, *, keepdims=False, where=None):
    """True where an element over axes is not zero."""
    x = _widened(truth(x), where)
    return _extreme(x if where is None else node("bit_and", x, _mask(where)), "max", axis, keepdims, False, None)


@op("x", "where")
def all(x, axis=None, *, keepdims=False, where=None):
    """True where all elements over axes are not zero."""
    x = _widened(truth(x), where)
    x = x if where is None else node("bit_or", x, logical_not(_mask(where)))
    return _extreme(x, "min", axis, keepdims, True, None)


def _less(ddof, correction, what):
    """The number that `ddof` or `correction` takes from the count."""
    if correction is not None and ddof:
        raise ValueError(f"{what}: both ddof and correction are given; they are two names of one number")
    return ddof if correction is None else correction


def _squared_distances(x, axis, where, centre):
    """The squared magnitudes of x - centre, with zeros where `where` is False."""
    d = _masked(node("sub", x, centre), where, 0)
    if d.dtype.kind == "c":
        re, im = parts(d)
        return node("add", node("square", re), node("square", im))
    return node("square", d)


@op("x", "where", "mean")
def var(x, axis=None, dtype=None, *, ddof=0, keepdims=False, where=None, mean=None, correction=None):
    """The variance over axes: the sum of squared distances from the mean, divided by the count minus `ddof`."""
    out = None
    if dtype is not None and _rlx.dtype(dtype).kind not in "fc":
        raise ValueError(f"var: dtype must be floating or complex, got {_rlx.dtype(dtype).name}; cast the result")
    if dtype is not None and value(x).dtype.kind == "c" and _rlx.dtype(dtype).kind != "c":
        raise ValueError(f"var: the dtype {_rlx.dtype(dtype).name} for complex numbers; it must be complex")
    if dtype is not None and _rlx.dtype(dtype).kind == "c":
        out = _rlx.dtype(dtype)
    x = _widened(inexact(x) if dtype is None else cast(x, dtype), where)
    if x.dtype.kind == "f" and x.dtype.itemsize < 4:  # a mean with few bits would spoil the distances
        x, out = cast(x, "float32"), x.dtype
    centre = _mean(x, axis, keepdims=True, where=where) if mean is None else mean
    total = sum(_squared_distances(x, axis, where, centre), axis, keepdims=keepdims)
    less = _less(ddof, correction, "var")
    count = _count(x, axis, keepdims, where)
    if isinstance(count, float):
        count = float(_b.max(count - less, 0.0))
    else:
        count = cast(node("max", node("sub", count, less), 0), total.dtype)
    spread = node("div", total, count)
    return spread if out is None else cast(spread, out)


_mean = mean


def _root(variance):
    """The square root with derivative 0 at 0, where equal elements have no derivative."""
    none = node("eq", variance, 0)
    return node("where", none, 0, sqrt(node("where", none, 1, variance)))


@op("x", "where", "mean")
def std(x, axis=None, dtype=None, *, ddof=0, keepdims=False, where=None, mean=None, correction=None):
    """The standard deviation over axes."""
    return _root(var(x, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean, correction=correction))


@op("x")
def count_nonzero(x, axis=None, *, keepdims=False):
    """The number of elements over axes that are not zero, int32."""
    return sum(truth(x), axis, "int32", keepdims=keepdims)


def _arg(x, fn, axis, keepdims):
    x = value(x)
    if x.dtype.kind == "b":
        x = cast(x, "uint8")
    if x.dtype.kind == "c":  # the first element that equals the extreme, or that is NaN
        best = _extreme(x, fn, axis, True, None, None) if 0 not in x.shape else x
        x, fn = cast(node("bit_or", node("eq", x, best), isnan(x)), "uint8"), "max"
    if axis is None:
        flat = _rlx.reshape([x], (-1,))
        if flat.shape[0] == 0:
            raise ValueError(f"arg{fn} of an array without elements")
        out = node("arg_reduce_" + fn, flat, axis=0, keep_dims=False)
        return _rlx.reshape([out], (1,) * x.ndim) if keepdims else out
    axis = axis_of(axis, x.ndim, "arg" + fn)
    if x.shape[axis] == 0:
        raise ValueError(f"arg{fn} over an axis without elements")
    return node("arg_reduce_" + fn, x, axis=axis, keep_dims=_b.bool(keepdims))


@op("x")
def argmax(x, axis=None, *, keepdims=False):
    """The index of the first maximum (or NaN), int32."""
    return _arg(x, "max", axis, keepdims)


@op("x")
def argmin(x, axis=None, *, keepdims=False):
    """The index of the first minimum (or NaN), int32."""
    return _arg(x, "min", axis, keepdims)


# -- cumulative reductions --


def _cumulative(name, fn, text):
    @op("x")
    def function(x, axis=None, dtype=None):
        if fn in ("sum", "prod"):
            x = summed(x, dtype)
        else:
            x = value(x) if dtype is None else cast(x, dtype)
        if axis is None:
            x, axis = _rlx.reshape([x], (-1,)), 0
        if fn in ("sum", "prod") and x.dtype.kind == "b":
            bits, seen = cast(x, "uint8"), "max" if fn == "sum" else "min"
            return cast(node("cumulative_" + seen, bits, axis=axis_of(axis, x.ndim, name)), "bool")
        return node("cumulative_" + fn, x, axis=axis_of(axis, x.ndim, name))

    return named(function, name, text)


cumsum = _cumulative("cumsum", "sum", "The cumulative sum along an axis.")
cumprod = _cumulative("cumprod", "prod", "The cumulative product along an axis.")
cummax = _cumulative("cummax", "max", "The cumulative maximum along an axis.")
cummin = _cumulative("cummin", "min", "The cumulative minimum along an axis.")


def _cumulative_with_initial(name, run, first, text):
    @op("x")
    def function(x, *, axis=None, dtype=None, include_initial=False):
        x = value(x)
        if axis is None and x.ndim != 1:
            raise ValueError(f"{name}: an array with {x.ndim} axes needs `axis`")
        axis = 0 if axis is None else axis_of(axis, x.ndim, name)
        out = run(x, axis, dtype)
        if not include_initial:
            return out
        shape = tuple(1 if a == axis else d for a, d in enumerate(out.shape))
        return node("concat", filled(shape, first, out.dtype), out, axis=axis)

    return named(function, name, text)


cumulative_sum = _cumulative_with_initial(
    "cumulative_sum", cumsum, 0, "The cumulative sum along an axis; with include_initial it begins with 0."
)
cumulative_prod = _cumulative_with_initial(
    "cumulative_prod", cumprod, 1, "The cumulative product along an axis; with include_initial it begins with 1."
)


# -- reductions that ignore NaN --


def _without_nan(x, number):
    x = value(x)
    return x if x.dtype.kind in "biu" else node("where", isnan(x), constant(number, x.dtype), x)


@op("x", "initial", "where")
def nansum(x, axis=None, dtype=None, *, keepdims=False, initial=None, where=None):
    """The sum of the elements that are not NaN."""
    return sum(_without_nan(x, 0), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@op("x", "initial", "where")
def nanprod(x, axis=None, dtype=None, *, keepdims=False, initial=None, where=None):
    """The product of the elements that are not NaN."""
    return prod(_without_nan(x, 1), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@op("x")
def nancumsum(x, axis=None, dtype=None):
    """The cumulative sum, with NaN as 0."""
    return cumsum(_without_nan(x, 0), axis, dtype)


@op("x")
def nancumprod(x, axis=None, dtype=None):
    """The cumulative product, with NaN as 1."""
    return cumprod(_without_nan(x, 1), axis, dtype)


def _number(x, where):
    """True where x is not NaN and `where` is True."""
    good = logical_not(isnan(x))
    return good if where is None else node("bit_and", good, _mask(where))


@op("x", "where")
def nanmean(x, axis=None, dtype=None, *, keepdims=False, where=None):
    """The mean of the elements that are not NaN; NaN if there are none."""
    x = inexact(x)
    return mean(x, axis, dtype, keepdims=keepdims, where=_number(x, where))


@op("x", "where", "mean")
def nanvar(x, axis=None, dtype=None, *, ddof=0, keepdims=False, where=None, mean=None, correction=None):
    """The variance of the elements that are not NaN; NaN if there are no more than `ddof`."""
    x = inexact(x)
    good, less = _number(x, where), _less(ddof, correction, "nanvar")
    out = var(x, axis, dtype, ddof=less, keepdims=keepdims, where=good, mean=mean)
    count = sum(_rlx.expand([good], _widened(x, where).shape), axis, "int32", keepdims=keepdims)
    return node("where", node("gt", count, less), out, constant(_math.nan, out.dtype))


@op("x", "where", "mean")
def nanstd(x, axis=None, dtype=None, *, ddof=0, keepdims=False, where=None, mean=None, correction=None):
    """The standard deviation of the elements that are not NaN."""
    return _root(nanvar(x, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean, correction=correction))


def _nan_extreme(x, f, edge, axis, keepdims, initial, where):
    x = value(x)
    if x.dtype.kind != "f":
        return f(x, axis, keepdims=keepdims, initial=initial, where=where)
    bad = isnan(x)
    out = f(_without_nan(x, edge), axis, keepdims=keepdims, initial=initial, where=where)
    empty = all(bad if where is None else node("bit_or", bad, logical_not(where)), axis, keepdims=keepdims)
    if initial is not None:
        return out
    return node("where", empty, constant(_math.nan, x.dtype), out)


@op("x", "initial", "where")
def nanmax(x, axis=None, *, keepdims=False, initial=None, where=None):
    """The maximum of the elements that are not NaN; NaN if there are none."""
    return _nan_extreme(x, max, -_math.inf, axis, keepdims, initial, where)


@op("x", "initial", "where")
def nanmin(x, axis=None, *, keepdims=False, initial=None, where=None):
    """The minimum of the elements that are not NaN; NaN if there are none."""
    return _nan_extreme(x, min, _math.inf, axis, keepdims, initial, where)


def _nan_arg(x, f, edge, axis, keepdims):
    x = value(x)
    if x.dtype.kind != "f":
        return f(x, axis, keepdims=keepdims)
    # NaN is replaced by an infinity that loses. If that infinity is also the result, it may come from a NaN, so the
    # first element that is not NaN is taken.
    first = f(_without_nan(x, edge), axis, keepdims=True)
    good = cast(_number(x, None), "uint8")
    at_edge = node("eq", (max if edge < 0 else min)(_without_nan(x, edge), axis, keepdims=True), edge)
    number = argmax(good, axis, keepdims=True)
    out = node("where", at_edge, number, first)
    out = node("where", any(good, axis, keepdims=True), out, -1)
    return out if keepdims else squeeze(out, axis)


@op("x")
def nanargmax(x, axis=None, *, keepdims=False):
    """The index of the first maximum that is not NaN; -1 if there is none."""
    return _nan_arg(x, argmax, -_math.inf, axis, keepdims)


@op("x")
def nanargmin(x, axis=None, *, keepdims=False):
    """The index of the first minimum that is not NaN; -1 if there is none."""
    return _nan_arg(x, argmin, _math.inf, axis, keepdims)
