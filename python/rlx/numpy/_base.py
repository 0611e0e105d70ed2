"""Helpers of the modules of rlx.numpy."""

import math

from .. import _rlx
from .._arrays import array, asarray
from .._nodes import (
    as_index,
    axes_of,
    axis_of,
    cast,
    constant,
    dims_of,
    extent_value,
    filled,
    index_round,
    inexact,
    near_diagonal,
    node,
)
from .._op import _as_array, creator, op, refuse_traced

__all__ = [
    "array",
    "as_index",
    "asarray",
    "axes_of",
    "axis_of",
    "both_inexact",
    "cast",
    "common",
    "constant",
    "creator",
    "dims_of",
    "dtype_of",
    "extent_value",
    "filled",
    "float_of",
    "held",
    "index_round",
    "inexact",
    "int_static",
    "named",
    "near_diagonal",
    "node",
    "op",
    "reduced",
    "summed",
    "typed",
    "truth",
    "value",
    "FLOATS",
    "largest",
    "refuse_shape",
    "refuse_traced",
]

value = _rlx.value

# For each floating dtype: the bits of the fraction, and the least and largest exponent of normal numbers.
FLOATS = {
    "float16": (10, -14, 15),
    "bfloat16": (7, -126, 127),
    "float32": (23, -126, 127),
    "float64": (52, -1022, 1023),
}


def float_of(dtype):
    """The real dtype of the parts of a complex dtype; other dtypes unchanged."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name)


def largest(dtype):
    """The largest finite number of a floating dtype."""
    bits, _, top = FLOATS[dtype.name]
    return math.ldexp(2.0 - math.ldexp(1.0, -bits), top)


def truth(x):
    """x as bool: True where it is not zero."""
    x = value(x)
    return x if x.dtype.kind == "b" else node("ne", x, 0)


def both_inexact(x, y):
    """x and y as operands of a function of floating or complex numbers."""
    dtype, weak = _rlx.result_type(x, y)
    if dtype.kind in "fc":
        return x, y
    return cast(x, "float32")._with_weak(weak), cast(y, "float32")._with_weak(weak)


def typed(x, y):
    """x and y, cast to their common dtype."""
    dtype, weak = _rlx.result_type(x, y)
    return cast(x, dtype)._with_weak(weak), cast(y, dtype)._with_weak(weak)


def common(arrays, what):
    """The arrays, cast to their common dtype."""
    if isinstance(arrays, (_rlx.Array, _rlx.Value)):
        arrays = list(arrays)
    if not arrays:
        raise ValueError(f"{what}: no arrays")
    arrays = [_as_array(a) for a in arrays]
    dtype, _ = _rlx.result_type(*arrays)
    return [cast(a, dtype) for a in arrays]


def int_static(x, what):
    """x as a Python integer."""
    if isinstance(x, _rlx.Value):
        refuse_traced(x, what)
    try:
        return x.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{what} must be a Python integer, got {type(x).__name__}") from None


def summed(x, dtype, promote_integers=True):
    """x as the operand of a sum or a product. Bools become 32-bit integers, and small integers too if
    promote_integers.
    """
    x = value(x)
    if dtype is not None:
        return cast(x, dtype)
    if not promote_integers and x.dtype.kind != "b":
        return x
    if x.dtype.kind == "b" or (x.dtype.kind == "i" and x.dtype.itemsize < 4):
        return cast(x, "int32")
    if x.dtype.kind == "u" and x.dtype.itemsize < 4:
        return cast(x, "uint32")
    return x


def reduced(x, fn, axis, keepdims, what):
    """The reduction `fn` of the op table; over no axes x itself."""
    x = value(x)
    axes = axes_of(axis, x.ndim, what)
    return node("reduce_" + fn, x, axes=axes, keep_dims=bool(keepdims)) if axes else x


def held(x):
    """x as an array; traced values unchanged."""
    return x if isinstance(x, (_rlx.Array, _rlx.Value)) else array(x)


def dtype_of(x):
    """The dtype of an array, a number, or another object that an array can be made from."""
    return _rlx.result_type(x)[0]


def named(function, name, text):
    """The function with this name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def refuse_shape(what, way):
    """Raises the error about shapes that depend on values."""
    raise TypeError(
        f"{what}: the number of elements of the result depends on values, which a compiled function does not know: "
        f"give {way}, or call it outside of compiled functions"
    )
