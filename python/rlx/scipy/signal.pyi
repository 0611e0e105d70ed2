# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

def convolve(in1: Any, in2: Any, mode: str = 'full', method: Any = 'auto', precision: Any = None) -> Array: ...
def convolve2d(
    in1: Any,
    in2: Any,
    mode: str = 'full',
    boundary: Any = 'fill',
    fillvalue: Any = 0,
    precision: Any = None,
) -> Array: ...
def correlate(in1: Any, in2: Any, mode: str = 'full', method: Any = 'auto', precision: Any = None) -> Array: ...
def correlate2d(
    in1: Any,
    in2: Any,
    mode: str = 'full',
    boundary: Any = 'fill',
    fillvalue: Any = 0,
    precision: Any = None,
) -> Array: ...
def csd(
    x: ArrayLike,
    y: ArrayLike,
    fs: Any = 1.0,
    window: Any = 'hann',
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = 'constant',
    return_onesided: bool = True,
    scaling: Any = 'density',
    axis: Axis = -1,
    average: Any = 'mean',
) -> tuple[Array, Array]: ...
def detrend(data: Any, axis: Axis = -1, type: Any = 'linear', bp: Any = 0, overwrite_data: Any = None) -> Array: ...
def fftconvolve(in1: Any, in2: Any, mode: str = 'full', axes: Any = None) -> Array: ...
def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = 'hann',
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: Any = -1,
    freq_axis: Any = -2,
    scaling: Any = 'spectrum',
) -> tuple[Array, Array]: ...
def stft(
    x: ArrayLike,
    fs: Any = 1.0,
    window: Any = 'hann',
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: bool = False,
    return_onesided: bool = True,
    boundary: Any = 'zeros',
    padded: bool = True,
    axis: Axis = -1,
    scaling: Any = 'spectrum',
) -> tuple[Array, Array, Array]: ...
def welch(
    x: ArrayLike,
    fs: Any = 1.0,
    window: Any = 'hann',
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = 'constant',
    return_onesided: bool = True,
    scaling: Any = 'density',
    axis: Axis = -1,
    average: Any = 'mean',
) -> tuple[Array, Array]: ...
