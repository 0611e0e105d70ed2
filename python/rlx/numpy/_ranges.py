"""Evenly spaced numbers between two ends."""

import builtins as _b
import math as _math

from .. import _rlx
from .._indexing import _broadcast_shape
from ._base import axis_of, cast, extent_value, float_of, int_static, node, value


def ranged(start, stop, num, endpoint, axis):
    """(start + (stop - start) * k / steps along a new axis, the step), in the dtype of start and stop. The ends are
    exact.
    """
    symbolic = isinstance(num, _rlx.Dim)
    num = num if symbolic else int_static(num, "num")
    if not symbolic and num < 0:
        raise ValueError(f"num = {num} is negative; it is the number of points")
    start, stop = value(start), value(stop)
    shape = _broadcast_shape([start.shape, stop.shape])
    axis = axis_of(axis, len(shape) + 1, "linspace")
    spread = [1] * len(shape)
    spread.insert(axis, num)
    inner = list(shape)
    inner.insert(axis, 1)
    start, stop = (_rlx.reshape([_rlx.expand([v], shape)], tuple(inner)) for v in (start, stop))
    steps = num - 1 if endpoint else num
    k = node("iota", dims=tuple(spread), dtype="int64", axis=axis)
    apart = node("max", extent_value(steps), 1) if symbolic else float(_b.max(steps, 1))
    part = node("div", cast(k, start.dtype), cast(apart, float_of(start.dtype)) if symbolic else apart)
    # A weighted sum of both ends cannot overflow, and equal ends give equal numbers.
    x = node("add", node("mul", start, node("sub", 1, part)), node("mul", stop, part))
    full_shape = tuple(num if d == axis else e for d, e in enumerate(inner))
    if endpoint and (symbolic or num > 1):
        x = node("where", node("eq", k, num - 1), stop, x)
    x = node("where", node("eq", k, 0), start, x)
    if symbolic:
        step = node("div", node("sub", stop, start), cast(apart, float_of(start.dtype)))
        step = node("where", node("gt", extent_value(steps), 0), step, _math.nan)
    else:
        step = node("div", node("sub", stop, start), float(steps)) if steps > 0 else None
    x = _rlx.expand([x], full_shape)
    return x, cast(_math.nan, start.dtype) if step is None else _rlx.reshape([step], shape)


def range_types(start, stop, dtype):
    """(the dtype of the computation, the dtype of the result)."""
    common, _ = _rlx.result_type(start, stop, 1.0)
    out = common if dtype is None else _rlx.dtype(dtype)
    wide = {"float64": "float64", "complex64": "complex64", "complex128": "complex128"}
    numbers = not _b.any(isinstance(v, (_rlx.Array, _rlx.Value)) for v in (start, stop))
    inside = "float64" if numbers and common.kind == "f" else wide.get(common.name, "float32")
    if out.kind in "iu" and common.kind == "f":
        inside = "float64"
    return inside, out


def spaced(start, stop, num, endpoint, dtype, axis):
    """(num numbers from start to stop along a new axis, their distance)."""
    inside, out = range_types(start, stop, dtype)
    x, step = ranged(cast(start, inside), cast(stop, inside), num, endpoint, axis)
    return cast(node("floor", x) if out.kind in "iu" else x, out), step
