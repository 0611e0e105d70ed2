"""Functions of scipy.signal: convolutions and correlations, spectra by Welch's method, stft and istft."""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import axis_of, inexact, node
from .._op import op
from ..numpy._base import cast, int_static
from ..signal import _welch_options, _window
from . import _spectra
from ._convolve import convolve, convolve2d, correlate, correlate2d, detrend  # noqa: F401
from ._spectra import csd

__all__ = """convolve convolve2d correlate correlate2d csd detrend fftconvolve istft stft welch""".split()


def _to_last(x, axis, what):
    axis = axis_of(axis, len(x.shape), what)
    return x if axis == len(x.shape) - 1 else rnp.moveaxis(x, axis, -1)


def _split_window(window, nperseg, what, default=256):
    """(name, numbers, nperseg) of a window, which is a name or an array. An array determines the segment length."""
    if nperseg is not None:
        nperseg = int_static(nperseg, f"{what}: nperseg")
    if isinstance(window, str) or (isinstance(window, tuple) and window and isinstance(window[0], str)):
        return window, None, default if nperseg is None else nperseg
    if not _rlx.is_array_leaf(window) and not isinstance(window, (list, tuple)):
        raise TypeError(f"{what}: a window must be a name, a name with its parameter, or an array, got {window!r}")
    numbers = rnp.asarray(window)
    if numbers.ndim != 1 or numbers.shape[0] == 0:
        raise ValueError(f"{what}: a window of shape {numbers.shape}; it must have one axis and at least one element")
    if numbers.dtype.kind == "c":
        raise TypeError(f"{what}: a window of {numbers.dtype.name}; it must be real")
    if nperseg not in (None, numbers.shape[0]):
        raise ValueError(
            f"{what}: nperseg is {nperseg} and the window has {numbers.shape[0]} elements: leave nperseg out, or "
            "make them equal"
        )
    if isinstance(window, (list, tuple)):  # float64, so that Python numbers keep all their digits
        numbers = rnp.asarray(window, "float64")
    return None, numbers, numbers.shape[0]


def _chosen(name, numbers, n):
    """The numbers of a window, or those of the periodic window with this name in SciPy."""
    if numbers is not None:
        x = _rlx.value(numbers)
        return x if x.dtype.kind == "f" else cast(x, "float64")
    name, *parameters = (name,) if isinstance(name, str) else name
    if len(parameters) > 1:
        raise ValueError(f"a window {(name, *parameters)}: a window takes a name and at most one parameter")
    if name in ("boxcar", "ones", "rect", "rectangular"):
        return _rlx.value(rnp.ones(n, "float64"))
    return _rlx.value(_window({"hanning": "hann"}.get(name, name), n, False, "float64", *parameters))


def _real_of(dtype):
    return "float64" if dtype.name in ("float64", "complex128") else "float32"


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
    length of the array, or 256 by default. Segments longer than x are an error. detrend: "constant", "linear", a
    function of segments, or False. The spectra of complex signals are two-sided.
    """
    complex_ = _rlx.result_type(x)[0].kind == "c"
    if not return_onesided or complex_ or detrend not in ("constant", False, None):
        given = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
        return csd(x, None, *given)
    name, numbers, nperseg = _split_window(window, nperseg, "welch")
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
    if mode not in ("zeros", "even", "constant"):
        raise ValueError(f"boundary {mode!r} is not 'zeros', 'even', 'constant' or None")
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
    """(frequencies, times, transforms [.., frequencies, segments]) of x along an axis, which becomes the last. The
    window is a name or an array. nperseg is the length of the array, or 256 by default.
    """
    name, numbers, nperseg = _split_window(window, nperseg, "stft")
    given = (numbers, name, fs, nperseg, noverlap, nfft, return_onesided, boundary, padded, axis, scaling, detrend)
    return _stft(x, *given)


@op("x", "numbers")
def _stft(x, numbers, name, fs, nperseg, noverlap, nfft, return_onesided, boundary, padded, axis, scaling, trend):
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
    """(times, signal) of the result of stft, with the same window."""
    name, numbers, nperseg = _split_window(window, nperseg, "istft", None)
    return _istft(
        Zxx, numbers, name, fs, nperseg, noverlap, nfft, input_onesided, boundary, time_axis, freq_axis, scaling
    )


@op("Zxx", "numbers")
def _istft(Zxx, numbers, name, fs, nperseg, noverlap, nfft, input_onesided, boundary, time_axis, freq_axis, scaling):
    z = _rlx.value(Zxx)
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
    z = node("mul", z, _scale(w, scaling, fs))
    y = _rlx.istft([z, long], _stft_options(nfft, step, bool(input_onesided)), None)
    half = nperseg // 2 if boundary else 0
    y = y[..., half : (z.shape[-1] - 1) * step + nperseg - half]
    dtype = _real_of(z.dtype)
    return _rlx.value(rnp.arange(y.shape[-1], dtype=dtype) / fs), y
