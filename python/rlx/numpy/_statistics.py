"""Medians, quantiles, weighted means, covariances, histograms."""

import builtins as _b
import math as _math

from .. import _rlx
from .._op import _has_value
from ._base import array, as_index, axes_of, cast, common, constant, extent_value, filled, float_of, held
from ._base import inexact, int_static, node, op, refuse_shape, value
from ._complex import conj, real
from ._creation import linspace
from ._joining import stack
from ._quantiles import quantiles, weighted
from ._reductions import max, mean, min, sum
from ._search import searchsorted
from ._shapes import broadcast_to, diagonal, expand_dims, ravel, reshape, transpose
from ._ufuncs import isnan, sqrt


@op("x", "q", "weights")
def quantile(x, q, axis=None, *, method="linear", keepdims=False, weights=None, overwrite_input=False):
    """The q-quantiles (q from 0 to 1) of the elements over axes; NaN if an element is NaN. method is one of NumPy's.
    weights, of the shape of x or of its axes, need method="inverted_cdf". overwrite_input has no effect.
    """
    if weights is not None:
        return weighted(x, q, weights, axis, keepdims, method, False)
    return quantiles(x, q, axis, keepdims, method, False)


@op("x", "q", "weights")
def nanquantile(x, q, axis=None, *, method="linear", keepdims=False, weights=None, overwrite_input=False):
    """quantile of the elements that are not NaN."""
    if weights is not None:
        return weighted(x, q, weights, axis, keepdims, method, True)
    return quantiles(x, q, axis, keepdims, method, True)


def _hundredth(q, x):
    """q / 100, for quantiles of x."""
    if isinstance(q, (int, float)):
        return q / 100.0
    q = value(q)
    if q.dtype.kind != "f":
        q = cast(q, "float64" if value(x).dtype.name == "float64" else "float32")
    return node("div", q, 100.0)


@op("x", "q", "weights")
def percentile(x, q, axis=None, *, method="linear", keepdims=False, weights=None, overwrite_input=False):
    """quantile with q from 0 to 100."""
    if weights is not None:
        return weighted(x, _hundredth(q, x), weights, axis, keepdims, method, False)
    return quantiles(x, _hundredth(q, x), axis, keepdims, method, False)


@op("x", "q", "weights")
def nanpercentile(x, q, axis=None, *, method="linear", keepdims=False, weights=None, overwrite_input=False):
    """percentile of the elements that are not NaN."""
    if weights is not None:
        return weighted(x, _hundredth(q, x), weights, axis, keepdims, method, True)
    return quantiles(x, _hundredth(q, x), axis, keepdims, method, True)


@op("x")
def median(x, axis=None, *, keepdims=False, overwrite_input=False):
    """The median over axes: the middle element, or the mean of the two middle ones."""
    return quantiles(x, 0.5, axis, keepdims, "midpoint", False)


@op("x")
def nanmedian(x, axis=None, *, keepdims=False, overwrite_input=False):
    """median of the elements that are not NaN."""
    return quantiles(x, 0.5, axis, keepdims, "midpoint", True)


@op("x", "weights")
def average(x, axis=None, weights=None, *, returned=False, keepdims=False):
    """The weighted mean. The weights have the shape of x or of its axes, in the order of `axis`. returned: also gives
    the sum of the weights.
    """
    x = inexact(x)
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        count = _math.prod(x.shape[a] for a in axes_of(axis, x.ndim, "average"))
        return (out, filled(out.shape, float(count), out.dtype)) if returned else out
    weights = value(weights)
    dtype, _ = _rlx.result_type(x, weights)
    x, weights = cast(x, dtype), cast(weights, dtype)
    if weights.shape != x.shape:
        axes = [] if axis is None else axes_of(axis, x.ndim, "average")
        if weights.ndim != len(axes):
            raise ValueError(
                f"average: weights of shape {weights.shape} for shape {x.shape}; weights of another shape need `axis`, "
                "with an axis of x for each axis of the weights"
            )
        given = [a % x.ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
        if weights.shape != tuple(x.shape[a] for a in given):
            raise ValueError(f"average: weights of shape {weights.shape} for the axes {axis} of shape {x.shape}")
        weights = transpose(weights, tuple(given.index(a) for a in sorted(given)))
        kept = tuple(d if a in given else 1 for a, d in enumerate(x.shape))
        weights = broadcast_to(reshape(weights, kept), x.shape)
    total = sum(weights, axis, keepdims=keepdims)
    out = node("div", sum(node("mul", x, weights), axis, keepdims=keepdims), total)
    return (out, total) if returned else out


@op("m", "y", "fweights", "aweights")
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    """The covariance matrix of rows (or columns) of observations, and of the rows of y after them. dtype: that of the
    computation and of the result.
    """
    parts = [
        v if v.ndim == 2 else reshape(v, (1, -1)) if v.ndim < 2 else v
        for v in map(value, [m] + ([] if y is None else [y]))
    ]
    if _b.any(p.ndim != 2 for p in parts):
        raise ValueError("cov: arrays must have one or two axes")
    given = [m] if y is None else [m, y]
    turned = [transpose(p) if not rowvar and value(g).ndim == 2 else p for p, g in zip(parts, given)]
    x = node("concat", *common(turned, "cov"), axis=0) if len(turned) > 1 else turned[0]
    x = inexact(x) if dtype is None else cast(x, dtype)
    if x.dtype.kind not in "fc":
        raise TypeError(f"cov: the dtype is {x.dtype.name}; it must be floating or complex")
    n = x.shape[1]
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = None
    for w in (fweights, aweights):
        if w is not None:
            w = cast(w, x.dtype)
            weights = w if weights is None else node("mul", weights, w)
    if weights is None:
        centre = mean(x, 1, keepdims=True)
        divisor = cast(extent_value(n - ddof), float_of(x.dtype)) if isinstance(n, _rlx.Dim) else float(n - ddof)
        # Divides by 0 if there are too few observations, as NumPy does.
        divisor = _b.max(divisor, 0.0) if isinstance(divisor, float) else node("max", divisor, 0)
        d = node("sub", x, centre)
        weighted = d
    else:
        total = sum(weights)
        centre = node("div", sum(node("mul", x, weights), 1, keepdims=True), total)
        d = node("sub", x, centre)
        weighted = node("mul", d, weights)
        if ddof == 0:
            divisor = total
        elif aweights is None:
            divisor = node("sub", total, ddof)
        else:
            spread = sum(node("mul", weights, cast(aweights, x.dtype)))
            divisor = node("sub", total, node("div", node("mul", spread, ddof), total))
        divisor = node("max", divisor, 0) if divisor.dtype.kind == "f" else divisor
    out = node("dot_general", weighted, conj(d), lhs_contract=[1], rhs_contract=[1], lhs_batch=[], rhs_batch=[])
    out = node("div", out, divisor)
    return reshape(out, ()) if out.shape == (1, 1) else out


@op("x", "y")
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    """The correlation coefficients of rows (or columns) of observations; dtype: as of cov."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return node("div", c, c)
    d = sqrt(real(diagonal(c)))
    c = node("div", node("div", c, cast(expand_dims(d, 1), c.dtype)), cast(expand_dims(d, 0), c.dtype))
    return node("max", node("min", c, 1), -1) if c.dtype.kind == "f" else c


# -- histograms --


@op("x", "weights")
def _bincount(x, weights, length):
    x = value(x)
    if x.ndim != 1 or x.dtype.kind not in "iub":
        raise ValueError(f"bincount: {x.dtype.name} of shape {x.shape}; it must be a vector of integers")
    x = as_index(x)
    weights = filled(x.shape, 1, "int32") if weights is None else broadcast_to(value(weights), x.shape)
    return node("scatter_add", filled((length,), 0, weights.dtype), node("max", x, 0), weights, axes=[0], mode="drop")


def bincount(x, weights=None, minlength=0, *, length=None):
    """The counts of 0, 1, 2, ... in x, or the sums of their weights. The result has `length` entries, and larger
    numbers are dropped. By default it has as many entries as x needs, which is not possible in compiled functions.
    Negative numbers count as 0.
    """
    if length is None:
        if _rlx.tracing() or isinstance(x, _rlx.Value):
            refuse_shape("bincount", "length=, the number of entries")
        x = array(x)
        length = _b.max(int_static(minlength, "bincount: minlength"), int(max(x)) + 1 if x.size else 0)
    return _bincount(x, weights, int_static(length, "bincount: length"))


@op("x", "range")
def _edges(x, bins, range):
    x = ravel(inexact(x))
    if range is None:
        low, high = (min(x), max(x)) if x.shape[0] else (constant(0, x.dtype), constant(1, x.dtype))
    else:
        low, high = cast(range, x.dtype)[0], cast(range, x.dtype)[1]
    flat = node("eq", low, high)
    low, high = node("where", flat, node("sub", low, 0.5), low), node("where", flat, node("add", high, 0.5), high)
    return linspace(low, high, bins + 1, dtype=x.dtype)


def histogram_bin_edges(x, bins=10, range=None, weights=None):
    """The edges of a number of equal bins over the range of x, or the given edges."""
    if isinstance(bins, str):
        raise TypeError("histogram: rules for bins depend on values: give the number of bins or the edges")
    if isinstance(bins, int) or (hasattr(bins, "__index__") and getattr(bins, "ndim", 0) == 0):
        if int(bins) < 1:
            raise ValueError(f"histogram: {int(bins)} bins; there must be one or more")
        _check_range(range)
        return _edges(x, int(bins), range)
    _check_edges(bins)
    return _given_edges(bins, x)


def _known(x):
    """x as a NumPy array; None for traced values."""
    import numpy

    return None if _has_value(x) else numpy.asarray(x)


def _check_range(range):
    known = None if range is None else _known(range)
    if known is None:
        return
    if known.shape != (2,):
        raise ValueError(f"histogram: range {range!r}; it must be (low, high)")
    low, high = known
    if not (_math.isfinite(low) and _math.isfinite(high) and low <= high):
        raise ValueError(
            f"histogram: range ({low}, {high}); both must be finite, and the first must not be above the second"
        )


def _check_edges(bins):
    known = _known(bins)
    if known is None or known.ndim != 1:
        return
    if not known.size:
        raise ValueError("histogram: there must be at least two edges")
    falls = known[:-1] > known[1:]
    if falls.any():
        k = int(falls.argmax())
        raise ValueError(f"histogram: edges must ascend; edge {k} is {known[k]}, the next one {known[k + 1]}")


@op("bins", "x")
def _given_edges(bins, x):
    bins = value(bins)
    if bins.ndim != 1:
        raise ValueError("histogram: edges must be a vector")
    return inexact(bins)


def _bin_of(x, edges):
    """The bin of each element. Elements outside have bin -1 or the number of bins or more."""
    n = edges.shape[0] - 1
    dtype, _ = _rlx.result_type(x, edges)
    x, edges = cast(x, dtype), cast(edges, dtype)
    k = node("sub", searchsorted(edges, x, side="right"), 1)
    k = node("where", node("eq", x, edges[n]), n - 1, k)
    return node("where", isnan(x), n + 1, k), n


@op("x", "edges", "weights")
def _histogram(x, edges, weights, density):
    edges = value(edges)
    k, n = _bin_of(ravel(inexact(x)), edges)
    weights = (
        filled(k.shape, 1, "float32" if edges.dtype.name != "float64" else "float64")
        if weights is None
        else ravel(weights)
    )
    counts = node("scatter_add", filled((n,), 0, weights.dtype), k, weights, axes=[0], mode="drop")
    if not density:
        return counts
    width = node("sub", edges[1:], edges[:-1])
    counts = inexact(counts)
    return node("div", node("div", counts, cast(width, counts.dtype)), sum(counts))


def histogram(x, bins=10, range=None, weights=None, density=None):
    """(the number of elements in each bin, the edges). The last bin includes its right edge. Counts are floats, as in
    JAX.
    """
    edges = histogram_bin_edges(x, bins, range)
    return _histogram(x, edges, weights, _b.bool(density)), edges


@op("sample", "*edges", "weights")
def _histogramdd(sample, edges, weights, density):
    sample = inexact(sample)
    place, outside, sizes = None, None, []
    for d, e in enumerate(edges):
        k, n = _bin_of(sample[:, d], value(e))
        bad = node("bit_or", node("lt", k, 0), node("ge", k, n))
        outside = bad if outside is None else node("bit_or", outside, bad)
        place = k if place is None else node("add", node("mul", place, n), k)
        sizes.append(n)
    total = _math.prod(sizes)
    weights = filled((sample.shape[0],), 1, sample.dtype) if weights is None else ravel(weights)
    place = node("where", outside, total, place)
    counts = node("scatter_add", filled((total,), 0, weights.dtype), place, weights, axes=[0], mode="drop")
    counts = reshape(counts, tuple(sizes))
    if density:
        counts = node("div", inexact(counts), sum(inexact(counts)))
        for d, e in enumerate(edges):
            width = cast(node("sub", value(e)[1:], value(e)[:-1]), counts.dtype)
            counts = node("div", counts, reshape(width, (-1,) + (1,) * (len(sizes) - d - 1)))
    return counts


def histogramdd(sample, bins=10, range=None, weights=None, density=None):
    """(counts, edges of each axis) of points [n, d] (or d vectors) in a grid of bins."""
    if isinstance(sample, (list, tuple)):
        sample = stack([held(v) for v in sample], 1)
    sample = held(sample)
    d = sample.shape[1]
    bins = list(bins) if isinstance(bins, (list, tuple)) else [bins] * d
    if len(bins) != d:
        raise ValueError(f"histogramdd: {len(bins)} bins for {d} coordinates")
    range = [None] * d if range is None else range
    edges = [histogram_bin_edges(sample[:, k], bins[k], range[k]) for k in _b.range(d)]
    return _histogramdd(sample, edges, weights, _b.bool(density)), edges


def histogram2d(x, y, bins=10, range=None, weights=None, density=None):
    """(counts, edges of x, edges of y) of points in a grid of bins."""
    if not isinstance(bins, (list, tuple)) and getattr(bins, "ndim", 0) == 1:
        bins = [bins, bins]
    if isinstance(bins, (list, tuple)) and len(bins) != 2:
        bins = [array(bins)] * 2
    counts, edges = histogramdd([x, y], bins, range, weights, density)
    return counts, edges[0], edges[1]
