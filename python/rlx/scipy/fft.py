"""scipy.fft: the cosine transforms dct, idct, dctn and idctn, and the functions of rlx.numpy.fft."""

import math as _math

from .. import _rlx
from .._names import getattr_of as _getattr_of
from .._nodes import axis_of as _axis_of
from .._nodes import inexact as _inexact
from .._nodes import node as _node
from .._op import op as _op
from .. import numpy as _rnp
from ..numpy.fft import *  # noqa: F403
from ..numpy.fft import __all__ as _fourier
from ..numpy.fft import fft as _fft
from ..numpy.fft import ifft as _ifft


def _checked(type, norm, what):
    if type != 2:
        raise NotImplementedError(f"{what}: type {type!r}; only type 2 is supported")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"{what}: norm {norm!r}; it must be one of backward, ortho and forward")


def _sized(x, n, axis, what):
    """(x as floats of n entries along the last axis, moved there from `axis`; n; the axis)."""
    axis = _axis_of(axis, x.ndim, what)
    x = _rnp.moveaxis(_inexact(x), axis, -1)
    if x.dtype.itemsize < 4:
        x = _rnp.astype(x, "float32")
    n = x.shape[-1] if n is None else n
    if n < 1:
        raise ValueError(f"{what}: n = {n}; a transform needs at least one entry")
    if n < x.shape[-1]:
        x = x[..., :n]
    elif n > x.shape[-1]:
        x = _rnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])
    return x, n, axis


def _turns(n, dtype, sign):
    """exp(sign pi i k / 2n) for k from 0 to n - 1."""
    angle = _rnp.arange(n, dtype=dtype) * (sign * _math.pi / (2 * n))
    return _node("complex", _rnp.cos(angle), _rnp.sin(angle))


def _scales(n, dtype, norm):
    """The factors of the norm for the transform, one for each frequency; 1 if there are none."""
    if norm == "forward":
        return 1 / (2 * n)
    if norm != "ortho":
        return 1
    return _rnp.where(_rnp.arange(n) == 0, _math.sqrt(1 / (4 * n)), _math.sqrt(1 / (2 * n))).astype(dtype)


@_op("x")
def dct(x, type=2, n=None, axis=-1, norm=None):
    """The cosine transform 2 sum x[j] cos(pi k (2 j + 1) / 2 n) along an axis, which is cut or filled with zeros to n
    entries. norm: "backward" (None), "ortho" or "forward".
    """
    _checked(type, norm, "dct")
    x = _rlx.value(x)
    if x.dtype.kind == "c":
        return _node("complex", *(dct(part, type, n, axis, norm) for part in (_rnp.real(x), _rnp.imag(x))))
    x, n, axis = _sized(x, n, axis, "dct")
    halves = _rnp.concatenate([x[..., ::2], _rnp.flip(x[..., 1::2], -1)], -1)  # as a circle
    out = 2 * _rnp.real(_fft(halves) * _turns(n, x.dtype, -1)) * _scales(n, x.dtype, norm)
    return _rnp.moveaxis(out, -1, axis)


@_op("x")
def idct(x, type=2, n=None, axis=-1, norm=None):
    """The inverse of dct with the same norm."""
    _checked(type, norm, "idct")
    x = _rlx.value(x)
    if x.dtype.kind == "c":
        return _node("complex", *(idct(part, type, n, axis, norm) for part in (_rnp.real(x), _rnp.imag(x))))
    x, n, axis = _sized(x, n, axis, "idct")
    x = x / _scales(n, x.dtype, norm)
    behind = _rnp.concatenate([_rnp.zeros_like(x[..., :1]), _rnp.flip(x[..., 1:], -1)], -1)
    circle = _rnp.real(_ifft(_node("complex", x, -behind) * _turns(n, x.dtype, 1))) / 2
    front = (n + 1) // 2
    even, odd = circle[..., :front], _rnp.flip(circle[..., front:], -1)
    if n % 2:
        odd = _rnp.concatenate([odd, odd[..., :1] if n > 1 else even], -1)
    out = _rnp.reshape(_rnp.stack([even, odd], -1), (*x.shape[:-1], 2 * front))[..., :n]
    return _rnp.moveaxis(out, -1, axis)


def _over(transform, x, type, s, axes, norm, what):
    x = x if isinstance(x, (_rlx.Array, _rlx.Value)) else _rnp.asarray(x)
    if s is not None and len(s) > x.ndim:
        raise ValueError(f"{what}: s with {len(s)} lengths for an array with {x.ndim} axes")
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = [axes] if isinstance(axes, int) else list(axes)
    lengths = [None] * len(axes) if s is None else list(s)
    if len(lengths) != len(axes):
        raise ValueError(f"{what}: s {tuple(s)} and axes {tuple(axes)} differ in length")
    for axis, n in zip(axes, lengths):
        x = transform(x, type, n, axis, norm)
    return x


def dctn(x, type=2, s=None, axes=None, norm=None):
    """dct along several axes (all), of the lengths s."""
    return _over(dct, x, type, s, axes, norm, "dctn")


def idctn(x, type=2, s=None, axes=None, norm=None):
    """The inverse of dctn."""
    return _over(idct, x, type, s, axes, norm, "idctn")


__all__ = ["dct", "dctn", "idct", "idctn", *_fourier]
__getattr__ = _getattr_of("rlx.scipy.fft", {})
