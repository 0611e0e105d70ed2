"""Signal processing: short-time Fourier transforms as in torch.stft, mel spectra as in librosa, FFT convolution,
windows.

rlx.scipy.signal has the functions of SciPy, rlx.numpy.fft the Fourier transforms.
"""

from . import _rlx
from ._arrays import asarray
from ._op import op
from ._names import accept_names as _accept_names

__all__ = [
    "blackman_window",
    "fft_conv1d",
    "hamming_window",
    "hann_window",
    "istft",
    "kaiser_window",
    "log_mel",
    "mel_filterbank",
    "next_fast_len",
    "stft",
    "welch_peaks",
]


def _frames(n_fft, hop, win_length, center, pad, normalized, onesided):
    return {
        "n_fft": n_fft,
        "hop": hop or 0,
        "win_length": win_length or 0,
        "center": bool(center),
        "pad": pad,
        "normalized": bool(normalized),
        "onesided": bool(onesided),
    }


def _length(name, n, least=1):
    if n is not None and n < least:
        raise ValueError(f"{name} = {n} is below {least}")


@op("x", "window")
def stft(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=True,
):
    """Short-time Fourier transforms of x [.., T], as torch.stft: complex [.., frequencies, frames]. pad_mode gives the
    padding of centred frames: "reflect", "constant" or "edge".
    """
    _length("hop_length", hop_length), _length("win_length", win_length)
    options = _frames(n_fft, hop_length, win_length, center, pad_mode, normalized, onesided)
    return _rlx.stft([_rlx.value(x), window], options)


@op("x", "window")
def istft(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=True,
    length=None,
):
    """The inverse of stft, as torch.istft: overlap-add of windowed frames, divided by the sum of squared windows."""
    _length("hop_length", hop_length), _length("win_length", win_length)
    options = _frames(n_fft, hop_length, win_length, center, "reflect", normalized, onesided)
    return _rlx.istft([_rlx.value(x), window], options, length)


@op("x", "w")
def fft_conv1d(x, w, mode="full"):
    """The linear convolution along the last axis, "full", "same" or "valid", by FFT. Other axes broadcast."""
    return _rlx.fft_conv1d([_rlx.value(x), _rlx.value(w)], mode)


def next_fast_len(target):
    """The least length >= target without prime factors above 7."""
    return _rlx.next_fast_len(target)


def _window(name, n, symmetric, dtype, beta=0.0):
    out = asarray(_rlx.signal_window(name, n, float(beta), bool(symmetric)))
    return out.astype(_rlx.dtype("float32" if dtype is None else dtype))


def hann_window(n, symmetric=False, dtype=None):
    """0.5 - 0.5 cos(2 pi j / n), with n - 1 in place of n if symmetric."""
    return _window("hann", n, symmetric, dtype)


def hamming_window(n, symmetric=False, dtype=None):
    """0.54 - 0.46 cos(2 pi j / n)."""
    return _window("hamming", n, symmetric, dtype)


def blackman_window(n, symmetric=False, dtype=None):
    """0.42 - 0.5 cos(2 pi j / n) + 0.08 cos(4 pi j / n)."""
    return _window("blackman", n, symmetric, dtype)


def kaiser_window(n, beta, symmetric=False, dtype=None):
    """I0(beta sqrt(1 - (2 j / n - 1)^2)) / I0(beta)."""
    return _window("kaiser", n, symmetric, dtype, beta)


def _mel(sr, n_fft, n_mels, fmin, fmax, htk, norm):
    if norm not in ("slaney", None):
        raise ValueError(f"norm {norm!r} is neither 'slaney' nor None")
    return {
        "sample_rate": float(sr),
        "n_fft": n_fft,
        "n_mels": n_mels,
        "fmin": float(fmin),
        "fmax": float(fmax or 0),
        "htk": bool(htk),
        "slaney_norm": norm == "slaney",
    }


def mel_filterbank(sr, n_fft, n_mels=128, fmin=0.0, fmax=None, htk=False, norm="slaney", dtype=None):
    """A mel filter bank [n_mels, n_fft // 2 + 1], as librosa.filters.mel."""
    out = asarray(_rlx.mel_filterbank(_mel(sr, n_fft, n_mels, fmin, fmax, htk, norm)))
    return out.astype(_rlx.dtype("float32" if dtype is None else dtype))


@op("y", "window")
def log_mel(
    y,
    sr=22050,
    n_fft=2048,
    hop_length=512,
    win_length=None,
    window=None,
    center=True,
    pad_mode="constant",
    power=2.0,
    n_mels=128,
    fmin=0.0,
    fmax=None,
    htk=False,
    norm="slaney",
    ref=1.0,
    amin=1e-10,
    top_db=80.0,
):
    """The mel spectrogram of y [.., T] in decibels [.., n_mels, frames], as librosa.power_to_db of
    librosa.feature.melspectrogram. Values are at least the maximum of the signal minus top_db.
    """
    _length("hop_length", hop_length), _length("win_length", win_length)
    mel = _mel(sr, n_fft, n_mels, fmin, fmax, htk, norm)
    options = _frames(n_fft, hop_length, win_length, center, pad_mode, False, True)
    top = None if top_db is None else float(top_db)
    return _rlx.log_mel([_rlx.value(y), window], mel, options, float(power), float(amin), float(ref), top)


def _welch_options(fs, nperseg, noverlap, nfft, detrend, scaling, average):
    if detrend not in ("constant", False, None):
        raise ValueError(f"detrend {detrend!r} is neither 'constant' nor False")
    return {
        "fs": float(fs),
        "nperseg": nperseg,
        "noverlap": -1 if noverlap is None else noverlap,
        "nfft": nfft or 0,
        "detrend": detrend == "constant",
        "scaling": scaling,
        "average": average,
    }


@op("x", "window")
def welch_peaks(x, count, fs=1.0, window=None, nperseg=256, noverlap=None, nfft=None, detrend="constant"):
    """(frequencies, powers) [.., count] of the highest local maxima of the one-sided power density of x [.., T], which
    is that of rlx.scipy.signal.welch. Missing maxima are NaN.
    """
    options = _welch_options(fs, nperseg, noverlap, nfft, detrend, "density", "mean")
    return _rlx.welch_peaks([_rlx.value(x), window], count, options)


_accept_names(globals())
