"""jax.lax.fft."""

from .. import _rlx
from .._op import op

_KINDS = {"FFT": "fft", "IFFT": "ifft", "RFFT": "rfft", "IRFFT": "irfft"}


@op("x")
def fft(x, fft_type, fft_lengths):
    """The transform "FFT", "IFFT", "RFFT" or "IRFFT" along the last axes, one for each entry of the lengths. They are
    the extents of x, or for IRFFT of the result.
    """
    name = getattr(fft_type, "name", fft_type)
    kind = _KINDS.get(str(name).upper().rsplit(".", 1)[-1])
    if kind is None:
        raise ValueError(f"fft: fft_type {fft_type!r} is not one of {', '.join(_KINDS)}")
    x = _rlx.value(x)
    lengths = tuple(fft_lengths)
    if not lengths:
        return x
    if len(lengths) > len(x.shape):
        raise ValueError(f"fft: {len(lengths)} lengths for an operand with {len(x.shape)} axes")
    if kind == "rfft" and x.dtype.kind != "f" or kind != "rfft" and x.dtype.kind != "c":
        way = "RFFT takes floats" if kind == "rfft" else "cast it to complex"
        raise TypeError(f"fft: {name} of {x.dtype.name}; {way}")
    last = x.shape[-len(lengths) :]
    wanted = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "irfft" else lengths
    if tuple(last) != wanted:
        raise ValueError(f"fft: {name} of lengths {lengths} needs last axes of {wanted} elements, not {tuple(last)}")
    return _rlx.fft([x], kind, lengths, list(range(len(x.shape) - len(lengths), len(x.shape))), "backward")
