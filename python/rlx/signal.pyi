# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from . import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

def blackman_window(n: Any, symmetric: bool = False, dtype: DTypeLike | None = None) -> Array: ...
def fft_conv1d(x: ArrayLike, w: Any, mode: str = 'full') -> Array: ...
def hamming_window(n: Any, symmetric: bool = False, dtype: DTypeLike | None = None) -> Array: ...
def hann_window(n: Any, symmetric: bool = False, dtype: DTypeLike | None = None) -> Array: ...
def istft(
    x: ArrayLike,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool = True,
    length: Any = None,
) -> Array: ...
def kaiser_window(n: Any, beta: Any, symmetric: bool = False, dtype: DTypeLike | None = None) -> Array: ...
def log_mel(
    y: ArrayLike,
    sr: Any = 22050,
    n_fft: Any = 2048,
    hop_length: Any = 512,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: Any = 'constant',
    power: Any = 2.0,
    n_mels: Any = 128,
    fmin: Any = 0.0,
    fmax: Any = None,
    htk: bool = False,
    norm: Any = 'slaney',
    ref: Any = 1.0,
    amin: Any = 1e-10,
    top_db: Any = 80.0,
) -> Array: ...
def mel_filterbank(
    sr: Any,
    n_fft: Any,
    n_mels: Any = 128,
    fmin: Any = 0.0,
    fmax: Any = None,
    htk: bool = False,
    norm: Any = 'slaney',
    dtype: DTypeLike | None = None,
) -> Array: ...
def next_fast_len(target: Any) -> int: ...
def stft(
    x: ArrayLike,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: Any = 'reflect',
    normalized: bool = False,
    onesided: bool = True,
) -> Array: ...
def welch_peaks(
    x: ArrayLike,
    count: Any,
    fs: Any = 1.0,
    window: Any = None,
    nperseg: Any = 256,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = 'constant',
) -> tuple[Array, Array]: ...
