"""The cosine transforms of scipy.fft; rlx.numpy.fft has the other ones."""

import math as _math

from .. import _rlx
from .. import numpy as rnp
from .._nodes import axes_of as _axes_of
from .._nodes import axis_of as _axis_of
from .._nodes import inexact as _inexact
from .._nodes import node as _node
from .._op import op as _op
from ..numpy._base import int_static as _int_static
from .._names import accept_names as _accept_names

__all__ = ["dct", "dctn", "idct", "idctn"]


def _turned(x, angles):
    """x exp(i angles), of real x."""
    return _node("complex", x * rnp.cos(angles), x * rnp.sin(angles))


def _plain(x, type):
    """The transform along the last axis without any factor: y[k] = 2 sum of x[n] cos(..)."""
    n = x.shape[-1]
    index = rnp.arange(n, dtype=x.dtype)
    if type == 1:
        return rnp.real(rnp.fft.rfft(rnp.concatenate([x, x[..., -2:0:-1]], -1)))
    if type == 2:
        z = rnp.fft.rfft(rnp.concatenate([x, x[..., ::-1]], -1))[..., :n]
        angles = index * (-_math.pi / (2 * n))
        return rnp.real(z) * rnp.cos(angles) - rnp.imag(z) * rnp.sin(angles)
    if type == 3:
        z = _turned(x, index * (_math.pi / (2 * n)))
        z = rnp.concatenate([z, rnp.zeros_like(z[..., :1])], -1)
        return rnp.fft.irfft(z, 2 * n)[..., :n] * (2.0 * n)
    z = rnp.fft.fft(_turned(x, index * (-_math.pi / (2 * n))), 2 * n)[..., :n]
    angles = (2 * index + 1) * (-_math.pi / (4 * n))
    return 2 * (rnp.real(z) * rnp.cos(angles) - rnp.imag(z) * rnp.sin(angles))


def _scaled_ends(x, ends, factor):
    """x with its first element (and its last) multiplied."""
    n = x.shape[-1]
    index = rnp.arange(n)
    place = index == 0
    if ends == 2:
        place = place | (index == n - 1)
    return rnp.where(place, x * factor, x)


def _transformed(x, type, norm, inverse):
    kind = {2: 3, 3: 2}.get(type, type) if inverse else type
    n = x.shape[-1]
    whole = 2 * (n - 1) if type == 1 else 2 * n
    if norm == "ortho":
        ends = {1: 2, 2: 1, 3: 1, 4: 0}[kind]
        if kind in (1, 3):
            x = _scaled_ends(x, ends, _math.sqrt(2))
        y = _plain(x, kind) * (1 / _math.sqrt(whole))
        return _scaled_ends(y, ends, _math.sqrt(0.5)) if kind in (1, 2) else y
    y = _plain(x, kind)
    return y * (1 / whole) if (norm == "forward") != inverse else y


def _checked(x, type, norm, what):
    if type not in (1, 2, 3, 4):
        raise ValueError(f"{what}: type {type!r}; it must be 1, 2, 3 or 4")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'{what}: norm {norm!r}; it must be None, "backward", "ortho" or "forward"')
    x = _inexact(x)
    return x if x.dtype.itemsize >= 4 else _rlx.add_node("cast", (x,), {"to": _rlx.dtype("float32")})


def _along(x, type, n, axis, norm, inverse, what):
    x = _checked(x, type, norm, what)
    if x.dtype.kind == "c":  # the transforms are real
        parts = [_along(p, type, n, axis, norm, inverse, what) for p in (rnp.real(x), rnp.imag(x))]
        return _rlx.add_node("complex", tuple(parts), {})
    axis = _axis_of(axis, x.ndim, what)
    rows = rnp.moveaxis(x, axis, -1)
    if n is not None:
        n = _int_static(n, f"{what}: n")
        more = n - rows.shape[-1]
        rows = rows[..., :n] if more <= 0 else rnp.pad(rows, [(0, 0)] * (x.ndim - 1) + [(0, more)])
    if rows.shape[-1] < (2 if type == 1 else 1):
        raise ValueError(f"{what}: {rows.shape[-1]} elements along axis {axis}")
    return rnp.moveaxis(_transformed(rows, type, norm, inverse), -1, axis)


def _over(x, type, s, axes, norm, inverse, what):
    x = _checked(x, type, norm, what)
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = list(axes) if isinstance(axes, (tuple, list, range)) else [axes]
    places = [_axis_of(a, x.ndim, what) for a in axes]
    _axes_of(tuple(places), x.ndim, what)
    lengths = [None] * len(places) if s is None else list(s) if isinstance(s, (tuple, list)) else [s]
    if len(lengths) != len(places):
        raise ValueError(f"{what}: {len(lengths)} lengths for {len(places)} axes")
    for a, n in zip(places, lengths):
        x = _along(x, type, n, a, norm, inverse, what)
    return x


@_op("x")
def dct(x, type=2, n=None, axis=-1, norm=None):
    """The discrete cosine transform of type 1 to 4 along an axis, cut or continued by zeros to the length n."""
    return _along(x, type, n, axis, norm, False, "dct")


@_op("x")
def idct(x, type=2, n=None, axis=-1, norm=None):
    """The inverse of dct."""
    return _along(x, type, n, axis, norm, True, "idct")


@_op("x")
def dctn(x, type=2, s=None, axes=None, norm=None):
    """dct along several axes, by default all; s: their lengths."""
    return _over(x, type, s, axes, norm, False, "dctn")


@_op("x")
def idctn(x, type=2, s=None, axes=None, norm=None):
    """The inverse of dctn."""
    return _over(x, type, s, axes, norm, True, "idctn")


_accept_names(globals())
