"""jax._src.core and jax.core: shapes and errors; the rest is internal."""

import numpy as np
import rlx
from jax.errors import (  # noqa: F401
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

Tracer = rlx.Value


class ShapedArray:
    """A shape and a dtype."""

    def __init__(self, shape, dtype, weak_type=False, **kwargs):
        self.shape, self.dtype, self.weak_type = tuple(shape), np.dtype(dtype), weak_type
        self.ndim = len(self.shape)

    def __eq__(self, other):
        return (self.shape, self.dtype, self.weak_type) == (other.shape, other.dtype, other.weak_type)

    def __hash__(self):
        return hash((self.shape, self.dtype))


class InconclusiveDimensionOperation(Exception):
    pass


def reset_trace_state():
    return True


def trace_state_clean():
    return True


def typeof(x):
    x = x if hasattr(x, "dtype") else rlx.array(x)
    return ShapedArray(x.shape, x.dtype, bool(getattr(x, "weak_type", False)))


get_aval = typeof


def is_constant_dim(d):
    return isinstance(d, int)


def is_concrete(x):
    return not isinstance(x, rlx.Value)


def concrete_or_error(force, x, context=""):
    return force(x) if force else x


def canonicalize_shape(shape, context=""):
    return tuple(int(d) for d in shape)
