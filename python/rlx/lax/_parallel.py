"""Operations over the named batch axes of rlx.vmap(f, axis_name=...)."""

from .. import _axes, _rlx, tree
from .. import numpy as rnp


def _extent(axis_name, what):
    size = 1
    for name in axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,):
        size *= _axes.named(name, what).size
    return size


def psum(x, axis_name):
    """The sum over a named axis, or over several, of each leaf of x. Of a Python number it is the number times the
    extent.
    """
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        return x * _extent(axis_name, "psum")
    return _axes.over("sum", x, axis_name, "psum")


def pmean(x, axis_name):
    """The mean over a named axis of each leaf of x."""
    size = _extent(axis_name, "pmean")
    return tree.map(lambda v: rnp.divide(v, size), psum(x, axis_name))


def pmax(x, axis_name):
    """The maximum over a named axis of each leaf of x."""
    return _axes.over("max", x, axis_name, "pmax")


def pmin(x, axis_name):
    """The minimum over a named axis of each leaf of x."""
    return _axes.over("min", x, axis_name, "pmin")


def axis_index(axis_name):
    """The index along a named axis, int32; of several names the index in the grid of their axes."""
    out = None
    for name in axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,):
        axis = _axes.named(name, "axis_index")
        out = axis.index if out is None else out * axis.size + axis.index
    return out


def axis_size(axis_name):
    """The extent of a named axis, or the product of those of several."""
    return _extent(axis_name, "axis_size")


def all_gather(x, axis_name, *, axis=0, tiled=False):
    """All values along a named axis, as a new axis; with tiled joined along an existing one."""

    def gathered(leaf):
        leaf = _rlx.value(leaf)
        place = axis % (leaf.ndim + (not tiled)) if leaf.ndim or not tiled else 0
        out = _axes.over("gather", leaf, axis_name, "all_gather", (place,))
        if not tiled:
            return out
        shape = list(leaf.shape)
        shape[place] *= _extent(axis_name, "all_gather")
        return rnp.reshape(out, tuple(shape))

    return tree.map(gathered, x)


def ppermute(x, axis_name, perm):
    """The value at `source` along a named axis goes to `to`, for each pair (source, to) of perm; elsewhere zeros."""
    pairs = [[int(source), int(to)] for source, to in perm]
    for end in (0, 1):
        if len({p[end] for p in pairs}) != len(pairs):
            raise ValueError(f"ppermute: an index is the {('source', 'destination')[end]} of two pairs in {perm}")
    return _axes.over("permute", x, axis_name, "ppermute", pairs)


def pshuffle(x, axis_name, perm):
    """The value at perm[k] along a named axis goes to k."""
    return ppermute(x, axis_name, [(source, to) for to, source in enumerate(perm)])


def all_to_all(x, axis_name, split_axis, concat_axis, *, tiled=False):
    """The axis split_axis, whose extent is that of the named axis, becomes the named axis, which becomes the axis
    concat_axis.
    """
    if tiled:
        raise NotImplementedError("all_to_all: tiled=True is not supported; reshape x and the result")
    size = _extent(axis_name, "all_to_all")

    def swapped(leaf):
        leaf = _rlx.value(leaf)
        split, concat = split_axis % leaf.ndim, concat_axis % leaf.ndim
        if leaf.shape[split] != size:
            raise ValueError(f"all_to_all: axis {split} has {leaf.shape[split]} entries, the axis {axis_name!r} {size}")
        return _axes.over("swap", leaf, axis_name, "all_to_all", (split, concat))

    return tree.map(swapped, x)
