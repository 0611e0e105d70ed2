"""Arrays from what Python and other libraries have."""

from . import _rlx


def array(x, dtype=None):
    """An array of a copy of x: a number, nested lists, anything with the buffer protocol, DLPack or __array__.

    Without `dtype` Python's numbers become float32, int32 (int64 where they need it), bool or complex64.
    """
    if isinstance(x, _rlx.Value):
        return x if dtype is None else x.astype(dtype)
    out = _rlx.array_from(x, dtype, True)
    return out._with_weak(False) if out.weak_type else out


def asarray(x, dtype=None):
    """The same, sharing the bytes where they are dense and aligned: then nobody may write to them any more."""
    if isinstance(x, _rlx.Value):
        return x if dtype is None else x.astype(dtype)
    return _rlx.array_from(x, dtype, False)


def from_dlpack(x):
    """An array that shares the memory of another library's, on the host or a device."""
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: an object of type {type(x).__name__} has no __dlpack__")
    return _rlx.array_from(x, None, False)
