"""Initializers of weights, as in jax.nn.initializers: f = glorot_normal(); f(key, shape, dtype) is an array.

zeros and ones are such functions themselves. The fans are the extents of in_axis and out_axis, each times the extents
of all other axes.
"""

import math as _math

from .. import numpy as _rnp
from .._names import accept_names as _accept_names, getattr_of as _getattr_of
from .. import lax as _lax
from .. import random as _random
from .._nodes import axes_of as _axes_of


def zeros(key, shape, dtype="float32"):
    """Zeros; the key is not used."""
    return _rnp.zeros(shape, dtype)


def ones(key, shape, dtype="float32"):
    """Ones; the key is not used."""
    return _rnp.ones(shape, dtype)


def constant(value, dtype="float32"):
    """An initializer: one value, or an array that broadcasts to the shape."""
    own = dtype
    return lambda key, shape, dtype=own: _rnp.full(shape, value, dtype)


def uniform(scale=0.01, dtype="float32"):
    """An initializer: uniform numbers in [0, scale)."""
    own = dtype
    return lambda key, shape, dtype=own: _random.uniform(key, shape, dtype) * _rnp.asarray(scale, dtype)


def normal(stddev=0.01, dtype="float32"):
    """An initializer: normal numbers with mean 0."""
    own = dtype
    return lambda key, shape, dtype=own: _random.normal(key, shape, dtype) * _rnp.asarray(stddev, dtype)


def truncated_normal(stddev=0.01, dtype="float32", lower=-2.0, upper=2.0):
    """An initializer: normal numbers truncated to the range from lower to upper, times stddev."""
    own = dtype

    def init(key, shape, dtype=own):
        return _random.truncated_normal(key, lower, upper, shape, dtype) * _rnp.asarray(stddev, dtype)

    return init


def _fans(shape, in_axis, out_axis, batch_axis):
    """(fan in, fan out): the product of the extents of the named axes, times the extents of the axes with no role."""
    if len(shape) < 2 and isinstance(in_axis, int) and in_axis == -2:
        raise ValueError(
            f"the shape {tuple(shape)} has no fans: weights need at least two axes, or in_axis and out_axis"
        )
    inside, outside, batch = (
        _math.prod(shape[a] for a in _axes_of(axes, len(shape), "variance_scaling"))
        for axes in (in_axis, out_axis, batch_axis)
    )
    others = _math.prod(shape) / (inside * outside * batch)
    return inside * others, outside * others


# The standard deviation of normal numbers truncated to [-2, 2], and of complex ones of a magnitude below 2.
_WITHIN_TWO, _COMPLEX_WITHIN_TWO = 0.87962566103423978, 0.95311164380491208


def _in_disc(key, shape, dtype, radius_of):
    """Complex numbers with uniform angles and the magnitudes radius_of(uniform numbers)."""
    radius_key, angle_key = _random.split(key)
    part = _rnp.finfo(dtype).dtype
    radius = radius_of(_random.uniform(radius_key, shape, part))
    angle = _random.uniform(angle_key, shape, part, 0.0, 2 * _math.pi)
    return _lax.complex(radius * _rnp.cos(angle), radius * _rnp.sin(angle))


def variance_scaling(scale, mode, distribution, in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32"):
    """An initializer: numbers with variance scale / n, where n is the fan that `mode` names.

    mode: fan_in, fan_out, fan_avg or fan_geo_avg. distribution: truncated_normal, normal or uniform.
    """
    own = dtype
    if isinstance(scale, (int, float)) and not scale >= 0:
        raise ValueError(f"variance_scaling: scale must not be negative, got {scale!r}")
    means = {
        "fan_in": lambda i, o: i,
        "fan_out": lambda i, o: o,
        "fan_avg": lambda i, o: (i + o) / 2,
        "fan_geo_avg": lambda i, o: _math.sqrt(i * o),
    }
    if mode not in means:
        raise ValueError(f"variance_scaling: mode {mode!r}; it must be one of {', '.join(means)}")
    if distribution not in ("truncated_normal", "normal", "uniform"):
        raise ValueError(
            f"variance_scaling: distribution {distribution!r}; it must be truncated_normal, normal or uniform"
        )

    def init(key, shape, dtype=own):
        variance = scale / max(1.0, means[mode](*_fans(shape, in_axis, out_axis, batch_axis)))
        if _rnp.issubdtype(dtype, "complexfloating") and distribution != "normal":
            if distribution == "uniform":
                return _in_disc(key, shape, dtype, lambda u: _rnp.sqrt(2 * u)) * _rnp.asarray(
                    _math.sqrt(variance), dtype
                )
            below = 1 - _math.exp(-4)
            numbers = _in_disc(key, shape, dtype, lambda u: _rnp.sqrt(-_rnp.log1p(-below * u)))
            return numbers * _rnp.asarray(_math.sqrt(variance) / _COMPLEX_WITHIN_TWO, dtype)
        if distribution == "uniform":
            bound = _math.sqrt(3 * variance)
            return _random.uniform(key, shape, dtype, -1.0, 1.0) * _rnp.asarray(bound, dtype)
        if distribution == "normal":
            return _random.normal(key, shape, dtype) * _rnp.asarray(_math.sqrt(variance), dtype)
        wide = _math.sqrt(variance) / _WITHIN_TWO
        return _random.truncated_normal(key, -2.0, 2.0, shape, dtype) * _rnp.asarray(wide, dtype)

    return init


def _scaled(name, scale, mode, distribution):
    def make(in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32"):
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    kind = "uniform numbers" if distribution == "uniform" else "normal numbers within two standard deviations"
    make.__doc__ = f"An initializer: {kind} of variance {scale:g} / {mode}."
    return make


glorot_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform")
he_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal")
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal = glorot_uniform, glorot_normal, he_uniform, he_normal


def orthogonal(scale=1.0, column_axis=-1, dtype="float32"):
    """An initializer: matrices with orthonormal rows or columns, times scale. The extent of column_axis is their number
    of columns, and all other axes together are the rows.
    """
    own = dtype

    def make(key, shape, dtype=own):
        if len(shape) < 2:
            raise ValueError(f"orthogonal: shape {tuple(shape)}; it needs two or more axes")
        axis = _axes_of(column_axis, len(shape), "orthogonal")[0]
        columns = shape[axis]
        rest = tuple(d for a, d in enumerate(shape) if a != axis)
        q = _random.orthogonal(key, _math.prod(rest), (), dtype, columns) * _rnp.asarray(scale, dtype)
        return _rnp.moveaxis(q.reshape((*rest, columns)), -1, axis)

    return make


def delta_orthogonal(scale=1.0, column_axis=-1, dtype="float32"):
    """An initializer of convolutions [*window, in, out] with in <= out: an orthogonal matrix in the middle of the
    window, zeros elsewhere.
    """
    own = dtype

    def make(key, shape, dtype=own):
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            raise ValueError(f"delta_orthogonal: shape {tuple(shape)}; it is [*window, in, out] with in <= out")
        q = orthogonal(scale, column_axis, dtype)(key, (shape[-1], shape[-2])).T
        return _rnp.zeros(shape, dtype).at[tuple((k - 1) // 2 for k in shape[:-2])].set(q)

    return make


__getattr__ = _getattr_of("rlx.nn.initializers", {})

_accept_names(globals())
