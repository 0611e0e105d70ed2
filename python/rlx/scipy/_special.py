"""Special functions as compositions of ops: Bessel functions, exponential integrals, zeta, the dilogarithm, .."""

import fractions as _fractions
import functools as _functools
import math as _math

from .. import _rlx
from .._control import custom_jvp
from .._nodes import inexact, node
from .._op import op
from ..numpy import broadcast_shapes as _shape_of_both
from ..numpy._base import both_inexact, cast, int_static, typed


def _horner(coefficients, x):
    """coefficients[0] + coefficients[1] x + ..."""
    out = node("add", node("mul", x, 0), coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = node("add", node("mul", out, x), c)
    return out


def _where(condition, x, y):
    return node("where", condition, x, y)


def _nan_like(x):
    return cast(_math.nan, x.dtype)


# -- modified Bessel functions of the first kind: a power series up to 20, an asymptotic one above --


def _bessel_i(x, order, scaled):
    size = node("abs", x)
    small = node("le", size, 20.0)
    near_x = _where(small, size, 0)
    half = node("mul", near_x, 0.5)
    terms = [1 / _math.factorial(order)]
    for k in range(1, 61):
        terms.append(terms[-1] / (k * (k + order)))
    near = _horner(terms, node("mul", half, half))
    for _ in range(order):
        near = node("mul", near, half)
    r = node("div", 0.125, _where(small, 20, size))
    terms = [1.0]
    for k in range(1, 25):
        terms.append(terms[-1] * ((2 * k - 1) ** 2 - 4 * order * order) / k)
    far_x = _where(small, 20, size)
    far = node("div", _horner(terms, r), node("mul", node("sqrt", far_x), _math.sqrt(2 * _math.pi)))
    if scaled:
        near = node("mul", near, node("exp", node("neg", near_x)))
    else:
        grown = node("exp", node("mul", far_x, 0.5))
        far = node("mul", node("mul", grown, far), grown)
    out = _where(small, near, far)
    return node("where", node("lt", x, 0), node("neg", out), out) if order % 2 else out


@_functools.cache
def _bessel(order, scaled, levels=2):
    """The function of an order. Its derivatives up to the order `levels` are by the mean of the orders beside it; those
    beyond are by its formulas.
    """
    if levels == 0:
        return lambda x: _bessel_i(x, order, scaled)

    @custom_jvp
    def function(x):
        return _bessel_i(x, order, scaled)

    @function.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        out, above, below = (_bessel(abs(n), scaled, levels - 1)(x) for n in (order, order + 1, order - 1))
        slope = above if order == 0 else node("mul", node("add", above, below), 0.5)
        if scaled:
            slope = node("sub", slope, node("mul", node("sign", x), out))
        return out, node("mul", slope, t)

    return function


def _bessel_named(name, text, order, scaled):
    @op("x")
    def call(x):
        return computed(_bessel(order, scaled), _real(x, name))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = text
    return call


def _real(x, what):
    x = inexact(x)
    if x.dtype.kind != "f":
        raise TypeError(f"{what} of complex numbers is not supported")
    return x


def computed(function, *values):
    """function of these values, in float32 for narrower dtypes."""
    dtype = values[0].dtype
    if dtype.itemsize >= 4:
        return function(*values)
    out = function(*[cast(v, "float32") for v in values])
    return tuple(cast(o, dtype) for o in out) if isinstance(out, tuple) else cast(out, dtype)


i0e = _bessel_named("i0e", "exp(-|x|) i0(x).", 0, True)
i1 = _bessel_named("i1", "The modified Bessel function of order 1.", 1, False)
i1e = _bessel_named("i1e", "exp(-|x|) i1(x).", 1, True)

# -- the error function scaled, and Dawson's integral --


def _below_erfcx(x):
    """c in erfcx(x) = 1 / (sqrt(pi) (x + c)), a continued fraction, for x from 2 on."""
    out = x
    for k in range(60, 1, -1):
        out = node("add", x, node("div", k / 2, out))
    return node("div", 0.5, out)


@custom_jvp
def _erfcx(x):
    small = node("lt", x, 2.0)
    near = _where(small, x, 0)
    near = node("mul", node("exp", node("mul", near, near)), node("erfc", near))
    far = _where(small, 2.0, x)
    return _where(small, near, node("div", 1 / _math.sqrt(_math.pi), node("add", far, _below_erfcx(far))))


@_erfcx.defjvp
def _erfcx_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    y, small = _erfcx(x), node("lt", x, 2.0)
    near = node("sub", node("mul", node("mul", x, y), 2), 2 / _math.sqrt(_math.pi))
    far = _where(small, 2.0, x)
    c = _below_erfcx(far)  # 2 x erfcx(x) - 2 / sqrt(pi) without cancellation
    slope = _where(small, near, node("mul", node("div", c, node("add", far, c)), -2 / _math.sqrt(_math.pi)))
    return y, node("mul", slope, t)


@op("x")
def erfcx(x):
    """exp(x^2) erfc(x)."""
    return computed(_erfcx, _real(x, "erfcx"))


@custom_jvp
def _dawsn(x):
    size = node("abs", x)
    small = node("lt", size, 0.2)
    near = _where(small, size, 0)
    series, c = [], 1.0
    for k in range(12):
        series.append(c)
        c *= -2.0 / (2 * k + 3)
    close = node("mul", near, _horner(series, node("mul", near, near)))
    # Rybicki's sum over Gaussians at odd multiples of h, counted from the even multiple next to x.
    h = 0.25
    far = node("min", _where(small, 1, size), 1e9)
    even = node("mul", node("round", node("div", far, 2 * h)), 2)
    rest = node("sub", far, node("mul", even, h))
    total = node("mul", far, 0)
    for k in range(-27, 28, 2):
        apart = node("sub", rest, k * h)
        total = node(
            "add", total, node("div", node("exp", node("neg", node("mul", apart, apart))), node("add", even, k))
        )
    out = _where(small, close, node("mul", total, 1 / _math.sqrt(_math.pi)))
    out = _where(node("gt", size, 1e6), node("div", 0.5, size), out)
    return _where(node("lt", x, 0), node("neg", out), out)


@_dawsn.defjvp
def _dawsn_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    y, far = _dawsn(x), node("gt", node("abs", x), 6.0)
    r = node("div", 0.5, node("mul", *[_where(far, x, 6.0)] * 2))
    terms = [0.0, *(-float(_math.prod(range(1, 2 * k, 2))) for k in range(1, 27))]
    slope = _where(far, _horner(terms, r), node("sub", 1, node("mul", node("mul", x, y), 2)))
    return y, node("mul", slope, t)


@op("x")
def dawsn(x):
    """Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x."""
    return computed(_dawsn, _real(x, "dawsn"))


# -- exponential integrals --


def _generalized(n, x):
    """exp(x) E_n(x) by its continued fraction, for x + n of 2 or more."""
    terms = 110 if n == 1 else 60
    out = node("add", x, float(n + 2 * terms))
    for k in range(terms, 0, -1):
        out = node("sub", node("add", x, float(n + 2 * k - 2)), node("div", float(k * (n + k - 1)), out))
    return node("div", 1, out)


def _exp1_of(x):
    small = node("lt", x, 1.0)
    near = _where(small, _where(node("gt", x, 0), x, 1), 1)
    series = [-((-1) ** k) / (k * _math.factorial(k)) for k in range(1, 22)]
    close = node("sub", node("mul", near, _horner(series, near)), node("add", node("log", near), _GAMMA))
    far = _where(small, 1, x)
    out = _where(small, close, node("mul", node("exp", node("neg", far)), _generalized(1, far)))
    out = _where(node("eq", x, 0), _math.inf, out)
    return _where(node("lt", x, 0), _nan_like(x), out)


_GAMMA = 0.57721566490153286061


@custom_jvp
def _exp1(x):
    return _exp1_of(x)


@_exp1.defjvp
def _exp1_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    return _exp1(x), node("mul", node("neg", node("div", node("exp", node("neg", x)), x)), t)


@op("x")
def exp1(x):
    """The exponential integral E1: that of exp(-t) / t from x to infinity; NaN below 0."""
    return computed(_exp1, _real(x, "exp1"))


@custom_jvp
def _expi(x):
    small = node("lt", x, 40.0)
    near = _where(node("bit_and", small, node("gt", x, 0)), x, 1)
    total = 1.0  # of x^k / (k k!), by the ratios of its terms, which do not underflow
    for k in range(140, 0, -1):
        total = node("add", node("mul", total, node("mul", near, k / (k + 1) ** 2)), 1)
    close = node("add", node("mul", near, total), node("add", node("log", near), _GAMMA))
    far = _where(small, 40, x)
    r = node("div", 1, far)
    half = node("exp", node("mul", far, 0.5))
    tail = node("mul", _horner([float(_math.factorial(k)) for k in range(26)], r), r)
    out = _where(small, close, node("mul", node("mul", half, tail), half))
    out = _where(node("eq", x, 0), -_math.inf, _where(node("eq", x, _math.inf), x, out))
    return _where(node("lt", x, 0), node("neg", _exp1_of(node("neg", x))), out)


@_expi.defjvp
def _expi_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    half = node("exp", node("mul", x, 0.5))  # the exponential may overflow where the quotient does not
    return _expi(x), node("mul", node("mul", node("div", half, x), half), t)


@op("x")
def expi(x):
    """The exponential integral Ei: that of exp(t) / t from -infinity to x, its principal value above 0."""
    return computed(_expi, _real(x, "expi"))


def _expn_of(n, x):
    decay = node("exp", node("neg", x))
    if n == 0:
        return node("div", decay, x)
    if n == 1:
        return _exp1(x)
    far_x = node("max", x, 0 if n >= 20 else 2)
    far = node("mul", node("exp", node("neg", far_x)), _generalized(n, far_x))
    if n < 20:
        small = node("lt", x, 2.0)
        zero = node("eq", x, 0)
        near = _where(node("bit_and", small, node("gt", x, 0)), x, 1)
        out = _exp1_of(near)
        for k in range(1, n):
            out = node("mul", node("sub", node("exp", node("neg", near)), node("mul", near, out)), 1 / k)
        far = _where(small, _where(zero, 1 / (n - 1), out), far)
    return _where(node("lt", x, 0), _nan_like(x), far)


def _expn_of_several(n, x):
    """E_n for nested tuples of integers."""
    import numpy as np

    n = np.asarray(n)
    known = sorted(set(n.ravel().tolist()))
    if n.dtype.kind not in "iu" or len(known) > 64:
        raise TypeError(
            f"expn: n has {len(known)} different values of {n.dtype.name}; at most 64 integers are supported"
        )
    shape = _shape_of_both(n.shape, x.shape)
    x, places = _rlx.expand([x], shape), _rlx.expand([_rlx.value(n.astype("int32"))], shape)
    out = cast(0, x.dtype)
    for k in known:
        out = _where(node("eq", places, k), expn(int(k), x), out)
    return out


@_functools.cache
def _expn(n, levels=2):
    """E_n, with E_(n - 1) as its derivative up to the order `levels`."""
    if levels == 0:
        return lambda x: _expn_of(n, x)

    @custom_jvp
    def function(x):
        return _expn_of(n, x)

    @function.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        if n == 0:  # E_0 = exp(-x) / x
            slope = node("mul", node("exp", node("neg", x)), node("add", node("div", 1, x), node("div", 1, x * x)))
        else:
            slope = _expn(n - 1, levels - 1)(x)
        return function(x), node("neg", node("mul", slope, t))

    return function


@op("x")
def expn(n, x):
    """The generalized exponential integral E_n: that of exp(-x t) / t^n from 1 to infinity. n is a Python integer, 0 or
    more, or an array of few different ones that are known.
    """
    if isinstance(n, tuple):
        return _expn_of_several(n, _real(x, "expn"))
    n, x = int_static(n, "expn: n"), _real(x, "expn")
    if not 0 <= n <= 1 << 20:
        raise ValueError(f"expn: n = {n}; it must be from 0 to {1 << 20}")

    return computed(_expn(n), x)


# -- the dilogarithm and the zeta function --

_BERNOULLI = [_fractions.Fraction(1)]
for _n in range(1, 41):
    _BERNOULLI.append(-sum(_math.comb(_n + 1, k) * b for k, b in enumerate(_BERNOULLI)) / (_n + 1))


def _dilog(u):
    """Li2(1 - exp(-u)) for |u| <= log 2: the sum of B_k u^(k+1) / (k+1)!."""
    terms = [float(_BERNOULLI[k] / _math.factorial(k + 1)) for k in range(0, 27, 2)]
    even = _horner(terms, node("mul", u, u))
    return node("sub", node("mul", u, even), node("mul", node("mul", u, u), 0.25))


@custom_jvp
def _spence(z):
    low, high = node("lt", z, 0.5), node("gt", z, 2.0)
    middle = _where(node("bit_or", low, high), 1, z)
    center = _dilog(node("neg", node("log", middle)))
    below = _where(low, z, 0.25)
    known = _where(node("gt", below, 0), below, 0.25)
    product = node("mul", node("log1p", node("neg", known)), node("log", known))
    product = _where(node("eq", below, 0), 0, product)
    left = node("sub", node("sub", _math.pi**2 / 6, product), _dilog(node("neg", node("log1p", node("neg", below)))))
    above = _where(high, z, 3)
    root = node("log", node("sub", above, 1))
    inner = node("neg", node("log1p", node("div", 1, node("sub", above, 1))))
    right = node("sub", node("sub", -(_math.pi**2) / 6, node("mul", node("mul", root, root), 0.5)), _dilog(inner))
    out = _where(low, left, _where(high, right, center))
    return _where(node("lt", z, 0), _nan_like(z), _where(node("ne", z, z), z, out))


@_spence.defjvp
def _spence_rule(primals, tangents):
    (z,), (t,) = primals, tangents
    apart = node("sub", 1, z)
    near = node("lt", node("abs", apart), 1e-3)
    series = _horner([-1.0, -1 / 2, -1 / 3, -1 / 4, -1 / 5], _where(near, apart, 0))  # log(1 - a) / a
    slope = _where(near, series, node("div", node("log", z), _where(near, 1, apart)))
    return _spence(z), node("mul", slope, t)


@op("z")
def spence(z):
    """Spence's function, Li2(1 - z): the integral of log(t) / (1 - t) from 1 to z; NaN below 0."""
    return computed(_spence, _real(z, "spence"))


@op("x", "q")
def zeta(x, q=1.0):
    """The zeta function of Hurwitz: the sum of (k + q)^-x over k from 0 on, for x above 1 and q above 0; inf at x = 1,
    NaN elsewhere.
    """
    x, q = typed(*both_inexact(x, q))
    if x.dtype.kind != "f":
        raise TypeError("zeta of complex numbers is not supported")
    return computed(_zeta, x, q)


def _zeta(x, q):
    good = node("bit_and", node("gt", x, 1), node("gt", q, 0))
    s, a = _where(good, x, 2), _where(good, q, 1)
    first = 12
    out = None
    for k in range(first):
        term = node("pow", node("add", a, k), node("neg", s))
        out = term if out is None else node("add", out, term)
    a = node("add", a, first)
    power = node("pow", a, node("neg", s))
    rest = node("div", node("pow", a, node("sub", 1, s)), node("sub", s, 1))
    out = node("add", out, node("add", rest, node("mul", power, 0.5)))
    factor = node("div", node("mul", power, s), a)
    for k in range(1, 11):
        out = node("add", out, node("mul", factor, float(_BERNOULLI[2 * k] / _math.factorial(2 * k))))
        step = node("mul", node("add", s, 2 * k - 1), node("add", s, 2 * k))
        factor = node("div", node("div", node("mul", factor, step), a), a)
    at_one = node("bit_and", node("eq", x, 1), node("gt", q, 0))
    return _where(good, out, _where(at_one, _math.inf, _nan_like(x)))


# -- functions of gamma --


@op("x")
def gammasgn(x):
    """The sign of the gamma function: 0 where it has none, as at negative integers NaN."""
    x = _real(x, "gammasgn")
    whole = node("floor", x)
    odd = node("ne", node("mod", whole, 2), 0)
    below = _where(node("eq", x, whole), _nan_like(x), _where(odd, -1.0, 1.0))
    zero = _where(_rlx.special("signbit", x), -1.0, 1.0)
    out = _where(node("gt", x, 0), 1.0, _where(node("eq", x, 0), zero, below))
    return cast(_where(node("ne", x, x), x, out), x.dtype)


_LOG_ROOT = 0.5 * _math.log(2 * _math.pi)


def stirling_rest(t):
    """log gamma(t) - ((t - 1/2) log t - t + log(2 pi) / 2) for t above 0, by Stirling's series from 10 on."""
    far = node("ge", t, 10.0)
    over = node("div", 1, _where(far, t, 10.0))
    terms = [float(_BERNOULLI[2 * k] / (2 * k * (2 * k - 1))) for k in range(1, 8)]
    series = node("mul", _horner(terms, node("mul", over, over)), over)
    near = _where(far, 1, t)
    lead = node("sub", node("mul", node("sub", near, 0.5), node("log", near)), node("sub", near, _LOG_ROOT))
    return _where(far, series, node("sub", node("lgamma", near), lead))


def _poch(z, m):
    top = node("add", z, m)
    # The logarithms of gamma cancel where both are large.
    far = node("bit_and", node("ge", z, 10.0), node("ge", top, 10.0))
    a, n = _where(far, z, 10.0), _where(far, m, 1.0)
    grown = node("mul", node("sub", a, 0.5), node("log1p", node("div", n, a)))
    large = node("add", node("mul", n, node("log", node("add", a, n))), node("sub", grown, n))
    large = node("add", large, node("sub", stirling_rest(node("add", a, n)), stirling_rest(a)))
    # Next to 0 gamma(x) is gamma(x + 1) / x.
    parts = []
    for x in (top, z):
        small = node("lt", node("abs", x), 1.0)
        lifted = _where(far, 1, _where(small, node("add", x, 1), x))
        parts.append((_where(small, x, 1), node("lgamma", lifted), gammasgn(lifted)))
    (top_factor, log_top, top_sign), (factor, log, sign) = parts
    size = node("exp", _where(far, large, node("sub", log_top, log)))
    return node("mul", node("div", node("mul", size, factor), top_factor), node("mul", top_sign, sign))


@op("z", "m")
def poch(z, m):
    """gamma(z + m) / gamma(z), Pochhammer's rising factorial."""
    z, m = typed(*both_inexact(z, m))
    at_pole = node("bit_and", node("eq", m, 0), node("bit_and", node("le", z, 0), node("eq", z, node("floor", z))))
    return _where(at_pole, 1, computed(_poch, z, _where(at_pole, 1, m)))


def log_choices(n, k):
    """log(n! / (k! (n - k)!)) for 0 <= k <= n."""
    both = _rlx.special("betaln", node("add", node("sub", n, k), 1), node("add", k, 1))
    return node("neg", node("add", node("log1p", n), both))


@op("N", "k")
def comb(N, k, exact=False, repetition=False):
    """The number of choices of k of N things, N! / (k! (N - k)!); 0 where k is below 0 or above N. repetition: things
    may be chosen several times.
    """
    if exact:
        raise NotImplementedError("comb: exact=True is not supported; math.comb gives exact integers")
    whole = all(_rlx.value(v).dtype.kind in "iu" for v in (N, k))
    n, k = typed(*both_inexact(N, k))
    if repetition:
        none = node("bit_and", node("eq", n, 0), node("eq", k, 0))  # one choice of nothing
        n = _where(none, 0, node("sub", node("add", n, k), 1))
    inside = node("bit_and", node("bit_and", node("ge", k, 0), node("ge", n, 0)), node("le", k, n))
    n, k = _where(inside, n, 1), _where(inside, k, 0)
    out = computed(lambda n, k: node("exp", log_choices(n, k)), n, k)
    return _where(inside, node("round", out) if whole else out, 0)


def bernoulli(n):
    """The Bernoulli numbers B0 to Bn, with B1 = -1/2."""
    n = int_static(n, "bernoulli: n")
    if not 0 <= n <= 1 << 10:
        raise ValueError(f"bernoulli: n = {n}; it must be from 0 to {1 << 10}")
    numbers = list(_BERNOULLI)
    for m in range(len(numbers), n + 1):
        numbers.append(
            _fractions.Fraction(0) if m % 2 else -sum(_math.comb(m + 1, k) * b for k, b in enumerate(numbers)) / (m + 1)
        )
    return _rlx.array_from([float(b) if abs(b) < 1e300 else _math.copysign(_math.inf, b) for b in numbers[: n + 1]])


# -- transforms of Box and Cox --


def _box_cox(log, lmbda):
    """log * (exp(z) - 1) / z of z = lmbda * log; near 0 by its power series, whose derivatives do not cancel."""
    z = node("mul", log, lmbda)
    zero = node("eq", lmbda, 0)
    near = node("bit_or", zero, node("lt", node("abs", z), 1))
    endless = node("eq", node("abs", log), _math.inf)
    small = _where(node("bit_and", near, node("eq", endless, False)), z, 0)
    total = node("mul", small, 0)
    for k in range(20, -1, -1):
        total = node("add", node("mul", total, small), 1 / _math.factorial(k + 1))
    far = node("div", node("expm1", _where(near, 1, z)), _where(near, 1, lmbda))
    return _where(near, node("mul", log, total), far)


@op("x", "lmbda")
def boxcox(x, lmbda):
    """(x^lmbda - 1) / lmbda; log(x) where lmbda is 0."""
    x, lmbda = typed(*both_inexact(x, lmbda))
    return computed(lambda x, p: _box_cox(node("log", x), p), x, lmbda)


@op("x", "lmbda")
def boxcox1p(x, lmbda):
    """boxcox(1 + x, lmbda), accurate near 0."""
    x, lmbda = typed(*both_inexact(x, lmbda))
    return computed(lambda x, p: _box_cox(node("log1p", x), p), x, lmbda)


__all__ = """bernoulli boxcox boxcox1p comb dawsn erfcx exp1 expi expn gammasgn i0e i1 i1e poch spence zeta""".split()
