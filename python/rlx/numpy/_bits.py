"""Packing of bits, and arrays from files and buffers by way of NumPy."""

import io
import os

from .. import _rlx
from ._base import array, axis_of, cast, constant, named, node, op, truth, value
from ._dtypes import _numpy_dtype
from ._shapes import expand_dims, moveaxis, ravel, reshape


def _weights(order):
    if order not in ("big", "little"):
        raise ValueError(f'bit order {order!r}; it must be "big" or "little"')
    return list(range(7, -1, -1)) if order == "big" else list(range(8))


@op("x")
def packbits(x, axis=None, bitorder="big"):
    """Packs bools into the bits of bytes along an axis. The last byte is filled with zeros."""
    places = _weights(bitorder)
    if _rlx.value(x).dtype.kind not in "biu":
        raise TypeError(f"packbits of {_rlx.value(x).dtype.name}: it takes bools and integers")
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
    """Unpacks uint8 numbers into bits along an axis, as uint8. count: the number of bits; a negative one drops as many
    at the end.
    """
    places = _weights(bitorder)
    x = value(x)
    if x.dtype.name != "uint8":
        raise TypeError(f"unpackbits: x must be uint8, got {x.dtype.name}")
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

        kind = {} if dtype is None else {"dtype": _numpy_dtype(dtype)}
        return array(getattr(np, name)(*args, **kind, **kwargs))

    return named(function, name, text + f" Arguments are those of numpy.{name}.")


frombuffer = _numpy("frombuffer", "An array of a copy of a buffer's bytes.")
fromiter = _numpy("fromiter", "An array of the items of an iterator.")
fromstring = _numpy("fromstring", "An array of the numbers in a string.")
fromfile = _numpy("fromfile", "An array of the bytes or the numbers in a file.")


def _storable(x):
    """x as a NumPy array. Raises an error for a dtype that a file of NumPy cannot describe."""
    import numpy as np

    out = np.asarray(x)
    # NumPy writes dtypes of ml_dtypes as bytes without a name. Among the two-byte ones only bfloat16 can be recognized.
    if out.dtype.isbuiltin == 2 and out.dtype.name != "bfloat16":
        way = "rlx.save_safetensors keeps it, or cast" if "float8" in out.dtype.name else "cast"
        raise TypeError(f"an array of {out.dtype.name} cannot be stored in NumPy's file format: {way} the array")
    return out


def _stored(x):
    """The array of a file of NumPy. A two-byte dtype without a name is bfloat16, as in jax.numpy.load."""
    if x.dtype.kind == "V" and x.dtype.names is None:
        if x.dtype.itemsize != 2:
            raise TypeError(
                f"load: elements of {x.dtype.itemsize} bytes without a dtype; use "
                "rlx.array(numpy.load(file).view(dtype))"
            )
        import ml_dtypes

        x = x.view(ml_dtypes.bfloat16)
    return array(x)


def _write(file, ending, write):
    """Writes a file object, or a file as a whole. As in NumPy, a path without the ending gets it."""
    if hasattr(file, "write"):
        return write(file)
    path = os.fspath(file)
    content = io.BytesIO()
    write(content)
    _rlx.write_file(path if path.endswith(ending) else path + ending, content.getvalue())


def save(file, arr):
    """Writes an array to a .npy file. bfloat16 is written as a two-byte dtype without a name, which load reads."""
    import numpy as np

    arr = _storable(arr)
    _write(file, ".npy", lambda to: np.save(to, arr))


def savez(file, *arrays, **named):
    """Writes arrays to an .npz file."""
    import numpy as np

    arrays, named = [_storable(a) for a in arrays], {k: _storable(v) for k, v in named.items()}
    _write(file, ".npz", lambda to: np.savez(to, *arrays, **named))


def load(file, *, allow_pickle=False):
    """The array of a .npy file, or a dict with the arrays of an .npz file. A two-byte dtype without a name is
    bfloat16. allow_pickle has no effect: pickled objects are not arrays of numbers.
    """
    import numpy as np

    found = np.load(file)
    if isinstance(found, np.ndarray):
        return _stored(found)
    with found:
        return {k: _stored(found[k]) for k in found.files}
