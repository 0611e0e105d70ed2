"""Differences, integrals, interpolation, convolutions."""

from .. import _rlx
from ._base import axis_of, cast, common, constant, inexact, node, op, typed, value
from ._complex import conj
from ._joining import concatenate
from ._reductions import sum
from ._search import searchsorted
from ._shapes import broadcast_to, flip, ravel, reshape


def _cut(x, axis, start, stop):
    return x[(slice(None),) * axis + (slice(start, stop),)]


@op("x", "prepend", "append")
def diff(x, n=1, axis=-1, prepend=None, append=None):
    """The differences of neighbours along an axis, applied n times. For bools: True where they differ."""
    x = value(x)
    if n < 0:
        raise ValueError(f"diff: n = {n} is negative")
    if n == 0:
        return x
    if x.ndim == 0:
        raise ValueError("diff of a scalar")
    axis = axis_of(axis, x.ndim, "diff")
    parts = []
    for part in (prepend, x, append):
        if part is None:
            continue
        part = value(part)
        if part.ndim == 0:
            part = broadcast_to(part, tuple(1 if a == axis else d for a, d in enumerate(x.shape)))
        parts.append(part)
    x = concatenate(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        later, earlier = _cut(x, axis, 1, None), _cut(x, axis, None, -1)
        x = node("ne", later, earlier) if x.dtype.kind == "b" else node("sub", later, earlier)
    return x


@op("x", "to_end", "to_begin")
def ediff1d(x, to_end=None, to_begin=None):
    """The differences of neighbours among all elements, with values before and after them."""
    x = ravel(x)
    parts = [node("sub", x[1:], x[:-1])]
    if to_begin is not None:
        parts.insert(0, cast(ravel(to_begin), x.dtype))
    if to_end is not None:
        parts.append(cast(ravel(to_end), x.dtype))
    return concatenate(parts) if len(parts) > 1 else parts[0]


@op("f", "varargs")
def gradient(f, *varargs, axis=None, edge_order=1):
    """The derivative along each axis: central differences inside, one-sided differences at the ends. Spacings are
    numbers or vectors of coordinates. Several axes give a list.
    """
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order {edge_order}; it must be 1 or 2")
    f = inexact(f)
    axes = (
        list(range(f.ndim))
        if axis is None
        else [axis_of(a, f.ndim, "gradient") for a in (axis if isinstance(axis, tuple) else (axis,))]
    )
    if len(varargs) not in (0, 1, len(axes)):
        raise ValueError(f"gradient: {len(varargs)} spacings for {len(axes)} axes")
    spacings = [value(v) for v in varargs] or [constant(1, f.dtype)]
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    out = []
    for a, h in zip(axes, spacings):
        if f.shape[a] < edge_order + 1:
            raise ValueError(
                f"gradient: {f.shape[a]} entries along axis {a}; edge_order {edge_order} needs {edge_order + 1}"
            )
        out.append(_gradient(f, cast(h, f.dtype), a, edge_order))
    return out[0] if len(out) == 1 else out


def _gradient(f, h, axis, edge_order):
    n, even = f.shape[axis], h
    if h.ndim == 0:
        h = broadcast_to(h, (n - 1,))
    else:
        if h.ndim != 1 or h.shape[0] != n:
            raise ValueError(f"gradient: coordinates of shape {h.shape} for {n} entries")
        h = node("sub", h[1:], h[:-1])
    h = reshape(h, (n - 1,) + (1,) * (f.ndim - axis - 1))
    step = node("sub", _cut(f, axis, 1, None), _cut(f, axis, None, -1))
    slope = node("div", step, h)  # between neighbours

    def spread(k):
        return h[k : k + 1]

    before, behind = _cut(slope, axis, None, -1), _cut(slope, axis, 1, None)
    left, right = h[:-1], h[1:]
    if even.ndim == 0:
        inner = node("div", node("sub", _cut(f, axis, 2, None), _cut(f, axis, None, -2)), node("mul", even, 2))
    else:
        total = node("add", node("mul", before, right), node("mul", behind, left))
        inner = node("div", total, node("add", left, right))
    first, last = _cut(slope, axis, 0, 1), _cut(slope, axis, n - 2, n - 1)
    if edge_order == 2:

        def edge(near, far, at, next_one):
            share = node("div", at, node("add", at, next_one))
            return node("add", near, node("mul", node("sub", near, far), share))

        first = edge(first, _cut(slope, axis, 1, 2), spread(0), spread(1))
        last = edge(last, _cut(slope, axis, n - 3, n - 2), spread(n - 2), spread(n - 3))
    return concatenate([first, inner, last], axis)


@op("y", "x", "dx")
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral along an axis by the trapezoidal rule, over coordinates x or with steps dx. An array dx broadcasts
    with the differences, whose axes are those of y; coordinates x are a vector along the axis, or have its axes.
    """
    y = inexact(y)
    place = axis_of(axis, y.ndim, "trapezoid")
    if x is None:
        y, h = typed(y, inexact(dx))
    else:
        y, x = typed(y, inexact(x))
        along = 0 if x.ndim == 1 else axis_of(axis, x.ndim, "trapezoid")
        h = node("sub", _cut(x, along, 1, None), _cut(x, along, None, -1))
        if x.ndim == 1:
            h = reshape(h, (-1,) + (1,) * (y.ndim - place - 1))
    mean = node("mul", node("add", _cut(y, place, 1, None), _cut(y, place, None, -1)), 0.5)
    return sum(node("mul", mean, h), axis)


@op("p", "discont", "period")
def unwrap(p, discont=None, axis=-1, period=6.283185307179586):
    """Unwraps angles: differences above half a period (or `discont`) are reduced by whole periods."""
    p = value(p)
    if p.dtype.kind in "biu" and not (value(period).dtype.kind in "iu"):
        p = inexact(p)
    axis = axis_of(axis, p.ndim, "unwrap")
    if p.shape[axis] < 2:
        return p
    whole = p.dtype.kind in "iu"
    period = cast(period, p.dtype)
    half = node("div", period, 2)
    step = node("sub", _cut(p, axis, 1, None), _cut(p, axis, None, -1))
    low = node("neg", half)
    turned = node("add", node("mod", node("sub", step, low), period), low)
    edge = node("eq", turned, low)
    if whole:
        edge = node("bit_and", edge, node("eq", node("mod", period, 2), 0))
    turned = node("where", node("bit_and", edge, node("gt", step, 0)), half, turned)
    limit = half if discont is None else node("max", half, cast(discont, p.dtype))
    fix = node("where", node("lt", node("abs", step), limit), 0, node("sub", turned, step))
    rest = node("add", _cut(p, axis, 1, None), node("cumulative_sum", fix, axis=axis))
    return concatenate([_cut(p, axis, 0, 1), rest], axis)


def interp(x, xp, fp, left=None, right=None, period=None):
    """Linear interpolation at x between points (xp, fp) with ascending xp. Beyond the ends the result is fp at the end,
    or left and right; with "extrapolate" for these it is the line of the two points at the end. With a period, left and
    right have no effect.
    """
    for name, end in (("left", left), ("right", right)):
        if isinstance(end, str) and end != "extrapolate":
            raise ValueError(f"interp: {name}={end!r}; it must be a number or 'extrapolate'")
    beyond = tuple(isinstance(end, str) for end in (left, right))
    left, right = (None if isinstance(end, str) else end for end in (left, right))
    return _interp(x, xp, fp, left, right, period, beyond)


@op("x", "xp", "fp", "left", "right", "period")
def _interp(x, xp, fp, left, right, period, beyond):
    x, xp = typed(inexact(x), inexact(xp))
    fp = inexact(fp)
    if xp.ndim != 1 or fp.shape != xp.shape or xp.shape[0] == 0:
        raise ValueError(f"interp: xp and fp of shapes {xp.shape} and {fp.shape}; they must be vectors of one length")
    dtype, _ = _rlx.result_type(x, fp)
    if period is not None:
        period = node("abs", cast(period, x.dtype))
        if period.ndim:
            raise ValueError(f"interp: the period has the shape {period.shape}; it must be one number")
        x, xp = node("mod", x, period), node("mod", xp, period)
        xp, fp = _rlx.sort([xp, fp], 0, False)
        xp = concatenate([node("sub", xp[-1:], period), xp, node("add", xp[:1], period)])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    n = xp.shape[0]
    if n == 1:
        out = broadcast_to(cast(fp[0], dtype), x.shape)
        x0 = x1 = xp[0]
    else:
        i = node("max", node("min", searchsorted(xp, x, side="right"), n - 1), 1)
        x0, x1 = (node("gather", xp, k, axes=[0], mode="clamp") for k in (node("sub", i, 1), i))
        y0, y1 = (node("gather", fp, k, axes=[0], mode="clamp") for k in (node("sub", i, 1), i))
        gap = node("sub", x1, x0)
        flat = node("eq", gap, 0)
        t = cast(node("div", node("sub", x, x0), node("where", flat, 1, gap)), dtype)
        out = node("add", cast(y0, dtype), node("mul", t, cast(node("sub", y1, y0), dtype)))
        out = node("where", flat, cast(y0, dtype), out)
        out = node("where", node("eq", x, x0), cast(y0, dtype), out)
        out = node("where", node("eq", x, x1), cast(y1, dtype), out)
    if period is None:
        below = out if beyond[0] else cast(fp[0] if left is None else left, dtype)
        above = out if beyond[1] else cast(fp[n - 1] if right is None else right, dtype)
        out = node("where", node("lt", x, xp[0]), below, out)
        out = node("where", node("gt", x, xp[n - 1]), above, out)
    return out if n == 1 else node("where", node("ne", x, x), cast(x, dtype), out)


def _slide(x, y, mode, what):
    """The sums of x[k + j] * y[j] for all shifts k."""
    n, m = x.shape[0], y.shape[0]
    if n == 0 or m == 0:
        raise ValueError(f"{what}: a vector has no elements")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{what}: mode {mode!r}; it must be one of full, same and valid")
    rows, taps = node("reshape", x, dims=(1, 1, n)), node("reshape", y, dims=(1, 1, m))
    out = node("reshape", node("conv", rows, taps, low=[m - 1], high=[m - 1]), dims=(n + m - 1,))
    if mode == "full":
        return out
    if mode == "same":
        start = (m - 1) // 2
        return out[start : start + n]
    return out[m - 1 : n]


def _vectors(a, v, preferred, what):
    a, v = common([a, v], what)
    if preferred is not None:
        a, v = cast(a, preferred), cast(v, preferred)
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(f"{what}: {a.ndim} and {v.ndim} axes; both must be vectors")
    if a.dtype.kind == "b":
        a, v = cast(a, "int32"), cast(v, "int32")
    return a, v


@op("a", "v")
def convolve(a, v, mode="full", *, precision=None, preferred_element_type=None):
    """The convolution of two vectors: full, of the length of the longer vector (same), or only where they overlap fully
    (valid).
    """
    a, v = _vectors(a, v, preferred_element_type, "convolve")
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    return _slide(a, flip(v), mode, "convolve")


@op("a", "v")
def correlate(a, v, mode="valid", *, precision=None, preferred_element_type=None):
    """The sums of a[k + n] * conj(v[n]) for shifts k. The modes are those of convolve."""
    a, v = _vectors(a, v, preferred_element_type, "correlate")
    v = conj(v)
    if a.shape[0] >= v.shape[0]:
        return _slide(a, v, mode, "correlate")
    return flip(_slide(v, a, mode, "correlate"))
