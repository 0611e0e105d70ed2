"""Convolutions by the FFT."""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import axis_of, node
from .._op import op
from ..numpy._base import cast
from ._windows import _to_last


@op("in1", "in2")
def fftconvolve(in1, in2, mode="full", axes=None):
    """The linear convolution of two arrays of equal rank along these axes, or all: "full", "same" or "valid"."""
    a, b = _rlx.value(in1), _rlx.value(in2)
    rank = len(a.shape)
    if len(b.shape) != rank:
        raise ValueError(f"fftconvolve: operands of {rank} and {len(b.shape)} axes")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"fftconvolve: mode {mode!r} is not 'full', 'same' or 'valid'")
    named = range(rank) if axes is None else axes if isinstance(axes, (tuple, list)) else (axes,)
    axes = tuple(axis_of(i, rank, "fftconvolve") for i in named)
    if not axes:
        return node("mul", a, b)
    if mode == "valid" and not (
        all(a.shape[i] >= b.shape[i] for i in axes) or all(b.shape[i] >= a.shape[i] for i in axes)
    ):
        raise ValueError("fftconvolve: for 'valid' one operand must be at least as long as the other along every axis")
    if len(axes) == 1:
        i = axes[0]
        if mode == "same" or mode == "full" or a.shape[i] >= b.shape[i]:
            pair = [_to_last(a, i, "fftconvolve"), _to_last(b, i, "fftconvolve")]
        else:
            pair = [_to_last(b, i, "fftconvolve"), _to_last(a, i, "fftconvolve")]
        out = _rlx.fft_conv1d(pair, mode)
        return out if i == rank - 1 else rnp.moveaxis(out, -1, i)
    full = [a.shape[i] + b.shape[i] - 1 for i in axes]
    fast = [_rlx.next_fast_len(n) for n in full]
    complex_ = a.dtype.kind == "c" or b.dtype.kind == "c"
    forward, back = (rnp.fft.fftn, rnp.fft.ifftn) if complex_ else (rnp.fft.rfftn, rnp.fft.irfftn)
    out = back(node("mul", forward(a, fast, axes), forward(b, fast, axes)), fast, axes)
    for i, n in zip(axes, full):
        m, k = a.shape[i], b.shape[i]
        first, count = {"full": (0, n), "same": ((k - 1) // 2, m), "valid": (min(m, k) - 1, abs(m - k) + 1)}[mode]
        out = rnp.take(out, rnp.arange(first, first + count), axis=i) if (first, count) != (0, out.shape[i]) else out
    dtype = _rlx.result_type(a, b)[0]
    return cast(out, dtype) if dtype.kind == "f" else out
