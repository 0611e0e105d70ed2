"""jax.image: resizing arrays."""

from .. import _rlx
from .._nodes import inexact
from .._op import op
from ..numpy._base import int_static

__all__ = ["resize"]

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
    kind = _KINDS.get(str(method).lower())
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
