"""Shapes, windows and joins."""

import builtins
import math

from .. import _rlx
from .. import numpy as rnp
from .._op import as_index, axis_of, cast, creator, node, op


@creator
def iota(dtype, size):
    """0 to size - 1."""
    return node("iota", dims=(size,), dtype=dtype, axis=0)


@creator
def broadcasted_iota(dtype, shape, dimension):
    """The place along one axis for each element of a shape."""
    return node("iota", dims=tuple(shape), dtype=dtype, axis=dimension)


def full(shape, fill_value, dtype=None):
    """One value everywhere."""
    return rnp.full(shape, fill_value, dtype)


def full_like(x, fill_value, dtype=None, shape=None):
    """One value everywhere, with the shape and the dtype of x where none are given."""
    return rnp.full(
        rnp.shape(x) if shape is None else shape, fill_value, _rlx.result_type(x)[0] if dtype is None else dtype
    )


def empty(shape, dtype):
    """Zeros."""
    return rnp.zeros(shape, dtype)


@op("operand")
def convert_element_type(operand, new_dtype):
    """The numbers in another dtype."""
    return cast(operand, new_dtype)


@op("operand")
def reshape(operand, new_sizes, dimensions=None):
    """The elements in another shape, read with the axes in the order `dimensions`."""
    return rnp.reshape(operand if dimensions is None else rnp.transpose(operand, dimensions), new_sizes)


@op("operand")
def transpose(operand, permutation):
    """Axis i is axis permutation[i] of the operand."""
    return rnp.transpose(operand, permutation)


@op("array")
def expand_dims(array, dimensions):
    """With axes of extent 1 at places of the result's shape."""
    return rnp.expand_dims(array, tuple(dimensions))


@op("array")
def squeeze(array, dimensions):
    """Without axes of extent 1."""
    return rnp.squeeze(array, tuple(dimensions))


@op("operand")
def collapse(operand, start_dimension, stop_dimension=None):
    """The axes from start to before stop as one."""
    x = _rlx.value(operand)
    low, high, _ = builtins.slice(start_dimension, stop_dimension).indices(x.ndim)
    return rnp.reshape(x, (*x.shape[:low], math.prod(x.shape[low:high]), *x.shape[high:]))


@op("operand")
def broadcast(operand, sizes):
    """With new axes of these sizes in front."""
    x = _rlx.value(operand)
    return rnp.broadcast_to(x, (*sizes, *x.shape))


@op("operand")
def broadcast_in_dim(operand, shape, broadcast_dimensions):
    """In a shape whose axes broadcast_dimensions are those of the operand; the others repeat it."""
    x = _rlx.value(operand)
    if len(broadcast_dimensions) != x.ndim or list(broadcast_dimensions) != sorted(set(broadcast_dimensions)):
        raise ValueError(
            f"broadcast_in_dim: axes {broadcast_dimensions} for an operand of shape {x.shape}; one for each, ascending"
        )
    among = dict(zip(broadcast_dimensions, x.shape))
    return rnp.broadcast_to(rnp.reshape(x, [among.get(i, 1) for i in range(len(shape))]), shape)


@op("x")
def broadcast_to_rank(x, rank):
    """With axes of extent 1 in front until there are `rank`."""
    x = _rlx.value(x)
    return rnp.reshape(x, (1,) * (rank - x.ndim) + x.shape)


@op("operand")
def tile(operand, reps):
    """Repeated along each axis."""
    return rnp.tile(operand, reps)


@op("operand")
def rev(operand, dimensions):
    """With the order along these axes reversed."""
    return rnp.flip(operand, tuple(dimensions))


@op("*operands")
def concatenate(operands, dimension):
    """Arrays one after the other along an axis."""
    return rnp.concatenate(operands, dimension)


@op("operand")
def split(operand, sizes, axis=0):
    """Parts of these extents along an axis."""
    x = _rlx.value(operand)
    if sum(sizes) != x.shape[axis]:
        raise ValueError(f"split: sizes {list(sizes)} of axis {axis} of shape {x.shape}; they add up to it")
    starts = [sum(sizes[:i]) for i in range(1, len(sizes))]
    return rnp.split(x, starts, axis)


@op("operand", "padding_value")
def pad(operand, padding_value, padding_config):
    """With a value before, behind and between elements: (low, high, interior) of each axis; negative ones crop."""
    x = _rlx.value(operand)
    if len(padding_config) != x.ndim:
        raise ValueError(f"pad: {len(padding_config)} triples (low, high, interior) for the {x.ndim} axes of {x.shape}")
    low, high, interior = zip(*padding_config) if x.ndim else ((), (), ())
    return _rlx.pad([x, cast(padding_value, x.dtype)], list(low), list(high), list(interior))


# -- windows --


@op("operand")
def slice(operand, start_indices, limit_indices, strides=None):
    """The window from start_indices to before limit_indices, every stride-th element of it."""
    x = _rlx.value(operand)
    return node("slice", x, starts=start_indices, limits=limit_indices, strides=strides or (1,) * x.ndim)


@op("operand")
def slice_in_dim(operand, start_index, limit_index, stride=1, axis=0):
    """A window along one axis; None: from its start, to its end; negative places count from the end."""
    x = _rlx.value(operand)
    axis = axis_of(axis, x.ndim, "slice_in_dim")
    return x[(builtins.slice(None),) * axis + (builtins.slice(start_index, limit_index, stride),)]


@op("operand")
def index_in_dim(operand, index, axis=0, keepdims=True):
    """The row at a place along an axis, which stays with extent 1 or goes."""
    x = _rlx.value(operand)
    axis = axis_of(axis, x.ndim, "index_in_dim")
    row = x[(builtins.slice(None),) * axis + (index,)]
    return rnp.expand_dims(row, axis) if keepdims else row


def _whole(starts):
    starts = _rlx.value(starts)
    if starts.dtype.kind not in "iu":
        raise TypeError(f"a window starts at integers, not at {starts.dtype.name}")
    return as_index(starts)._with_weak(False)


def _starts(x, starts, from_end):
    """Starts of a window, one for each axis, int32 or int64 [ndim]; negative ones count from the end."""
    if isinstance(starts, (list, tuple)):
        each = [_whole(s) for s in starts]
        starts = rnp.concatenate([rnp.reshape(s, (1,)) for s in each]) if each else rnp.zeros((0,), "int32")
    starts = _whole(starts)
    if starts.shape != (x.ndim,):
        raise ValueError(f"a window of an array of shape {x.shape} has {x.ndim} starts, got shape {starts.shape}")
    if not x.ndim:
        return starts
    counted = from_end if isinstance(from_end, (list, tuple)) else [from_end] * x.ndim
    sizes = rnp.array([d if c else 0 for d, c in zip(x.shape, counted)], "int32")
    return rnp.where(rnp.less(starts, 0), starts + sizes, starts)


@op("operand", "*start_indices")
def dynamic_slice(operand, start_indices, slice_sizes, *, allow_negative_indices=True):
    """A window of fixed sizes from places given at run time, moved so that it fits."""
    x = _rlx.value(operand)
    return node("dynamic_slice", x, _starts(x, start_indices, allow_negative_indices), sizes=slice_sizes)


@op("operand", "update", "*start_indices")
def dynamic_update_slice(operand, update, start_indices, *, allow_negative_indices=True):
    """The operand with a window at places given at run time replaced; it is moved so that it fits."""
    x = _rlx.value(operand)
    starts = _starts(x, start_indices, allow_negative_indices)
    return node("dynamic_update_slice", x, cast(update, x.dtype), starts)


def _along(x, start, axis):
    return [start if i == axis else 0 for i in range(x.ndim)]


@op("operand", "start_index")
def dynamic_slice_in_dim(operand, start_index, slice_size, axis=0, *, allow_negative_indices=True):
    """A window of a fixed size along one axis, from a place given at run time."""
    x = _rlx.value(operand)
    axis = axis_of(axis, x.ndim, "dynamic_slice_in_dim")
    sizes = [slice_size if i == axis else d for i, d in enumerate(x.shape)]
    return dynamic_slice(x, _along(x, start_index, axis), sizes, allow_negative_indices=allow_negative_indices)


@op("operand", "index")
def dynamic_index_in_dim(operand, index, axis=0, keepdims=True, *, allow_negative_indices=True):
    """The row at a place given at run time along an axis, which stays with extent 1 or goes."""
    row = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return row if keepdims else rnp.squeeze(row, axis)


@op("operand", "update", "start_index")
def dynamic_update_slice_in_dim(operand, update, start_index, axis, *, allow_negative_indices=True):
    """The operand with a window along one axis replaced, at a place given at run time."""
    x = _rlx.value(operand)
    axis = axis_of(axis, x.ndim, "dynamic_update_slice_in_dim")
    starts = _along(x, start_index, axis)
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


@op("operand", "update", "index")
def dynamic_update_index_in_dim(operand, update, index, axis, *, allow_negative_indices=True):
    """The operand with the row at a place given at run time replaced."""
    x, update = _rlx.value(operand), _rlx.value(update)
    axis = axis_of(axis, x.ndim, "dynamic_update_index_in_dim")
    row = update if update.ndim == x.ndim else rnp.expand_dims(update, axis)
    return dynamic_update_slice_in_dim(x, row, index, axis, allow_negative_indices=allow_negative_indices)
