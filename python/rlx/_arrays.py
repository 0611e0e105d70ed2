"""Arrays from Python objects and from arrays of other libraries."""

from . import _rlx
from ._op import _as_array, _has_value, array_of_list, on_device


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


def _check_order(order, what):
    if order not in (None, "C", "F", "A", "K"):
        raise ValueError(f"{what}: order {order!r}; it must be one of C, F, A and K, and has no effect")


def array(x, dtype=None, copy=True, order="K", ndmin=0, *, device=None):
    """An array with a copy of x: a number, nested lists of numbers and arrays, or any object with the buffer protocol,
    DLPack or __array__.

    Without `dtype`, Python numbers become float32, int32 (int64 if they need it), bool or complex64. With copy=False
    the bytes of x are shared if they can be. ndmin: the least number of axes; new ones come first. order has no effect:
    arrays are stored row by row.
    """
    if order != "K":
        _check_order(order, "array")
    out = _made(x, dtype, copy or copy is None)
    out = out._with_weak(False) if isinstance(out, _rlx.Array) and out.weak_type else out
    if out.ndim < ndmin:
        out = out.reshape((1,) * (ndmin - out.ndim) + tuple(out.shape))
    return on_device(out, device, "array")


def asarray(x, dtype=None, order=None, *, copy=None, device=None):
    """The same as array, but shares the bytes of x if they are dense and aligned. Nobody may write to them
    afterwards. copy=True always copies; copy=False is an error where the bytes cannot be shared.
    """
    if order is not None:
        _check_order(order, "asarray")
    # A trace compares its constants with those of later calls, so it does not share what somebody may write to.
    out = on_device(_made(x, dtype, bool(copy) or (copy is None and _rlx.tracing())), device, "asarray")
    return _shared(x, out, "asarray") if copy is False else out


def _shared(x, out, what):
    """out, if it is x or shares its bytes."""
    if out is x or isinstance(x, _rlx.Value) and out.dtype == x.dtype:
        return out
    if isinstance(x, _rlx.Array):
        if x.dtype == out.dtype and x.device == out.device:
            return out
    elif isinstance(out, _rlx.Array) and not isinstance(x, (bool, int, float, complex, list, tuple)):
        import numpy as np

        if out.size == 0 or np.asarray(x).__array_interface__["data"][0] == out._address():
            return out
    raise ValueError(f"{what}: copy=False, but a copy of this {type(x).__name__} is needed; leave copy=None")


def from_dlpack(x, *, device=None, copy=None):
    """An array that shares the memory of an array of another library, on the host or on a device; with copy=True a
    copy of it.
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: an object of type {type(x).__name__} has no __dlpack__")
    return on_device(_rlx.array_from(x, None, bool(copy)), device, "from_dlpack")
