"""Functions of scipy.signal: convolutions and correlations, spectra by Welch's method, stft and istft."""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import axis_of, inexact, node
from .._op import op
from ..numpy._base import cast
from ..signal import _welch_options
from . import _spectra
from ._convolve import convolve, convolve2d, correlate, correlate2d, detrend  # noqa: F401
from ._fft_convolve import fftconvolve  # noqa: F401
from ._spectra import csd
from ._windows import _chosen, _real_of, _split_window, _to_last
from .._names import accept_names as _accept_names

__all__ = """convolve convolve2d correlate correlate2d csd detrend fftconvolve istft stft welch""".split()


def welch(
    x,
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
    """(frequencies, power density) of a signal by Welch's method. The window is a name or an array. nperseg is the
    length of the array, or 256 by default, and at most the length of x. detrend: "constant", "linear", a function of
    segments, or False. The spectra of complex signals are two-sided.
    """
    complex_ = _rlx.result_type(x)[0].kind == "c"
    if not return_onesided or complex_ or detrend not in ("constant", False, None):
        given = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
        return csd(x, None, *given)
    name, numbers, nperseg = _split_window(window, nperseg, "welch")
    nperseg = min(nperseg, rnp.shape(x)[axis]) if numbers is None else nperseg
    return _welch(x, numbers, name, fs, nperseg, noverlap, nfft, detrend, scaling, axis, average)


@op("x", "numbers")
def _welch(x, numbers, name, fs, nperseg, noverlap, nfft, detrend, scaling, axis, average):
    x = _rlx.value(x)
    options = _welch_options(fs, nperseg, noverlap, nfft, detrend, scaling, average)
    power = _rlx.welch([_to_last(x, axis, "welch"), _chosen(name, numbers, nperseg)], options)
    if axis_of(axis, len(x.shape), "welch") != len(x.shape) - 1:
        power = rnp.moveaxis(power, -1, axis)
    n = nfft or nperseg
    return _rlx.value(rnp.fft.rfftfreq(n, 1 / fs, _real_of(x.dtype))), power


def _padded(x, low, high, mode):
    if low == high == 0:
        return x
    if mode not in ("zeros", "even", "odd", "constant"):
        raise ValueError(f"boundary {mode!r} is not 'zeros', 'even', 'odd', 'constant' or None")
    if mode == "odd":
        return rnp.pad(x, [(0, 0)] * (len(x.shape) - 1) + [(low, high)], mode="reflect", reflect_type="odd")
    if mode == "zeros":
        return rnp.pad(x, [(0, 0)] * (len(x.shape) - 1) + [(low, high)])
    return rnp.pad(x, [(0, 0)] * (len(x.shape) - 1) + [(low, high)], mode={"even": "reflect", "constant": "edge"}[mode])


def _stft_options(nfft, step, onesided):
    return {
        "n_fft": nfft,
        "hop": step,
        "win_length": 0,
        "center": False,
        "pad": "constant",
        "normalized": False,
        "onesided": onesided,
    }


def _steps(nperseg, noverlap, nfft):
    nfft = nfft or nperseg
    overlap = nperseg // 2 if noverlap is None else noverlap
    if nperseg < 1 or nfft < nperseg or not 0 <= overlap < nperseg:
        raise ValueError(f"nperseg {nperseg}, noverlap {overlap}, nfft {nfft}: 0 <= noverlap < nperseg <= nfft")
    return nfft, overlap, nperseg - overlap


def _long_window(name, numbers, nperseg, nfft, dtype):
    w = cast(_chosen(name, numbers, nperseg), _real_of(dtype))
    return w, _padded(w, 0, nfft - nperseg, "zeros")


def _scale(w, scaling, fs):
    if scaling == "spectrum":
        return rnp.sum(w)
    if scaling == "psd":
        return rnp.sqrt(node("mul", rnp.sum(node("mul", w, w)), fs))
    raise ValueError(f"scaling {scaling!r} is neither 'spectrum' nor 'psd'")


def stft(
    x,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    detrend=False,
    return_onesided=True,
    boundary="zeros",
    padded=True,
    axis=-1,
    scaling="spectrum",
):
    """(frequencies, times, transforms) of x along an axis. The frequencies take the place of the axis, and the segments
    come last. The window is a name or an array. nperseg is the length of the array, or 256 by default.
    """
    name, numbers, nperseg = _split_window(window, nperseg, "stft")
    given = (numbers, name, fs, nperseg, noverlap, nfft, return_onesided, boundary, padded, axis, scaling, detrend)
    return _stft(x, *given)


@op("x", "numbers")
def _stft(x, numbers, name, fs, nperseg, noverlap, nfft, return_onesided, boundary, padded, axis, scaling, trend):
    place = axis_of(axis, _rlx.value(x).ndim, "stft")
    x = _to_last(_rlx.value(x), axis, "stft")
    nfft, overlap, step = _steps(nperseg, noverlap, nfft)
    half = nperseg // 2 if boundary else 0
    y = _padded(x, half, half, boundary or "zeros")
    if padded:
        y = _padded(y, 0, (-(y.shape[-1] - nperseg) % step) % nperseg, "zeros")
    if y.shape[-1] < nperseg:
        raise ValueError(f"stft: a segment of {nperseg} is longer than the signal of {y.shape[-1]}")
    count = (y.shape[-1] - nperseg) // step + 1
    w, long = _long_window(name, numbers, nperseg, nfft, x.dtype)
    onesided = bool(return_onesided) and x.dtype.kind != "c"
    if trend:
        y = inexact(y)
        rows = _spectra.transforms(y, cast(w, _real_of(y.dtype)), nperseg, step, nfft, trend, onesided, "stft")
        z = rnp.moveaxis(rows, -1, -2)
    else:
        z = _rlx.stft([_padded(y, 0, nfft - nperseg, "zeros"), long], _stft_options(nfft, step, onesided))
    dtype = _real_of(x.dtype)
    freqs = (rnp.fft.rfftfreq if onesided else rnp.fft.fftfreq)(nfft, 1 / fs, dtype)
    times = (rnp.arange(count, dtype=dtype) * step + (0 if boundary else nperseg / 2)) / fs
    z = rnp.moveaxis(z, -2, place)
    return _rlx.value(freqs), _rlx.value(times), node("div", z, _scale(w, scaling, fs))


def istft(
    Zxx,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    input_onesided=True,
    boundary=True,
    time_axis=-1,
    freq_axis=-2,
    scaling="spectrum",
):
    """(times, signal) of the result of stft, with the same window. Times keep their place among the axes."""
    name, numbers, nperseg = _split_window(window, nperseg, "istft", None)
    return _istft(
        Zxx, numbers, name, fs, nperseg, noverlap, nfft, input_onesided, boundary, time_axis, freq_axis, scaling
    )


@op("Zxx", "numbers")
def _istft(Zxx, numbers, name, fs, nperseg, noverlap, nfft, input_onesided, boundary, time_axis, freq_axis, scaling):
    z = _rlx.value(Zxx)
    if z.dtype.kind != "c":
        z = cast(z, "complex128" if z.dtype.name == "float64" else "complex64")
    rank = len(z.shape)
    freq, time = axis_of(freq_axis, rank, "istft"), axis_of(time_axis, rank, "istft")
    if freq == time:
        raise ValueError("istft: one axis cannot be both frequencies and times")
    z = rnp.moveaxis(z, (freq, time), (-2, -1))
    points = 2 * (z.shape[-2] - 1) if input_onesided else z.shape[-2]
    nperseg = nperseg or points
    nfft = nfft or (points + 1 if input_onesided and nperseg == points + 1 else points)
    nfft, overlap, step = _steps(nperseg, noverlap, nfft)
    w, long = _long_window(name, numbers, nperseg, nfft, z.dtype)
    wanted = nfft // 2 + 1 if input_onesided else nfft
    if z.shape[-2] > wanted:
        z = z[..., :wanted, :]
    elif z.shape[-2] < wanted:  # frequencies that are not there are 0
        z = rnp.pad(z, [(0, 0)] * (rank - 2) + [(0, wanted - z.shape[-2]), (0, 0)])
    z = node("mul", z, _scale(w, scaling, fs))
    y = _rlx.istft([z, long], _stft_options(nfft, step, bool(input_onesided)), None)
    half = nperseg // 2 if boundary else 0
    y = y[..., half : (z.shape[-1] - 1) * step + nperseg - half]
    dtype = _real_of(z.dtype)
    times = rnp.arange(y.shape[-1], dtype=dtype) / fs
    return _rlx.value(times), rnp.moveaxis(y, -1, time - 1 if freq < time else time)


_accept_names(globals())
