"""Bits of bytes, and arrays from files and buffers by way of NumPy."""

from .. import _rlx
from ._base import array, axis_of, cast, constant, node, op, truth, value
from ._shapes import expand_dims, moveaxis, ravel, reshape


def _weights(order):
    if order not in ("big", "little"):
        raise ValueError(f'bit order {order!r}; "big" and "little" are there')
    return list(range(7, -1, -1)) if order == "big" else list(range(8))


@op("x")
def packbits(x, axis=None, bitorder="big"):
    """Truth values as the bits of bytes along an axis, the last byte filled up with zeros."""
    places = _weights(bitorder)
    x = truth(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim, "packbits")
    x = moveaxis(cast(x, "uint8"), axis, -1)
    n = x.shape[-1]
    x = _rlx.pad([x, constant(0, "uint8")], [0] * x.ndim, [0] * (x.ndim - 1) + [-n % 8], [0] * x.ndim)
    x = reshape(x, (*x.shape[:-1], -(-n // 8), 8))
    x = node("shl", x, constant(places, "uint8"))
    return moveaxis(node("reduce_sum", x, axes=[x.ndim - 1], keep_dims=False), -1, axis)


@op("x")
def unpackbits(x, axis=None, count=None, bitorder="big"):
    """The bits of uint8 numbers along an axis, as uint8; `count` of them, or all but so many where it is negative."""
    places = _weights(bitorder)
    x = value(x)
    if x.dtype.name != "uint8":
        raise TypeError(f"unpackbits of {x.dtype.name}: it takes uint8")
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim, "unpackbits")
    x = moveaxis(x, axis, -1)
    bits = node("bit_and", node("shr", expand_dims(x, -1), constant(places, "uint8")), 1)
    n = 8 * x.shape[-1]
    bits = reshape(bits, (*x.shape[:-1], n))
    if count is not None:
        count = n + count if count < 0 else count
        more = max(count - n, 0)
        bits = _rlx.pad([bits, constant(0, "uint8")], [0] * bits.ndim, [0] * (bits.ndim - 1) + [more], [0] * bits.ndim)
        bits = bits[..., :count]
    return moveaxis(bits, -1, axis)


def _numpy(name, text):
    def function(*args, dtype=None, **kwargs):
        import numpy as np

        from ._dtypes import _numpy_dtype

        kind = {} if dtype is None else {"dtype": _numpy_dtype(dtype)}
        return array(getattr(np, name)(*args, **kind, **kwargs))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text + f" Arguments are those of numpy.{name}."
    return function


frombuffer = _numpy("frombuffer", "An array of a copy of a buffer's bytes.")
fromiter = _numpy("fromiter", "An array of what an iterator gives.")
fromstring = _numpy("fromstring", "An array of the numbers in a text.")
fromfile = _numpy("fromfile", "An array of a file's bytes or numbers.")


def _storable(x):
    """x as NumPy's array, if a file of NumPy's says enough of its dtype to read it again."""
    import numpy as np

    out = np.asarray(x)
    # NumPy writes dtypes of ml_dtypes as bytes without a meaning; of those with two bytes only bfloat16 is there.
    if out.dtype.isbuiltin == 2 and out.dtype.name != "bfloat16":
        way = "rlx.save_safetensors keeps it, or cast" if "float8" in out.dtype.name else "cast"
        raise TypeError(f"an array of {out.dtype.name} in NumPy's file format, which lacks it: {way} the array")
    return out


def _stored(x):
    """The array that was stored as x: two bytes without a meaning are a bfloat16, as in jax.numpy.load."""
    if x.dtype.kind == "V" and x.dtype.names is None:
        if x.dtype.itemsize != 2:
            raise TypeError(
                f"load: elements of {x.dtype.itemsize} bytes without a dtype; rlx.array(numpy.load(file).view(dtype)) "
                "says what they are"
            )
        import ml_dtypes

        x = x.view(ml_dtypes.bfloat16)
    return array(x)


def save(file, arr):
    """Writes an array to a file in NumPy's format .npy; bfloat16 as two bytes without a meaning, which load reads."""
    import numpy as np

    np.save(file, _storable(arr))


def savez(file, *arrays, **named):
    """Writes arrays to a file in NumPy's format .npz."""
    import numpy as np

    np.savez(file, *map(_storable, arrays), **{k: _storable(v) for k, v in named.items()})


def load(file):
    """The array of a .npy file, or a dict of those of an .npz file; two bytes without a dtype are a bfloat16."""
    import numpy as np

    found = np.load(file)
    if isinstance(found, np.ndarray):
        return _stored(found)
    with found:
        return {k: _stored(found[k]) for k in found.files}
