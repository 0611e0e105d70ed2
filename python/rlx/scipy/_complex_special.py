"""Special functions of complex numbers: the logarithm of gamma and Faddeeva's function."""

import math as _math

from .. import _rlx
from .. import numpy as _np
from .._control import custom_jvp
from .._nodes import cast, inexact, node
from .._op import op
from . import _special
from ._special import _BERNOULLI


def _joined(re, im):
    return node("complex", re, im)


# -- the logarithm of gamma --


def _stirling(z):
    """log gamma(z) for Re z from 0.5 on."""
    shift = 10
    out = None
    for k in range(shift):
        log = _np.log(z + float(k))
        out = log if out is None else out + log
    far = z + float(shift)
    over = 1 / far
    square = over * over
    series = None
    for k in range(8, 0, -1):
        c = float(_BERNOULLI[2 * k] / (2 * k * (2 * k - 1)))
        series = square * series + c if series is not None else square * 0 + c
    return (far - 0.5) * _np.log(far) - far + 0.5 * _math.log(2 * _math.pi) + series * over - out


def _log_sine(z):
    """The logarithm of sin(pi z) for Im z from 0 on, continued from the upper half of the plane."""
    re, im = _np.real(z), _np.imag(z)
    nearest = node("round", re)
    inner = _joined(node("mul", im, -2 * _math.pi), node("mul", node("sub", re, nearest), 2 * _math.pi))
    turned = _joined(node("mul", im, _math.pi), node("mul", node("sub", re, 0.5), -_math.pi))
    return turned + _np.log(-_np.expm1(inner)) - _math.log(2)


@custom_jvp
def _loggamma(z):
    re, im = _np.real(z), _np.imag(z)
    left, below = node("lt", re, 0.5), _rlx.special("signbit", im)
    upper = _joined(re, node("abs", im))
    right = node("where", left, 1 - upper, upper)
    out = _stirling(right)
    safe = _joined(node("where", left, re, 0.25), node("abs", im))
    out = node("where", left, _math.log(_math.pi) - out - _log_sine(safe), out)
    return node("where", below, _np.conj(out), out)


def _digamma(z):
    re = _np.real(z)
    left = node("lt", re, 0.5)
    right = node("where", left, 1 - z, z)
    out = None
    for k in range(10):
        out = 1 / (right + float(k)) if out is None else out + 1 / (right + float(k))
    far = right + 10.0
    square = 1 / (far * far)
    series = None
    for k in range(8, 0, -1):
        c = float(_BERNOULLI[2 * k] / (2 * k))
        series = square * series + c if series is not None else square * 0 + c
    out = _np.log(far) - 0.5 / far - series * square - out
    safe = node("where", left, z, cast(0.25, z.dtype))
    return node("where", left, out - _math.pi / _np.tan(safe * _math.pi), out)


@_loggamma.defjvp
def _loggamma_rule(primals, tangents):
    (z,), (t,) = primals, tangents
    return _loggamma(z), _digamma(z) * t


@op("z")
def loggamma(z):
    """The logarithm of gamma: of real numbers above 0, NaN below; of complex numbers continued from there, with a cut
    along the negative numbers.
    """
    z = inexact(z)
    if z.dtype.kind == "c":
        return _loggamma(z)
    return node("where", node("lt", z, 0), _math.nan, node("lgamma", z))


# -- Faddeeva's function, by the trapezoidal rule and by that of midpoints, with the term of the pole --

_COUNT = 12
_STEP = _math.sqrt(_math.pi / _COUNT)


def _upper_wofz(z):
    """exp(-z^2) erfc(-i z) for Im z from 0 on."""
    re, im = _np.real(z), _np.imag(z)
    place = node("div", re, _STEP)
    place = node("sub", place, node("floor", place))
    middle = node("bit_and", node("ge", place, 0.25), node("lt", place, 0.75))  # far from the nodes of the first rule
    offset = cast(node("where", middle, 0.0, 0.5), re.dtype)
    far = node("gt", node("add", node("abs", re), im), 1e4)
    z = node("where", far, cast(1j, z.dtype), z)
    square = z * z
    out = None
    for k in range(_COUNT):
        t = node("mul", node("add", float(k), offset), _STEP)
        weight = node("exp", node("neg", node("mul", t, t)))
        if k == 0:
            weight = node("mul", weight, node("where", middle, 0.5, 1.0))
        term = cast(weight, z.dtype) / (square - cast(node("mul", t, t), z.dtype))
        out = term if out is None else out + term
    out = out * z * (2j * _STEP / _math.pi)
    low = node("lt", _np.imag(z), _math.pi / _STEP)
    inside = node("where", low, z, cast(1j, z.dtype))
    # exp(-z^2) / (1 -+ exp(-2 pi i z / h)) with exponents whose parts do not overflow
    signs = cast(node("where", middle, -1.0, 1.0), z.dtype)
    turn = _np.exp(inside * (2j * _math.pi / _STEP))  # at most 1 in size
    pole = 2 * _np.exp(-inside * inside) * turn / (turn + signs)
    return node("where", low, out + pole, out)


@custom_jvp
def _wofz(z):
    re, im = _np.real(z), _np.imag(z)
    lower = node("lt", im, 0)
    turned = node("where", lower, -z, z)
    out = _upper_wofz(turned)
    far = node("gt", node("add", node("abs", re), node("abs", im)), 1e4)
    safe = node("where", far, turned, cast(1e4j, z.dtype))
    over = 1 / safe
    out = node("where", far, over * (1 + over * over * 0.5) * (1j / _math.sqrt(_math.pi)), out)
    return node("where", lower, 2 * _np.exp(-z * z) - out, out)


@_wofz.defjvp
def _wofz_rule(primals, tangents):
    (z,), (t,) = primals, tangents
    w = _wofz(z)
    return w, (2j / _math.sqrt(_math.pi) - 2 * z * w) * t


@op("z")
def wofz(z):
    """Faddeeva's function of complex numbers, exp(-z^2) erfc(-i z)."""
    z = inexact(z)
    if z.dtype.kind != "c":
        z = cast(z, "complex128" if z.dtype.name == "float64" else "complex64")
    return _wofz(z)


@op("x")
def erfcx(x):
    """exp(x^2) erfc(x), of complex numbers too."""
    x = inexact(x)
    return wofz(x * 1j) if x.dtype.kind == "c" else _special.erfcx(x)


__all__ = ["erfcx", "loggamma", "wofz"]
