"""The integrals of Fresnel, the sine and cosine integrals, and Owen's T function, as compositions of ops."""

import math as _math

from .._control import custom_jvp
from .._nodes import node
from .._op import op
from ..numpy._base import both_inexact, typed
from ._special import _GAMMA, _horner, _real, _where, computed


def _product(*values):
    out = values[0]
    for v in values[1:]:
        out = node("mul", out, v)
    return out


def _square(x):
    return node("mul", x, x)


def _signed(x, y):
    """y with its sign turned where x is below 0; x itself where it is 0."""
    return _where(node("eq", x, 0), x, _where(node("lt", x, 0), node("neg", y), y))


# -- Fresnel --


@custom_jvp
def _quarter_turns(x):
    """(sin, cos) of pi x^2 / 2."""
    size = node("min", node("abs", x), 2.0**52)
    whole = node("round", size)
    rest = node("sub", size, whole)
    # x^2 = whole^2 + 2 whole rest + rest^2, of which only the remainder by 4 counts; whole^2 gives 0 or 1. The
    # remainder of the least size keeps its digits.
    twice = node("mul", node("mul", whole, rest), 2)
    twice = node("sub", twice, node("mul", node("round", node("mul", twice, 0.25)), 4))
    turns = node("add", twice, _square(rest))
    nearest = node("round", turns)
    angle = node("mul", node("sub", turns, nearest), _math.pi / 2)
    sine, cosine = node("sin", angle), node("cos", angle)
    quarter = node("mod", node("add", nearest, node("mod", whole, 2)), 4)
    odd = node("eq", node("mod", quarter, 2), 1)
    s, c = _where(odd, cosine, sine), _where(odd, sine, cosine)
    turned = node("bit_or", node("eq", quarter, 1), node("eq", quarter, 2))
    return _where(node("ge", quarter, 2), node("neg", s), s), _where(turned, node("neg", c), c)


@_quarter_turns.defjvp
def _quarter_turns_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    s, c = _quarter_turns(x)
    moved = _product(x, t, _math.pi)
    return (s, c), (node("mul", c, moved), node("neg", node("mul", s, moved)))


_FRESNEL_BORDER = 1.5


def _fresnel_sides(x):
    """f and g with S = 1/2 - f cos - g sin and C = 1/2 + f sin - g cos, by the trapezoidal rule for
    f = sqrt(2) / (pi x) times the integral of exp(-pi v^2 / 2) / (1 + (v / x)^4) from 0 on, and g likewise.
    """
    step = 0.17
    fourth = _square(_square(node("div", 1, x)))
    f = g = None
    for k in range(31):
        v = k * step
        weight = _math.sqrt(2) * step * _math.exp(-_math.pi * v * v / 2) * (1 if k else 0.5)
        below = node("div", 1, node("add", node("mul", fourth, v**4), 1))
        f = node("mul", below, weight) if f is None else node("add", f, node("mul", below, weight))
        part = node("mul", below, weight * _math.pi * v * v)
        g = part if g is None else node("add", g, part)
    over = node("div", 1 / _math.pi, x)
    return node("mul", over, f), _product(over, over, node("div", 1, x), g)


def _fresnel_of(x):
    size = node("abs", x)
    small = node("lt", size, _FRESNEL_BORDER)
    near = _where(small, size, 0)
    q = _square(_square(near))
    half = _math.pi / 2
    series_s = [(-1) ** k * half ** (2 * k + 1) / (_math.factorial(2 * k + 1) * (4 * k + 3)) for k in range(14)]
    series_c = [(-1) ** k * half ** (2 * k) / (_math.factorial(2 * k) * (4 * k + 1)) for k in range(14)]
    near_s = _product(_horner(series_s, q), near, near, near)
    near_c = node("mul", _horner(series_c, q), near)
    far = _where(small, _FRESNEL_BORDER, size)
    f, g = _fresnel_sides(node("min", far, 1e12))
    s, c = _quarter_turns(far)
    far_s = node("sub", 0.5, node("add", node("mul", f, c), node("mul", g, s)))
    far_c = node("add", 0.5, node("sub", node("mul", f, s), node("mul", g, c)))
    out = []
    for close, away in ((near_s, far_s), (near_c, far_c)):
        away = _where(node("gt", size, 1e12), 0.5, away)  # the rest is below the last digit
        y = _signed(x, _where(small, close, away))
        out.append(_where(node("ne", x, x), x, y))
    return tuple(out)


@custom_jvp
def _fresnel(x):
    return _fresnel_of(x)


@_fresnel.defjvp
def _fresnel_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    s, c = _quarter_turns(x)
    return _fresnel(x), (node("mul", s, t), node("mul", c, t))


@op("x")
def fresnel(x):
    """(S, C): the integrals of sin(pi t^2 / 2) and of cos(pi t^2 / 2) from 0 to x."""
    return computed(_fresnel, _real(x, "fresnel"))


# -- sine and cosine integrals --


def _auxiliary(x):
    """(f, g) with Si = pi/2 - f cos x - g sin x and Ci = f sin x - g cos x: f = -Im, g = Re of exp(ix) E1(ix), by its
    continued fraction, for x from 4 on.
    """
    terms = 60
    re, im = node("add", node("mul", x, 0), float(2 * terms + 1)), x
    for k in range(terms, -1, -1):
        # The next denominator is 2 k - 1 + i x - k^2 / (re + i im). The sizes are divided first, so that no square
        # overflows.
        r = node("div", re, im)
        below = node("div", 1, node("mul", im, node("add", node("mul", r, r), 1)))  # im / (re^2 + im^2)
        if k == 0:
            return below, node("mul", below, r)
        re = node("sub", float(2 * k - 1), node("mul", node("mul", below, r), float(k * k)))
        im = node("add", x, node("mul", below, float(k * k)))


def _far_sine(x):
    f, g = _auxiliary(x)
    return f, g, node("sin", x), node("cos", x)


_SICI_BORDER = 4.0
_SI = [(-1) ** k / ((2 * k + 1) * _math.factorial(2 * k + 1)) for k in range(16)]
_CIN = [(-1) ** k / (2 * k * _math.factorial(2 * k)) for k in range(1, 16)]


def _sici_of(x):
    size = node("abs", x)
    small = node("lt", size, _SICI_BORDER)
    near = _where(small, size, 0)
    q = _square(near)
    log = node("log", _where(node("bit_and", small, node("gt", size, 0)), size, 1))
    near_ci = node("add", node("mul", _horner(_CIN, q), q), node("add", log, _GAMMA))
    far = _where(node("bit_or", small, node("ge", size, 1e30)), _SICI_BORDER, size)
    f, g, s, c = _far_sine(far)
    far_si = node("sub", _math.pi / 2, node("add", node("mul", f, c), node("mul", g, s)))
    far_ci = node("sub", node("mul", f, s), node("mul", g, c))
    endless = node("ge", size, 1e30)
    si = _where(small, node("mul", _horner(_SI, q), near), _where(endless, _math.pi / 2, far_si))
    ci = _where(small, near_ci, _where(endless, 0, far_ci))
    ci = _where(node("eq", x, 0), -_math.inf, _where(node("eq", x, -_math.inf), _math.nan, ci))
    return _where(node("ne", x, x), x, _signed(x, si)), _where(node("ne", x, x), x, ci)


@custom_jvp
def _sici(x):
    return _sici_of(x)


@custom_jvp
def _sine_over(x):
    """sin(x) / x."""
    zero = node("eq", x, 0)
    endless = node("eq", node("abs", x), _math.inf)
    safe = _where(node("bit_or", zero, endless), 1, x)
    return _where(zero, 1, _where(endless, 0, node("div", node("sin", safe), safe)))


@_sine_over.defjvp
def _sine_over_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    small = node("lt", node("abs", x), 1.0)
    near, far = _where(small, x, 0), _where(small, 1, x)
    series = [-((-1) ** k) * (2 * k + 2) / _math.factorial(2 * k + 3) for k in range(9)]
    close = node("mul", near, _horner(series, _square(near)))
    away = node("div", node("sub", node("cos", far), node("div", node("sin", far), far)), far)
    return _sine_over(x), node("mul", _where(small, close, away), t)


@_sici.defjvp
def _sici_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    cosine = node("div", node("cos", x), x)
    return _sici(x), (node("mul", _sine_over(x), t), node("mul", cosine, t))


@op("x")
def sici(x):
    """(Si, Ci): the integral of sin(t) / t from 0 to x, and that of cos(t) / t from infinity to x. Below 0, Ci is the
    real part, Ci(|x|); NaN at -infinity.
    """
    return computed(_sici, _real(x, "sici"))


# -- Owen's T --

# Nodes and weights of Gauss and Legendre on [0, 1] are computed when they are first asked for.
_rules = {}


def gauss_legendre(count):
    """(nodes, weights) of the rule of Gauss and Legendre on [0, 1], as Python numbers."""
    if count not in _rules:
        nodes, weights = [], []
        for i in range(count):
            z = _math.cos(_math.pi * (i + 0.75) / (count + 0.5))
            for _ in range(100):
                p, below = 1.0, 0.0
                for k in range(1, count + 1):
                    p, below = ((2 * k - 1) * z * p - (k - 1) * below) / k, p
                slope = count * (z * p - below) / (z * z - 1)
                z, before = z - p / slope, z
                if abs(z - before) < 1e-16:
                    break
            nodes.append((1 - z) / 2)
            weights.append(1 / ((1 - z * z) * slope * slope))
        _rules[count] = nodes, weights
    return _rules[count]


def _upper(x):
    return node("mul", node("erfc", node("mul", x, _math.sqrt(0.5))), 0.5)


def _owens_of(h, a):
    size_h, size_a = node("abs", h), node("min", node("abs", a), 1e30)
    large = node("gt", size_a, 1.0)
    # T(h, a) = (Q(h) + Q(ah)) / 2 - Q(h) Q(ah) - T(ah, 1 / a), Q the upper tail of the normal distribution.
    ah = node("min", node("mul", _where(large, size_a, 1), size_h), 1e6)
    inner_h = _where(large, ah, node("min", size_h, 1e6))
    inner_a = _where(large, node("div", 1, _where(large, size_a, 1)), size_a)
    nodes, weights = gauss_legendre(40)
    # The integrand falls within a few widths 1 / h, beyond which nothing is left.
    reach = node("min", inner_a, node("div", 9.0, node("max", inner_h, 1e-6)))
    square = node("mul", _square(inner_h), -0.5)
    total = None
    for n, w in zip(nodes, weights):
        v = node("add", _square(node("mul", reach, n)), 1)
        part = node("mul", node("div", node("exp", node("mul", square, v)), v), w / (2 * _math.pi))
        total = part if total is None else node("add", total, part)
    inner = node("mul", total, reach)
    q, qa = _upper(node("min", size_h, 1e6)), _upper(ah)
    # Q(h) (1/2 - Q(ah)) + Q(ah) / 2, without a difference of near numbers
    outer = node("add", node("mul", q, node("sub", 0.5, qa)), node("sub", node("mul", qa, 0.5), inner))
    out = _where(large, outer, inner)
    return _where(node("lt", a, 0), node("neg", out), out)


@custom_jvp
def _owens_t(h, a):
    return _owens_of(h, a)


@_owens_t.defjvp
def _owens_t_rule(primals, tangents):
    (h, a), (dh, da) = primals, tangents
    bell = node("mul", node("exp", node("mul", _square(h), -0.5)), -1 / (2 * _math.sqrt(2 * _math.pi)))
    by_h = node("mul", bell, node("erf", node("mul", node("mul", a, h), _math.sqrt(0.5))))
    above = node("add", _square(a), 1)
    by_a = node("div", node("exp", node("mul", node("mul", _square(h), above), -0.5)), node("mul", above, 2 * _math.pi))
    return _owens_t(h, a), node("add", node("mul", by_h, dh), node("mul", by_a, da))


@op("h", "a")
def owens_t(h, a):
    """Owen's T function: 1 / (2 pi) times the integral of exp(-h^2 (1 + t^2) / 2) / (1 + t^2) from 0 to a."""
    h, a = typed(*both_inexact(h, a))
    if h.dtype.kind != "f":
        raise TypeError("owens_t of complex numbers is not supported")
    return computed(_owens_t, h, a)


__all__ = ["fresnel", "owens_t", "sici"]
