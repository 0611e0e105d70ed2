"""Elementwise functions: those of rlx.numpy with the names of jax.lax, and those that differ from them."""

import enum

from .. import _rlx
from .. import numpy as rnp
from .._nodes import cast, inexact, node
from .._op import op
from ..numpy import _complex_functions
from ..numpy._base import both_inexact, named, typed

sub, neg, pow, max, min = rnp.subtract, rnp.negative, rnp.power, rnp.maximum, rnp.minimum
eq, ne, lt, le, gt, ge = rnp.equal, rnp.not_equal, rnp.less, rnp.less_equal, rnp.greater, rnp.greater_equal
rem, is_finite = rnp.fmod, rnp.isfinite


class RoundingMethod(enum.IntEnum):
    """How `round` rounds numbers halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@op("x", "y")
def mul(x, y, *, out_dtype=None):
    """x * y; with out_dtype, of operands cast to that dtype."""
    return rnp.multiply(x, y) if out_dtype is None else rnp.multiply(cast(x, out_dtype), cast(y, out_dtype))


@op("x")
def erf_inv(x):
    """The number whose error function is x."""
    return node("erfinv", inexact(x))


@op("x")
def rsqrt(x):
    """1 / sqrt(x)."""
    return node("rsqrt", inexact(x))


@op("x", "y")
def div(x, y):
    """x / y; integers are divided with rounding towards zero, and by 0 give 0."""
    return node("div", *typed(x, y)) if _rlx.result_type(x, y)[0].kind in "iu" else rnp.divide(x, y)


@op("x")
def integer_pow(x, y):
    """x to the power of an integer."""
    if not isinstance(y, int):
        raise TypeError(f"integer_pow: the exponent {y!r} is not an integer; rlx.lax.pow takes other exponents")
    return rnp.power(inexact(x) if y < 0 else x, y)


@op("x")
def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """The nearest integer. Halves are rounded away from zero, or to the even neighbour."""
    x = inexact(x)
    even = rnp.round(x)
    if RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN:
        return even
    whole = rnp.trunc(x)
    return rnp.where(rnp.equal(rnp.abs(x - whole), 0.5), whole + rnp.sign(x), even)


@op("min", "x", "max")
def clamp(min, x, max):
    """min(max(x, low), high) with the bounds low and high; high where low is above it. NaN if an operand is NaN.
    The derivative by x is 0 where x is outside or equal to a bound.
    """
    x = _rlx.value(x)
    inside = rnp.logical_and(rnp.less(min, x), rnp.less(x, max))
    x = rnp.where(inside, x, node("stop_gradient", x))
    out = rnp.where(rnp.less(x, min), min, x)
    out = rnp.where(rnp.greater(out, max), max, out)
    for bound in (min, max):
        if _rlx.value(bound).dtype.kind == "f" and not (type(bound) is float and bound == bound):
            out = rnp.where(rnp.isnan(bound), bound, out)
    return out


@op("pred", "on_true", "on_false")
def select(pred, on_true, on_false):
    """on_true where pred is true, on_false elsewhere."""
    return rnp.where(pred, on_true, on_false)


@op("which", "*cases")
def select_n(which, *cases):
    """For each element, the case with number `which`. With two cases `which` may be bool."""
    which = _rlx.value(which)
    if len(cases) == 1 and which.dtype.kind in "biu":
        return rnp.broadcast_to(cases[0], which.shape) if which.ndim else _rlx.value(cases[0])
    if not cases or which.dtype.kind == "b" and len(cases) != 2:
        raise ValueError(
            f"select_n: {len(cases)} cases for {which.dtype.name}; a bool selects one of "
            "two cases, an integer one of any number"
        )
    if which.dtype.kind == "b":
        return rnp.where(which, cases[1], cases[0])
    out = _rlx.value(cases[-1])
    for i in range(len(cases) - 2, -1, -1):
        out = rnp.where(rnp.less_equal(which, i), cases[i], out)
    return out


@op("x", "y")
def complex(x, y):
    """The complex numbers x + i y."""
    dtype, _ = _rlx.result_type(x, y)
    part = "float64" if dtype.name == "float64" else "float32"
    return node("complex", cast(x, part), cast(y, part))


# -- bits --


def _bits(x):
    return rnp.iinfo(_rlx.value(x).dtype).bits


def _beyond(x, y):
    """True where a shift by y removes all bits of x."""
    return rnp.logical_or(rnp.less(y, 0), rnp.greater_equal(y, _bits(x)))


@op("x", "y")
def shift_left(x, y):
    """x shifted left by y bits; 0 where that removes all bits."""
    return rnp.where(_beyond(x, y), 0, rnp.left_shift(x, rnp.clip(y, 0, _bits(x) - 1)))


@op("x", "y")
def shift_right_arithmetic(x, y):
    """x shifted right by y bits, filled with copies of the sign bit."""
    x, bits = _rlx.value(x), _bits(x)
    signed = cast(x, f"int{bits}")
    return cast(rnp.right_shift(signed, cast(rnp.where(_beyond(x, y), bits - 1, y), signed.dtype)), x.dtype)


@op("x", "y")
def shift_right_logical(x, y):
    """x shifted right by y bits, filled with zeros."""
    x = _rlx.value(x)
    unsigned = cast(x, f"uint{_bits(x)}")
    moved = rnp.right_shift(unsigned, cast(rnp.clip(y, 0, _bits(x) - 1), unsigned.dtype))
    return cast(rnp.where(_beyond(x, y), 0, moved), x.dtype)


@op("x")
def population_count(x):
    """The number of bits that are 1, in the dtype of x."""
    return node("popcount", x)


@op("x")
def clz(x):
    """The number of leading zero bits, in the dtype of x."""
    return node("clz", x)


@op("operand")
def bitcast_convert_type(operand, new_dtype):
    """The bits of operand as another dtype. A narrower dtype adds a last axis, a wider one removes it."""
    return node("bitcast", operand, to=_rlx.dtype(new_dtype))


# -- special functions --


def _special(name, text, op_name=None):
    @op("x")
    def function(x):
        return node(op_name or name, inexact(x))

    return named(function, name, text)


@op("x")
def logistic(x):
    """1 / (1 + exp(-x))."""
    x = inexact(x)
    return _complex_functions.sigmoid(x) if x.dtype.kind == "c" else node("sigmoid", x)


erf = _special("erf", "The error function.")
erfc = _special("erfc", "1 - erf(x), accurate for large x.")
lgamma = _special("lgamma", "log of |gamma(x)|.")
digamma = _special("digamma", "The derivative of lgamma.")


@op("x")
def _polygamma(m, x):
    return node("polygamma", inexact(x), alpha=m)


@op("m", "x")
def _polygammas(m, x):
    from ..scipy._special import zeta

    dtype = inexact(x).dtype
    wide = dtype if dtype.itemsize >= 4 else _rlx.dtype("float32")  # factorials
    m, x = cast(m, wide), cast(x, wide)
    order = rnp.where(m > 0, m, 1)
    sign = rnp.where(rnp.mod(order, 2) == 1, 1, -1)
    high = sign * rnp.exp(lgamma(order + 1)) * zeta(order + 1, x)
    wrong = (m < 0) | (m != rnp.floor(m))
    return cast(rnp.where(wrong, rnp.nan, rnp.where(m == 0, digamma(x), high)), dtype)


def polygamma(m, x):
    """The m-th derivative of digamma. m is a Python integer, or an array of whole numbers, which broadcasts."""
    plain = not isinstance(m, bool) and getattr(m, "shape", ()) == () and not isinstance(m, (_rlx.Value, list, tuple))
    if plain and m == int(m):
        return _polygamma(int(m), x)
    return _polygammas(m, x)


def _pair(name, text):
    @op("a", "x")
    def function(a, x):
        return node(name, *typed(*both_inexact(a, x)))

    return named(function, name, text)


igamma = _pair("igamma", "The regularised lower incomplete gamma function.")
igammac = _pair("igammac", "The regularised upper incomplete gamma function.")
igamma_grad_a = _pair("igamma_grad_a", "The derivative of igamma with respect to a.")


@op("a", "b", "x")
def betainc(a, b, x):
    """The regularised incomplete beta function."""
    dtype, _ = _rlx.result_type(a, b, x)
    if dtype.kind != "f":
        dtype = "float32"
    return _rlx.special("betainc", *(cast(v, dtype) for v in (a, b, x)))
