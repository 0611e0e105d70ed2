"""scipy.ndimage: map_coordinates."""

import itertools as _itertools

from .. import _rlx
from .. import numpy as _rnp
from .._names import accept_names as _accept_names, getattr_of as _getattr_of
from .._nodes import cast as _cast
from .._nodes import inexact as _inexact
from .._op import op as _op


def _mirror(index, size):
    s = size - 1
    return _rnp.abs((index + s) % (2 * s) - s) if s else index * 0


_INSIDE = {
    "constant": lambda i, n: i,
    "nearest": lambda i, n: _rnp.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": _mirror,
    "reflect": lambda i, n: _mirror(2 * i + 1, 2 * n + 1) // 2,
}


def _nearest(c):
    return [(_cast(_rnp.floor(c + 0.5), "int32"), None)]


def _linear(c):
    low = _rnp.floor(c)
    share, low = c - low, _cast(low, "int32")
    return [(low, 1 - share), (low + 1, share)]


@_op("input", "*coordinates", "cval")
def map_coordinates(input, coordinates, order, mode="constant", cval=0.0):
    """input at fractional indices: one array of coordinates for each axis. order 0 takes the nearest element, 1
    interpolates linearly. mode, outside: "constant" (cval), "nearest", "wrap", "mirror" or "reflect". Integers are
    rounded.
    """
    x, coordinates = _rlx.value(input), [_inexact(c) for c in coordinates]
    if len(coordinates) != x.ndim:
        raise ValueError(f"map_coordinates: coordinates must be a sequence of length {x.ndim}, one for each axis")
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates requires order<=1, got {order!r}")
    if mode not in _INSIDE:
        raise NotImplementedError(f"map_coordinates does not yet support mode {mode!r}; it has {', '.join(_INSIDE)}")
    cval = _cast(cval, x.dtype)
    corners = []
    for c, n in zip(coordinates, x.shape):
        corners.append(
            [
                (_INSIDE[mode](i, n), weight, _rnp.logical_and(i >= 0, i < n) if mode == "constant" else None)
                for i, weight in (_nearest if order == 0 else _linear)(c)
            ]
        )
    total = None
    for corner in _itertools.product(*corners):
        part = x[tuple(_rnp.clip(i, 0, n - 1) for (i, _, _), n in zip(corner, x.shape))]
        good = None
        for _, _, inside in corner:
            if inside is not None:
                good = inside if good is None else _rnp.logical_and(good, inside)
        part = part if good is None else _rnp.where(good, part, cval)
        for _, weight, _ in corner:
            part = part if weight is None else part * weight
        total = part if total is None else total + part
    if x.dtype.kind in "iub" and total.dtype.kind == "f":
        total = _rnp.trunc(total + _rnp.copysign(0.5, total))
    return _cast(total, x.dtype)


__all__ = ["map_coordinates"]
__getattr__ = _getattr_of("rlx.scipy.ndimage", {})

_accept_names(globals())
