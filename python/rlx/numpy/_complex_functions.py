"""Functions and orders of complex numbers that the ops of the compiler lack, from those that they have."""

import math as _math

from .. import _rlx
from ._base import node
from ._complex import joined, parts


def arcsinh(z):
    """asin(i z) / i."""
    x, y = parts(z)
    u, v = parts(node("asin", joined(node("neg", y), x, z.dtype)))
    return joined(v, node("neg", u), z.dtype)


def arccosh(z):
    """i acos(z) or -i acos(z): the one whose real part is not negative."""
    u, v = parts(node("acos", z))
    # The sign of the imaginary part of acos(z) is opposite to that of z, also at zeros of both signs.
    above = _rlx.special("signbit", v)
    size = node("where", above, node("neg", v), v)
    return joined(size, node("where", above, u, node("neg", u)), z.dtype)


def expm1(z):
    """exp(z) - 1, by parts near 0."""
    near = node("lt", node("abs", parts(z)[0]), 1.0)
    x, y = parts(node("where", near, z, 0))
    half = node("sin", node("mul", y, 0.5))
    re = node("sub", node("mul", node("expm1", x), node("cos", y)), node("mul", node("mul", half, half), 2.0))
    re = node("add", re, 0)  # of -0 it is 0
    close = joined(re, node("mul", node("exp", x), node("sin", y)), z.dtype)
    return node("where", near, close, node("sub", node("exp", z), 1.0))


def log1p(z):
    """log(1 + z), by parts near 0."""
    x, y = parts(z)
    near = node("bit_and", node("lt", node("abs", x), 0.5), node("lt", node("abs", y), 1.0))
    far = node("log", joined(node("add", x, 1.0), y, z.dtype))  # the sum by parts keeps the sign of a zero
    x, y = parts(node("where", near, z, 0))
    squared = node("add", node("mul", x, node("add", x, 2.0)), node("mul", y, y))  # |1 + z|^2 - 1
    close = joined(node("mul", node("log1p", squared), 0.5), node("atan2", y, node("add", x, 1.0)), z.dtype)
    return node("where", near, close, far)


def sigmoid(z):
    """1 / (1 + exp(-z)), of exponentials that do not overflow."""
    below = node("lt", parts(z)[0], 0)
    e = node("exp", node("where", below, z, node("neg", z)))
    return node("div", node("where", below, e, 1.0), node("add", e, 1.0))


def scaled_log(z, unit):
    """log(z) / unit, part by part: the logarithm of 0 has an infinite real part and no NaN beside it."""
    re, im = parts(node("log", z))
    return joined(node("div", re, unit), node("div", im, unit), z.dtype)


def logaddexp(z, w):
    """log(exp(z) + exp(w)), with an imaginary part between -pi and pi."""
    first = node("lt", parts(z)[0], parts(w)[0])
    high, low = node("where", first, w, z), node("where", first, z, w)
    same = node("eq", high, low)  # equal infinities have no difference
    out = node("add", high, log1p(node("exp", node("where", same, 0, node("sub", low, high)))))
    re, im = parts(out)
    turns = node("round", node("div", im, 2 * _math.pi))
    return joined(re, node("sub", im, node("mul", turns, 2 * _math.pi)), out.dtype)


def compared(how, z, w):
    """A comparison by real parts, and by imaginary parts where these are equal: how is "lt", "le", "gt" or "ge"."""
    (x, y), (u, v) = parts(z), parts(w)
    known = node("bit_and", node("eq", y, y), node("eq", v, v))
    apart = node("bit_and", node(how[0] + "t", x, u), known)
    return node("bit_or", apart, node("bit_and", node("eq", x, u), node(how, y, v)))


def extreme_of_two(fn, z, w):
    """The larger ("max") or the smaller of each two elements; one with a NaN if there is one."""
    keep = compared("ge" if fn == "max" else "le", z, w)
    return node("where", node("bit_or", keep, node("ne", z, z)), z, w)
