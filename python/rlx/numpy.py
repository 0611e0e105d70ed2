"""NumPy's functions over rlx arrays: at once on arrays, as nodes inside compiled functions.

Differences from NumPy are those of JAX: arrays are immutable, Python numbers are weakly typed, indices out of range are
clamped when read and dropped when written, shapes do not depend on values. Defaults are float32 and int32.
"""
import builtins as _builtins
import math as _math

from . import _rlx
from ._arrays import array, asarray  # noqa: F401
from ._op import axes_of as _axes_of
from ._op import cast as _cast
from ._op import creator as _creator
from ._op import inexact as _inexact
from ._op import node as _node
from ._op import op as _op

pi, e, inf, nan, euler_gamma = _math.pi, _math.e, _math.inf, _math.nan, 0.57721566490153286061
newaxis = None
ndarray = _rlx.Array
for _d in _rlx.dtypes:
    globals()["bool_" if _d.name == "bool" else _d.name] = _d
del _d


# -- functions of one array --


def _unary(name, text, floating=True):
    @_op("x")
    def function(x):
        x = _inexact(x) if floating else _rlx.value(x)
        return _node(name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


exp = _unary("exp", "e to the power of x.")
exp2 = _unary("exp2", "2 to the power of x.")
expm1 = _unary("expm1", "exp(x) - 1, accurate near 0.")
log = _unary("log", "The natural logarithm.")
log2 = _unary("log2", "The logarithm to base 2.")
log10 = _unary("log10", "The logarithm to base 10.")
log1p = _unary("log1p", "log(1 + x), accurate near 0.")
sqrt = _unary("sqrt", "The square root.")
cbrt = _unary("cbrt", "The cube root.")
sin = _unary("sin", "The sine of x in radians.")
cos = _unary("cos", "The cosine of x in radians.")
tan = _unary("tan", "The tangent of x in radians.")
arcsin = _unary("asin", "The angle whose sine is x.")
arccos = _unary("acos", "The angle whose cosine is x.")
arctan = _unary("atan", "The angle whose tangent is x.")
sinh = _unary("sinh", "The hyperbolic sine.")
cosh = _unary("cosh", "The hyperbolic cosine.")
tanh = _unary("tanh", "The hyperbolic tangent.")
arcsinh = _unary("asinh", "The inverse of sinh.")
arccosh = _unary("acosh", "The inverse of cosh.")
arctanh = _unary("atanh", "The inverse of tanh.")
square = _unary("square", "x * x.", floating=False)
asin, acos, atan, asinh, acosh, atanh = arcsin, arccos, arctan, arcsinh, arccosh, arctanh


@_op("x")
def negative(x):
    """-x."""
    x = _rlx.value(x)
    if x.dtype.kind == "b":
        raise TypeError("negative of truth values: use logical_not or ~")
    return _node("neg", x)


@_op("x")
def abs(x):
    """The magnitude of each element."""
    x = _rlx.value(x)
    return x if x.dtype.kind in "bu" else _node("abs", x)


absolute = abs


@_op("x")
def fabs(x):
    """The magnitude of each element as a floating number."""
    return _node("abs", _inexact(x))


@_op("x")
def sign(x):
    """-1, 0 or 1 by the sign of x; NaN stays."""
    x = _rlx.value(x)
    return _node("sign", x)


@_op("x")
def reciprocal(x):
    """1 / x."""
    return _node("recip", _inexact(x))


def _rounding(name, text):
    @_op("x")
    def function(x):
        x = _rlx.value(x)
        return x if x.dtype.kind in "biu" else _node(name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


floor = _rounding("floor", "The largest integer not above x.")
ceil = _rounding("ceil", "The smallest integer not below x.")
trunc = _rounding("trunc", "x without its fraction.")
rint = _rounding("round", "The nearest integer, ties to even.")
fix = trunc


@_op("x")
def round(x, decimals=0):
    """x to so many decimals, ties to even."""
    x = _rlx.value(x)
    if x.dtype.kind in "biu" and decimals >= 0:
        return x
    if decimals == 0:
        return _node("round", x)
    scale = 10.0 ** _builtins.abs(decimals)
    if decimals > 0:
        return _node("div", _node("round", _node("mul", x, scale)), scale)
    return _node("mul", _node("round", _node("div", x, scale)), scale)


around = round


@_op("x")
def isnan(x):
    """True where x is NaN."""
    x = _rlx.value(x)
    return _node("ne", x, x)


@_op("x")
def isinf(x):
    """True where x is infinite."""
    x = _rlx.value(x)
    if x.dtype.kind in "biu":
        return zeros(x.shape, "bool")
    return _node("eq", _node("abs", x), inf)


@_op("x")
def isfinite(x):
    """True where x is neither infinite nor NaN."""
    x = _rlx.value(x)
    if x.dtype.kind in "biu":
        return ones(x.shape, "bool")
    return _node("lt", _node("abs", x), inf)


@_op("x")
def logical_not(x):
    """True where x is zero."""
    return _node("not", _truth(x))


@_op("x")
def invert(x):
    """Every bit turned over; of truth values their negation."""
    x = _rlx.value(x)
    if x.dtype.kind == "b":
        return _node("not", x)
    if x.dtype.kind not in "iu":
        raise TypeError(f"invert: {x.dtype.name} has no bits to turn; cast it to an integer dtype")
    return _node("bit_xor", x, -1 if x.dtype.kind == "i" else (1 << (8 * x.dtype.itemsize)) - 1)


bitwise_not = invert


def _truth(x):
    x = _rlx.value(x)
    return x if x.dtype.kind == "b" else _node("ne", x, 0)


# -- functions of two arrays --


def _binary(name, text, node=None):
    @_op("x", "y")
    def function(x, y):
        return _node(node or name, x, y)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


add = _binary("add", "x + y.")
multiply = _binary("multiply", "x * y.", "mul")
maximum = _binary("maximum", "The larger of x and y; NaN if either is.", "max")
minimum = _binary("minimum", "The smaller of x and y; NaN if either is.", "min")
equal = _binary("equal", "x == y.", "eq")
not_equal = _binary("not_equal", "x != y.", "ne")
less = _binary("less", "x < y.", "lt")
less_equal = _binary("less_equal", "x <= y.", "le")
greater = _binary("greater", "x > y.", "gt")
greater_equal = _binary("greater_equal", "x >= y.", "ge")
bitwise_and = _binary("bitwise_and", "x & y.", "bit_and")
bitwise_or = _binary("bitwise_or", "x | y.", "bit_or")
bitwise_xor = _binary("bitwise_xor", "x ^ y.", "bit_xor")
left_shift = _binary("left_shift", "x << y.", "shl")
right_shift = _binary("right_shift", "x >> y.", "shr")


@_op("x", "y")
def subtract(x, y):
    """x - y."""
    return _node("sub", x, y)


def _both_inexact(x, y):
    """x and y in their common dtype, which is floating or complex."""
    dtype, weak = _rlx.result_type(x, y)
    if dtype.kind in "fc":
        return x, y
    return _cast(x, "float32")._with_weak(weak), _cast(y, "float32")._with_weak(weak)


@_op("x", "y")
def divide(x, y):
    """x / y; integers become floats."""
    x, y = _both_inexact(x, y)
    return _node("div", x, y)


true_divide = divide


@_op("x", "y")
def floor_divide(x, y):
    """The largest integer not above x / y."""
    dtype, _ = _rlx.result_type(x, y)
    if dtype.kind == "c":
        raise TypeError("floor_divide of complex numbers")
    if dtype.kind == "f":
        return _node("floor", _node("div", x, y))
    if dtype.kind == "b":
        x, y = _cast(x, "int8"), _cast(y, "int8")
    quotient = _node("div", x, y)
    if dtype.kind != "i":
        return quotient
    rest = _node("sub", x, _node("mul", quotient, y))
    opposite = _node("ne", _node("lt", rest, 0), _node("lt", _rlx.value(y), 0))
    down = _node("bit_and", opposite, _node("ne", rest, 0))
    return _node("where", down, _node("sub", quotient, 1), quotient)


@_op("x", "y")
def remainder(x, y):
    """What is left of x divided by y, with the sign of y: Python's %."""
    return _node("mod", x, y)


mod = remainder


@_op("x", "y")
def fmod(x, y):
    """What is left of x divided by y, with the sign of x: C's fmod."""
    rest = _node("mod", _node("abs", _rlx.value(x)), _node("abs", _rlx.value(y)))
    return _node("where", _node("lt", _rlx.value(x), 0), _node("neg", rest), rest)


def divmod(x, y):
    """(x // y, x % y)."""
    return floor_divide(x, y), remainder(x, y)


@_op("x", "y")
def power(x, y):
    """x to the power of y."""
    return _node("pow", x, y)


pow = power


@_op("x")
def _integer_power(x, n):
    """x to the power of a Python integer, by products."""
    x = _rlx.value(x)
    if n < 0:
        x, n = _node("recip", _inexact(x)), -n
    out = None
    while n:
        if n & 1:
            out = x if out is None else _node("mul", out, x)
        n >>= 1
        if n:
            x = _node("mul", x, x)
    return ones_like(x) if out is None else out


@_op("y", "x")
def arctan2(y, x):
    """The angle of the point (x, y), from -pi to pi."""
    y, x = _both_inexact(y, x)
    return _node("atan2", y, x)


atan2 = arctan2


@_op("x", "y")
def hypot(x, y):
    """sqrt(x*x + y*y) without overflow."""
    x, y = _both_inexact(x, y)
    x, y = _node("abs", _rlx.value(x)), _node("abs", _rlx.value(y))
    large, small = _node("max", x, y), _node("min", x, y)
    zero = _node("eq", large, 0)
    ratio = _node("div", small, _node("where", zero, 1, large))
    out = _node("mul", large, _node("sqrt", _node("add", _node("mul", ratio, ratio), 1)))
    infinite = _node("eq", large, inf)
    return _node("where", infinite, inf, out)


@_op("x", "y")
def logaddexp(x, y):
    """log(exp(x) + exp(y))."""
    x, y = _both_inexact(x, y)
    large, difference = _node("max", x, y), _node("sub", x, y)
    out = _node("add", large, _node("log1p", _node("exp", _node("neg", _node("abs", difference)))))
    return _node("where", _node("ne", difference, difference), _node("add", x, y), out)


def _logical(name, node, text):
    @_op("x", "y")
    def function(x, y):
        return _node(node, _truth(x), _truth(y))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


logical_and = _logical("logical_and", "bit_and", "True where both are not zero.")
logical_or = _logical("logical_or", "bit_or", "True where either is not zero.")
logical_xor = _logical("logical_xor", "bit_xor", "True where one of them is not zero.")


@_op("condition", "x", "y")
def where(condition, x=None, y=None):
    """x where condition holds, else y; all three broadcast."""
    if x is None or y is None:
        raise TypeError("where(condition) alone gives places whose number depends on the values: give x and y")
    return _node("where", _truth(condition), x, y)


@_op("x", "min", "max")
def clip(x, min=None, max=None):
    """x, not below min and not above max."""
    if min is not None:
        x = _node("max", x, min)
    if max is not None:
        x = _node("min", x, max)
    return _rlx.value(x)


# -- complex numbers --


@_op("x")
def conj(x):
    """The complex conjugate."""
    x = _rlx.value(x)
    if x.dtype.kind != "c":
        return x
    raise NotImplementedError("conj of complex arrays: this rlx has no op for the parts of complex numbers yet")


@_op("x")
def real(x):
    """The real part."""
    x = _rlx.value(x)
    return x if x.dtype.kind != "c" else _cast(x, "float32" if x.dtype.name == "complex64" else "float64")


@_op("x")
def imag(x):
    """The imaginary part."""
    x = _rlx.value(x)
    if x.dtype.kind != "c":
        return zeros(x.shape, x.dtype)
    minus_i = _rlx.array_from(-1j, x.dtype)
    return real(_node("mul", x, minus_i))


# -- making arrays --


def _dims(shape):
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


@_creator
def zeros(shape, dtype="float32"):
    """An array of zeros."""
    return _full(shape, 0, dtype)


@_creator
def ones(shape, dtype="float32"):
    """An array of ones."""
    return _full(shape, 1, dtype)


def _full(shape, value, dtype):
    return _rlx.expand([_rlx.value(_rlx.array_from(value, dtype))._with_weak(False)], _dims(shape))


@_op("value")
def full(shape, value, dtype=None):
    """An array of one value."""
    x = _rlx.value(value)
    if dtype is not None:
        x = _cast(x, dtype)
    return _rlx.expand([x._with_weak(False)], _dims(shape))


@_op("x")
def zeros_like(x, dtype=None, shape=None):
    """Zeros of the shape and dtype of x."""
    x = _rlx.value(x)
    return _full(x.shape if shape is None else shape, 0, x.dtype if dtype is None else dtype)


@_op("x")
def ones_like(x, dtype=None, shape=None):
    """Ones of the shape and dtype of x."""
    x = _rlx.value(x)
    return _full(x.shape if shape is None else shape, 1, x.dtype if dtype is None else dtype)


@_op("x", "value")
def full_like(x, value, dtype=None):
    """One value in the shape and dtype of x."""
    x = _rlx.value(x)
    return _rlx.expand([_cast(value, x.dtype if dtype is None else dtype)], x.shape)


empty, empty_like = zeros, zeros_like


@_creator
def arange(start, stop=None, step=1, dtype=None):
    """start, start + step, ... below stop."""
    if stop is None:
        start, stop = 0, start
    floating = _builtins.any(isinstance(v, float) for v in (start, stop, step))
    if dtype is None:
        dtype = "float32" if floating else ("int32" if _builtins.all(-(2**31) <= v < 2**31 for v in (start, stop)) else "int64")
    if step == 0:
        raise ValueError("arange: step 0")
    count = _builtins.max(0, _math.ceil((stop - start) / step))
    whole = _rlx.dtype(dtype)
    wide = whole if whole.kind in "iu" else _rlx.dtype("float64")
    x = _node("iota", dims=(count,), dtype=wide, axis=0)
    if step != 1:
        x = _node("mul", x, step)
    if start != 0:
        x = _node("add", x, start)
    return _cast(x, whole)


@_creator
def linspace(start, stop, num=50, endpoint=True, dtype="float32"):
    """num numbers from start to stop, evenly spaced."""
    if num < 0:
        raise ValueError(f"linspace: num {num}")
    steps = num - 1 if endpoint else num
    x = _node("iota", dims=(num,), dtype="float64", axis=0)
    x = _node("add", _node("mul", x, (stop - start) / steps if steps > 0 else 0.0), float(start))
    if endpoint and num > 1:
        last = _node("eq", _node("iota", dims=(num,), dtype="int64", axis=0), num - 1)
        x = _node("where", last, float(stop), x)
    return _cast(x, dtype)


@_creator
def eye(n, m=None, k=0, dtype="float32"):
    """Ones on the k-th diagonal of an [n, m] array of zeros."""
    m = n if m is None else m
    rows = _node("iota", dims=(n, m), dtype="int32", axis=0)
    columns = _node("iota", dims=(n, m), dtype="int32", axis=1)
    return _cast(_node("eq", _node("add", rows, k), columns), dtype)


def identity(n, dtype="float32"):
    """The unit matrix [n, n]."""
    return eye(n, dtype=dtype)


# -- shapes --


@_op("x")
def astype(x, dtype):
    """x as another dtype: floats to integers drop the fraction and saturate, NaN becomes 0."""
    return _cast(x, dtype)


@_op("x")
def reshape(x, shape):
    """The same elements in another shape; one extent may be -1."""
    return _rlx.reshape([x], _dims(shape))


@_op("x")
def ravel(x):
    """The elements in one axis."""
    return _rlx.reshape([x], (-1,))


flatten = ravel


@_op("x")
def transpose(x, axes=None):
    """x with its axes in another order; without `axes` reversed."""
    x = _rlx.value(x)
    perm = list(reversed(range(x.ndim))) if axes is None else list(axes)
    if axes is not None:
        if len(perm) != x.ndim:
            raise ValueError(f"transpose: {len(perm)} axes for an array with {x.ndim}")
        perm = [p % x.ndim if -x.ndim <= p < x.ndim else p for p in perm]
    return _node("transpose", x, perm=perm)


permute_dims = transpose


@_op("x")
def matrix_transpose(x):
    """x with its last two axes swapped."""
    return swapaxes(x, -1, -2)


@_op("x")
def swapaxes(x, a, b):
    """x with two axes swapped."""
    x = _rlx.value(x)
    perm = list(range(x.ndim))
    (a,), (b,) = _axes_of(a, x.ndim, "swapaxes"), _axes_of(b, x.ndim, "swapaxes")
    perm[a], perm[b] = b, a
    return _node("transpose", x, perm=perm)


@_op("x")
def moveaxis(x, source, destination):
    """x with some axes at other places; the others keep their order."""
    x = _rlx.value(x)
    source = [source] if isinstance(source, int) else list(source)
    destination = [destination] if isinstance(destination, int) else list(destination)
    if len(source) != len(destination):
        raise ValueError("moveaxis: source and destination have different lengths")
    source = [_axes_of(a, x.ndim, "moveaxis")[0] for a in source]
    destination = [_axes_of(a, x.ndim, "moveaxis")[0] for a in destination]
    order = [a for a in range(x.ndim) if a not in source]
    for d, s in sorted(zip(destination, source)):
        order.insert(d, s)
    return _node("transpose", x, perm=order)


@_op("x")
def expand_dims(x, axis):
    """x with axes of extent 1 at the places `axis` of the result."""
    x = _rlx.value(x)
    many = axis if isinstance(axis, (tuple, list)) else (axis,)
    places = _axes_of(many, x.ndim + len(many), "expand_dims")
    shape = list(x.shape)
    for p in places:
        shape.insert(p, 1)
    return _rlx.reshape([x], tuple(shape))


@_op("x")
def squeeze(x, axis=None):
    """x without axes of extent 1."""
    x = _rlx.value(x)
    if axis is None:
        drop = [i for i, d in enumerate(x.shape) if d == 1]
    else:
        drop = _axes_of(axis, x.ndim, "squeeze")
        for a in drop:
            if x.shape[a] != 1:
                raise ValueError(f"squeeze: axis {a} has extent {x.shape[a]}, not 1")
    return _rlx.reshape([x], tuple(d for i, d in enumerate(x.shape) if i not in drop))


@_op("x")
def broadcast_to(x, shape):
    """x repeated to a shape that it broadcasts to."""
    return _rlx.expand([x], _dims(shape))


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes broadcast to."""
    from ._indexing import _broadcast_shape

    return _broadcast_shape([_dims(s) for s in shapes])


@_op("arrays")
def broadcast_arrays(*arrays):
    """The arrays, all of the shape that they broadcast to."""
    values = [_rlx.value(a) for a in arrays]
    shape = broadcast_shapes(*[v.shape for v in values])
    return [_rlx.expand([v], shape) for v in values]


def _common(arrays, what):
    if isinstance(arrays, (_rlx.Array, _rlx.Value)):
        arrays = list(arrays)
    if not arrays:
        raise ValueError(f"{what}: no arrays")
    dtype, _ = _rlx.result_type(*arrays)
    return [_cast(a, dtype) for a in arrays]


@_op("arrays")
def concatenate(arrays, axis=0):
    """Arrays joined along an axis; None joins their elements."""
    values = _common(arrays, "concatenate")
    if axis is None:
        values, axis = [_rlx.reshape([v], (-1,)) for v in values], 0
    if values[0].ndim == 0:
        raise ValueError("concatenate: scalars have no axis; stack makes one")
    return _node("concat", *values, axis=_axes_of(axis, values[0].ndim, "concatenate")[0])


concat = concatenate


@_op("arrays")
def stack(arrays, axis=0):
    """Arrays of one shape joined along a new axis."""
    values = _common(arrays, "stack")
    return concatenate([expand_dims(v, axis) for v in values], axis)


@_op("arrays")
def vstack(arrays):
    """Arrays of rows joined along axis 0."""
    return concatenate([expand_dims(_rlx.value(a), 0) if _rlx.value(a).ndim < 2 else a for a in arrays], 0)


@_op("arrays")
def hstack(arrays):
    """Arrays joined along axis 1, vectors along axis 0."""
    values = [_rlx.value(a) for a in arrays]
    values = [expand_dims(v, 0) if v.ndim == 0 else v for v in values]
    return concatenate(values, 0 if values[0].ndim == 1 else 1)


@_op("x")
def split(x, parts, axis=0):
    """x cut along an axis, into so many equal parts or at the given places."""
    x = _rlx.value(x)
    (axis,) = _axes_of(axis, x.ndim, "split")
    n = x.shape[axis]
    if isinstance(parts, int):
        if n % parts:
            raise ValueError(f"split: {n} entries in {parts} equal parts; give the places to cut at")
        cuts = [i * (n // parts) for i in range(parts + 1)]
    else:
        cuts = [0, *parts, n]
    return [x[(slice(None),) * axis + (slice(a, b),)] for a, b in zip(cuts, cuts[1:])]


@_op("x")
def flip(x, axis=None):
    """x with the order along axes reversed."""
    x = _rlx.value(x)
    axes = _axes_of(axis, x.ndim, "flip")
    return _node("reverse", x, axes=axes) if axes else x


@_op("x")
def roll(x, shift, axis=None):
    """x with its elements moved along an axis, those that leave it coming in at the other end."""
    x = _rlx.value(x)
    if axis is None:
        return _rlx.reshape([roll(_rlx.reshape([x], (-1,)), shift, 0)], x.shape)
    shifts = shift if isinstance(shift, (tuple, list)) else [shift] * (len(axis) if isinstance(axis, (tuple, list)) else 1)
    for s, a in zip(shifts, axis if isinstance(axis, (tuple, list)) else [axis]):
        (a,) = _axes_of(a, x.ndim, "roll")
        n = x.shape[a]
        if n and s % n:
            head = (slice(None),) * a
            x = concatenate([x[head + (slice(n - s % n, None),)], x[head + (slice(None, n - s % n),)]], a)
    return x


@_op("x")
def repeat(x, repeats, axis=None):
    """Every element so many times, side by side."""
    x = _rlx.value(x)
    if not isinstance(repeats, int):
        raise TypeError("repeat: `repeats` is a Python integer; with an array the shape would depend on its values")
    if axis is None:
        x, axis = _rlx.reshape([x], (-1,)), 0
    (axis,) = _axes_of(axis, x.ndim, "repeat")
    wide = x.shape[: axis + 1] + (repeats,) + x.shape[axis + 1 :]
    x = _rlx.expand([expand_dims(x, axis + 1)], wide)
    return _rlx.reshape([x], wide[:axis] + (wide[axis] * repeats,) + wide[axis + 2 :])


@_op("x")
def tile(x, reps):
    """x so many times along each axis."""
    x = _rlx.value(x)
    reps = _dims(reps)
    rank = _builtins.max(len(reps), x.ndim)
    reps = (1,) * (rank - len(reps)) + tuple(reps)
    shape = (1,) * (rank - x.ndim) + tuple(x.shape)
    x = _rlx.reshape([x], tuple(v for d in shape for v in (1, d)))
    x = _rlx.expand([x], tuple(v for r, d in zip(reps, shape) for v in (r, d)))
    return _rlx.reshape([x], tuple(r * d for r, d in zip(reps, shape)))


@_op("x", "constant_values")
def pad(x, pad_width, mode="constant", constant_values=0):
    """x with elements before and behind it on each axis: ((before, behind), ...)."""
    x = _rlx.value(x)
    if mode != "constant":
        raise NotImplementedError(f"pad: mode {mode!r}; \"constant\" is there")
    width = [pad_width] if isinstance(pad_width, int) else list(pad_width)
    if _builtins.all(isinstance(w, int) for w in width):
        width = [tuple(width) if len(width) == 2 else (width[0], width[0])] * x.ndim
    elif len(width) == 1:
        width = [tuple(width[0])] * x.ndim
    if len(width) != x.ndim:
        raise ValueError(f"pad: {len(width)} pairs for an array with {x.ndim} axes")
    value = _cast(constant_values, x.dtype)
    return _rlx.pad([x, value], [w[0] for w in width], [w[1] for w in width], [0] * x.ndim)


@_op("x")
def size_of(x, axis):
    """The extent of an axis as an int64 value: what a symbolic extent is in this run."""
    x = _rlx.value(x)
    return _rlx.dim_size([x], axis)


def shape(x):
    """The shape of x."""
    return x.shape if hasattr(x, "shape") else asarray(x).shape


def ndim(x):
    """The number of axes of x."""
    return len(shape(x))


def size(x, axis=None):
    """The number of elements of x, or the extent of one axis."""
    return shape(x)[axis] if axis is not None else _math.prod(shape(x))


@_op("x")
def tril(x, k=0):
    """x with zeros above the k-th diagonal."""
    return _triangle(x, k, "ge")


@_op("x")
def triu(x, k=0):
    """x with zeros below the k-th diagonal."""
    return _triangle(x, k - 1, "lt")


def _triangle(x, k, keep):
    x = _rlx.value(x)
    if x.ndim < 2:
        raise ValueError(f"a triangle of an array with {x.ndim} axes")
    rows = _node("iota", dims=x.shape[-2:], dtype="int32", axis=0)
    columns = _node("iota", dims=x.shape[-2:], dtype="int32", axis=1)
    return _node("where", _node(keep, _node("add", rows, k), columns), x, zeros((), x.dtype))


@_creator
def tri(n, m=None, k=0, dtype="float32"):
    """Ones at and below the k-th diagonal of an [n, m] array of zeros."""
    return tril(ones((n, n if m is None else m), dtype), k)


@_op("x")
def diagonal(x, offset=0, axis1=0, axis2=1):
    """The elements x[i, i + offset] of two axes, as the last axis."""
    x = _rlx.value(x)
    (axis1,), (axis2,) = _axes_of(axis1, x.ndim, "diagonal"), _axes_of(axis2, x.ndim, "diagonal")
    rest = [a for a in range(x.ndim) if a not in (axis1, axis2)]
    x = transpose(x, rest + [axis1, axis2])
    n, m = x.shape[-2:]
    first = (0, offset) if offset >= 0 else (-offset, 0)
    count = _builtins.max(0, _builtins.min(n - first[0], m - first[1]))
    i = arange(count)
    return x[..., _node("add", i, first[0]), _node("add", i, first[1])]


@_op("x")
def diag(x, k=0):
    """The k-th diagonal of a matrix, or the matrix that has x there."""
    x = _rlx.value(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag: an array with {x.ndim} axes, it takes one or two")
    n = x.shape[0] + _builtins.abs(k)
    padded = _rlx.pad([x, zeros((), x.dtype)], [_builtins.max(k, 0)], [_builtins.max(-k, 0)], [0])
    return _node("where", eye(n, k=k, dtype="bool"), expand_dims(padded, 0) if k >= 0 else expand_dims(roll(padded, 0), 0), zeros((), x.dtype)) if k >= 0 else transpose(diag(x, -k))


@_op("x")
def trace(x, offset=0, axis1=0, axis2=1):
    """The sum of a diagonal."""
    return sum(diagonal(x, offset, axis1, axis2), -1)


@_op("arrays")
def meshgrid(*arrays, indexing="xy"):
    """Arrays of coordinates over the grid of these vectors."""
    values = [_rlx.value(a) for a in arrays]
    n = len(values)
    shape = [v.shape[0] for v in values]
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[0], order[1] = 1, 0
        shape[0], shape[1] = shape[1], shape[0]
    out = []
    for v, axis in zip(values, order):
        dims = [1] * n
        dims[axis] = v.shape[0]
        out.append(_rlx.expand([_rlx.reshape([v], tuple(dims))], tuple(shape)))
    return out


# -- reductions --


def _reduce(x, fn, axis, keepdims, what):
    x = _rlx.value(x)
    axes = _axes_of(axis, x.ndim, what)
    if not axes and x.ndim == 0:
        x = _rlx.reshape([x], (1,))
        axes = [0]
        return _node("reduce_" + fn, x, axes=axes, keep_dims=False)
    if not axes:
        return x
    return _node("reduce_" + fn, x, axes=axes, keep_dims=bool(keepdims))


def _summed(x, dtype):
    """What sums and products add up: small integers in int32, truth values too."""
    x = _rlx.value(x)
    if dtype is not None:
        return _cast(x, dtype)
    if x.dtype.kind == "b" or (x.dtype.kind == "i" and x.dtype.itemsize < 4):
        return _cast(x, "int32")
    if x.dtype.kind == "u" and x.dtype.itemsize < 4:
        return _cast(x, "uint32")
    return x


@_op("x", "where")
def sum(x, axis=None, dtype=None, keepdims=False, where=None):
    """The sum over axes; truth values and small integers are summed as 32-bit integers."""
    x = _summed(x, dtype)
    if where is not None:
        x = _node("where", _truth(where), x, zeros((), x.dtype))
    return _reduce(x, "sum", axis, keepdims, "sum")


@_op("x", "where")
def prod(x, axis=None, dtype=None, keepdims=False, where=None):
    """The product over axes."""
    x = _summed(x, dtype)
    if where is not None:
        x = _node("where", _truth(where), x, ones((), x.dtype))
    return _reduce(x, "prod", axis, keepdims, "prod")


@_op("x", "where")
def mean(x, axis=None, dtype=None, keepdims=False, where=None):
    """The mean over axes."""
    x = _inexact(x) if dtype is None else _cast(x, dtype)
    if where is not None:
        mask = broadcast_to(_truth(where), x.shape)
        total = sum(_node("where", mask, x, zeros((), x.dtype)), axis, keepdims=keepdims)
        return _node("div", total, _cast(sum(mask, axis, keepdims=keepdims), x.dtype))
    return _reduce(x, "mean", axis, keepdims, "mean")


def _extreme(x, fn, axis, keepdims, initial, where, what):
    x = _rlx.value(x)
    as_bool = x.dtype.kind == "b"
    if as_bool:
        x = _cast(x, "uint8")
    axes = _axes_of(axis, x.ndim, what)
    if initial is None and where is None and _builtins.any(x.shape[a] == 0 for a in axes):
        raise ValueError(f"{what}: no elements along axes {axes} of shape {x.shape}; give `initial`")
    if where is not None:
        if initial is None:
            raise ValueError(f"{what}: with `where` give `initial`")
        x = _node("where", _truth(where), x, _cast(initial, x.dtype))
    if _builtins.any(x.shape[a] == 0 for a in axes):
        out = full(tuple(1 if i in axes else d for i, d in enumerate(x.shape) if keepdims or i not in axes), initial, x.dtype)
    else:
        out = _reduce(x, fn, axis, keepdims, what)
        if initial is not None:
            out = _node(fn, out, _cast(initial, x.dtype))
    return _cast(out, "bool") if as_bool else out


@_op("x", "initial", "where")
def max(x, axis=None, keepdims=False, initial=None, where=None):
    """The largest element over axes; NaN if there is one."""
    return _extreme(x, "max", axis, keepdims, initial, where, "max")


@_op("x", "initial", "where")
def min(x, axis=None, keepdims=False, initial=None, where=None):
    """The smallest element over axes; NaN if there is one."""
    return _extreme(x, "min", axis, keepdims, initial, where, "min")


amax, amin = max, min


@_op("x")
def any(x, axis=None, keepdims=False):
    """True where an element over axes is not zero."""
    x = _cast(_truth(x), "uint8")
    if _builtins.any(x.shape[a] == 0 for a in _axes_of(axis, x.ndim, "any")):
        return _cast(_reduce(x, "sum", axis, keepdims, "any"), "bool")
    return _cast(_reduce(x, "max", axis, keepdims, "any"), "bool")


@_op("x")
def all(x, axis=None, keepdims=False):
    """True where all elements over axes are not zero."""
    return logical_not(any(logical_not(x), axis, keepdims))


@_op("x")
def var(x, axis=None, ddof=0, keepdims=False):
    """The variance over axes: the mean of squared distances from the mean."""
    x = _inexact(x)
    axes = _axes_of(axis, x.ndim, "var")
    centred = _node("sub", x, mean(x, axis, keepdims=True))
    count = _math.prod(x.shape[a] for a in axes)
    total = sum(_node("mul", centred, centred), axis, keepdims=keepdims)
    return _node("div", total, float(_builtins.max(count - ddof, 0)))


@_op("x")
def std(x, axis=None, ddof=0, keepdims=False):
    """The standard deviation over axes."""
    return sqrt(var(x, axis, ddof, keepdims))


def _arg(x, fn, axis, keepdims):
    x = _rlx.value(x)
    if x.dtype.kind == "b":
        x = _cast(x, "uint8")
    if axis is None:
        flat = _rlx.reshape([x], (-1,))
        out = _node("arg_reduce_" + fn, flat, axis=0, keep_dims=False)
        return _rlx.reshape([out], (1,) * x.ndim) if keepdims else out
    return _node("arg_reduce_" + fn, x, axis=_axes_of(axis, x.ndim, "arg" + fn)[0], keep_dims=bool(keepdims))


@_op("x")
def argmax(x, axis=None, keepdims=False):
    """The place of the first largest element, int32."""
    return _arg(x, "max", axis, keepdims)


@_op("x")
def argmin(x, axis=None, keepdims=False):
    """The place of the first smallest element, int32."""
    return _arg(x, "min", axis, keepdims)


def _cumulative(name, fn, text):
    @_op("x")
    def function(x, axis=None, dtype=None):
        x = _summed(x, dtype) if fn in ("sum", "prod") else _rlx.value(x)
        if axis is None:
            x, axis = _rlx.reshape([x], (-1,)), 0
        return _node("cumulative_" + fn, x, axis=_axes_of(axis, x.ndim, name)[0])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


cumsum = _cumulative("cumsum", "sum", "The running sum along an axis.")
cumprod = _cumulative("cumprod", "prod", "The running product along an axis.")
cummax = _cumulative("cummax", "max", "The largest element so far along an axis.")
cummin = _cumulative("cummin", "min", "The smallest element so far along an axis.")


@_op("x")
def count_nonzero(x, axis=None, keepdims=False):
    """How many elements over axes are not zero, int32."""
    return sum(_truth(x), axis, "int32", keepdims)


@_op("x")
def sort(x, axis=-1, descending=False):
    """x in order along an axis, NaN last."""
    x = _rlx.value(x)
    if axis is None:
        x, axis = _rlx.reshape([x], (-1,)), 0
    return _rlx.sort([x], axis, descending)


@_op("x")
def argsort(x, axis=-1, descending=False):
    """The places of the elements in order along an axis, int32; equal ones keep their order."""
    x = _rlx.value(x)
    if axis is None:
        x, axis = _rlx.reshape([x], (-1,)), 0
    return _rlx.argsort([x], axis, descending)


# -- products --


@_op("x", "y")
def matmul(x, y):
    """The matrix product over the last two axes; leading axes broadcast."""
    dtype, _ = _rlx.result_type(x, y)
    x, y = _rlx.value(x), _rlx.value(y)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError("matmul: a scalar; use *")
    return _rlx.matmul([_cast(x, dtype), _cast(y, dtype)])


@_op("x", "y")
def dot(x, y):
    """Inner product over the last axis of x and the second last (or only) axis of y; of scalars the product."""
    x, y = _rlx.value(x), _rlx.value(y)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (_builtins.max(y.ndim - 2, 0),)))


@_op("x", "y")
def vdot(x, y):
    """The inner product of all elements."""
    return sum(multiply(conj(ravel(x)), ravel(y)))


@_op("x", "y")
def inner(x, y):
    """Inner products over the last axes."""
    x, y = _rlx.value(x), _rlx.value(y)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


@_op("x", "y")
def outer(x, y):
    """x[i] * y[j]."""
    return multiply(expand_dims(ravel(x), 1), expand_dims(ravel(y), 0))


@_op("x", "y")
def tensordot(x, y, axes=2):
    """The product summed over pairs of axes: so many last of x with first of y, or (axes of x, axes of y)."""
    dtype, _ = _rlx.result_type(x, y)
    x, y = _cast(x, dtype), _cast(y, dtype)
    if isinstance(axes, int):
        left, right = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        left = [axes[0]] if isinstance(axes[0], int) else list(axes[0])
        right = [axes[1]] if isinstance(axes[1], int) else list(axes[1])
    left = [_axes_of(a, x.ndim, "tensordot")[0] for a in left]
    right = [_axes_of(a, y.ndim, "tensordot")[0] for a in right]
    return _node("dot_general", x, y, lhs_contract=left, rhs_contract=right, lhs_batch=[], rhs_batch=[])


@_op("operands")
def einsum(subscripts, *operands):
    """Einstein's sums, from left to right: "bik,bkj->bij"."""
    from ._einsum import einsum as run

    return run(subscripts, operands)


# -- picking --


@_op("x", "indices")
def take(x, indices, axis=None, mode="clip"):
    """Elements of x along an axis; negative indices count from the end, others out of range are clamped."""
    x = _rlx.value(x)
    if axis is None:
        x, axis = _rlx.reshape([x], (-1,)), 0
    (axis,) = _axes_of(axis, x.ndim, "take")
    return x[(slice(None),) * axis + (_rlx.value(indices),)]


@_op("x", "indices")
def take_along_axis(x, indices, axis):
    """x at one index for each place along an axis; both have the same rank."""
    x = _rlx.value(x)
    return _rlx.take_along_axis([x, indices], _axes_of(axis, x.ndim, "take_along_axis")[0])


def nonzero(x):
    """Refused: how many places there are depends on the values."""
    raise NotImplementedError(
        "nonzero gives an array whose shape depends on values: outside of compiled functions take "
        "numpy.nonzero(numpy.asarray(x)); inside, rlx.numpy.where(mask, x, 0) keeps the shape"
    )


unique = argwhere = flatnonzero = nonzero


# -- comparisons of whole arrays --


@_op("x", "y")
def isclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    """True where |x - y| <= atol + rtol * |y|."""
    x, y = _both_inexact(x, y)
    near = less_equal(abs(subtract(x, y)), add(multiply(abs(y), rtol), atol))
    near = logical_or(logical_and(near, isfinite(y)), equal(x, y))
    return logical_or(near, logical_and(isnan(x), isnan(y))) if equal_nan else near


@_op("x", "y")
def allclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    """True when all elements are close."""
    return all(isclose(x, y, rtol, atol, equal_nan))


@_op("x", "y")
def array_equal(x, y):
    """True when shapes and all elements are equal."""
    x, y = _rlx.value(x), _rlx.value(y)
    if x.shape != y.shape:
        return _rlx.value(_rlx.array_from(False))
    return all(equal(x, y))


def result_type(*arrays_and_dtypes):
    """The dtype that operands are cast to in arithmetic."""
    return _rlx.result_type(*arrays_and_dtypes)[0]


promote_types = result_type


def issubdtype(a, kind):
    """Whether a dtype is of a kind: "floating", "integer", "inexact", "complexfloating", "number", "bool"."""
    k = _rlx.dtype(a).kind
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    groups = {"floating": "f", "integer": "iu", "signedinteger": "i", "unsignedinteger": "u", "inexact": "fc",
              "complexfloating": "c", "number": "iufc", "generic": "biufc", "bool": "b", "bool_": "b"}
    return k in groups[name] if name in groups else _rlx.dtype(a) == _rlx.dtype(kind)
