"""jax.image: resizing arrays."""

import enum as _enum
import math as _math

from .. import _rlx
from .. import numpy as _np
from .._nodes import cast, inexact
from .._op import op
from ..numpy._base import int_static

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

_KINDS = {
    "nearest": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "triangle": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
    "tricubic": "cubic",
    "cubic-pytorch": "cubic-pytorch",
    "lanczos3": "lanczos3",
    "lanczos5": "lanczos5",
}


@op("image")
def resize(image, shape, method, antialias=True):
    """Resizes an image to a shape, as jax.image.resize does.

    method: nearest, linear (bilinear, trilinear, triangle), cubic (bicubic, tricubic), cubic-pytorch, lanczos3 or
        lanczos5. antialias widens the kernel along axes that shrink. Integers become float32, except with "nearest".
    """
    x = _rlx.value(image)
    kind = _KINDS.get(_name_of(method))
    if kind is None:
        raise ValueError(f"resize: method {method!r}; it must be one of {', '.join(_KINDS)}")
    if len(shape) != x.ndim:
        raise ValueError(f"resize: shape {tuple(shape)} of an array with {x.ndim} axes")
    axes = [a for a, (n, m) in enumerate(zip(x.shape, shape)) if n != m]
    sizes = [int_static(shape[a], "resize: an extent") for a in axes]
    antialias = bool(antialias) and kind != "nearest"
    pytorch = kind == "cubic-pytorch" and not antialias
    kind = "cubic" if kind == "cubic-pytorch" else kind
    x = x if kind == "nearest" else inexact(x)
    cubic = -0.75 if pytorch else -0.5
    return _rlx.resize([x], axes, sizes, kind, "half_pixel", "half_up", antialias, not pytorch, cubic, [])


class ResizeMethod(_enum.Enum):
    """The kernels of resize and scale_and_translate, which take their names too."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5

    @staticmethod
    def from_string(name):
        """The method of a name, such as "bilinear"."""
        kind = _KINDS.get(name.lower())
        if kind is None:
            raise ValueError(f"ResizeMethod: {name!r}; it must be one of {', '.join(_KINDS)}")
        return ResizeMethod[kind.upper().replace("-", "_")]


def _name_of(method):
    return method.name.lower().replace("_", "-") if hasattr(method, "name") else str(method).lower()


def _lanczos(radius):
    def kernel(x):
        wave = radius * _np.sin(_math.pi * x) * _np.sin(_math.pi * x / radius)
        out = _np.where(x > 1e-3, wave / _np.where(x != 0, _math.pi**2 * x * x, 1), 1)
        return _np.where(x > radius, 0, out)

    return kernel


def _cubic(x):
    inner, outer = ((1.5 * x - 2.5) * x) * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return _np.where(x >= 2, 0, _np.where(x >= 1, outer, inner))


_KERNELS = {
    "linear": lambda x: _np.maximum(0, 1 - x),
    "cubic": _cubic,
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}


def _weights(n, m, scale, shift, kernel, antialias, dtype):
    """The weights [n, m] of n elements in m elements of an axis that is scaled and shifted."""
    step = 1 / scale
    width = _np.maximum(step, 1.0) if antialias else 1.0
    at = (_np.arange(m, dtype=dtype) + 0.5) * step - shift * step - 0.5
    x = _np.abs(_np.expand_dims(at, 0) - _np.expand_dims(_np.arange(n, dtype=dtype), 1)) / width
    w = kernel(x)
    total = _np.sum(w, 0, keepdims=True)
    fine = _np.abs(total) > 1000 * _np.finfo(dtype).eps
    w = _np.where(fine, w / _np.where(total != 0, total, 1), 0)
    inside = (at >= -0.5) & (at <= n - 0.5)
    return _np.where(_np.expand_dims(inside, 0), w, 0)


@op("image", "scale", "translation")
def scale_and_translate(image, shape, spatial_dims, scale, translation, method, antialias=True, precision=None):
    """An image whose axes spatial_dims are scaled and then shifted: element x lies at x * scale + translation, where
    elements have the extent 1. scale and translation are arrays, one number for each of these axes; the image is 0
    outside. method: linear, cubic, lanczos3 or lanczos5, or another name of them.
    """
    x, scale, translation = inexact(image), _rlx.value(scale), _rlx.value(translation)
    kind = _KINDS.get(_name_of(method))
    if kind not in _KERNELS:
        raise ValueError(f"scale_and_translate: method {method!r}; it must be linear, cubic, lanczos3 or lanczos5")
    dims = tuple(d % x.ndim for d in spatial_dims)
    if len(shape) != x.ndim or len(set(dims)) != len(dims):
        raise ValueError(f"scale_and_translate: shape {tuple(shape)} and axes {dims} of an array with {x.ndim} axes")
    if scale.shape != (len(dims),) or translation.shape != (len(dims),):
        raise ValueError(f"scale_and_translate: scale {scale.shape} and translation {translation.shape} for axes {dims}")
    if any(shape[a] != x.shape[a] for a in range(x.ndim) if a not in dims):
        raise ValueError(f"scale_and_translate: shape {tuple(shape)} changes an axis that is not among {dims}")
    dtype = x.dtype
    for k, a in enumerate(dims):
        s, t = cast(scale[k], dtype), cast(translation[k], dtype)
        w = _weights(x.shape[a], int_static(shape[a], "scale_and_translate: an extent"), s, t, _KERNELS[kind], antialias, dtype)
        x = _np.moveaxis(_np.matmul(_np.moveaxis(x, a, -1), w), -1, a)
    return x
