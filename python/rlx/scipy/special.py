"""The functions of scipy.special. Integers become float32."""

import math as _math

from .. import _rlx
from .._names import accept_names as _accept_names, getattr_of as _getattr_of
from .. import lax as _lax
from .. import nn as _nn
from .. import numpy as _rnp
from .._nodes import inexact as _inexact
from .._nodes import node as _node
from .._op import op as _op
from ._complex_special import erfcx, loggamma, wofz  # noqa: F401
from ._harmonics import bessel_jn, sph_harm_y  # noqa: F401
from ._hypergeometric import hyp1f1, hyp2f1  # noqa: F401
from ._integrals import fresnel, owens_t, sici  # noqa: F401
from ._special import (  # noqa: F401
    bernoulli,
    boxcox,
    boxcox1p,
    comb,
    dawsn,
    exp1,
    expi,
    expn,
    gammasgn,
    i0e,
    i1,
    i1e,
    poch,
    spence,
    zeta,
)
from ..nn import erf, logsumexp  # noqa: F401
from ..numpy import i0, sinc  # noqa: F401
from ..numpy._base import both_inexact as _both_inexact
from ..numpy._base import named as _named
from ..numpy._base import typed as _typed

__all__ = """bernoulli bessel_jn beta betainc betaln boxcox boxcox1p comb dawsn digamma entr erf erfc erfcx erfinv
exp1 expi expit expn factorial fresnel gamma gammainc gammaincc gammaln gammasgn hyp1f1 hyp2f1 i0 i0e
i1 i1e kl_div log_ndtr log_softmax loggamma logit logsumexp multigammaln ndtr ndtri owens_t poch
polygamma psi rel_entr sici sinc softmax spence sph_harm_y wofz xlog1py xlogy zeta""".split()

expit, erfc, erfinv, gammaln = _nn.sigmoid, _lax.erfc, _lax.erf_inv, _lax.lgamma
digamma = psi = _lax.digamma
gammainc, gammaincc, betainc, polygamma = _lax.igamma, _lax.igammac, _lax.betainc, _lax.polygamma


def _one(name, text):
    @_op("x")
    def function(x):
        return _rlx.special(name, _inexact(x))

    return _named(function, name, text)


def _two(name, text):
    @_op("x", "y")
    def function(x, y):
        return _rlx.special(name, *_typed(*_both_inexact(x, y)))

    return _named(function, name, text)


logit = _one("logit", "log(x / (1 - x)).")
entr = _one("entr", "-x log(x), 0 at 0 with derivative +inf, and -inf below.")
ndtr = _one("ndtr", "The cumulative distribution function of the normal distribution.")
log_ndtr = _one("log_ndtr", "log(ndtr(x)), accurate far below 0.")
ndtri = _one("ndtri", "The inverse of ndtr.")
_real_gamma = _one("gamma", "The gamma function.")


@_op("x")
def gamma(x):
    """The gamma function, of complex numbers too, whose poles are NaN."""
    x = _inexact(x)
    if x.dtype.kind != "c":
        return _real_gamma(x)
    re, im = _rnp.real(x), _rnp.imag(x)
    pole = (im == 0) & (re <= 0) & (re == _rnp.floor(re))
    return _rnp.where(pole, complex(_math.nan, _math.nan), _rnp.exp(loggamma(_rnp.where(pole, 1, x))))


xlogy = _two("xlogy", "x log(y), 0 where x is 0, with derivative log(y) by x there.")
xlog1py = _two("xlog1py", "x log(1 + y), 0 where x is 0, with derivative log(1 + y) by x there.")
rel_entr = _two("rel_entr", "x log(x / y).")
kl_div = _two("kl_div", "x log(x / y) - x + y.")
betaln = _two("betaln", "The logarithm of |beta(x, y)|.")


def _negative(x):
    return _node("lt", gamma(x), 0)


@_op("x", "y")
def beta(x, y):
    """gamma(x) gamma(y) / gamma(x + y)."""
    x, y = _typed(*_both_inexact(x, y))
    size = _node("exp", _rlx.special("betaln", x, y))
    turned = _node("ne", _node("ne", _negative(x), _negative(y)), _negative(_node("add", x, y)))
    return _node("where", turned, _node("neg", size), size)


@_op("n")
def factorial(n):
    """n! = gamma(n + 1); 0 of negative n."""
    n = _inexact(n)
    return _node("where", _node("lt", n, 0), 0, gamma(_node("add", _node("max", n, 0), 1)))


@_op("a")
def multigammaln(a, d):
    """The logarithm of the multivariate gamma function of dimension d, a Python integer."""
    if not isinstance(d, int) or d < 1:
        raise ValueError(f"multigammaln: the dimension {d!r} is not a positive Python integer")
    if d > 1 << 14:  # each adds a node to the program
        raise ValueError(f"multigammaln: the dimension {d}; the limit is {1 << 14}")
    a = _inexact(a)
    out = _node("add", _node("lgamma", a), d * (d - 1) / 4 * _math.log(_math.pi))
    for j in range(1, d):
        out = _node("add", out, _node("lgamma", _node("sub", a, j / 2)))
    return out


@_op("x")
def softmax(x, axis=None):
    """exp(x) over its sum along an axis, or of all elements."""
    return _nn.softmax(x, axis)


@_op("x")
def log_softmax(x, axis=None):
    """The logarithm of softmax."""
    return _nn.log_softmax(x, axis)


__getattr__ = _getattr_of("rlx.scipy.special", {})

_accept_names(globals())
