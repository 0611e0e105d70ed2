"""The distributions of scipy.stats as functions: norm.logpdf(x, loc, scale), gamma.cdf(x, a), binom.pmf(k, n, p).

A distribution of real numbers has logpdf, pdf, cdf, logcdf, sf and logsf, and where a closed form is known ppf and isf.
One of integers has logpmf and pmf, and where a closed form is known cdf, logcdf, sf and logsf. Outside of the support
the density is 0. Parameters that a distribution does not allow give NaN.
"""

import math as _math
from collections import namedtuple as _namedtuple

from .. import _control, _rlx
from .. import nn as _nn
from .. import numpy as _rnp
from .._names import accept_names as _accept_names, getattr_of as _getattr_of
from .._nodes import axis_of as _axis_of
from .._nodes import cast as _cast
from .._nodes import inexact as _inexact
from .._nodes import node as _node
from .._op import op as _op
from . import special as _s
from ._kde import gaussian_kde  # noqa: F401
from ._special import log_choices as _log_choices
from ._special import stirling_rest as _stirling_rest

_INF = _math.inf
_where, _log, _exp, _log1p, _expm1 = _rnp.where, _rnp.log, _rnp.exp, _rnp.log1p, _rnp.expm1


def _floats(values):
    """The values as floating ones of their common dtype."""
    values = [_inexact(v) for v in values]
    dtype, _ = _rlx.result_type(*values)
    return [_cast(v, dtype) for v in values]


# The parameters that a distribution allows, besides a positive scale.
_ALLOWED = {
    "gamma": lambda a: a > 0,
    "chi2": lambda df: df > 0,
    "beta": lambda a, b: _rnp.logical_and(a > 0, b > 0),
    "t": lambda df: df > 0,
    "pareto": lambda b: b > 0,
    "gennorm": lambda beta: beta > 0,
    "truncnorm": lambda a, b: a < b,
    "vonmises": lambda kappa: kappa >= 0,
    "wrapcauchy": lambda c: _rnp.logical_and(c > 0, c < 1),
}


def _checked(name, value, shape, scale):
    """The value, NaN where the parameters are not allowed."""
    good = scale > 0
    if name in _ALLOWED:
        good = _rnp.logical_and(good, _ALLOWED[name](*shape))
    return _where(good, value, _math.nan)


class _Distribution:
    """A distribution; see the module."""

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name

    def __repr__(self):
        return f"<distribution rlx.scipy.stats.{self.__name__}>"


def _wide(formula):
    """The formula, in float32 for narrower dtypes."""

    def form(*values):
        values = _floats(values)
        dtype = values[0].dtype
        if dtype.itemsize >= 4:
            return formula(*values)
        return _cast(formula(*[_cast(v, "float32") for v in values]), dtype)

    return form


def _function(distribution, method, first, shapes, formula, text, scaled=True):
    """Adds the method of these arguments, whose formula takes them all."""
    given = ", ".join((first, *shapes))
    last = "loc=0, scale=1" if scaled else "loc=0"
    names = (first, *shapes, "loc", *(("scale",) if scaled else ()))
    call = eval(f"lambda {given}, {last}: formula({', '.join(names)})", {"formula": _wide(formula)})  # noqa: S307
    call.__name__ = call.__qualname__ = method
    call.__doc__ = text
    call.__module__ = __name__
    setattr(distribution, method, _op(*names)(call))


_TEXTS = {
    "logpdf": "The logarithm of the density.",
    "pdf": "The density.",
    "cdf": "The probability of a number up to x.",
    "logcdf": "The logarithm of cdf.",
    "sf": "The probability of a number above x.",
    "logsf": "The logarithm of sf.",
    "ppf": "The inverse of cdf.",
    "isf": "The inverse of sf.",
    "logpmf": "The logarithm of the probability of k.",
    "pmf": "The probability of k.",
}


def _log_of(probability, other):
    """The logarithm of a probability; near 1 from the other one, if that is known by itself."""

    def form(*a):
        p = probability(*a)
        if other is None:
            return _log(p)
        small = p < 0.5
        return _where(small, _log(_where(small, p, 0.5)), _log1p(-_where(small, 0.5, other(*a))))

    return form


def _derived(forms):
    """All functions that follow from some of them."""
    forms = dict(forms)
    if "cdf" not in forms and "logcdf" in forms:
        forms["cdf"] = lambda *a: _exp(forms["logcdf"](*a))
    if "sf" not in forms and "logsf" in forms:
        forms["sf"] = lambda *a: _exp(forms["logsf"](*a))
    both = "cdf" in forms and "sf" in forms
    if "sf" not in forms and "cdf" in forms:
        forms["sf"] = lambda *a: 1 - forms["cdf"](*a)
    for log, plain, other in (("logcdf", "cdf", "sf"), ("logsf", "sf", "cdf")):
        if log not in forms and plain in forms:
            forms[log] = _log_of(forms[plain], forms[other] if both else None)
    if "isf" not in forms and "ppf" in forms:
        forms["isf"] = lambda q, *a: forms["ppf"](1 - q, *a)
    return forms


# The value below and above the support.
_OUTSIDE = {"logpdf": (-_INF, -_INF), "cdf": (0, 1), "sf": (1, 0), "logcdf": (-_INF, 0), "logsf": (0, -_INF)}


def _continuous(name, *shapes, low=None, high=None, inside=0.5, **forms):
    """A distribution of real numbers from formulas of (x - loc) / scale. `inside` is in its support, low to high."""
    out, forms = _Distribution(name), _derived(forms)

    def of(method):
        form = forms[method]

        def formula(x, *rest):
            x, *shape, loc, scale = _floats((x, *rest))
            if method in ("ppf", "isf"):
                good = _rnp.logical_and(x >= 0, x <= 1)
                value = _where(good, form(_where(good, x, 0.5), *shape) * scale + loc, _math.nan)
                return _checked(name, value, shape, scale)
            y = (x - loc) / scale
            below = None if low is None else y < low
            above = None if high is None else y > high
            for far in (below, above):
                y = y if far is None else _where(far, inside, y)
            value = form(y, *shape)
            if method == "logpdf":
                value = value - _log(scale)
            for far, side in ((below, 0), (above, 1)):
                value = value if far is None else _where(far, _OUTSIDE[method][side], value)
            return _checked(name, value, shape, scale)

        return formula

    formulas = {method: of(method) for method in forms}
    formulas["pdf"] = lambda *a: _exp(formulas["logpdf"](*a))
    for method, formula in formulas.items():
        _function(out, method, "q" if method in ("ppf", "isf") else "x", shapes, formula, _TEXTS[method])
    return out


def _discrete(name, *shapes, first=0, last=None, **forms):
    """A distribution of integers. first: the least one; last: the largest one, a function of the parameters."""
    out, forms = _Distribution(name), _derived(forms)

    def of(method):
        form = forms[method]

        def formula(k, *rest):
            k, *shape, loc = _floats((k, *rest))
            k = k - loc
            whole = _rnp.floor(k)
            end = None if last is None else last(*shape)
            outside = whole < first if end is None else _rnp.logical_or(whole < first, whole > end)
            if method != "logpmf":
                value = form(_where(outside, first, whole), *shape)
                at_end, at_start = (1, 0) if method == "cdf" else (0, 1)
                if method.startswith("log"):
                    at_end, at_start = (0, -_INF) if method == "logcdf" else (-_INF, 0)
                value = _where(whole < first, at_start, value)
                return value if end is None else _where(whole >= end, at_end, value)
            value = form(_where(outside, first, whole), *shape)
            return _where(_rnp.logical_or(outside, k != whole), -_INF, value)

        return formula

    formulas = {method: of(method) for method in forms}
    formulas["pmf"] = lambda *a: _exp(formulas["logpmf"](*a))
    for method, formula in formulas.items():
        _function(out, method, "k", shapes, formula, _TEXTS[method], scaled=False)
    return out


# -- probabilities whose terms cancel: Loader's saddle-point form, whose terms are as small as the result --


def _log_poisson(k, m, above):
    """k log(m) - m - log(k!), `above` being k + 1."""
    far = k >= 10.0
    near_k, near_above = _where(far, 0, k), _where(far, 1, above)
    near = _s.xlogy(near_k, _where(far, 1, m)) - _where(far, 0, m) - _s.gammaln(near_above)
    n = _where(far, k, 10.0)
    out = -_s.kl_div(n, _where(far, m, 10.0)) - 0.5 * _log(2 * _math.pi * n) - _stirling_rest(n)
    return _where(m < 0, _math.nan, _where(far, out, near))


def _log_binomial(k, n, p, q):
    """log(n! / (k! (n - k)!)) + k log(p) + (n - k) log(q) for q = 1 - p."""
    rest = n - k
    far = (n >= 20.0) & (k > 0) & (rest > 0)
    near_n, near_k, near_p = _where(far, 1, n), _where(far, 0, k), _where(far, 0.5, p)
    near = _log_choices(near_n, near_k) + _s.xlogy(near_k, near_p) + _s.xlog1py(near_n - near_k, -near_p)
    n, k, rest, p, q = (_where(far, v, w) for v, w in ((n, 20.0), (k, 10.0), (rest, 10.0), (p, 0.5), (q, 0.5)))
    out = _stirling_rest(n) - _stirling_rest(k) - _stirling_rest(rest) - _s.kl_div(k, n * p) - _s.kl_div(rest, n * q)
    out = out + 0.5 * (_log(n / k) - _log(2 * _math.pi * rest))
    return _where((p < 0) | (p > 1), _math.nan, _where(far, out, near))


def _log1p_square(y):
    """log(1 + y^2) without the square of a large number."""
    far = _rnp.abs(y) > 1e4
    size, near = _where(far, _rnp.abs(y), 1), _where(far, 0, y)
    return _where(far, 2 * _log(size) + _log1p((1 / size) ** 2), _log1p(near * near))


# -- real numbers --

norm = _continuous(
    "norm",
    logpdf=lambda y: -0.5 * y * y - 0.5 * _math.log(2 * _math.pi),
    cdf=_s.ndtr,
    sf=lambda y: _s.ndtr(-y),
    logcdf=_s.log_ndtr,
    logsf=lambda y: _s.log_ndtr(-y),
    ppf=_s.ndtri,
    isf=lambda q: -_s.ndtri(q),
)
expon = _continuous(
    "expon",
    low=0,
    logpdf=lambda y: -y,
    cdf=lambda y: -_expm1(-y),
    logsf=lambda y: -y,
    ppf=lambda q: -_log1p(-q),
    isf=lambda q: -_log(q),
)
uniform = _continuous(
    "uniform", low=0, high=1, logpdf=lambda y: y * 0, cdf=lambda y: y, sf=lambda y: 1 - y, ppf=lambda q: q
)


def _half_exp(y):
    """The cdf of the Laplace distribution."""
    low = y < 0
    return _where(low, 0.5 * _exp(_where(low, y, 0)), 1 - 0.5 * _exp(-_where(low, 0, y)))


def _log_half_exp(y):
    low = y < 0
    return _where(low, _where(low, y, 0) - _math.log(2), _log1p(-0.5 * _exp(-_where(low, 0, y))))


def _laplace_ppf(q):
    low = q < 0.5
    return _where(low, _log(2 * _where(low, q, 0.25)), -_log(2 * (1 - _where(low, 0.5, q))))


laplace = _continuous(
    "laplace",
    logpdf=lambda y: -_rnp.abs(y) - _math.log(2),
    cdf=_half_exp,
    sf=lambda y: _half_exp(-y),
    logcdf=_log_half_exp,
    logsf=lambda y: _log_half_exp(-y),
    ppf=_laplace_ppf,
    isf=lambda q: -_laplace_ppf(q),
)
logistic = _continuous(
    "logistic",
    logpdf=lambda y: _nn.log_sigmoid(y) + _nn.log_sigmoid(-y),  # smooth at 0
    cdf=_nn.sigmoid,
    sf=lambda y: _nn.sigmoid(-y),
    logcdf=_nn.log_sigmoid,
    logsf=lambda y: _nn.log_sigmoid(-y),
    ppf=_s.logit,
    isf=lambda q: -_s.logit(q),
)


def _cauchy_ppf(q):
    # Next to its poles the tangent is that of the distance to them.
    low, high = q < 0.25, q > 0.75
    tail = 1 / _rnp.tan(_math.pi * _where(low, q, _where(high, 1 - q, 0.25)))
    center = _rnp.tan(_math.pi * _where(low | high, 0, q - 0.5))
    return _where(low, -tail, _where(high, tail, center))


cauchy = _continuous(
    "cauchy",
    logpdf=lambda y: -_math.log(_math.pi) - _log1p_square(y),
    cdf=lambda y: _rnp.arctan2(1, -y) / _math.pi,
    sf=lambda y: _rnp.arctan2(1, y) / _math.pi,
    ppf=_cauchy_ppf,
    isf=lambda q: -_cauchy_ppf(q),
)


def _gumbel_tail(y):
    """log(1 - exp(-exp(-y))), whose exponential far away is below the smallest number."""
    far = y > 5.0
    t = _exp(-_where(far, y, 5.0))
    p = -_expm1(-_exp(-_where(far, 0.0, y)))
    small = p < 0.5
    near = _where(small, _log(_where(small, p, 0.5)), _log1p(-_exp(-_exp(-_where(far | small, 0.0, y)))))
    square = t * t
    return _where(far, -y + (-t / 2 + square / 24 - square * square / 2880), near)


gumbel_r = _continuous(
    "gumbel_r",
    logpdf=lambda y: -y - _exp(-y),
    logcdf=lambda y: -_exp(-y),
    sf=lambda y: -_expm1(-_exp(-y)),
    logsf=_gumbel_tail,
    ppf=lambda q: -_log(-_log(q)),
    isf=lambda q: -_log(-_log1p(-q)),
)
gumbel_l = _continuous(
    "gumbel_l",
    logpdf=lambda y: y - _exp(y),
    cdf=lambda y: -_expm1(-_exp(y)),
    logcdf=lambda y: _gumbel_tail(-y),
    logsf=lambda y: -_exp(y),
    ppf=lambda q: _log(-_log1p(-q)),
    isf=lambda q: _log(-_log(q)),
)
gamma = _continuous(
    "gamma",
    "a",
    low=0,
    logpdf=lambda y, a: _log_poisson(a - 1, y, a),
    cdf=lambda y, a: _s.gammainc(a, y),
    sf=lambda y, a: _s.gammaincc(a, y),
)
chi2 = _continuous(
    "chi2",
    "df",
    low=0,
    logpdf=lambda y, df: _log_poisson(df / 2 - 1, y / 2, df / 2) - _math.log(2),
    cdf=lambda y, df: _s.gammainc(df / 2, y / 2),
    sf=lambda y, df: _s.gammaincc(df / 2, y / 2),
)
beta = _continuous(
    "beta",
    "a",
    "b",
    low=0,
    high=1,
    logpdf=lambda y, a, b: _s.xlogy(a - 1, y) + _s.xlog1py(b - 1, -y) - _s.betaln(a, b),
    cdf=lambda y, a, b: _s.betainc(a, b, y),
    sf=lambda y, a, b: _beta_sf(y, a, b),
)


def _beta_sf(y, a, b):
    # 1 - y has lost the digits of a small y, and so the slope.
    below = _s.betainc(a, b, y)
    low = below < 0.5
    return _where(low, 1 - below, _s.betainc(b, a, 1 - _where(low, 0.5, y)))


def _quotients(terms, u, over, under):
    """1 + r0 (1 + r1 (1 + ...)) of `terms` quotients r[k] = u (over + k) / (under + k); over None: u / (under + k)."""
    total = _rnp.ones_like(u)
    for k in range(terms - 1, -1, -1):
        total = 1 + (u if over is None else u * (over + k)) / (under + k) * total
    return total


def _t_cdf(y, df):
    # Near 0 the tail has no digits of the difference to 1/2, which is y times a power series of y^2 / (df + y^2).
    near = y * y < 0.25 * _rnp.minimum(df, 1)
    small, far, half = _where(near, y, 0), _where(near, 1, y), df / 2
    square, size = small * small, df + small * small
    series = _quotients(24, square / size, half + 0.5, 1.5)
    share = _exp(-half * _log1p(square / df) - _s.betaln(half, _rnp.full_like(half, 0.5)))
    middle = 0.5 + small / _rnp.sqrt(size) * share * series
    tail = 0.5 * _s.betainc(half, 0.5, df / (df + far * far))
    return _where(near, middle, _where(y < 0, tail, 1 - tail))


t = _continuous(
    "t",
    "df",
    logpdf=lambda y, df: (
        -_s.betaln(df / 2, _rnp.full_like(df, 0.5)) - 0.5 * _log(df) - (df + 1) / 2 * _log1p_square(y / _rnp.sqrt(df))
    ),
    cdf=_t_cdf,
    sf=lambda y, df: _t_cdf(-y, df),
)
pareto = _continuous(
    "pareto",
    "b",
    low=1,
    inside=2,
    logpdf=lambda y, b: _log(b) - (b + 1) * _log(y),
    cdf=lambda y, b: -_expm1(-b * _log(y)),
    logsf=lambda y, b: -b * _log(y),
    ppf=lambda q, b: _exp(-_log1p(-q) / b),
    isf=lambda q, b: _exp(-_log(q) / b),
)
gennorm = _continuous(
    "gennorm",
    "beta",
    logpdf=lambda y, beta: _log(beta / 2) - _s.gammaln(1 / beta) - _rnp.abs(y) ** beta,
    cdf=lambda y, beta: _gennorm_cdf(y, beta),
    sf=lambda y, beta: _gennorm_cdf(-y, beta),
)


def _gennorm_cdf(y, beta):
    # Near 0 the tail has no digits of the difference to 1/2, which is y times a power series of |y|^beta.
    size = _rnp.abs(y)
    near = size**beta < 0.5
    small, a = _where(near, y, 0), 1 / beta
    power = _rnp.abs(small) ** beta
    middle = 0.5 + 0.5 * small * _exp(-power - _s.gammaln(1 + a)) * _quotients(20, power, None, 1 + a)
    tail = 0.5 * _s.gammaincc(a, _where(near, 1, size) ** beta)
    return _where(near, middle, _where(y < 0, tail, 1 - tail))


def _log_between(a, b):
    """log(ndtr(b) - ndtr(a)) for a <= b, of the tail in which both are small."""
    right = a > 0
    a, b = _where(right, -b, a), _where(right, -a, b)
    high = _s.log_ndtr(b)
    return high + _log1p(-_exp(_rnp.minimum(_s.log_ndtr(a) - high, 0)))


truncnorm = _Distribution("truncnorm")


def _truncated(method, form):
    def formula(x, a, b, loc, scale):
        x, a, b, loc, scale = _floats((x, a, b, loc, scale))
        y = (x - loc) / scale
        below, above = y < a, y > b
        value = form(_rnp.clip(y, a, b), a, b)
        if method == "logpdf":
            value = value - _log(scale)
        low, high = _OUTSIDE[method]
        return _checked("truncnorm", _where(below, low, _where(above, high, value)), (a, b), scale)

    return formula


_TRUNCATED = {
    "logpdf": lambda y, a, b: -0.5 * y * y - 0.5 * _math.log(2 * _math.pi) - _log_between(a, b),
    "logcdf": lambda y, a, b: _log_between(a, y) - _log_between(a, b),
    "logsf": lambda y, a, b: _log_between(y, b) - _log_between(a, b),
}
for _method, _form in _TRUNCATED.items():
    _formula = _truncated(_method, _form)
    _plain = _method.removeprefix("log")
    _function(truncnorm, _method, "x", ("a", "b"), _formula, _TEXTS[_method])
    _function(truncnorm, _plain, "x", ("a", "b"), lambda *a, f=_formula: _exp(f(*a)), _TEXTS[_plain])

vonmises = _continuous(
    "vonmises", "kappa", logpdf=lambda y, kappa: kappa * (_rnp.cos(y) - 1) - _log(2 * _math.pi * _s.i0e(kappa))
)
wrapcauchy = _continuous(
    "wrapcauchy",
    "c",
    low=0,
    high=2 * _math.pi,
    logpdf=lambda y, c: _log1p(-c * c) - _math.log(2 * _math.pi) - _log(1 + c * c - 2 * c * _rnp.cos(y)),
)

# -- integers --

bernoulli = _discrete(
    "bernoulli",
    "p",
    last=lambda p: 1,
    logpmf=lambda k, p: _s.xlogy(k, p) + _s.xlog1py(1 - k, -p),
    cdf=lambda k, p: _where(k < 1, 1 - p, 1),
)


@_op("q", "p", "loc")
def _bernoulli_ppf(q, p, loc=0):
    """The number 0 or 1 up to which the probability is q; NaN outside of [0, 1]."""
    q, p, loc = _floats((q, p, loc))
    bad = (q < 0) | (q > 1) | (p < 0) | (p > 1) | (q != q) | (p != p)
    return _where(bad, _math.nan, _where(q <= 1 - p, 0, 1) + loc)


poisson = _discrete(
    "poisson",
    "mu",
    logpmf=lambda k, mu: _log_poisson(k, mu, k + 1),
    cdf=lambda k, mu: _s.gammaincc(k + 1, mu),
    sf=lambda k, mu: _s.gammainc(k + 1, mu),
)


@_op("mu", "loc")
def _poisson_entropy(mu, loc=0):
    """The entropy: of means up to 500 by its sum, beyond by its asymptotic series."""
    mu, loc = _floats((mu, loc))
    mu = _rnp.broadcast_to(mu, _rnp.broadcast_shapes(mu.shape, loc.shape))
    far = mu > 500.0
    near = _where(far | (mu == 0), 1, mu)
    first = _rnp.maximum(_rnp.floor(near - 11 * _rnp.sqrt(near) - 12), 0)

    def step(total, k):
        k = first + k
        log = _s.xlogy(k, near) - _s.gammaln(k + 1) - near
        return total - _exp(log) * log, None

    count = _node("iota", dims=(540,), dtype=mu.dtype, axis=0)
    out = _control.scan(step, near * 0, count)[0]
    over = 1 / _where(far, mu, 500)
    series = 0.5 * _log(2 * _math.pi * _math.e / over) - over / 12 - over**2 / 24 - 19 * over**3 / 360
    return _where(mu < 0, _math.nan, _where(mu == 0, 0, _where(far, series, out)))


bernoulli.ppf, poisson.entropy = _bernoulli_ppf, _poisson_entropy
_bernoulli_ppf.__name__, _poisson_entropy.__name__ = "ppf", "entropy"
geom = _discrete(
    "geom",
    "p",
    first=1,
    logpmf=lambda k, p: _s.xlog1py(k - 1, -p) + _log(p),
    cdf=lambda k, p: -_expm1(k * _log1p(-p)),
    logsf=lambda k, p: k * _log1p(-p),
)


binom = _discrete(
    "binom",
    "n",
    "p",
    last=lambda n, p: n,
    logpmf=lambda k, n, p: _log_binomial(k, n, p, 1 - p),
    cdf=lambda k, n, p: _s.betainc(_rnp.maximum(n - k, 1), k + 1, 1 - p),
    sf=lambda k, n, p: _s.betainc(k + 1, _rnp.maximum(n - k, 1), p),
)
nbinom = _discrete(
    "nbinom",
    "n",
    "p",
    logpmf=lambda k, n, p: _log_binomial(n, n + k, p, 1 - p) + _log(n / (n + k)),
    cdf=lambda k, n, p: _s.betainc(n, k + 1, p),
    sf=lambda k, n, p: _s.betainc(k + 1, n, 1 - p),
)
betabinom = _discrete(
    "betabinom",
    "n",
    "a",
    "b",
    last=lambda n, a, b: n,
    logpmf=lambda k, n, a, b: _log_choices(n, k) + _s.betaln(k + a, n - k + b) - _s.betaln(a, b),
)

# -- vectors --


def _with_exponential(name, first, log_name, plain, function):
    """A distribution with the function and its exponential."""
    out = _Distribution(name)
    function.__name__ = function.__qualname__ = log_name
    setattr(out, log_name, function)

    def exponential(*args, **kwargs):
        return _exp(function(*args, **kwargs))

    exponential.__name__ = exponential.__qualname__ = plain
    exponential.__doc__ = _TEXTS[plain]
    setattr(out, plain, exponential)
    return out


@_op("x", "alpha")
def _dirichlet(x, alpha):
    """The logarithm of the density of x along its first axis, whose entries are above 0 and have the sum 1."""
    x, alpha = _floats((x, alpha))
    if alpha.ndim != 1 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(f"dirichlet: x of shape {x.shape} and alpha of shape {alpha.shape}")
    if x.shape[0] < alpha.shape[0]:
        x = _rnp.concatenate([x, 1 - _rnp.sum(x, 0, keepdims=True)], 0)
    scale = _s.gammaln(_rnp.sum(alpha)) - _rnp.sum(_s.gammaln(alpha))
    wide = _rnp.reshape(alpha, (-1,) + (1,) * (x.ndim - 1))
    good = _rnp.logical_and(_rnp.all(x >= 0, 0), _rnp.abs(_rnp.sum(x, 0) - 1) < 1e-4)
    return _where(good, scale + _rnp.sum(_s.xlogy(wide - 1, x), 0), -_INF)


@_op("x", "n", "p")
def _multinomial(x, n, p):
    """The logarithm of the probability of the counts x along the last axis, of n draws with probabilities p."""
    x, n, p = _floats((x, n, p))
    good = _rnp.logical_and(_rnp.all(x >= 0, -1), _rnp.sum(x, -1) == n)
    return _where(good, _s.gammaln(n + 1) + _rnp.sum(_s.xlogy(x, p) - _s.gammaln(x + 1), -1), -_INF)


@_op("x", "mean", "cov")
def _multivariate_normal(x, mean, cov):
    """The logarithm of the density of the vectors x along the last axis; cov is a matrix, or one variance."""
    x, mean, cov = _floats((x, mean, cov))
    if mean.ndim == 0:
        y = x - mean
        return -0.5 * (y * y / cov + _log(2 * _math.pi * cov))
    n = mean.shape[-1]
    if cov.ndim == 0:
        cov = cov * _rnp.eye(n, dtype=cov.dtype)
    root = _rnp.linalg.cholesky(cov)
    y = x - mean
    lead = _rnp.broadcast_shapes(y.shape[:-1], root.shape[:-2])
    options = dict(lower=True, transpose=False, conjugate=False, unit_diagonal=False)
    root = _rnp.broadcast_to(root, (*lead, n, n))
    solved = _node("triangular_solve", root, _rnp.broadcast_to(y, (*lead, n))[..., None], **options)[..., 0]
    size = _rnp.sum(_log(_rnp.diagonal(root, 0, -2, -1)), -1)
    return -0.5 * (_rnp.sum(solved * solved, -1) + n * _math.log(2 * _math.pi)) - size


dirichlet = _with_exponential("dirichlet", "x", "logpdf", "pdf", _dirichlet)
multinomial = _with_exponential("multinomial", "x", "logpmf", "pmf", _multinomial)
multivariate_normal = _with_exponential("multivariate_normal", "x", "logpdf", "pdf", _multivariate_normal)

# -- of samples --

ModeResult = _namedtuple("ModeResult", ("mode", "count"))


def _propagates(nan_policy, what):
    if nan_policy != "propagate":
        raise NotImplementedError(f'{what}: nan_policy={nan_policy!r}; only "propagate" is supported')


def _along(a, axis, what):
    a = _rlx.value(a)
    if axis is None:
        return _rnp.ravel(a), 0
    return a, _axis_of(axis, a.ndim, what)


def _counted(shape):
    """0, 1, 2, ... along the last axis."""
    return _rnp.broadcast_to(_rnp.arange(shape[-1]), shape)


def _run_starts(ordered):
    """(the place of the first element of the run that each element of sorted rows is in, True where a run starts)."""
    first = _rnp.ones_like(ordered[..., :1], dtype="bool")
    starts = _rnp.concatenate([first, ordered[..., 1:] != ordered[..., :-1]], -1)
    return _rnp.cummax(_where(starts, _counted(ordered.shape), 0), -1), starts


@_op("a")
def mode(a, axis=0, nan_policy="propagate", keepdims=False):
    """(the most frequent value along an axis, the least of several; how often it occurs). NaN counts as one value, the
    largest.
    """
    _propagates(nan_policy, "mode")
    given = _rlx.value(a)
    a, place = _along(a, axis, "mode")
    a = _rnp.sort(_rnp.moveaxis(a, place, -1), -1)
    counts = _counted(a.shape) - _run_starts(a)[0] + 1  # of the elements so far in the run
    if a.dtype.kind == "f":  # NaN is one value, the last
        bad = _rnp.isnan(a)
        counts = _where(bad, _cast(_rnp.cumsum(bad, -1), counts.dtype), counts)
    at = _rnp.argmax(counts, -1, keepdims=True)
    found, counts = (_rnp.take_along_axis(v, at, -1) for v in (a, counts))
    out = [_rnp.moveaxis(v, -1, place) for v in (found, counts)]
    if not keepdims:
        out = [_rnp.squeeze(v, place) for v in out]
    elif axis is None:
        out = [_rnp.reshape(v, (1,) * given.ndim) for v in out]
    return ModeResult(*out)


@_op("a")
def rankdata(a, method="average", *, axis=None, nan_policy="propagate"):
    """The ranks of the elements from 1 on. Equal ones get the average, the "min", the "max" of their ranks, the same
    rank without gaps ("dense"), or ranks in their order ("ordinal").
    """
    _propagates(nan_policy, "rankdata")
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"rankdata: method {method!r}; it must be one of average, min, max, dense and ordinal")
    a, place = _along(a, axis, "rankdata")
    x = _rnp.moveaxis(a, place, -1)
    order = _rnp.argsort(x, -1)
    inverse = _rnp.argsort(order, -1)
    ranks = inverse + 1
    if method != "ordinal":
        ordered = _rnp.take_along_axis(x, order, -1)
        below, starts = _run_starts(ordered)
        ends = _rnp.concatenate([starts[..., 1:], _rnp.ones_like(starts[..., :1])], -1)
        places = _where(ends, _counted(ordered.shape), ordered.shape[-1])
        upto = _rnp.flip(_rnp.cummin(_rnp.flip(places, -1), -1), -1) + 1
        found = {"dense": _rnp.cumsum(starts, -1), "min": below + 1, "max": upto, "average": (below + 1 + upto) / 2}
        ranks = _rnp.take_along_axis(found[method], inverse, -1)
    if x.dtype.kind == "f":  # a NaN has no rank, and neither have the others beside it
        ranks = _cast(ranks, "float64" if x.dtype.name == "float64" else "float32")
        ranks = _where(_rnp.any(_rnp.isnan(x), -1, keepdims=True), _math.nan, ranks)
    return _rnp.moveaxis(ranks, -1, place)


@_op("a")
def sem(a, axis=0, ddof=1, nan_policy="propagate", *, keepdims=False):
    """The standard error of the mean along an axis. nan_policy "omit": of the numbers that are not NaN."""
    if nan_policy == "omit":
        given = _rlx.value(a)
        a, place = _along(a, axis, "sem")
        count = _rnp.sum(_rnp.logical_not(_rnp.isnan(a)), place, keepdims=keepdims)
        spread = _rnp.nanstd(a, place, ddof=ddof, keepdims=keepdims)
        out = spread / _rnp.sqrt(_cast(count, spread.dtype))
        return _rnp.reshape(out, (1,) * given.ndim) if keepdims and axis is None else out
    _propagates(nan_policy, "sem")
    given = _rlx.value(a)
    a, place = _along(a, axis, "sem")
    out = _rnp.std(a, place, ddof=ddof, keepdims=keepdims) / _math.sqrt(a.shape[place])
    return _rnp.reshape(out, (1,) * given.ndim) if keepdims and axis is None else out


__all__ = """bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gaussian_kde gennorm geom gumbel_l
gumbel_r laplace logistic mode multinomial multivariate_normal nbinom norm pareto poisson rankdata sem t truncnorm
uniform vonmises wrapcauchy""".split()

__getattr__ = _getattr_of("rlx.scipy.stats", {})

_accept_names(globals())
