"""Convolutions and correlations of scipy.signal in any number of axes, and trends."""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import axis_of, cast, inexact, node, plain_int
from .._op import op
from ..lax import conv_general_dilated
from ._fft_convolve import fftconvolve

_MODES = ("full", "same", "valid")


def _taken(n, m, mode):
    """(first, count) of the part of a full convolution of n and m elements that a mode takes."""
    if mode == "full":
        return 0, n + m - 1
    return ((m - 1) // 2, n) if mode == "same" else (min(n, m) - 1, abs(n - m) + 1)


def _direct(x, y, mode):
    """The convolution of real arrays by products."""
    if mode == "valid" and any(m > n for n, m in zip(x.shape, y.shape)):
        x, y = y, x
    parts = [_taken(n, m, mode) for n, m in zip(x.shape, y.shape)]
    pads = [(m - 1 - first, first + count - n) for n, m, (first, count) in zip(x.shape, y.shape, parts)]
    out = conv_general_dilated(x[None, None], rnp.flip(y)[None, None], (1,) * x.ndim, tuple(pads))
    return out[0, 0]


def _operands(in1, in2, mode, what):
    x, y = inexact(in1), inexact(in2)
    if mode not in _MODES:
        raise ValueError(f"{what}: mode {mode!r} is not 'full', 'same' or 'valid'")
    if x.ndim != y.ndim:
        raise ValueError(f"{what}: operands of {x.ndim} and {y.ndim} axes")
    if 0 in (*x.shape, *y.shape):
        raise ValueError(f"{what}: shapes {x.shape} and {y.shape}; there must be elements")
    pairs = list(zip(x.shape, y.shape))
    if mode == "valid" and not (all(n >= m for n, m in pairs) or all(m >= n for n, m in pairs)):
        raise ValueError(f"{what}: for 'valid' one operand must be at least as long as the other along every axis")
    dtype = _rlx.result_type(x, y)[0]
    return cast(x, dtype), cast(y, dtype)


def _convolved(x, y, mode, method):
    if x.ndim == 0:
        return node("mul", x, y)
    if method == "auto":
        size = lambda v: rnp.size(v)  # noqa: E731
        method = "direct" if x.ndim <= 3 and min(size(x), size(y)) <= 512 else "fft"
    if method == "fft":
        return fftconvolve(x, y, mode)
    if x.dtype.kind != "c":
        return _direct(x, y, mode)
    (a, b), (c, d) = ((rnp.real(v), rnp.imag(v)) for v in (x, y))
    re = _direct(a, c, mode) - _direct(b, d, mode)
    return node("complex", re, _direct(a, d, mode) + _direct(b, c, mode))


def _method(method, what):
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"{what}: method {method!r} is not 'auto', 'direct' or 'fft'")


@op("in1", "in2")
def convolve(in1, in2, mode="full", method="auto", precision=None):
    """The convolution of two arrays of equal rank: "full", "same" as in1, or "valid". method: "direct", by products;
    "fft"; "auto", which takes products where one operand has few elements. Integers become float32.
    """
    _method(method, "convolve")
    return _convolved(*_operands(in1, in2, mode, "convolve"), mode, method)


@op("in1", "in2")
def correlate(in1, in2, mode="full", method="auto", precision=None):
    """The correlation of two arrays of equal rank, the convolution with the conjugate of in2 from its end."""
    _method(method, "correlate")
    x, y = _operands(in1, in2, mode, "correlate")
    return _convolved(x, rnp.flip(rnp.conj(y)), mode, method)


_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _bounded(x, y, mode, boundary, fillvalue, what):
    """convolve2d of what lies around x."""
    if x.ndim != 2 or y.ndim != 2:
        raise ValueError(f"{what}: operands with {x.ndim} and {y.ndim} axes; both have two")
    if boundary not in _BOUNDARIES:
        raise ValueError(f"{what}: boundary {boundary!r} is not 'fill', 'wrap' or 'symm'")
    if mode == "valid" or boundary == "fill" and type(fillvalue) in (int, float) and fillvalue == 0:
        return _convolved(x, y, mode, "direct")
    parts = [_taken(n, m, mode) for n, m in zip(x.shape, y.shape)]
    pads = [(m - 1 - first, first + count - n) for n, m, (first, count) in zip(x.shape, y.shape, parts)]
    more = {"constant_values": fillvalue} if boundary == "fill" else {}
    wide = rnp.pad(x, pads, mode=_BOUNDARIES[boundary], **more)
    return _convolved(wide, y, "valid", "direct")


@op("in1", "in2")
def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0, precision=None):
    """The convolution of two matrices. boundary: what lies around in1, "fill" with fillvalue, "wrap" or "symm"."""
    x, y = _operands(in1, in2, mode, "convolve2d")
    return _bounded(x, y, mode, boundary, fillvalue, "convolve2d")


@op("in1", "in2")
def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0, precision=None):
    """The correlation of two matrices, with the boundaries of convolve2d."""
    x, y = _operands(in1, in2, mode, "correlate2d")
    y = rnp.flip(rnp.conj(y))
    if mode == "same":  # the middle of in2 lies one place further where its extent is even
        y = rnp.pad(y, [(0, 1 - m % 2) for m in y.shape])
    return _bounded(x, y, mode, boundary, fillvalue, "correlate2d")


def _levelled(x, kind):
    """x without its mean, or without the line that fits it best, along the last axis."""
    out = x - rnp.mean(x, -1, keepdims=True)
    if kind == "constant":
        return out
    n = x.shape[-1]
    t = cast(rnp.arange(n), rnp.real(x).dtype) - (n - 1) / 2
    squares = n * (n * n - 1) / 12 if n > 1 else 1.0
    slope = rnp.sum(out * cast(t, x.dtype), -1, keepdims=True) / squares
    return out - slope * cast(t, x.dtype)


@op("data")
def detrend(data, axis=-1, type="linear", bp=0, overwrite_data=None):
    """data without its trend along an axis: "constant", its mean, or "linear", the line that fits it best, between the
    breaks bp.
    """
    if type not in ("constant", "linear", "c", "l"):
        raise ValueError(f"detrend: type {type!r} is neither 'constant' nor 'linear'")
    kind = "constant" if type[0] == "c" else "linear"
    x = inexact(data)
    axis = axis_of(axis, x.ndim, "detrend")
    rows = rnp.moveaxis(x, axis, -1)
    n = rows.shape[-1]
    breaks = [plain_int(b) for b in (bp if isinstance(bp, (list, tuple)) else (bp,))]
    if kind == "constant":
        breaks = []
    if any(not 0 <= b <= n for b in breaks):
        raise ValueError(f"detrend: breaks {tuple(breaks)} of {n} elements")
    cuts = sorted({0, n, *breaks})
    parts = [_levelled(rows[..., a:b], kind) for a, b in zip(cuts, cuts[1:])]
    out = rnp.concatenate(parts, -1) if len(parts) > 1 else parts[0] if parts else rows
    return rnp.moveaxis(out, -1, axis)


__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "detrend"]
