# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

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
