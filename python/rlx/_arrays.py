"""Arrays from Python objects and from arrays of other libraries."""

from . import _rlx
from ._op import _as_array, _has_value, array_of_list


def _joined(x, dtype):
    """A traced value, or a list with arrays or traced values in it, as one array; None for other objects."""
    if not _has_value(x, (_rlx.Value, _rlx.Array) if isinstance(x, (list, tuple)) else _rlx.Value):
        return None
    x = _as_array(x)
    return x if dtype is None else x.astype(dtype)


def _made(x, dtype, copy):
    try:
        joined = _joined(x, dtype)
        if joined is None and isinstance(x, (list, tuple)):
            return array_of_list(x, dtype, copy)
        return _rlx.array_from(x, dtype, copy) if joined is None else joined
    except RecursionError:
        raise ValueError("array: lists are nested too deeply; check whether a list contains itself") from None


def array(x, dtype=None):
    """An array with a copy of x: a number, nested lists of numbers and arrays, or any object with the buffer protocol,
    DLPack or __array__.

    Without `dtype`, Python numbers become float32, int32 (int64 if they need it), bool or complex64.
    """
    out = _made(x, dtype, True)
    return out._with_weak(False) if isinstance(out, _rlx.Array) and out.weak_type else out


def asarray(x, dtype=None):
    """The same as array, but shares the bytes of x if they are dense and aligned. Nobody may write to them
    afterwards.
    """
    return _made(x, dtype, False)


def from_dlpack(x):
    """An array that shares the memory of an array of another library, on the host or on a device."""
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: an object of type {type(x).__name__} has no __dlpack__")
    return _rlx.array_from(x, None, False)
