"""Cross spectra by Welch's method, of segments that are made explicitly."""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import axis_of, cast, inexact
from .._op import op
from ..numpy._base import int_static
from ._convolve import _levelled
from ._windows import _chosen, _real_of, _split_window


def segments(x, nperseg, step):
    """[.., segments, nperseg] of the last axis."""
    count = (x.shape[-1] - nperseg) // step + 1
    places = rnp.expand_dims(rnp.arange(count) * step, 1) + rnp.expand_dims(rnp.arange(nperseg), 0)
    return rnp.take(x, places, axis=-1)


def levelled(x, kind, what):
    """Segments without their trend."""
    if callable(kind):
        return kind(x)
    if kind in (False, None):
        return x
    if kind not in ("constant", "linear"):
        raise ValueError(f"{what}: detrend {kind!r} is not 'constant', 'linear', False or a function")
    return _levelled(x, kind)


def transforms(x, window, nperseg, step, nfft, detrend, onesided, what):
    """The transforms [.., segments, frequencies] of windowed segments."""
    rows = levelled(segments(x, nperseg, step), detrend, what) * cast(window, x.dtype)
    return (rnp.fft.rfft if onesided else rnp.fft.fft)(rows, nfft)


def median_bias(count):
    """The ratio of the median to the mean of `count` powers."""
    return 1 + sum(1 / (k + 1) - 1 / k for k in range(2, count + (count % 2), 2) if k <= count - 1)


def spectrum(x, y, window, fs, nperseg, noverlap, nfft, detrend, onesided, scaling, average, what):
    """The density of the cross spectrum along the last axis, complex."""
    nfft = nperseg if nfft is None else int_static(nfft, f"{what}: nfft")
    overlap = nperseg // 2 if noverlap is None else int_static(noverlap, f"{what}: noverlap")
    if nfft < nperseg or not 0 <= overlap < nperseg:
        raise ValueError(f"{what}: nperseg {nperseg}, noverlap {overlap}, nfft {nfft}: 0 <= noverlap < nperseg <= nfft")
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{what}: scaling {scaling!r} is neither 'density' nor 'spectrum'")
    if average not in ("mean", "median"):
        raise ValueError(f"{what}: average {average!r} is neither 'mean' nor 'median'")
    short = min(x.shape[-1], y.shape[-1])
    if short < nperseg:
        raise ValueError(f"{what}: a segment of {nperseg} is longer than the signal of {short}")
    one = x is y
    options = (window, nperseg, nperseg - overlap, nfft, detrend, onesided, what)
    fx = transforms(x, *options)
    power = rnp.conj(fx) * (fx if one else transforms(y, *options))
    scale = fs * rnp.sum(window * window) if scaling == "density" else rnp.square(rnp.sum(window))
    power = power / cast(scale, power.dtype)
    if onesided:
        frequency = rnp.arange(power.shape[-1])
        twice = (frequency > 0) & ((frequency < power.shape[-1] - 1) | (nfft % 2 == 1))
        power = power * rnp.where(twice, 2, 1)
    if average == "mean":
        return rnp.mean(power, -2)
    bias = median_bias(power.shape[-2])
    parts = [rnp.median(p, -2) / bias for p in (rnp.real(power), rnp.imag(power))]
    return _rlx.add_node("complex", tuple(parts), {})


def csd(
    x,
    y,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
    average="mean",
):
    """(frequencies, cross power density) of two signals by Welch's method; y None: of x with itself. The arguments are
    those of welch; the shorter signal is continued by zeros.
    """
    name, numbers, nperseg = _split_window(window, nperseg, "csd")
    shape = rnp.shape(x)
    lengths = [shape[axis], shape[axis] if y is None else rnp.shape(y)[axis]]
    nperseg = min(nperseg, max(lengths)) if numbers is None else nperseg
    return _csd(x, y, numbers, name, fs, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


@op("x", "y", "numbers")
def _csd(x, y, numbers, name, fs, nperseg, noverlap, nfft, detrend, onesided, scaling, axis, average):
    x = inexact(x)
    y = x if y is None else inexact(y)
    same = y is x
    dtype = _rlx.result_type(x, y)[0]
    place = axis_of(axis, x.ndim, "csd")
    x = rnp.moveaxis(cast(x, dtype), place, -1)
    y = x if same else rnp.moveaxis(cast(y, dtype), place, -1)
    if x.shape[-1] != y.shape[-1]:
        longer = max(x.shape[-1], y.shape[-1])
        x, y = (rnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, longer - v.shape[-1])]) for v in (x, y))
    onesided = bool(onesided) and dtype.kind != "c"
    window = cast(_chosen(name, numbers, nperseg), _real_of(dtype))
    power = spectrum(x, y, window, fs, nperseg, noverlap, nfft, detrend, onesided, scaling, average, "csd")
    power = rnp.real(power) if same else power
    n = nperseg if nfft is None else nfft
    frequencies = (rnp.fft.rfftfreq if onesided else rnp.fft.fftfreq)(n, 1 / fs, _real_of(dtype))
    return _rlx.value(frequencies), rnp.moveaxis(power, -1, place)


__all__ = ["csd"]
