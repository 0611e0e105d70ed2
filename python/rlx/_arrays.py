"""Arrays from what Python and other libraries have."""

from . import _rlx
from ._op import array_of_list


def _joined(x, dtype):
    """A traced value, or lists with arrays or traced values in them, as one; None: there are none."""
    from ._op import _as_array, _has_value

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
        raise ValueError("array: lists nested too deep for an array; does a list hold itself?") from None


def array(x, dtype=None):
    """An array of a copy of x: a number, nested lists of them and arrays, anything with the buffer protocol, DLPack or
    __array__.

    Without `dtype` Python's numbers become float32, int32 (int64 where they need it), bool or complex64.
    """
    out = _made(x, dtype, True)
    return out._with_weak(False) if isinstance(out, _rlx.Array) and out.weak_type else out


def asarray(x, dtype=None):
    """The same, sharing the bytes where they are dense and aligned: then nobody may write to them any more."""
    return _made(x, dtype, False)


def from_dlpack(x):
    """An array that shares the memory of another library's, on the host or a device."""
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: an object of type {type(x).__name__} has no __dlpack__")
    return _rlx.array_from(x, None, False)
