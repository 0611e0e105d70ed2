"""scipy.interpolate: RegularGridInterpolator."""

import itertools as _itertools

from .. import numpy as _rnp
from .._names import getattr_of as _getattr_of
from ..numpy._base import held as _held


class RegularGridInterpolator:
    """The interpolation of values on a grid, whose axes have the ascending coordinates `points`.

    method: "linear" or "nearest". fill_value: the result outside of the grid; None extrapolates. bounds_error must be
    False, because an error would depend on values.
    """

    def __init__(self, points, values, method="linear", bounds_error=False, fill_value=float("nan")):
        self._check(method)
        if bounds_error:
            raise NotImplementedError("RegularGridInterpolator: bounds_error=True; an error cannot depend on values")
        self.grid, self.values = tuple(_held(p) for p in points), _held(values)
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        if len(self.grid) > self.values.ndim:
            raise ValueError(
                f"RegularGridInterpolator: {len(self.grid)} axes of points for values with {self.values.ndim}"
            )
        for k, (p, n) in enumerate(zip(self.grid, self.values.shape)):
            if p.shape != (n,):
                raise ValueError(f"RegularGridInterpolator: points of shape {p.shape} for axis {k} with {n} values")

    @staticmethod
    def _check(method):
        if method not in ("linear", "nearest"):
            raise ValueError(f"RegularGridInterpolator: method {method!r}; it must be linear or nearest")

    def __call__(self, xi, method=None):
        """The values at points xi [.., number of axes], or at one array of coordinates for each axis."""
        method = self.method if method is None else method
        self._check(method)
        if isinstance(xi, tuple):
            xi = _rnp.stack(_rnp.broadcast_arrays(*[_held(x) for x in xi]), -1)
        xi = _held(xi)
        xi = xi[..., None] if xi.ndim == 1 and len(self.grid) == 1 else xi
        if xi.shape[-1] != len(self.grid):
            raise ValueError(
                f"RegularGridInterpolator: points of shape {xi.shape} for a grid with {len(self.grid)} axes"
            )
        sides, outside = [], False
        for k, p in enumerate(self.grid):
            x = xi[..., k]
            i = _rnp.clip(_rnp.searchsorted(p, x, side="right") - 1, 0, max(p.shape[0] - 2, 0))
            above = _rnp.minimum(i + 1, p.shape[0] - 1)
            gap = p[above] - p[i]
            share = _rnp.where(gap == 0, 0, (x - p[i]) / _rnp.where(gap == 0, 1, gap))
            outside = _rnp.logical_or(outside, _rnp.logical_or(x < p[0], x > p[-1]))
            sides.append((i, above, share))
        behind = (None,) * (self.values.ndim - len(self.grid))
        if method == "nearest":
            out = self.values[tuple(_rnp.where(share <= 0.5, i, j) for i, j, share in sides)]
        else:
            out = 0
            for upper in _itertools.product((False, True), repeat=len(sides)):
                weight, place = 1, []
                for up, (i, j, share) in zip(upper, sides):
                    weight, place = weight * (share if up else 1 - share), [*place, j if up else i]
                out = out + self.values[tuple(place)] * (weight[(..., *behind)] if behind else weight)
        if self.fill_value is None:
            return out
        return _rnp.where(outside[(..., *behind)] if behind else outside, self.fill_value, out)


__all__ = ["RegularGridInterpolator"]
__getattr__ = _getattr_of("rlx.scipy.interpolate", {})
