"""The general gather and scatter of XLA. They are built from the ops gather and scatter, which index axes with tensors.

An index vector gives the start of a window of the operand. Index tensors are made for the axes that index vectors name,
for batching axes, and for window axes that do not have the full extent. The other axes are moved as whole rows.
"""

import enum
import typing

from .. import _rlx
from .. import numpy as rnp
from .._indexing import filler
from .._nodes import as_index, cast, node
from .._op import op
from ..numpy._base import named


class GatherDimensionNumbers(typing.NamedTuple):
    """The roles of the axes of operand, indices and result in a gather; see jax.lax.gather."""

    offset_dims: tuple
    collapsed_slice_dims: tuple
    start_index_map: tuple
    operand_batching_dims: tuple = ()
    start_indices_batching_dims: tuple = ()


class ScatterDimensionNumbers(typing.NamedTuple):
    """The roles of the axes of operand, indices and updates in a scatter; see jax.lax.scatter."""

    update_window_dims: tuple
    inserted_window_dims: tuple
    scatter_dims_to_operand_dims: tuple
    operand_batching_dims: tuple = ()
    scatter_indices_batching_dims: tuple = ()


class GatherScatterMode(enum.IntEnum):
    """The handling of windows that are not inside: clipped into place, filled or dropped as a whole, or promised not to
    occur.
    """

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2

    @classmethod
    def from_any(cls, mode):
        """The mode of a name, of None or of a mode of JAX."""
        names = {None: cls.FILL_OR_DROP, "fill": cls.FILL_OR_DROP, "drop": cls.FILL_OR_DROP, "clip": cls.CLIP}
        names["promise_in_bounds"] = cls.PROMISE_IN_BOUNDS
        mode = getattr(mode, "name", mode)
        if isinstance(mode, str) and mode in cls.__members__:
            return cls[mode]
        if isinstance(mode, int):
            return cls(mode)
        if mode not in names:
            raise ValueError(
                f"mode {mode!r} of a gather or scatter; it must be one of clip, fill, drop and promise_in_bounds"
            )
        return names[mode]


def _check(what, x, indices, sizes, window, collapsed, index_map, batching, index_batching):
    """Raises an error if the axes of a gather or scatter are inconsistent."""

    def axes(name, given, ndim, ascending=True):
        if any(not 0 <= a < ndim for a in given) or len(set(given)) != len(given):
            raise ValueError(f"{what}: {name} {given} must be different axes from 0 to {ndim - 1}")
        if ascending and list(given) != sorted(given):
            raise ValueError(f"{what}: {name} {given} must ascend")

    if indices.dtype.kind not in "iu":
        raise TypeError(f"{what}: indices of dtype {indices.dtype.name}; they must be integers")
    if indices.ndim == 0:
        raise ValueError(f"{what}: indices need a last axis with index vectors")
    axes("collapsed axes", collapsed, x.ndim)
    axes("axes of index vectors", index_map, x.ndim, False)
    axes("batching axes of the operand", batching, x.ndim)
    axes("batching axes of the indices", index_batching, indices.ndim - 1, False)
    if indices.shape[-1] != len(index_map):
        raise ValueError(f"{what}: index vectors have {indices.shape[-1]} entries for the axes {index_map}")
    if set(batching) & (set(collapsed) | set(index_map)) or len(batching) != len(index_batching):
        raise ValueError(
            f"{what}: the operand's batching axes {batching} and the indices' {index_batching} must be equally many, "
            "and the operand's must be neither collapsed nor indexed"
        )
    if len(sizes) != x.ndim:
        raise ValueError(f"{what}: slice sizes with {len(sizes)} entries for an operand with {x.ndim} axes")
    for a, (size, extent) in enumerate(zip(sizes, x.shape)):
        if not 0 <= size <= extent:
            raise ValueError(f"{what}: a window of extent {size} along axis {a}, which has extent {extent}")
        if (a in collapsed or a in batching) and size > 1:
            raise ValueError(f"{what}: a window of extent {size} along axis {a}, which the result drops; it must be 1")
    if len(window) != x.ndim - len(collapsed) - len(batching):
        raise ValueError(
            f"{what}: {len(window)} window axes; the operand has {x.ndim}, less those that the result drops"
        )
    axes("window axes", window, indices.ndim - 1 + len(window))
    for a, b in zip(batching, index_batching):
        if x.shape[a] != indices.shape[b]:
            raise ValueError(f"{what}: batching axes have the extents {x.shape[a]} and {indices.shape[b]}")


class _Windows:
    """The axes with index tensors, these tensors, and the permutation from the axes of the op to those of the
    caller.
    """

    def __init__(self, what, x, indices, sizes, window, collapsed, index_map, batching, index_batching, mode):
        _check(what, x, indices, sizes, window, collapsed, index_map, batching, index_batching)
        indices = as_index(indices)
        counts = indices.dtype.name
        self.batch = tuple(indices.shape[:-1])
        shown = [a for a in range(x.ndim) if a not in collapsed and a not in batching]
        named = {*index_map, *batching, *collapsed}
        self.axes = [a for a in range(x.ndim) if a in named or sizes[a] != x.shape[a]]
        self.axes = self.axes or [0] * (x.ndim > 0)
        cut = [a for a in shown if a in self.axes]  # window axes with index tensors
        whole = [a for a in shown if a not in self.axes]
        self.dims = (*self.batch, *(sizes[a] for a in cut))
        starts, inside = {}, None
        for k, a in enumerate(index_map):
            start, last = indices[..., k], x.shape[a] - sizes[a]
            if mode == GatherScatterMode.CLIP:
                start = rnp.clip(start, 0, last)
            elif mode == GatherScatterMode.FILL_OR_DROP:
                fits = rnp.logical_and(rnp.greater_equal(start, 0), rnp.less_equal(start, last))
                inside = fits if inside is None else rnp.logical_and(inside, fits)
            starts[a] = start
        if inside is not None:  # a window that is not inside gets an index outside as a whole
            a = index_map[0]
            starts[a] = rnp.where(inside, starts[a], rnp.full_like(starts[a], x.shape[a]))
        for a, b in zip(batching, index_batching):
            starts[a] = rnp.broadcast_to(self._places(x.shape[a], b, len(self.batch), counts), self.batch)
        self.tensors = []
        for a in self.axes:
            at = rnp.reshape(starts[a], self.batch + (1,) * len(cut)) if a in starts else None
            if a in cut:
                place = self._places(sizes[a], len(self.batch) + cut.index(a), len(self.dims), counts)
                at = place if at is None else rnp.add(at, place)
            elif at is None:
                at = rnp.zeros((), counts)
            self.tensors.append(rnp.broadcast_to(at, self.dims))
        # The order of axes in the op: whole axes before the first indexed one, batch axes, cut axes, the other whole
        # axes.
        before = [a for a in whole if a < self.axes[0]] if self.axes else []
        order = before + [("batch", i) for i in range(len(self.batch))] + cut + whole[len(before) :]
        rank = len(self.batch) + len(shown)
        rest = [i for i in range(rank) if i not in window]
        self.result = [0] * rank  # for each axis of the caller, its axis in the op
        for i, a in zip(window, shown):
            self.result[i] = order.index(a)
        for b, i in enumerate(rest):
            self.result[i] = order.index(("batch", b))

    @staticmethod
    def _places(extent, axis, rank, dtype):
        return rnp.reshape(rnp.arange(extent, dtype=dtype), [extent if i == axis else 1 for i in range(rank)])


@op("operand", "start_indices")
def gather(
    operand,
    start_indices,
    dimension_numbers,
    slice_sizes,
    *,
    unique_indices=False,
    indices_are_sorted=False,
    mode=None,
    fill_value=None,
):
    """Gathers the windows of slice_sizes that start at the index vectors start_indices [.., K].

    mode "clip" (the default) moves windows inside. mode "fill" gives fill_value for windows that are not inside; by
    default NaN, the least signed integer, the largest unsigned integer or True.
    """
    x, indices = _rlx.value(operand), _rlx.value(start_indices)
    d = GatherDimensionNumbers(*dimension_numbers)
    mode = GatherScatterMode.from_any("clip" if mode is None else mode)
    sizes = (d.collapsed_slice_dims, d.start_index_map, d.operand_batching_dims, d.start_indices_batching_dims)
    w = _Windows("gather", x, indices, tuple(slice_sizes), tuple(d.offset_dims), *map(tuple, sizes), mode)
    if not x.ndim:
        return rnp.broadcast_to(x, w.batch)
    if mode == GatherScatterMode.FILL_OR_DROP:
        fill = filler(x.dtype) if fill_value is None else fill_value
        out = node("gather", x, *w.tensors, axes=w.axes, mode="fill", fill=float(fill))
    else:
        out = node("gather", x, *w.tensors, axes=w.axes, mode="clamp")
    return rnp.transpose(out, w.result)


def _scatter(what, how, operand, scatter_indices, updates, dimension_numbers, mode):
    x, indices = _rlx.value(operand), _rlx.value(scatter_indices)
    updates = cast(updates, x.dtype)
    d = ScatterDimensionNumbers(*dimension_numbers)
    window = tuple(d.update_window_dims)
    if updates.ndim != indices.ndim - 1 + len(window):
        raise ValueError(
            f"{what}: updates with {updates.ndim} axes; {indices.ndim - 1} axes of the indices and "
            f"{len(window)} of the windows are needed"
        )
    missing = set(d.inserted_window_dims) | set(d.operand_batching_dims)
    extents = iter(updates.shape[i] for i in window if i < updates.ndim)
    sizes = tuple(1 if a in missing else next(extents, 0) for a in range(x.ndim))
    maps = (d.inserted_window_dims, d.scatter_dims_to_operand_dims, d.operand_batching_dims)
    maps = (*maps, d.scatter_indices_batching_dims)
    w = _Windows(what, x, indices, sizes, window, *map(tuple, maps), GatherScatterMode.from_any(mode))
    back = sorted(range(len(w.result)), key=w.result.__getitem__)
    updates = rnp.transpose(updates, back)
    if not x.ndim:
        return _rank_zero(how, x, updates)
    clamps = GatherScatterMode.from_any(mode) == GatherScatterMode.CLIP
    return node(f"scatter_{how}", x, *w.tensors, updates, axes=w.axes, mode="clamp" if clamps else "drop")


def _rank_zero(how, x, updates):
    """A scatter into a scalar: all updates apply to it."""
    one = rnp.zeros((_rlx.value(updates).size,), "int32")
    return rnp.reshape(node(f"scatter_{how}", rnp.reshape(x, (1,)), one, rnp.ravel(updates), axes=[0]), ())


def _make_scatter(name, how, change=lambda v: v):
    @op("operand", "scatter_indices", "updates")
    def scatter_any(
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        *,
        indices_are_sorted=False,
        unique_indices=False,
        mode=None,
    ):
        return _scatter(name, how, operand, scatter_indices, change(updates), dimension_numbers, mode)

    does = {"set": "replaced by", "add": "added to", "mul": "multiplied by", "min": "at most", "max": "at least"}
    text = (
        f"The operand with windows at the index vectors scatter_indices [.., K] {does[how]} the updates"
        + (" with their sign changed" if name == "scatter_sub" else "")
        + '.\n\nWindows that are not inside are dropped (mode None) or moved inside ("clip").\n'
    )
    return named(scatter_any, name, text)


scatter = _make_scatter("scatter", "set")
scatter_add = _make_scatter("scatter_add", "add")
scatter_sub = _make_scatter("scatter_sub", "add", lambda v: rnp.negative(v))
scatter_mul = _make_scatter("scatter_mul", "mul")
scatter_min = _make_scatter("scatter_min", "min")
scatter_max = _make_scatter("scatter_max", "max")
