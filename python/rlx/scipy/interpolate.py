"""scipy.interpolate.RegularGridInterpolator."""

import itertools as _itertools

from .. import numpy as rnp
from .._names import accept_names as _accept_names

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """A function of points [.., N] that interpolates values on a grid, "linear" or "nearest".

    points: one ascending array for each axis of the grid. values: the values on the grid, with any further axes.
    bounds_error must be False. fill_value: the value outside; None: the formula is continued there.
    """

    def __init__(self, points, values, method="linear", bounds_error=False, fill_value=float("nan")):
        if method not in ("linear", "nearest"):
            raise ValueError(f"RegularGridInterpolator: method {method!r} is neither 'linear' nor 'nearest'")
        if bounds_error:
            raise NotImplementedError(
                "RegularGridInterpolator: bounds_error=True is not supported; fill_value marks them"
            )
        self.grid, self.values = tuple(rnp.asarray(p) for p in points), rnp.asarray(values)
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        if len(self.grid) > self.values.ndim:
            raise ValueError(f"RegularGridInterpolator: {len(self.grid)} axes of points, {self.values.ndim} of values")
        for i, p in enumerate(self.grid):
            if p.ndim != 1 or p.shape[0] != self.values.shape[i] or p.shape[0] < 2:
                raise ValueError(
                    f"RegularGridInterpolator: points {i} of shape {p.shape}, values with {self.values.shape[i]} "
                    "entries along that axis; there must be as many, and two at least"
                )

    def __call__(self, xi, method=None):
        """The values at the points xi [.., N], or at a tuple of N arrays."""
        method = self.method if method is None else method
        if method not in ("linear", "nearest"):
            raise ValueError(f"RegularGridInterpolator: method {method!r} is neither 'linear' nor 'nearest'")
        n = len(self.grid)
        if isinstance(xi, (tuple, list)):
            xi = rnp.stack(rnp.broadcast_arrays(*map(rnp.asarray, xi)), -1)
        xi = rnp.asarray(xi)
        xi = xi[:, None] if xi.ndim == 1 and n == 1 else xi
        if xi.ndim == 0 or xi.shape[-1] != n:
            raise ValueError(f"RegularGridInterpolator: points of shape {xi.shape} in {n} dimensions")
        return _interpolated(self.grid, self.values, xi, method, self.fill_value)


def _interpolated(grid, values, xi, method, fill_value):
    places, weights, outside, out_of_nan = [], [], None, None
    for k, g in enumerate(grid):
        x = xi[..., k]
        x = x if x.dtype.kind == "f" else x.astype("float32")
        at = rnp.clip(rnp.searchsorted(g, x) - 1, 0, g.shape[0] - 2)
        low, high = rnp.take(g, at), rnp.take(g, at + 1)
        places.append(at)
        weights.append((x - low) / (high - low))
        beyond = (x < g[0]) | (x > g[-1])
        outside = beyond if outside is None else outside | beyond
        broken = x != x
        out_of_nan = broken if out_of_nan is None else out_of_nan | broken
    tail = (1,) * (values.ndim - len(grid))
    spread = lambda v: rnp.reshape(v, (*v.shape, *tail))  # noqa: E731
    if method == "nearest":
        out = values[tuple(at + (w > 0.5) for at, w in zip(places, weights))]
        out = out if out.dtype.kind in "fc" else out.astype("float32")
    else:
        out = None
        for corner in _itertools.product((0, 1), repeat=len(grid)):
            weight = 1.0
            for c, w in zip(corner, weights):
                weight = weight * (w if c else 1 - w)
            part = spread(weight) * values[tuple(at + c for at, c in zip(places, corner))]
            out = part if out is None else out + part
    out = rnp.where(spread(out_of_nan), float("nan"), out)
    return out if fill_value is None else rnp.where(spread(outside), fill_value, out)


_accept_names(globals())
