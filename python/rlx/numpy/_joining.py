"""Joining, splitting and padding of arrays; insertion and deletion of elements."""

import builtins as _b

from .. import _rlx
from .._nodes import stacked
from .._op import _as_array
from ._base import axis_of, cast, common, int_static, named, node, op, value
from ._quantiles import quantiles
from ._ranges import spaced
from ._reductions import max, mean, min
from ._shapes import broadcast_to, expand_dims, flip, moveaxis, pick, ravel, reshape
from ._ufuncs import rint


def _values(arrays, what):
    if isinstance(arrays, (_rlx.Array, _rlx.Value)):
        arrays = list(arrays)
    if not arrays:
        raise ValueError(f"{what}: no arrays")
    return [value(_as_array(a)) for a in arrays]


@op("*arrays")
def concatenate(arrays, axis=0, dtype=None):
    """Arrays joined along an axis. None joins the flattened arrays."""
    values = common(arrays, "concatenate") if dtype is None else [cast(_as_array(a), dtype) for a in arrays]
    if axis is None:
        values, axis = [_rlx.reshape([v], (-1,)) for v in values], 0
    if values[0].ndim == 0:
        raise ValueError("concatenate: scalars have no axis; use stack")
    return node("concat", *values, axis=axis_of(axis, values[0].ndim, "concatenate"))


concat = concatenate


@op("*arrays")
def stack(arrays, axis=0, dtype=None):
    """Arrays of one shape joined along a new axis."""
    return stacked(_values(arrays, "stack"), axis, dtype)


@op("x")
def unstack(x, axis=0):
    """The arrays x[0], x[1], ... along an axis, as a tuple."""
    x = value(x)
    if x.ndim == 0:
        raise ValueError("unstack of a scalar")
    x = moveaxis(x, axis, 0)
    return tuple(x[i] for i in range(x.shape[0]))


def _stacker(name, text, shape_of, axis_of):
    @op("*arrays")
    def function(arrays, dtype=None):
        values = [reshape(v, shape_of(v.shape)) if shape_of(v.shape) != v.shape else v for v in _values(arrays, name)]
        return concatenate(values, axis_of(values[0]), dtype)

    return named(function, name, text)


vstack = _stacker(
    "vstack", "Arrays joined along axis 0. Vectors are rows.", lambda s: (1,) * (2 - len(s)) + s, lambda v: 0
)
hstack = _stacker(
    "hstack",
    "Arrays joined along axis 1, vectors along axis 0.",
    lambda s: s or (1,),
    lambda v: 0 if v.ndim == 1 else 1,
)
dstack = _stacker(
    "dstack",
    "Arrays joined along axis 2. Vectors are [1, n, 1], matrices [m, n, 1].",
    lambda s: {0: (1, 1, 1), 1: (1, *s, 1), 2: (*s, 1)}.get(len(s), s),
    lambda v: 2,
)


@op("*arrays")
def column_stack(arrays):
    """Arrays joined along axis 1; vectors are columns."""
    return concatenate([reshape(v, (-1, 1)) if v.ndim < 2 else v for v in _values(arrays, "column_stack")], 1)


@op("*arrays")
def block(arrays):
    """Joins nested lists of arrays: the innermost lists along the last axis, the lists around them along the axis
    before it.
    """

    def depth(x):
        return 1 + _b.max((depth(i) for i in x), default=0) if isinstance(x, (list, tuple)) else 0

    def rank(x):
        return _b.max((rank(i) for i in x), default=0) if isinstance(x, (list, tuple)) else value(x).ndim

    levels = depth(arrays)
    if levels == 0:
        return value(arrays)
    total = _b.max(rank(arrays), levels)

    def join(x, level):
        if level == levels:
            if isinstance(x, (list, tuple)):
                raise ValueError("block: lists of different depths")
            v = value(x)
            return reshape(v, (1,) * (total - v.ndim) + tuple(v.shape))
        if not isinstance(x, (list, tuple)):
            raise ValueError("block: lists of different depths")
        if not x:
            raise ValueError("block: an empty list")
        return concatenate([join(i, level + 1) for i in x], total - levels + level)

    return join(arrays, 0)


def _parts(count, what):
    count = int_static(count, f"{what}: the number of parts")
    if count > 1 << 16:  # each part is an array
        raise ValueError(f"{what}: {count} parts; the limit is {1 << 16}")
    return count


@op("x")
def split(x, indices_or_sections, axis=0):
    """Splits x along an axis, into a number of equal parts or at the given indices."""
    return _split(x, indices_or_sections, axis, "split", _equal_parts)


def _equal_parts(n, parts):
    if parts <= 0 or n % parts:
        raise ValueError(f"split: {n} entries cannot be split into {parts} equal parts; use array_split")
    return [i * (n // parts) for i in range(parts + 1)]


@op("x")
def array_split(x, indices_or_sections, axis=0):
    """Splits x along an axis. If the parts cannot be equal, the first ones have one more entry."""
    return _split(x, indices_or_sections, axis, "array_split", _unequal_parts)


def _unequal_parts(n, parts):
    if parts <= 0:
        raise ValueError(f"array_split: {parts} parts")
    each, more = n // parts, n % parts
    cuts = [0]
    for i in range(parts):
        cuts.append(cuts[-1] + each + (i < more))
    return cuts


def _split(x, indices_or_sections, axis, what, places_of):
    """x split at the given indices, or at places_of(extent, number of parts)."""
    x = value(x)
    axis = axis_of(axis, x.ndim, what)
    n = x.shape[axis]
    if isinstance(indices_or_sections, (tuple, list)):
        cuts = [0, *indices_or_sections, n]
    else:
        cuts = places_of(n, _parts(indices_or_sections, what))
    return [x[(slice(None),) * axis + (slice(a, b),)] for a, b in zip(cuts, cuts[1:])]


@op("x")
def vsplit(x, indices_or_sections):
    """split along axis 0."""
    return split(x, indices_or_sections, 0)


@op("x")
def hsplit(x, indices_or_sections):
    """split along axis 1, of a vector along axis 0."""
    return split(x, indices_or_sections, 1 if value(x).ndim > 1 else 0)


@op("x")
def dsplit(x, indices_or_sections):
    """split along axis 2."""
    return split(x, indices_or_sections, 2)


@op("x", "values")
def append(x, values, axis=None):
    """x with values appended along an axis. None appends the flattened arrays."""
    return concatenate([x, values], axis)


def _static_places(places, n, what):
    """(indices from 0 on, True if a single index was given)."""
    if isinstance(places, slice):
        return list(range(*places.indices(n))), False
    if isinstance(places, _rlx.Value):
        raise TypeError(
            f"{what}: the shape would depend on the indices, which are a traced value: give Python integers"
        )
    single = not isinstance(places, tuple)
    out = []
    for i in (places,) if single else places:
        i = int_static(i, f"{what}: an index")
        if not -n <= i < n + (what == "insert"):
            raise IndexError(f"{what}: index {i} along an axis with {n} entries")
        out.append(i + n if i < 0 else i)
    return out, single


class _FrozenSlice:
    """A slice as a static argument."""

    def __init__(self, s):
        self.key = (s.start, s.stop, s.step)

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        return isinstance(other, _FrozenSlice) and self.key == other.key

    def indices(self, n):
        return slice(*self.key).indices(n)


def _hashable(obj):
    return _FrozenSlice(obj) if isinstance(obj, slice) else obj


def delete(x, obj, axis=None, *, assume_unique_indices=False):
    """x without the entries at known indices along an axis: an integer, several integers, a slice, or known bools.
    Traced indices need assume_unique_indices, the promise that all of them differ.
    """
    if isinstance(obj, _rlx.Value) and obj.dtype.kind in "iu" and (assume_unique_indices or obj.ndim == 0):
        return _delete_traced(x, obj, axis)
    if hasattr(obj, "ndim") and not isinstance(obj, _rlx.Value) and obj.ndim > 1:
        obj = obj.reshape(-1)
    return _delete(x, _hashable(obj), axis)


@op("x", "obj")
def _delete_traced(x, obj, axis):
    x, obj = value(x), ravel(obj)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim, "delete")
    n, count = x.shape[axis], obj.shape[0]
    obj = node("where", node("lt", obj, 0), node("add", obj, n), obj) if obj.dtype.kind == "i" else obj
    places = node("iota", dims=(n,), dtype="int32", axis=0)
    same = node("eq", reshape(places, (n, 1)), reshape(cast(obj, "int32"), (1, count)))
    gone = cast(node("reduce_max", cast(same, "uint8"), axes=[1], keep_dims=False) if count else places * 0, "bool")
    (kept,) = (_rlx.argsort([cast(gone, "int32")], 0, False)[: n - count],)
    return node("gather", x, kept, axes=[axis], mode="clamp")


@op("x")
def _delete(x, obj, axis):
    x = value(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim, "delete")
    n = x.shape[axis]
    if isinstance(obj, _FrozenSlice):
        gone = list(range(*obj.indices(n)))
    elif isinstance(obj, tuple) and obj and _b.all(isinstance(i, bool) for i in obj):
        if len(obj) != n:
            raise ValueError(f"delete: {len(obj)} bools for {n} entries")
        gone = [i for i, out in enumerate(obj) if out]
    else:
        gone, _ = _static_places(obj, n, "delete")
    gone = set(gone)
    return pick(x, [i for i in range(n) if i not in gone], axis)


def insert(x, obj, values, axis=None):
    """x with values inserted before indices along an axis: an integer, several known integers, or a slice."""
    if isinstance(obj, _rlx.Value) and obj.dtype.kind in "iu" and obj.ndim == 0:
        return _insert_traced(x, values, obj, axis)
    return _insert(x, values, _hashable(obj), axis)


@op("x", "values", "obj")
def _insert_traced(x, values, obj, axis):
    """One insertion, before a traced index."""
    x, obj = value(x), cast(obj, "int32")
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim, "insert")
    n = x.shape[axis]
    values = cast(values, x.dtype)
    if values.ndim < x.ndim:
        values = reshape(values, (1,) * (x.ndim - values.ndim) + tuple(values.shape))
    values = moveaxis(values, 0, axis)  # as in NumPy, the axes of values replace this axis and those after it
    count = values.shape[axis]
    values = broadcast_to(values, tuple(count if a == axis else d for a, d in enumerate(x.shape)))
    start = node("where", node("lt", obj, 0), node("add", obj, n), obj)
    places = node("iota", dims=(n + count,), dtype="int32", axis=0)
    inside = node("add", node("sub", places, start), n)  # places of the values, behind x
    source = node("where", node("lt", places, node("add", start, count)), inside, node("sub", places, count))
    source = node("where", node("lt", places, start), places, source)
    return node("gather", concatenate([x, values], axis), source, axes=[axis], mode="clamp")


@op("x", "values")
def _insert(x, values, obj, axis):
    x = value(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim, "insert")
    n = x.shape[axis]
    places, single = (
        (list(range(*obj.indices(n))), False) if isinstance(obj, _FrozenSlice) else _static_places(obj, n, "insert")
    )
    values = cast(values, x.dtype)
    if len(places) == 1:  # any number of values
        values = expand_dims(values, 0) if values.ndim == 0 else values
        if values.ndim < x.ndim:
            values = reshape(values, (1,) * (x.ndim - values.ndim) + tuple(values.shape))
        if single:  # as in NumPy, the axes of values replace this axis and those after it
            values = moveaxis(values, 0, axis)
        count = values.shape[axis]
        places = places * count
    else:
        count = len(places)
    target = tuple(count if a == axis else d for a, d in enumerate(x.shape))
    values = broadcast_to(values, target)
    order = sorted(range(count), key=lambda k: places[k])
    joined, source, taken = concatenate([x, values], axis), [], 0
    for i in range(n + 1):
        while taken < count and places[order[taken]] == i:
            source.append(n + order[taken])
            taken += 1
        if i < n:
            source.append(i)
    return pick(joined, source, axis)


# -- grids --


@op("arrays")
def meshgrid(*arrays, indexing="xy", sparse=False, copy=True):
    """Arrays of coordinates over the grid of these vectors. With sparse each has one long axis."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing {indexing!r}; it must be "xy" or "ij"')
    values = [ravel(a) for a in arrays]
    n = len(values)
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[0], order[1] = 1, 0
    shape = [1] * n
    for v, axis in zip(values, order):
        shape[axis] = v.shape[0]
    out = []
    for v, axis in zip(values, order):
        v = reshape(v, tuple(v.shape[0] if a == axis else 1 for a in range(n)))
        out.append(v if sparse else _rlx.expand([v], tuple(shape)))
    return out


# -- padding --


def _pairs(width, ndim, what):
    """((before, after), ...) from an int, a pair, or pairs."""
    width = [width] if not isinstance(width, (tuple, list)) else list(width)
    if _b.all(not isinstance(w, (tuple, list)) for w in width):
        width = [tuple(width) if len(width) == 2 else (width[0], width[0])] * ndim
    elif len(width) == 1:
        width = [tuple(width[0]) * (2 if len(width[0]) == 1 else 1)] * ndim
    else:
        width = [tuple(w) * (2 if len(w) == 1 else 1) for w in width]
    if len(width) != ndim:
        raise ValueError(f"{what}: {len(width)} pairs for an array with {ndim} axes")
    return width


def _mirrored(mode, n, low, high, what):
    """The indices of the elements of the padded axis, in an axis with n entries."""
    if n == 0:
        if low or high:
            raise ValueError(f"{what}: mode {mode!r} along an axis without entries")
        return []
    out = []
    for i in range(-low, n + high):
        if mode == "edge":
            out.append(_b.min(_b.max(i, 0), n - 1))
        elif mode == "wrap":
            out.append(i % n)
        else:
            period = 2 * n if mode == "symmetric" else _b.max(2 * n - 2, 1)
            k = i % period
            out.append(k if k < n else period - k - (mode == "symmetric"))
    return out


_STATISTICS = {
    "maximum": lambda x, axis: max(x, axis, keepdims=True),
    "minimum": lambda x, axis: min(x, axis, keepdims=True),
    "mean": lambda x, axis: mean(x, axis, keepdims=True),
    "median": lambda x, axis: quantiles(x, 0.5, axis, True, "midpoint", False),
}


@op("x", "constant_values", "end_values")
def pad(x, pad_width, mode="constant", constant_values=0, end_values=0, stat_length=None, reflect_type="even"):
    """x with elements added before and after it along each axis: ((before, after), ...). Modes: constant
    (constant_values), edge, reflect, symmetric, wrap, linear_ramp (end_values), maximum, minimum, mean, median
    (stat_length), empty.
    """
    x = value(x)
    if isinstance(pad_width, dict):
        raise TypeError("pad: pad_width must be pairs, one for each axis")
    width = _pairs(pad_width, x.ndim, "pad")
    if _b.any(w < 0 for pair in width for w in pair):
        raise ValueError("pad: a negative width; use a slice to remove elements")
    if mode in ("constant", "empty"):
        return _pad_constant(x, width, cast(0 if mode == "empty" else constant_values, x.dtype))
    if mode in ("edge", "wrap", "reflect", "symmetric"):
        if reflect_type not in ("even", "odd"):
            raise ValueError(f"pad: reflect_type {reflect_type!r}; it must be 'even' or 'odd'")
        odd = reflect_type == "odd" and mode in ("reflect", "symmetric")
        for axis, (low, high) in enumerate(width):
            if odd and (low or high):
                x = _pad_odd(x, axis, low, high, mode)
            elif low or high:
                x = pick(x, _mirrored(mode, x.shape[axis], low, high, "pad"), axis)
        return x
    if mode == "linear_ramp":
        ends = broadcast_to(cast(end_values, x.dtype), (x.ndim, 2))
        for axis, (low, high) in enumerate(width):
            x = _ramp(x, axis, low, high, ends[axis, 0], ends[axis, 1])
        return x
    if mode in _STATISTICS:
        lengths = [(None, None)] * x.ndim if stat_length is None else _pairs(stat_length, x.ndim, "pad: stat_length")
        for axis, (low, high) in enumerate(width):
            x = _pad_statistic(x, axis, low, high, lengths[axis], mode)
        return x
    raise ValueError(
        f"pad: mode {mode!r}; it must be one of constant, edge, empty, linear_ramp, maximum, mean, median, minimum, "
        "reflect, symmetric and wrap"
    )


def _pad_odd(x, axis, low, high, mode):
    """x reflected at both ends, with values reflected about the last element."""
    while low or high:
        n = x.shape[axis]
        skip = 1 if mode == "reflect" else 0
        if n <= skip:
            return pick(x, _mirrored("edge", n, low, high, "pad"), axis)
        parts = [x]
        for front in (True, False):
            take = _b.min(low if front else high, n - skip)
            if take == 0:
                continue
            begin = skip if front else n - skip - take
            part = flip(pick(x, list(range(begin, begin + take)), axis), axis)
            edge = pick(x, [0 if front else n - 1], axis)
            parts.insert(0 if front else len(parts), 2 * edge - part)
            low, high = (low - take, high) if front else (low, high - take)
        x = concatenate(parts, axis)
    return x


def _pad_constant(x, width, number):
    if number.ndim == 0:
        return _rlx.pad([x, number], [w[0] for w in width], [w[1] for w in width], [0] * x.ndim)
    numbers = broadcast_to(number, (x.ndim, 2))
    for axis, (low, high) in enumerate(width):
        for side, amount in enumerate((low, high)):
            lows, highs = [0] * x.ndim, [0] * x.ndim
            (highs if side else lows)[axis] = amount
            x = _rlx.pad([x, numbers[axis, side]], lows, highs, [0] * x.ndim)
    return x


def _ramp(x, axis, low, high, first, last):
    def side(edge, end, count):
        edge = edge[(slice(None),) * axis + (0,)]
        dtype = x.dtype if x.dtype.kind in "fc" else "float64"
        ramp, _ = spaced(broadcast_to(end, edge.shape), edge, count, False, dtype, axis)
        return cast(node("floor", ramp) if x.dtype.kind in "iu" else ramp, x.dtype)

    head, n = (slice(None),) * axis, x.shape[axis]
    before = side(x[head + (slice(0, 1),)], first, low)
    behind = node("reverse", side(x[head + (slice(n - 1, n),)], last, high), axes=[axis])
    return concatenate([before, x, behind], axis)


def _pad_statistic(x, axis, low, high, lengths, mode):
    head, n = (slice(None),) * axis, x.shape[axis]

    def side(part, count):
        s = _STATISTICS[mode](part, axis)
        s = cast(rint(s) if x.dtype.kind in "iu" else s, x.dtype)
        return broadcast_to(s, tuple(count if a == axis else d for a, d in enumerate(x.shape)))

    a, b = (n if v is None else _b.min(v, n) for v in lengths)
    return concatenate([side(x[head + (slice(0, a),)], low), x, side(x[head + (slice(n - b, n),)], high)], axis)
