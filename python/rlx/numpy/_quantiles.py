"""Quantiles of the elements over axes."""

import math as _math

from .. import _rlx
from ._base import axes_of, cast, constant, extent_value, inexact, node, reduced, value
from ._shapes import broadcast_to, expand_dims, moveaxis, reshape, transpose
from ._ufuncs import isnan

# Methods that interpolate between the elements beside the place a + q (n - 1 + b), with their a and b.
_PLACED = {
    "linear": (0.0, 0.0),
    "weibull": (-1.0, 2.0),
    "hazen": (-0.5, 1.0),
    "median_unbiased": (-2.0 / 3.0, 4.0 / 3.0),
    "normal_unbiased": (-5.0 / 8.0, 5.0 / 4.0),
    "interpolated_inverted_cdf": (-1.0, 1.0),
    "inverted_cdf": (-1.0, 1.0),
    "averaged_inverted_cdf": (-1.0, 1.0),
    "closest_observation": (-1.5, 1.0),
}
_METHODS = ("lower", "higher", "midpoint", "nearest", *_PLACED)


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
    first, more = _PLACED.get(method, (0.0, 0.0))
    last = cast(last, q.dtype)
    place = node("mul", q, node("add", last, more) if more else last)
    place = node("add", place, first) if first else place
    if method in ("inverted_cdf", "closest_observation"):
        floor = node("floor", place)
        stays = node("eq", place, floor)
        if method == "closest_observation":
            stays = node("bit_and", stays, node("eq", node("mod", floor, 2), 1))
        place = node("where", stays, floor, node("add", floor, 1))
    elif method == "averaged_inverted_cdf":
        floor = node("floor", place)
        place = node("add", floor, node("where", node("eq", place, floor), 0.5, 1.0))
    place = node("max", node("min", place, last), 0)
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
            node("sub", place, low) if method in _PLACED else node("where", node("eq", low, high), 0.0, 0.5), dtype
        )
        mixed = node("add", node("mul", below, node("sub", 1, part)), node("mul", above, part))
        out = node("where", node("eq", below, above), below, node("where", node("eq", part, 0), below, mixed))
    outside = node("not", node("bit_and", node("ge", q, 0), node("le", q, 1)))
    out = node("where", node("bit_or", bad, outside), constant(_math.nan, dtype), out)
    return reshape(out, (*shape_q, *kept)) if keepdims else out


def weighted(x, q, weights, axis, keepdims, method, skip_nan):
    """Quantiles of elements that count as often as their weights say: the first element whose share of the sum of the
    weights up to it is at least q.
    """
    if method != "inverted_cdf":
        raise ValueError(f'quantile: weights need method="inverted_cdf", not {method!r}')
    x, q, weights = inexact(x), value(q), inexact(weights)
    if x.dtype.kind == "c" or weights.dtype.kind == "c":
        raise TypeError("quantile: complex numbers have no order")
    if q.ndim > 1:
        raise ValueError(f"quantile: q has {q.ndim} axes, at most one")
    dtype = x.dtype
    if weights.shape != x.shape:
        axes = axes_of(axis, x.ndim, "quantile")
        if axis is None or weights.shape != tuple(x.shape[a] for a in axes):
            raise ValueError(f"quantile: weights of shape {weights.shape} for an array of shape {x.shape}")
        weights = reshape(weights, tuple(d if a in axes else 1 for a, d in enumerate(x.shape)))
        weights = broadcast_to(weights, x.shape)
    weights, kept = _last(weights, axis)
    x, _ = _last(x, axis)
    if x.shape[-1] == 0:
        raise ValueError("quantile of no elements")
    along = x.ndim - 1
    order = _rlx.argsort([x], along, False)
    x, weights = (_rlx.take_along_axis([v, order], along) for v in (x, weights))
    bad = isnan(x[..., -1])
    if skip_nan:
        gone = isnan(x)
        weights = node("where", gone, 0, weights)
        bad = gone[..., 0]
    shares = node("cumulative_sum", cast(weights, "float64"), axis=along)
    shares = node("div", shares, shares[..., -1:])
    shares = node("where", node("eq", shares, 0), -1, shares)  # elements without weight are no quantiles
    shape_q = tuple(q.shape)
    wide_q = cast(reshape(q, shape_q + (1,) * x.ndim), "float64")
    before = cast(node("lt", shares, wide_q), "int32")
    place = node("min", reduced(before, "sum", -1, False, "sum"), x.shape[-1] - 1)
    k = moveaxis(place, 0, -1) if shape_q else expand_dims(place, -1)
    out = _rlx.take_along_axis([x, k], along)
    out = moveaxis(out, -1, 0) if shape_q else out[..., 0]
    inside = node("bit_and", node("ge", q, 0), node("le", q, 1))
    outside = reshape(node("not", inside), shape_q + (1,) * (out.ndim - len(shape_q)))
    out = node("where", node("bit_or", bad, outside), constant(_math.nan, dtype), out)
    return reshape(out, (*shape_q, *kept)) if keepdims else out
