"""jax.image.scale_and_translate: resampling by weights, one matrix for each axis."""

import math as _math

from .. import numpy as _rnp
from .._nodes import axis_of, inexact
from .._op import op
from .._rlx import result_type as _result_type
from ._kinds import KINDS, name_of


def _triangle(x):
    return _rnp.maximum(0, 1 - x)


def _cubic(a):
    def kernel(x):
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return _rnp.where(x < 1, near, _rnp.where(x < 2, far, 0))

    return kernel


def _lanczos(radius):
    def kernel(x):
        y = radius * _rnp.sin(_math.pi * x) * _rnp.sin(_math.pi * x / radius)
        inside = x > 1e-3
        out = _rnp.where(inside, y / _rnp.where(inside, _math.pi**2 * x * x, 1), 1)
        return _rnp.where(x > radius, 0, out)

    return kernel


_KERNELS = {
    "linear": _triangle,
    "cubic": _cubic(-0.5),
    "cubic-pytorch": _cubic(-0.5),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}


def _weights(size, target, scale, translation, kernel, antialias):
    """The share of each entry [size, target] in each entry of the result; 0 for entries from outside of the image."""
    dtype = scale.dtype if scale.dtype.kind == "f" else translation.dtype
    step = 1 / scale
    wide = _rnp.maximum(step, 1) if antialias else 1
    places = (_rnp.arange(target, dtype=dtype) + 0.5) * step - translation * step - 0.5
    weights = kernel(_rnp.abs(places[None, :] - _rnp.arange(size, dtype=dtype)[:, None]) / wide)
    total = _rnp.sum(weights, 0, keepdims=True)
    enough = _rnp.abs(total) > 1000.0 * float(_rnp.finfo(dtype).eps)
    weights = _rnp.where(enough, weights / _rnp.where(enough, total, 1), 0)
    inside = _rnp.logical_and(places >= -0.5, places <= size - 0.5)
    return _rnp.where(inside[None, :], weights, 0)


@op("image", "scale", "translation")
def _scaled(image, shape, axes, scale, translation, kernel, antialias):
    x, scale, translation = inexact(image), inexact(scale), inexact(translation)
    for k, a in enumerate(axes):
        weights = _weights(x.shape[a], shape[a], scale[k], translation[k], _KERNELS[kernel], antialias)
        dtype, _ = _result_type(x)
        x = _rnp.moveaxis(_rnp.tensordot(x, _rnp.astype(weights, dtype), ((a,), (0,))), -1, a)
    return x


def scale_and_translate(image, shape, spatial_dims, scale, translation, method, antialias=True, precision=None):
    """Resamples the axes spatial_dims of an image: a point p of it comes to scale * p + translation, one number for
    each of these axes, in a result of `shape`. Places from outside of the image are 0.

    method: as of resize, without "nearest". antialias widens the kernel along axes that shrink. precision has no
    effect.
    """
    kind = KINDS.get(name_of(method))
    if kind not in _KERNELS:
        names = ", ".join(sorted(k for k, v in KINDS.items() if v in _KERNELS))
        raise ValueError(f"scale_and_translate: method {method!r}; it must be one of {names}")
    rank = _rnp.ndim(image)
    shape, axes = tuple(shape), tuple(axis_of(a, rank, "scale_and_translate") for a in spatial_dims)
    if len(shape) != rank or len(set(axes)) != len(axes):
        raise ValueError(f"scale_and_translate: shape {shape} and axes {axes} of an array with {rank} axes")
    if any(shape[a] != n for a, n in enumerate(_rnp.shape(image)) if a not in axes):
        raise ValueError(f"scale_and_translate: shape {shape} changes an axis that is not among {axes}")
    scale, translation = _rnp.atleast_1d(scale), _rnp.atleast_1d(translation)
    if scale.shape != (len(axes),) or translation.shape != (len(axes),):
        raise ValueError(
            f"scale_and_translate: scale {scale.shape} and translation {translation.shape} for {len(axes)} axes"
        )
    return _scaled(image, shape, axes, scale, translation, kind, bool(antialias))
