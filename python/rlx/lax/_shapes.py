"""Shapes, slices and concatenation."""

import builtins
import math

from .. import _rlx
from .. import numpy as rnp
from .._nodes import as_index, axis_of, cast, node
from .._op import creator, op


@creator
def iota(dtype, size):
    """The integers 0 to size - 1."""
    return node("iota", dims=(size,), dtype=dtype, axis=0)


@creator
def broadcasted_iota(dtype, shape, dimension):
    """The index along one axis, for each element of a shape."""
    return node("iota", dims=tuple(shape), dtype=dtype, axis=dimension)


def full(shape, fill_value, dtype=None):
    """An array filled with one value."""
    return rnp.full(shape, fill_value, dtype)


def full_like(x, fill_value, dtype=None, shape=None):
    """An array filled with one value. The default shape and dtype are those of x."""
    return rnp.full(
        rnp.shape(x) if shape is None else shape, fill_value, _rlx.result_type(x)[0] if dtype is None else dtype
    )


def empty(shape, dtype):
    """An array of zeros."""
    return rnp.zeros(shape, dtype)


@op("operand")
def convert_element_type(operand, new_dtype):
    """The array in another dtype."""
    return cast(operand, new_dtype)


@op("operand")
def reshape(operand, new_sizes, dimensions=None):
    """The elements in another shape. `dimensions`: the order of the axes in which they are read."""
    return rnp.reshape(operand if dimensions is None else rnp.transpose(operand, dimensions), new_sizes)


@op("operand")
def transpose(operand, permutation):
    """The operand with permuted axes: axis i of the result is axis permutation[i]."""
    return rnp.transpose(operand, permutation)


@op("array")
def expand_dims(array, dimensions):
    """The array with axes of extent 1 added; dimensions count in the shape of the result."""
    return rnp.expand_dims(array, tuple(dimensions))


@op("array")
def squeeze(array, dimensions):
    """The array without these axes of extent 1."""
    return rnp.squeeze(array, tuple(dimensions))


@op("operand")
def collapse(operand, start_dimension, stop_dimension=None):
    """The array with the axes from start to before stop joined to one."""
    x = _rlx.value(operand)
    low, high, _ = builtins.slice(start_dimension, stop_dimension).indices(x.ndim)
    return rnp.reshape(x, (*x.shape[:low], math.prod(x.shape[low:high]), *x.shape[high:]))


@op("operand")
def broadcast(operand, sizes):
    """The array broadcast to new leading axes of these sizes."""
    x = _rlx.value(operand)
    return rnp.broadcast_to(x, (*sizes, *x.shape))


@op("operand")
def broadcast_in_dim(operand, shape, broadcast_dimensions):
    """The operand broadcast to a shape. Its axes become the axes broadcast_dimensions of the result."""
    x = _rlx.value(operand)
    if len(broadcast_dimensions) != x.ndim or list(broadcast_dimensions) != sorted(set(broadcast_dimensions)):
        raise ValueError(
            f"broadcast_in_dim: axes {broadcast_dimensions} for an operand of shape {x.shape}; one for "
            "each axis is needed, in ascending order"
        )
    among = dict(zip(broadcast_dimensions, x.shape))
    return rnp.broadcast_to(rnp.reshape(x, [among.get(i, 1) for i in range(len(shape))]), shape)


@op("x")
def broadcast_to_rank(x, rank):
    """The array with leading axes of extent 1, so that it has `rank` axes."""
    x = _rlx.value(x)
    if not x.ndim <= rank <= 2**10:
        raise ValueError(
            f"broadcast_to_rank: rank {rank} for an array with {x.ndim} axes; it must be {x.ndim} to {2**10}"
        )
    return rnp.reshape(x, (1,) * (rank - x.ndim) + x.shape)


@op("operand")
def tile(operand, reps):
    """The array repeated along each axis."""
    return rnp.tile(operand, reps)


@op("operand")
def rev(operand, dimensions):
    """The array reversed along these axes."""
    return rnp.flip(operand, tuple(dimensions))


@op("*operands")
def concatenate(operands, dimension):
    """Arrays concatenated along an axis."""
    return rnp.concatenate(operands, dimension)


@op("operand")
def split(operand, sizes, axis=0):
    """The array split along an axis into parts of these sizes."""
    x = _rlx.value(operand)
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"split: sizes {list(sizes)} of axis {axis} of shape {x.shape}; they must add up to its extent"
        )
    starts = [sum(sizes[:i]) for i in range(1, len(sizes))]
    return rnp.split(x, starts, axis)


@op("operand", "padding_value")
def pad(operand, padding_value, padding_config):
    """The array padded with a value before, after and between elements: (low, high, interior) for each axis. Negative
    numbers crop.
    """
    x = _rlx.value(operand)
    if len(padding_config) != x.ndim:
        raise ValueError(f"pad: {len(padding_config)} triples (low, high, interior) for the {x.ndim} axes of {x.shape}")
    low, high, interior = zip(*padding_config) if x.ndim else ((), (), ())
    return _rlx.pad([x, cast(padding_value, x.dtype)], list(low), list(high), list(interior))


# -- windows --


@op("operand")
def slice(operand, start_indices, limit_indices, strides=None):
    """The elements from start_indices to before limit_indices, with strides."""
    x = _rlx.value(operand)
    return node("slice", x, starts=start_indices, limits=limit_indices, strides=strides or (1,) * x.ndim)


@op("operand")
def slice_in_dim(operand, start_index, limit_index, stride=1, axis=0):
    """A slice along one axis. None: from the start, or to the end. Negative indices count from the end."""
    x = _rlx.value(operand)
    axis = axis_of(axis, x.ndim, "slice_in_dim")
    return x[(builtins.slice(None),) * axis + (builtins.slice(start_index, limit_index, stride),)]


@op("operand")
def index_in_dim(operand, index, axis=0, keepdims=True):
    """The row with this index along an axis. The axis stays with extent 1, or is dropped with keepdims=False."""
    x = _rlx.value(operand)
    axis = axis_of(axis, x.ndim, "index_in_dim")
    row = x[(builtins.slice(None),) * axis + (index,)]
    return rnp.expand_dims(row, axis) if keepdims else row


def _whole(starts):
    starts = _rlx.value(starts)
    if starts.dtype.kind not in "iu":
        raise TypeError(f"the start of a slice must be an integer, not {starts.dtype.name}")
    return as_index(starts)._with_weak(False)


def _starts(x, starts, from_end):
    """The starts of a slice, one for each axis, int32 or int64 [ndim]. Negative starts count from the end."""
    if isinstance(starts, (list, tuple)):
        each = [_whole(s) for s in starts]
        starts = rnp.concatenate([rnp.reshape(s, (1,)) for s in each]) if each else rnp.zeros((0,), "int32")
    starts = _whole(starts)
    if starts.shape != (x.ndim,):
        raise ValueError(f"a slice of an array of shape {x.shape} needs {x.ndim} starts, got shape {starts.shape}")
    if not x.ndim:
        return starts
    counted = from_end if isinstance(from_end, (list, tuple)) else [from_end] * x.ndim
    sizes = rnp.array([d if c else 0 for d, c in zip(x.shape, counted)], "int32")
    return rnp.where(rnp.less(starts, 0), starts + sizes, starts)


@op("operand", "*start_indices")
def dynamic_slice(operand, start_indices, slice_sizes, *, allow_negative_indices=True):
    """A slice of fixed sizes that starts at run-time indices. The start is clamped so that the slice fits."""
    x = _rlx.value(operand)
    return node("dynamic_slice", x, _starts(x, start_indices, allow_negative_indices), sizes=slice_sizes)


@op("operand", "update", "*start_indices")
def dynamic_update_slice(operand, update, start_indices, *, allow_negative_indices=True):
    """The operand with a slice at run-time indices replaced. The start is clamped so that the slice fits."""
    x = _rlx.value(operand)
    starts = _starts(x, start_indices, allow_negative_indices)
    return node("dynamic_update_slice", x, cast(update, x.dtype), starts)


def _along(x, start, axis):
    return [start if i == axis else 0 for i in range(x.ndim)]


@op("operand", "start_index")
def dynamic_slice_in_dim(operand, start_index, slice_size, axis=0, *, allow_negative_indices=True):
    """A slice of a fixed size along one axis that starts at a run-time index."""
    x = _rlx.value(operand)
    axis = axis_of(axis, x.ndim, "dynamic_slice_in_dim")
    sizes = [slice_size if i == axis else d for i, d in enumerate(x.shape)]
    return dynamic_slice(x, _along(x, start_index, axis), sizes, allow_negative_indices=allow_negative_indices)


@op("operand", "index")
def dynamic_index_in_dim(operand, index, axis=0, keepdims=True, *, allow_negative_indices=True):
    """The row at a run-time index along an axis. The axis stays with extent 1, or is dropped with keepdims=False."""
    row = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return row if keepdims else rnp.squeeze(row, axis)


@op("operand", "update", "start_index")
def dynamic_update_slice_in_dim(operand, update, start_index, axis, *, allow_negative_indices=True):
    """The operand with a slice along one axis replaced, at a run-time index."""
    x = _rlx.value(operand)
    axis = axis_of(axis, x.ndim, "dynamic_update_slice_in_dim")
    starts = _along(x, start_index, axis)
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


@op("operand", "update", "index")
def dynamic_update_index_in_dim(operand, update, index, axis, *, allow_negative_indices=True):
    """The operand with the row at a run-time index replaced."""
    x, update = _rlx.value(operand), _rlx.value(update)
    axis = axis_of(axis, x.ndim, "dynamic_update_index_in_dim")
    row = update if update.ndim == x.ndim else rnp.expand_dims(update, axis)
    return dynamic_update_slice_in_dim(x, row, index, axis, allow_negative_indices=allow_negative_indices)
