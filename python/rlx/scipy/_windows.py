"""Windows of the functions of scipy.signal, which are names or arrays."""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import axis_of
from ..numpy._base import cast, int_static
from ..signal import _window


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
    if name in ("triang", "triangle"):  # the triangle of n + 1 elements, whose ends are not 0, without its last one
        return 1 - rnp.abs((2 * rnp.arange(n, dtype="float64") - n) / (n + 2 - n % 2))
    return _rlx.value(_window({"hanning": "hann"}.get(name, name), n, False, "float64", *parameters))


def _real_of(dtype):
    return "float64" if dtype.name in ("float64", "complex128") else "float32"
