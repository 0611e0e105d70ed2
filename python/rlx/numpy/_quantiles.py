"""Quantiles of the elements over axes."""

import math as _math

from .. import _rlx
from ._base import axes_of, cast, constant, extent_value, inexact, node, reduced, value
from ._shapes import broadcast_to, expand_dims, moveaxis, reshape, transpose
from ._ufuncs import isnan

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _last(x, axis):
    """(x with the reduced axes joined to one last axis, the shape of the result with these axes as 1)."""
    axes = axes_of(axis, x.ndim, "quantile")
    rest = [a for a in range(x.ndim) if a not in axes]
    kept = tuple(1 if a in axes else d for a, d in enumerate(x.shape))
    count = _math.prod(x.shape[a] for a in axes)
    x = reshape(transpose(x, rest + axes), (*[x.shape[a] for a in rest], count))
    return x, kept


def quantiles(x, q, axis, keepdims, method, skip_nan):
    if method not in _METHODS:
        raise ValueError(f"quantile: method {method!r}; it must be one of {', '.join(_METHODS)}")
    x, q = inexact(x), value(q)
    if x.dtype.kind == "c":
        raise TypeError("quantile: complex numbers have no order")
    if q.ndim > 1:
        raise ValueError(f"quantile: q has {q.ndim} axes, at most one")
    dtype = x.dtype
    q = cast(q, "float64" if dtype.name == "float64" or q.dtype.name == "float64" else "float32")
    x, kept = _last(x, axis)
    n = x.shape[-1]
    if n == 0:
        raise ValueError("quantile of no elements")
    x = _rlx.sort([x], x.ndim - 1, False)
    bad = isnan(x[..., -1])
    if skip_nan:
        last = node("sub", reduced(cast(node("eq", x, x), "int32"), "sum", -1, False, "sum"), 1)
        bad = node("lt", last, 0)
        last = node("max", last, 0)
    else:
        last = cast(extent_value(n - 1), "int32")
    shape_q = tuple(q.shape)
    q = reshape(q, shape_q + (1,) * (x.ndim - 1))
    place = node("mul", q, cast(last, q.dtype))
    place = node("max", node("min", place, cast(last, q.dtype)), 0)
    low, high = node("floor", place), node("ceil", place)
    if method == "nearest":
        low = high = node("round", place)

    def at(k):
        k = broadcast_to(cast(k, "int32"), (*shape_q, *x.shape[:-1]))
        k = moveaxis(k, 0, -1) if shape_q else expand_dims(k, -1)
        out = _rlx.take_along_axis([x, k], x.ndim - 1)
        return moveaxis(out, -1, 0) if shape_q else out[..., 0]

    below, above = at(low), at(high)
    if method in ("lower", "nearest"):
        out = below
    elif method == "higher":
        out = above
    else:
        part = cast(
            node("sub", place, low) if method == "linear" else node("where", node("eq", low, high), 0.0, 0.5), dtype
        )
        mixed = node("add", node("mul", below, node("sub", 1, part)), node("mul", above, part))
        out = node("where", node("eq", below, above), below, node("where", node("eq", part, 0), below, mixed))
    outside = node("not", node("bit_and", node("ge", q, 0), node("le", q, 1)))
    out = node("where", node("bit_or", bad, outside), constant(_math.nan, dtype), out)
    return reshape(out, (*shape_q, *kept)) if keepdims else out
