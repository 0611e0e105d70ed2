"""Fourier transforms in the evaluator."""

import numpy as np

from .evaluator import rule


@rule("fft")
def _fft(ev, eqn, ins):
    x = ins[0]
    lengths = tuple(eqn.params["fft_lengths"])
    kind = str(getattr(eqn.params["fft_type"], "name", eqn.params["fft_type"])).upper()
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    out = eqn.outvars[0].aval
    if 0 in out.shape:
        return np.zeros(out.shape, np.float64 if kind == "IRFFT" else np.complex128)
    with np.errstate(all="ignore"):
        if kind == "IRFFT":
            y = np.fft.irfftn(x, lengths, axes)
        else:
            y = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn}[kind](x, axes=axes)

    def sizes():
        s = np.sum(np.abs(x), axes, keepdims=True)
        if kind in ("IFFT", "IRFFT"):
            s = s * (2 if kind == "IRFFT" else 1) / np.prod(lengths)
        return np.broadcast_to(s, out.shape)

    return ev.summed(y, sizes, out.dtype.name)
