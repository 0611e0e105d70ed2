"""What the families of rlx.numpy share."""

import math

from .. import _rlx
from .._arrays import array, asarray
from .._op import _as_array, axes_of, axis_of, cast, creator, extent_value, index_round, inexact, node, op
from .._op import as_index, refuse_traced

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
    "extent_value",
    "dims_of",
    "dtype_of",
    "float_of",
    "index_round",
    "inexact",
    "int_static",
    "named",
    "near_diagonal",
    "node",
    "op",
    "typed",
    "truth",
    "value",
    "FLOATS",
    "largest",
    "refuse_shape",
    "refuse_traced",
]

value = _rlx.value

# Of each floating dtype: bits of the fraction, least and largest exponent of normal numbers.
FLOATS = {
    "float16": (10, -14, 15),
    "bfloat16": (7, -126, 127),
    "float32": (23, -126, 127),
    "float64": (52, -1022, 1023),
}


def float_of(dtype):
    """The real dtype of the parts of a complex one; others as they are."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name)


def largest(dtype):
    """The largest finite number of a floating dtype."""
    bits, _, top = FLOATS[dtype.name]
    return math.ldexp(2.0 - math.ldexp(1.0, -bits), top)


def truth(x):
    """x as truth values: whether it is not zero."""
    x = value(x)
    return x if x.dtype.kind == "b" else node("ne", x, 0)


def both_inexact(x, y):
    """x and y as operands of a function of floating or complex numbers."""
    dtype, weak = _rlx.result_type(x, y)
    if dtype.kind in "fc":
        return x, y
    return cast(x, "float32")._with_weak(weak), cast(y, "float32")._with_weak(weak)


def typed(x, y):
    """x and y, both in their common dtype."""
    dtype, weak = _rlx.result_type(x, y)
    return cast(x, dtype)._with_weak(weak), cast(y, dtype)._with_weak(weak)


def common(arrays, what):
    """Arrays in their common dtype."""
    if isinstance(arrays, (_rlx.Array, _rlx.Value)):
        arrays = list(arrays)
    if not arrays:
        raise ValueError(f"{what}: no arrays")
    arrays = [_as_array(a) for a in arrays]
    dtype, _ = _rlx.result_type(*arrays)
    return [cast(a, dtype) for a in arrays]


def constant(x, dtype):
    """A number or nested list as a value."""
    return value(_rlx.array_from(x, dtype))._with_weak(False)


def dims_of(shape):
    """A shape as a tuple; an integer is a shape of one axis."""
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def int_static(x, what):
    """x as a Python integer."""
    if isinstance(x, _rlx.Value):
        refuse_traced(x, what)
    try:
        return x.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{what} is a Python integer, got {type(x).__name__}") from None


def near_diagonal(k, n, m):
    """The number of a diagonal of an [n, m] array; of one far outside the first beside it, which int32 can count to."""
    if isinstance(k, (_rlx.Array, _rlx.Value)) or not hasattr(k, "__index__"):
        return k
    low, high = (d if isinstance(d, int) else 2**30 for d in (n, m))
    return max(-low, min(k.__index__(), high))


def dtype_of(x):
    """The dtype of an array, a number, or anything an array is made of."""
    return _rlx.result_type(x)[0]


def named(function, name, text):
    """function with a name and a docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def refuse_shape(what, way):
    """Raises what is said about shapes that depend on values."""
    raise TypeError(
        f"{what}: how many elements the result has depends on values, which a compiled function does "
        f"not know when it is "
        f"traced: give {way}, or call it outside of compiled functions"
    )
