"""Elementwise functions of one and two arrays: arithmetic, comparisons, bits, logic."""

import builtins as _b
import math as _math

from .. import _control, _rlx
from .._indexing import _broadcast_shape
from ._base import both_inexact, cast, inexact, int_static, largest, named, node, op, truth, typed, value
from . import _complex_functions
from ._complex import by_parts, magnitude, parts

inf = _math.inf

# -- functions of one array --


def _unary(name, text, of_complex=None):
    """The op `name`; of complex numbers the function of_complex, if given."""

    @op("x")
    def function(x):
        x = inexact(x)
        if of_complex is not None and x.dtype.kind == "c":
            return of_complex(x)
        return node(name, x)

    return named(function, name, text)


exp = _unary("exp", "e to the power of x.")
exp2 = _unary("exp2", "2 to the power of x.", lambda x: node("exp", node("mul", x, _math.log(2))))
expm1 = _unary("expm1", "exp(x) - 1, accurate near 0.", _complex_functions.expm1)
log = _unary("log", "The natural logarithm.")
log2 = _unary("log2", "The logarithm to base 2.", lambda x: _complex_functions.scaled_log(x, _math.log(2)))
log10 = _unary("log10", "The logarithm to base 10.", lambda x: _complex_functions.scaled_log(x, _math.log(10)))
log1p = _unary("log1p", "log(1 + x), accurate near 0.", _complex_functions.log1p)
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
arcsinh = _unary("asinh", "The inverse of sinh.", _complex_functions.arcsinh)
arccosh = _unary("acosh", "The inverse of cosh.", _complex_functions.arccosh)
arctanh = _unary("atanh", "The inverse of tanh.")
asin, acos, atan, asinh, acosh, atanh = arcsin, arccos, arctan, arcsinh, arccosh, arctanh


@op("x")
def square(x):
    """x * x."""
    x = value(x)
    return node("square", x) if x.dtype.kind != "b" else x


@op("x")
def positive(x):
    """Returns x. Bools are an error, as in NumPy."""
    x = value(x)
    if x.dtype.kind == "b":
        raise TypeError("positive of bools: cast them first")
    return x


@op("x")
def negative(x):
    """-x."""
    x = value(x)
    if x.dtype.kind == "b":
        raise TypeError("negative of bools: use logical_not or ~")
    return node("sub", 0, x) if x.dtype.kind == "u" else node("neg", x)


def _sign_flip(x, where_negative):
    return node("where", where_negative, node("neg", x), x)


@op("x")
def abs(x):
    """The magnitude of each element."""
    x = value(x)
    if x.dtype.kind == "c":
        return magnitude(x)
    return x if x.dtype.kind in "bu" else node("abs", x)


absolute = abs


@op("x")
def fabs(x):
    """The magnitude of each element as a floating number."""
    x = inexact(x)
    if x.dtype.kind == "c":
        raise TypeError("fabs of complex numbers: abs gives their magnitude")
    return node("abs", x)


@op("x")
def sign(x):
    """The sign of x: -1, 0 or 1; NaN stays. For complex numbers x / abs(x)."""
    x = value(x)
    if x.dtype.kind == "c":
        size = abs(x)
        zero = node("eq", size, 0)
        return node("where", zero, 0, node("div", x, cast(node("where", zero, 1, size), x.dtype)))
    if x.dtype.kind in "bu":
        return cast(node("ne", x, 0), x.dtype)
    signs = node("sign", x)
    return node("add", signs, 0) if x.dtype.kind == "f" else signs  # of -0 the sign is 0


@op("x")
def signbit(x):
    """True where the sign bit is set, also for -0 and NaN."""
    x = value(x)
    if x.dtype.kind == "c":
        raise TypeError("signbit of complex numbers")
    return _rlx.special("signbit", x)


@op("x")
def reciprocal(x):
    """1 / x."""
    return node("recip", inexact(x))


def _rounding(name, text, ints_stay=True):
    @op("x")
    def function(x):
        x = value(x)
        if x.dtype.kind in "biu":
            return x if ints_stay else inexact(x)
        if x.dtype.kind == "c":
            if name != "round":
                raise TypeError(f"{name} of complex numbers")
            return by_parts(lambda part: node("round", part), x)
        return node(name, x)

    return named(function, name, text)


floor = _rounding("floor", "The largest integer not above x.")
ceil = _rounding("ceil", "The smallest integer not below x.")
trunc = _rounding("trunc", "x without its fraction.")
rint = _rounding("round", "The nearest integer, ties to even, as a floating number.", ints_stay=False)
fix = trunc


@op("x")
def round(x, decimals=0):
    """x rounded to a number of decimals, ties to even. Negative decimals round to tens, hundreds, ..."""
    x, decimals = value(x), int_static(decimals, "round: the number of decimals")
    if x.dtype.kind in "biu":
        # A 64-bit integer has at most 20 decimals.
        return x if decimals >= 0 or x.dtype.kind == "b" else _round_integers(x, 10 ** _b.min(-decimals, 20))
    if x.dtype.kind == "c":
        return by_parts(lambda part: round(part, decimals), x)
    if decimals == 0:
        return node("round", x)
    if _b.abs(decimals) > 308 or 10.0 ** _b.abs(decimals) > largest(x.dtype):
        if x.dtype.name in ("float16", "bfloat16"):
            return cast(round(cast(x, "float32"), decimals), x.dtype)
        # Finer than the spacing of the numbers, or coarser than all of them.
        return x if decimals > 0 else node("where", isfinite(x), node("mul", x, 0), x)
    scale = 10.0 ** _b.abs(decimals)
    if decimals > 0:
        return node("div", node("round", node("mul", x, scale)), scale)
    return node("mul", node("round", node("div", x, scale)), scale)


around = round


def _round_integers(x, unit):
    bits = 8 * x.dtype.itemsize
    if unit >= 1 << (bits - 1):
        return node("mul", x, 0)
    low = floor_divide(x, unit)
    rest = node("sub", x, node("mul", low, unit))
    other = node("sub", unit, rest)
    odd = node("eq", node("bit_and", low, 1), 1)
    up = node("bit_or", node("gt", rest, other), node("bit_and", node("eq", rest, other), odd))
    return node("mul", node("add", low, cast(up, x.dtype)), unit)


@op("x")
def isnan(x):
    """True where x is NaN, or a part of it for complex numbers."""
    x = value(x)
    return node("ne", x, x)


@op("x")
def isinf(x):
    """True where x is infinite, or a part of it for complex numbers."""
    x = value(x)
    if x.dtype.kind in "biu":
        return node("ne", x, x)
    if x.dtype.kind == "c":
        return logical_or(*[isinf(p) for p in parts(x)])
    return node("eq", node("abs", x), inf)


@op("x")
def isfinite(x):
    """True where x is neither infinite nor NaN."""
    x = value(x)
    if x.dtype.kind in "biu":
        return node("eq", x, x)
    if x.dtype.kind == "c":
        return node("eq", node("sub", x, x), 0)  # an infinity or NaN in a part gives NaN
    return node("lt", node("abs", x), inf)


@op("x")
def isposinf(x):
    """True where x is +inf."""
    x = value(x)
    return node("eq", x, inf) if x.dtype.kind == "f" else node("ne", x, x)


@op("x")
def isneginf(x):
    """True where x is -inf."""
    x = value(x)
    return node("eq", x, -inf) if x.dtype.kind == "f" else node("ne", x, x)


@op("x", "nan", "posinf", "neginf")
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """x with NaN replaced by `nan`, and infinities by the largest finite numbers or the given ones. copy has no effect:
    arrays are immutable.
    """
    if not isinstance(copy, bool):
        raise TypeError(f"nan_to_num: copy={copy!r}; as in NumPy the second argument is copy: write nan={copy!r}")
    x = value(x)
    if x.dtype.kind in "biu":
        return x
    if x.dtype.kind == "c":
        return by_parts(lambda part: nan_to_num(part, copy, nan, posinf, neginf), x)
    top = largest(x.dtype)
    out = node("where", node("ne", x, x), cast(nan, x.dtype), x)
    out = node("where", node("eq", x, inf), cast(top if posinf is None else posinf, x.dtype), out)
    return node("where", node("eq", x, -inf), cast(-top if neginf is None else neginf, x.dtype), out)


def _scaled(name, factor, text):
    @op("x")
    def function(x):
        return node("mul", inexact(x), factor)

    return named(function, name, text)


degrees = rad2deg = _scaled("degrees", 180.0 / _math.pi, "Radians as degrees.")
radians = deg2rad = _scaled("radians", _math.pi / 180.0, "Degrees as radians.")


@op("x")
def sinc(x):
    """sin(pi x) / (pi x); 1 at 0, and exactly 0 at other integers and at infinities."""
    x = inexact(x)
    if x.dtype.kind != "c":
        endless = node("eq", node("abs", x), inf)
        return node("where", endless, 0, node("sinc", node("where", endless, 0, x)))
    near = node("lt", abs(x), 0.03)
    t2 = node("square", node("mul", node("where", near, x, 0), _math.pi))
    series = node("mul", t2, 1 / 362880)
    for c in (-1 / 5040, 1 / 120, -1 / 6):
        series = node("mul", node("add", series, c), t2)
    far = node("mul", node("where", near, 1, x), _math.pi)
    return node("where", near, node("add", series, 1), node("div", node("sin", far), far))


@op("x")
def i0(x):
    """The modified Bessel function of order 0: a power series up to 20, an asymptotic series above."""
    given = inexact(x)
    x = abs(given)
    small = node("le", x, 20.0)
    q = node("square", node("mul", node("where", small, given, 0), 0.5))  # |x| would have slope 0 at 0
    near = node("add", node("mul", q, 0), 1)
    for k in range(60, 0, -1):
        near = node("add", node("mul", near, node("mul", q, 1.0 / (k * k))), 1)
    far = node("where", small, 20, node("where", node("eq", x, inf), largest(x.dtype), x))
    r = node("div", 0.125, far)
    tail = node("add", node("mul", r, 0), 1)
    for k in range(24, 0, -1):
        tail = node("add", node("mul", tail, node("mul", r, (2 * k - 1) ** 2 / k)), 1)
    half = node("exp", node("mul", far, 0.5))
    root = node("mul", node("sqrt", far), _math.sqrt(2 * _math.pi))
    return node("where", small, near, node("mul", node("div", node("mul", half, tail), root), half))


@op("x")
def logical_not(x):
    """True where x is zero."""
    return node("not", truth(x))


@op("x")
def invert(x):
    """Every bit inverted; logical not for bools."""
    x = value(x)
    if x.dtype.kind == "b":
        return node("not", x)
    if x.dtype.kind not in "iu":
        raise TypeError(f"invert: {x.dtype.name} has no bits to invert; cast it to an integer dtype")
    ones = -1 if x.dtype.kind == "i" else (1 << (8 * x.dtype.itemsize)) - 1
    return node("bit_xor", x, _rlx.array_from(ones, x.dtype))


bitwise_not = bitwise_invert = invert


@op("x")
def bitwise_count(x):
    """The number of 1 bits in |x|, as uint8."""
    x = value(x)
    if x.dtype.kind == "b":
        return cast(x, "uint8")
    if x.dtype.kind not in "iu":
        raise TypeError(f"bitwise_count of {x.dtype.name}: it takes integers")
    return cast(node("popcount", abs(x)), "uint8")


# -- functions of two arrays --


def _binary(name, text, op_name=None, inexact_operands=False, of_complex=None):
    @op("x", "y")
    def function(x, y):
        if inexact_operands:
            x, y = both_inexact(x, y)
        if of_complex is not None and _rlx.result_type(x, y)[0].kind == "c":
            return of_complex(*typed(x, y))
        return node(op_name or name, x, y)

    return named(function, name, text)


add = _binary("add", "x + y.")
subtract = _binary("subtract", "x - y.", "sub")
multiply = _binary("multiply", "x * y.", "mul")
divide = _binary("divide", "x / y; integers become floats.", "div", True)
true_divide = divide


def _ordered(name, text, how):
    """A function of the order of numbers. Complex ones are ordered by real parts, then by imaginary parts."""
    pick = _complex_functions.extreme_of_two if how in ("max", "min") else _complex_functions.compared
    return _binary(name, text, how, of_complex=lambda x, y: pick(how, x, y))


maximum = _ordered("maximum", "The larger of x and y; NaN if either is.", "max")
minimum = _ordered("minimum", "The smaller of x and y; NaN if either is.", "min")
equal = _binary("equal", "x == y.", "eq")
not_equal = _binary("not_equal", "x != y.", "ne")
less = _ordered("less", "x < y.", "lt")
less_equal = _ordered("less_equal", "x <= y.", "le")
greater = _ordered("greater", "x > y.", "gt")
greater_equal = _ordered("greater_equal", "x >= y.", "ge")
bitwise_and = _binary("bitwise_and", "x & y.", "bit_and")
bitwise_or = _binary("bitwise_or", "x | y.", "bit_or")
bitwise_xor = _binary("bitwise_xor", "x ^ y.", "bit_xor")
left_shift = bitwise_left_shift = _binary("left_shift", "x << y; 0 where y is the width of the dtype or more.", "shl")
right_shift = bitwise_right_shift = _binary("right_shift", "x >> y; negative numbers keep their sign.", "shr")
arctan2 = atan2 = _binary("arctan2", "The angle of the point (y, x), from -pi to pi: arctan2(y, x).", "atan2", True)


@op("x", "y")
def fmax(x, y):
    """The larger of x and y; if one is NaN, the other."""
    x, y = typed(x, y)
    return node("where", isnan(x), y, node("where", isnan(y), x, maximum(x, y)))


@op("x", "y")
def fmin(x, y):
    """The smaller of x and y; if one is NaN, the other."""
    x, y = typed(x, y)
    return node("where", isnan(x), y, node("where", isnan(y), x, minimum(x, y)))


def _no_complex(dtype, what):
    if dtype.kind == "c":
        raise TypeError(f"{what} of complex numbers is not supported")


def _division_operands(x, y, what):
    """x and y in their common dtype; truth values become int8."""
    x, y = typed(x, y)
    _no_complex(x.dtype, what)
    return (cast(x, "int8"), cast(y, "int8")) if x.dtype.kind == "b" else (x, y)


@op("x", "y")
def floor_divide(x, y):
    """The largest integer not above x / y; 0 for integers where y is 0; an infinity over a number is infinite."""
    x, y = _division_operands(x, y, "floor_divide")
    if x.dtype.kind == "f":
        return _floor_quotient(node("stop_gradient", x), node("stop_gradient", y))
    quotient = node("div", x, y)
    if x.dtype.kind == "u":
        return quotient
    rest = node("sub", x, node("mul", quotient, y))
    down = node("bit_and", node("ne", node("lt", rest, 0), node("lt", y, 0)), node("ne", rest, 0))
    return node("where", node("bit_and", down, node("ne", y, 0)), node("sub", quotient, 1), quotient)


def _floor_quotient(x, y):
    """The floor of x / y, which the floor of the rounded quotient may exceed by 1."""
    narrow = x.dtype
    if narrow.itemsize < 4:
        # float32 has more than twice the digits, so that only an integer is rounded to an integer.
        x, y = cast(x, "float32"), cast(y, "float32")
        plain = node("div", x, y)
        # A quotient just below 0 may be 0 already.
        lost = node("bit_and", node("eq", plain, 0), node("ne", x, 0))
        lost = node("bit_and", lost, node("ne", node("lt", x, 0), node("lt", y, 0)))
        return cast(node("where", lost, -1, node("floor", plain)), narrow)
    plain = node("div", x, y)
    size, unit, quotient = node("abs", x), node("abs", y), node("abs", plain)
    left = fmod(size, unit)
    # A quotient that was rounded up to an integer has a remainder of more than half of the divisor.
    whole = node("floor", quotient)
    high = node("bit_and", node("lt", node("sub", unit, left), left), node("eq", whole, quotient))
    below = node("bit_and", node("ne", node("lt", x, 0), node("lt", y, 0)), node("ne", left, 0))
    out = node("add", node("sub", whole, cast(high, x.dtype)), cast(below, x.dtype))
    # From 2^digits on the quotient itself is right, and so is one that is not finite: by 0, of an infinity, of NaN.
    digits = 53 if x.dtype.itemsize == 8 else 24
    own = node("lt", quotient, float(2**digits))
    return node("where", own, copysign(out, plain), plain)


@op("x", "y")
def remainder(x, y):
    """The remainder of x / y with the sign of y, as % in Python; 0 for integers where y is 0."""
    x, y = _division_operands(x, y, "remainder")
    return node("mod", x, y)


mod = remainder


@op("x", "y")
def fmod(x, y):
    """The remainder of x / y with the sign of x, as fmod in C; 0 for integers where y is 0."""
    x, y = _division_operands(x, y, "fmod")
    return node("rem", x, y)


def divmod(x, y):
    """(x // y, x % y)."""
    return floor_divide(x, y), remainder(x, y)


@op("x", "y")
def _power(x, y):
    dtype, _ = _rlx.result_type(x, y)
    if dtype.kind == "b":
        x, y = cast(x, "int32"), cast(y, "int32")
    return node("pow", x, y)


def power(x, y):
    """x to the power of y. A Python integer y is computed by multiplications, which are exact and have derivatives at
    0. Negative powers of integers are an error if y is known, and give 0 or +-1 otherwise.
    """
    return _integer_power(x, y) if type(y) is int else _power(x, y)


pow = power


@op("x", "y")
def float_power(x, y):
    """x to the power of y, in floating numbers."""
    return node("pow", *both_inexact(x, y))


@op("x")
def _integer_power(x, n):
    """x to the power of a Python integer, by multiplications."""
    x = value(x)
    if x.dtype.kind == "b":
        x = cast(x, "int32")
    if n < 0 and x.dtype.kind in "iu":
        raise ValueError(f"a negative power {n} of integers: cast them to a floating dtype, or use float_power")
    if n == 0:
        return _ones(x)
    if n < 0 and x.dtype.name == "float16":  # which has no square of 256
        return cast(_integer_power(cast(x, "float32"), n), "float16")._with_weak(x.weak_type)
    if n >= -1 or x.dtype.kind == "c":
        out = _product_power(x, _b.abs(n))
        return node("recip", out) if n < 0 else out
    # In reverse mode the derivative of the reciprocal, 1 / x^-2n, leaves the range where n x^(n - 1) does not.
    values = lambda v: [node("recip", _product_power(v[0], -n))]  # noqa: E731
    slope = lambda v: [  # noqa: E731
        *values(v),
        node("mul", v[1], node("mul", _product_power(node("recip", v[0]), 1 - n), n)),
    ]
    own = lambda v, name: v  # noqa: E731  # nothing is closed over
    return _rlx.custom_fn([x], values, None, None, slope, "power", own)[0]._with_weak(x.weak_type)


def _product_power(x, n):
    out = None
    while n:
        if n & 1:
            out = x if out is None else node("mul", out, x)
        n >>= 1
        if n:
            x = node("mul", x, x)
    return out


def _ones(x):
    """1 for every element, also for NaN, with the dtype and weakness of x."""
    return cast(node("bit_or", node("eq", x, x), node("ne", x, x)), x.dtype)._with_weak(x.weak_type)


def _real_operands(x, y, what):
    """x and y in their common floating dtype."""
    x, y = typed(*both_inexact(x, y))
    _no_complex(x.dtype, what)
    return x, y


@op("x", "y")
def hypot(x, y):
    """sqrt(x*x + y*y) without overflow."""
    x, y = _real_operands(x, y, "hypot")
    return node("hypot", x, y)


@op("x", "y")
def logaddexp(x, y):
    """log(exp(x) + exp(y))."""
    x, y = typed(*both_inexact(x, y))
    if x.dtype.kind == "c":
        return _complex_functions.logaddexp(x, y)
    return node("logaddexp", x, y)


@op("x", "y")
def logaddexp2(x, y):
    """log2(2**x + 2**y)."""
    if "c" in (value(x).dtype.kind, value(y).dtype.kind):
        x, y = typed(*both_inexact(x, y))
        half = _math.log(2.0)
        return node("mul", _complex_functions.logaddexp(node("mul", x, half), node("mul", y, half)), 1 / half)
    x, y = _real_operands(x, y, "logaddexp2")
    return _rlx.special("logaddexp2", x, y)


@op("x", "y")
def copysign(x, y):
    """x with the sign of y."""
    x, y = _real_operands(x, y, "copysign")
    return _rlx.special("copysign", x, y)


@op("x", "y")
def heaviside(x, y):
    """0 below 0, 1 above, y at 0."""
    x, y = typed(*both_inexact(x, y))
    return node("where", node("lt", x, 0), 0, node("where", node("gt", x, 0), 1, node("where", isnan(x), x, y)))


# -- parts of floating numbers --


@op("x", "y")
def ldexp(x, y):
    """x * 2**y for integers y, rounded once."""
    x, y = inexact(x), value(y)
    _no_complex(x.dtype, "ldexp")
    if y.dtype.kind not in "iu":
        raise TypeError(f"ldexp: exponents of dtype {y.dtype.name}; they must be integers")
    return _rlx.special("ldexp", x._with_weak(False), y)


@op("x")
def frexp(x):
    """(m, e) with x = m * 2**e and 0.5 <= |m| < 1; (x, 0) for 0, infinities and NaN."""
    x = inexact(x)
    _no_complex(x.dtype, "frexp")
    return _rlx.frexp(x)


@op("x")
def modf(x):
    """(fractional part, integral part), both with the sign of x."""
    x = inexact(x)
    whole = node("trunc", x)
    endless = node("eq", abs(x), inf)
    rest = node("where", endless, copysign(0, x), node("sub", x, whole))
    # -0 for a whole negative x, whose derivative is 1 as elsewhere.
    minus = node("bit_and", node("eq", rest, 0), signbit(x))
    turned = node("neg", node("where", endless, 0, node("sub", whole, x)))
    return node("where", minus, turned, rest), whole


@op("x", "y")
def nextafter(x, y):
    """The next floating number after x towards y."""
    x, y = _real_operands(x, y, "nextafter")
    return _rlx.special("nextafter", x, y)


@op("x")
def spacing(x):
    """The distance from x to the next floating number away from 0, with the sign of x."""
    x = inexact(x)
    _no_complex(x.dtype, "spacing")
    away = node("where", node("lt", x, 0), cast(-inf, x.dtype), cast(inf, x.dtype))
    return node("sub", node("where", isfinite(x), nextafter(x, away), _math.nan), x)


# -- integers --


def _integers(x, y, what):
    x, y = typed(x, y)
    if x.dtype.kind not in "iu":
        raise TypeError(f"{what} of {x.dtype.name}: it takes integers")
    return x._with_weak(False), y._with_weak(False)


def _gcd(x, y):
    # Signed integers are made negative, because the least one has no positive counterpart.
    signed = x.dtype.kind == "i"
    if signed:
        x, y = (node("where", node("gt", v, 0), -v, v) for v in (x, y))
    shape = _broadcast_shape([x.shape, y.shape])
    start = (_rlx.expand([x], shape), _rlx.expand([y], shape))

    def step(pair):
        a, b = pair
        rest = node("mod", a, node("where", node("eq", b, 0), 1, b))
        done = node("eq", b, 0)
        return node("where", done, a, b), node("where", done, 0, rest)

    def unfinished(pair):
        b = pair[1]
        return (
            node("reduce_max", node("ne", b, 0), axes=list(range(b.ndim)), keep_dims=False)
            if b.ndim
            else node("ne", b, 0)
        )

    if 0 in shape:
        return start[0]
    divisor = _control.while_loop(unfinished, step, start)[0]
    return -divisor if signed else divisor


@op("x", "y")
def gcd(x, y):
    """The greatest common divisor of integers."""
    return _gcd(*_integers(x, y, "gcd"))


@op("x", "y")
def lcm(x, y):
    """The least common multiple of integers; 0 where one of them is 0."""
    x, y = _integers(x, y, "lcm")
    divisor = _gcd(x, y)
    share = node("div", abs(x), node("where", node("eq", divisor, 0), 1, divisor))
    return node("mul", share, abs(y))


# -- logic --


def _logical(name, op_name, text):
    @op("x", "y")
    def function(x, y):
        return node(op_name, truth(x), truth(y))

    return named(function, name, text)


logical_and = _logical("logical_and", "bit_and", "True where both are not zero.")
logical_or = _logical("logical_or", "bit_or", "True where either is not zero.")
logical_xor = _logical("logical_xor", "bit_xor", "True where one of them is not zero.")


@op("x", "min", "max")
def clip(x, min=None, max=None):
    """x clipped to [min, max]. The result has the common dtype."""
    x = value(x)
    if x.dtype.kind == "c":
        raise TypeError("clip: complex numbers have no order; clip their real and imaginary parts")
    if min is not None:
        x = node("max", x, min)
    if max is not None:
        x = node("min", x, max)
    return x


# -- comparisons of arrays --


@op("x", "y")
def isclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    """True where |x - y| <= atol + rtol * |y|."""
    x, y = typed(*both_inexact(x, y))
    near = less_equal(abs(subtract(x, y)), add(multiply(abs(y), rtol), atol))
    near = logical_or(logical_and(near, isfinite(y)), equal(x, y))
    return logical_or(near, logical_and(isnan(x), isnan(y))) if equal_nan else near


def _all(x):
    return (
        node("reduce_min", x, axes=list(range(x.ndim)), keep_dims=False)
        if x.ndim and 0 not in x.shape
        else (value(True)._with_weak(False) if x.ndim else x)
    )


@op("x", "y")
def allclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    """True if all elements are close."""
    return _all(isclose(x, y, rtol, atol, equal_nan))


def _same(x, y, equal_nan):
    same = equal(x, y)
    return logical_or(same, logical_and(isnan(x), isnan(y))) if equal_nan else same


@op("x", "y")
def array_equal(x, y, equal_nan=False):
    """True if the shapes and all elements are equal."""
    x, y = value(x), value(y)
    if x.shape != y.shape:
        return value(_rlx.array_from(False))._with_weak(False)
    return _all(_same(x, y, equal_nan))


@op("x", "y")
def array_equiv(x, y):
    """True if x and y are equal after broadcasting."""
    x, y = value(x), value(y)
    try:
        _broadcast_shape([x.shape, y.shape])
    except IndexError:
        return value(_rlx.array_from(False))._with_weak(False)
    return _all(_same(x, y, False))
