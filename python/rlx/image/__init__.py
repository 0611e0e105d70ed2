"""jax.image: resizing and resampling arrays."""

import enum as _enum

from .. import _rlx
from .._nodes import cast, inexact
from .._op import op
from ..numpy._base import int_static
from ._kinds import KINDS as _KINDS
from ._kinds import name_of as _name_of
from ._scale import scale_and_translate
from .._names import accept_names as _accept_names

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


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
    if any(n == 0 for n in shape):
        return _rlx.expand([cast(0, x.dtype if kind == "nearest" else inexact(x).dtype)], tuple(shape))
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


_accept_names(globals())
