"""Sorting, searching, selection and indices. Functions whose result size depends on values take `size` inside
compiled functions.
"""

import builtins as _b
import math as _math

from .. import _rlx
from .._indexing import filler
from .._op import _as_array
from ._base import array, as_index, axis_of, cast, constant, filled, held, index_round, int_static
from ._base import node, op, refuse_shape, truth, typed, value
from ._complex import parts
from ._creation import zeros
from ._joining import stack
from ._reductions import sum
from ._shapes import broadcast_shapes, broadcast_to, ravel, reshape, resize
from ._ufuncs import isnan

# -- sorting --


def _check_kind(kind, what):
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise ValueError(f"{what}: kind {kind!r}; it must be one of quicksort, mergesort, heapsort and stable")


def _flat_or(x, axis, what):
    x = value(x)
    if axis is None:
        return _rlx.reshape([x], (-1,)), 0
    if x.ndim == 0:
        raise ValueError(f"{what} of a scalar along axis {axis}")
    return x, axis_of(axis, x.ndim, what)


@op("x")
def sort(x, axis=-1, *, kind=None, descending=False, stable=True):
    """x sorted along an axis (None: flattened). NaN is last, or first in descending order. Sorting is always stable;
    kind has no effect.
    """
    _check_kind(kind, "sort")
    x, axis = _flat_or(x, axis, "sort")
    if x.dtype.kind == "c":
        order = _complex_order(x, axis)
        return _rlx.take_along_axis([x, order], axis)
    return _rlx.sort([x], axis, descending)


@op("x")
def argsort(x, axis=-1, *, kind=None, descending=False, stable=True, dtype=None):
    """The indices that sort x along an axis, int32 or of an integer dtype. Equal elements keep their order; kind has no
    effect.
    """
    _check_kind(kind, "argsort")
    x, axis = _flat_or(x, axis, "argsort")
    out = _complex_order(x, axis) if x.dtype.kind == "c" else _rlx.argsort([x], axis, descending)
    if dtype is None:
        return out
    if _rlx.dtype(dtype).kind not in "iu":
        raise TypeError(f"argsort: the dtype {_rlx.dtype(dtype).name} of indices; it must be an integer dtype")
    return cast(out, dtype)


def _complex_order(x, axis):
    """By real part, then by imaginary part; last, as in NumPy, those with a NaN there, in the real part behind those
    in the imaginary part.
    """
    re, im = parts(x)
    absent = node("add", node("mul", cast(node("ne", re, re), "int32"), 2), cast(node("ne", im, im), "int32"))
    return lexsort((im, re, absent), axis)


@op("x")
def sort_complex(x):
    """The elements as complex numbers, sorted by real part, then by imaginary part."""
    x = value(x)
    return sort(x if x.dtype.kind == "c" else cast(x, "complex128" if x.dtype.name == "float64" else "complex64"), -1)


@op("*keys")
def lexsort(keys, axis=-1):
    """The indices that sort by the last key, then by the one before, and so on, int32."""
    keys = [value(k) for k in keys]
    if not keys:
        raise ValueError("lexsort: no keys")
    if keys[0].ndim == 0:
        return constant(0, "int32")
    axis = axis_of(axis, keys[0].ndim, "lexsort")
    order = _rlx.argsort([keys[0]], axis, False)
    for k in keys[1:]:
        again = _rlx.argsort([_rlx.take_along_axis([k, order], axis)], axis, False)
        order = _rlx.take_along_axis([order, again], axis)
    return order


@op("x")
def partition(x, kth, axis=-1):
    """x with element kth in its sorted position, no larger element before it and no smaller one after it. The result is
    x sorted.
    """
    _check_kth(*_flat_or(x, axis, "partition"), kth)
    return sort(x, axis)


@op("x")
def argpartition(x, kth, axis=-1):
    """The indices from which partition takes its elements."""
    _check_kth(*_flat_or(x, axis, "argpartition"), kth)
    return argsort(x, axis)


def _check_kth(x, axis, kth):
    for k in kth if isinstance(kth, tuple) else (kth,):
        if not -x.shape[axis] <= k < x.shape[axis]:
            raise ValueError(f"partition: kth {k} of {x.shape[axis]} elements")


# -- searching --


def _less(a, b):
    """a < b with NaN above all numbers."""
    if a.dtype.kind != "f":
        return node("lt", a, b)
    return node("bit_or", node("lt", a, b), node("bit_and", isnan(b), node("not", isnan(a))))


@op("a", "v", "sorter")
def searchsorted(a, v, side="left", sorter=None, *, method="scan"):
    """The indices at which v must be inserted into the sorted vector a, int32: before equal elements, or after them
    with side "right". method, a hint of JAX, has no effect.
    """
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side {side!r}; it must be "left" or "right"')
    a, v = typed(a, v)
    if a.ndim != 1:
        raise ValueError(f"searchsorted: a has {a.ndim} axes; it must be a vector")
    if a.dtype.kind == "c":
        raise TypeError("searchsorted: complex numbers have no order")
    if sorter is not None:
        a = a[value(sorter)]
    n = a.shape[0]
    # A binary search without branches. `left` candidates begin at `place`. If the middle element comes before v, the
    # second half is left, else the first. Elements are read from a[half - 1:], so that `place` is the index.
    place, left = filled(v.shape, 0, "int32"), n + 1
    while left > 1:
        half = left // 2
        at = node("gather", a[half - 1 :], place, axes=[0], mode="clamp")
        goes = _less(at, v) if side == "left" else node("not", _less(v, at))
        place = node("where", goes, node("add", place, half), place)
        left -= half
    return place


@op("x", "bins")
def digitize(x, bins, right=False):
    """The bin of each element: i with bins[i-1] <= x < bins[i] (right: < and <=). bins may descend."""
    bins = value(bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins with {bins.ndim} axes; they must be a vector")
    n = bins.shape[0]
    if n == 0:
        return filled(value(x).shape, 0, "int32")
    rising = searchsorted(bins, x, side="left" if right else "right")
    falling = node("sub", n, searchsorted(node("reverse", bins, axes=[0]), x, side="left" if right else "right"))
    return node("where", node("ge", bins[n - 1], bins[0]), rising, falling)


# -- selection --


@op("condition", "x", "y")
def _where(condition, x, y):
    return node("where", truth(condition), x, y)


def where(condition, x=None, y=None, *, size=None, fill_value=None):
    """x where condition is True, else y; all three broadcast. With a condition alone, the indices where it is True:
    nonzero.
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("where: give both x and y, or neither")
    return _where(condition, x, y)


@op("*condlist", "*choicelist", "default")
def select(condlist, choicelist, default=0):
    """For each element, the choice of the first condition that is True, else the default."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"select: {len(condlist)} conditions and {len(choicelist)} choices")
    dtype, weak = _rlx.result_type(*choicelist, default)
    out = cast(default, dtype)
    for condition, choice in zip(reversed(list(condlist)), reversed(list(choicelist))):
        out = node("where", truth(condition), cast(choice, dtype), out)
    return broadcast_to(out, broadcast_shapes(out.shape, *[value(c).shape for c in condlist]))


def choose(a, choices, mode="raise"):
    """For each element, the element of choices[a]. mode "wrap" or "clip" handles numbers out of range; "raise" refuses
    them, which compiled functions cannot.
    """
    if mode not in ("wrap", "clip", "raise"):
        raise ValueError(f'choose: mode {mode!r}; it must be "clip" or "wrap"')
    if mode == "raise":
        if not _outside(held(a)):
            raise ValueError(
                'choose: mode="raise" needs the values of `a`, which a compiled function does not know: use mode='
                '"clip" or "wrap"'
            )
        a, n = held(a), len(choices)
        if a.size and (int(a.min()) < 0 or int(a.max()) >= n):
            raise ValueError(f'invalid entry in choose: there are {n} choices; mode="clip" or "wrap" takes all indices')
        mode = "clip"
    return _choose(a, [held(c) for c in choices], mode)


@op("a", "*choices")
def _choose(a, choices, mode):
    a, choices = value(a), [value(c) for c in choices]
    n = len(choices)
    a = index_round(a, n) if mode == "wrap" else node("max", node("min", as_index(a), n - 1), 0)
    dtype, _ = _rlx.result_type(*choices)
    out = cast(choices[0], dtype)
    for k, c in enumerate(choices[1:], 1):
        out = node("where", node("eq", a, k), cast(c, dtype), out)
    return broadcast_to(out, broadcast_shapes(a.shape, *[c.shape for c in choices]))


# -- elements at indices --


@op("x", "indices", "fill_value")
def take(x, indices, axis=None, mode=None, fill_value=None):
    """Elements of x along an axis; negative indices count from the end. mode "fill" (the default) gives fill_value for
    other indices out of range: by default NaN, the least signed integer, the largest unsigned integer, or True. mode
    "clip" clamps all indices, negative ones to 0; "wrap" wraps around.
    """
    x, indices = value(x), value(indices)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"take: indices of dtype {indices.dtype.name}; they must be integers")
    if axis is None:
        x, axis = _rlx.reshape([x], (-1,)), 0
    axis = axis_of(axis, x.ndim, "take")
    n = x.shape[axis]
    mode = mode or "fill"
    if mode not in ("clip", "wrap", "fill"):
        raise ValueError(f"take: mode {mode!r}; it must be one of clip, wrap and fill")
    if fill_value is not None and mode != "fill":
        raise ValueError(f"take: fill_value cannot be used with mode {mode!r}")
    if n == 0 and indices.size:
        raise IndexError("take: the axis has no entries")
    if mode == "wrap":
        return node("gather", x, index_round(indices, n), axes=[axis], mode="clamp")
    indices = as_index(indices)
    if mode == "clip":
        return node("gather", x, indices, axes=[axis], mode="clamp")
    places = node("where", node("lt", indices, 0), node("add", indices, n), indices)
    fill = filler(x.dtype) if fill_value is None else fill_value
    if not isinstance(fill, _rlx.Value) and (fill != fill or float(fill) == fill):
        return node("gather", x, places, axes=[axis], mode="fill", fill=float(fill))
    inside = node("bit_and", node("ge", places, 0), node("lt", places, n))
    out = node("gather", x, places, axes=[axis], mode="clamp")
    inside = reshape(inside, (1,) * axis + tuple(indices.shape) + (1,) * (x.ndim - axis - 1))
    return node("where", inside, out, cast(fill, x.dtype))


@op("x", "indices", "fill_value")
def take_along_axis(x, indices, axis=-1, mode=None, fill_value=None, *, wrap_negative_indices=True):
    """x at one index for each element along an axis; the other axes broadcast. Indices out of range are clamped, as
    with mode "clip". mode "fill" gives fill_value there, by default NaN, the least signed integer, the largest unsigned
    integer, or True; "wrap" wraps around; "one_hot" gives 0. Negative indices count from the end, unless not
    wrap_negative_indices.
    """
    x, indices = value(x), value(indices)
    if axis is None:
        if indices.ndim != 1:
            raise ValueError("take_along_axis: without an axis, indices must be a vector")
        x, axis = ravel(x), 0
    if x.ndim != indices.ndim:
        raise ValueError(f"take_along_axis: {x.ndim} and {indices.ndim} axes; the numbers must be equal")
    axis = axis_of(axis, x.ndim, "take_along_axis")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"take_along_axis: indices of dtype {indices.dtype.name}; they must be integers")
    indices = as_index(indices)
    rest = broadcast_shapes(*[tuple(1 if a == axis else d for a, d in enumerate(v.shape)) for v in (x, indices)])
    x = broadcast_to(x, tuple(x.shape[a] if a == axis else d for a, d in enumerate(rest)))
    indices = broadcast_to(indices, tuple(indices.shape[a] if a == axis else d for a, d in enumerate(rest)))
    mode = "fill" if mode is None and fill_value is not None else mode or "clip"
    if mode not in ("clip", "promise_in_bounds", "fill", "wrap", "one_hot"):
        raise ValueError(
            f"take_along_axis: mode {mode!r}; it must be one of clip, fill, one_hot, promise_in_bounds and wrap"
        )
    n = x.shape[axis]
    if n == 0 and indices.size:
        raise IndexError("take_along_axis: the axis has no entries")
    first = -n if wrap_negative_indices else 0
    if mode == "wrap":
        indices = index_round(indices, n)
    out = _rlx.take_along_axis([x, indices if wrap_negative_indices else node("max", indices, 0)], axis)
    if mode not in ("fill", "one_hot"):
        return out
    inside = node("bit_and", node("ge", indices, first), node("lt", indices, n))
    if mode == "one_hot":
        return node("where", inside, out, constant(0, x.dtype))
    return node("where", inside, out, cast(filler(x.dtype) if fill_value is None else fill_value, x.dtype))


@op("x", "indices", "values")
def put_along_axis(x, indices, values, axis, inplace=False, *, mode=None):
    """x with one element set for each index along an axis, as a new array. Indices out of range are dropped, or as the
    mode of x.at says.
    """
    if inplace:
        raise ValueError("put_along_axis: arrays are immutable; use inplace=False and the result")
    x, indices = value(x), value(indices)
    shape = x.shape
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim, "put_along_axis")
    target = tuple(indices.shape[a] if a == axis else d for a, d in enumerate(x.shape))
    indices = broadcast_to(indices, target)
    values = broadcast_to(cast(values, x.dtype), target)
    index = tuple(indices if a == axis else node("iota", dims=target, dtype="int32", axis=a) for a in range(x.ndim))
    return reshape(x.at[index].set(values, mode=mode), shape)


@op("x", "indices", "values")
def put(x, indices, values, mode="clip", inplace=False):
    """x with values set at flat indices, as a new array. Indices out of range are clamped, wrap around with "wrap", or
    have no effect with mode=None.
    """
    if inplace:
        raise ValueError("put: arrays are immutable; use inplace=False and the result")
    x, indices = value(x), ravel(indices)
    n = _math.prod(x.shape)
    if indices.shape[0] == 0 or n == 0:
        return x
    if mode == "wrap":
        indices = index_round(indices, n)
    elif mode == "clip":
        indices = as_index(indices)
        below = node("lt", indices, 0)
        indices = node("max", node("min", node("where", below, node("add", indices, n), indices), n - 1), 0)
    elif mode is None:
        indices = as_index(indices)
    else:
        raise ValueError(f"put: mode {mode!r}; it must be clip, wrap or None")
    values = cast(values, x.dtype)
    if 0 in values.shape:
        return x
    values = resize(values, indices.shape)
    return reshape(ravel(x).at[indices].set(values), x.shape)


@op("arr", "mask", "vals")
def place(arr, mask, vals, inplace=False):
    """arr with the elements where mask is True set to vals in order, repeated as needed, as a new array."""
    if inplace:
        raise ValueError("place: arrays are immutable; use inplace=False and the result")
    arr, mask = value(arr), ravel(truth(mask))
    vals = ravel(cast(vals, arr.dtype))
    if vals.shape[0] == 0:
        raise ValueError("place: no values")
    rank = node("sub", node("cumulative_sum", cast(mask, "int32"), axis=0), 1)
    picked = node("gather", vals, node("mod", node("max", rank, 0), vals.shape[0]), axes=[0], mode="clamp")
    return reshape(node("where", mask, picked, ravel(arr)), arr.shape)


# -- indices; their number is known outside of compiled functions and given inside --


def _outside(x):
    return not _rlx.tracing() and not isinstance(x, _rlx.Value)


@op("x", "fill_value")
def _nonzero(x, size, fill_value):
    x = truth(x)
    shape = x.shape
    flat = ravel(x)
    n = flat.shape[0]
    if n == 0:
        rank = count = None
        flat_places, inside = filled((size,), 0, "int32"), filled((size,), False, "bool")
    else:
        rank = node("cumulative_sum", cast(flat, "int32"), axis=0)
        count = rank[n - 1]
        slots = node("where", flat, node("sub", rank, 1), size)
        flat_places = node(
            "scatter_set",
            filled((size,), 0, "int32"),
            slots,
            node("iota", dims=(n,), dtype="int32", axis=0),
            axes=[0],
            mode="drop",
        )
        inside = node("lt", node("iota", dims=(size,), dtype="int32", axis=0), count)
    fills = broadcast_to(cast(0 if fill_value is None else fill_value, "int32"), (len(shape),))
    out, step = [], n
    for axis, d in enumerate(shape):
        step = step // d if d else 1
        k = node("mod", node("div", flat_places, _b.max(step, 1)), _b.max(d, 1))
        out.append(node("where", inside, k, fills[axis]))
    return tuple(out)


@op("x")
def _how_many(x):
    return sum(truth(x), None, "int32")


def nonzero(x, *, size=None, fill_value=None):
    """The indices where x is not zero, one int32 vector for each axis. Inside compiled functions `size` is needed: the
    vectors are cut to it, or filled up with fill_value (0).
    """
    if size is None:
        if not _outside(x):
            refuse_shape(
                "nonzero", "size=, the number of indices, or use rlx.numpy.where(mask, x, 0), which keeps the shape"
            )
        size = int(_how_many(x))
    if (x.ndim if hasattr(x, "ndim") else array(x).ndim) == 0:
        raise ValueError("nonzero of a scalar: use atleast_1d")
    return _nonzero(x, int_static(size, "nonzero: size"), fill_value)


def flatnonzero(x, *, size=None, fill_value=None):
    """The indices in ravel(x) where x is not zero; see nonzero."""
    return nonzero(ravel(x), size=size, fill_value=fill_value)[0]


def argwhere(x, *, size=None, fill_value=None):
    """The indices where x is not zero, as rows of coordinates; see nonzero."""
    if (x.ndim if hasattr(x, "ndim") else array(x).ndim) == 0:
        if size is None and not _outside(x):
            refuse_shape("argwhere", "size=")
        count = int(bool(x)) if size is None else int_static(size, "argwhere: size")
        return zeros((count, 0), "int32")
    return stack(nonzero(x, size=size, fill_value=fill_value), 1)


def compress(condition, x, axis=None, *, size=None, fill_value=0):
    """The entries of x along an axis where a vector is True. Inside compiled functions they are cut or filled up to
    `size`.
    """
    x, axis = (ravel(x), 0) if axis is None else (held(x), axis)
    if size is None:
        if not _outside(condition):
            refuse_shape("compress", "size=, the number of entries")
        condition = held(condition)
        if condition.ndim == 1 and condition.shape[0] > x.shape[axis] and not condition[x.shape[axis] :].any():
            condition = condition[: x.shape[axis]]
        size = int(_how_many(condition))
    return _compress(condition, x, fill_value, axis, int_static(size, "compress: size"))


@op("condition", "x", "fill_value")
def _compress(condition, x, fill_value, axis, size):
    x, condition = value(x), truth(condition)
    axis = axis_of(axis, x.ndim, "compress")
    if condition.ndim != 1 or condition.shape[0] > x.shape[axis]:
        raise ValueError(
            f"compress: a condition of shape {condition.shape}; it must be a vector of at most {x.shape[axis]} elements"
        )
    if x.shape[axis] == 0:
        none = tuple(size if a == axis else d for a, d in enumerate(x.shape))
        return _rlx.expand([cast(fill_value, x.dtype)], none)
    (places,) = _nonzero(condition, size, x.shape[axis])
    return take(x, places, axis, "fill", fill_value)


def extract(condition, x, *, size=None, fill_value=0):
    """The elements of x where a condition with its shape is True. Inside compiled functions they are cut or filled up
    to `size`.
    """
    return compress(ravel(condition), x, size=size, fill_value=fill_value)


def top_k(a, k, *, axis=-1, mode="largest", sorted=True):
    """(the k largest or smallest elements along an axis, their indices as int32), in order, whatever `sorted` says."""
    if mode not in ("largest", "smallest"):
        raise ValueError(f'top_k: mode {mode!r}; it must be "largest" or "smallest"')
    a = held(a)
    axis, k = axis_of(axis, a.ndim, "top_k"), int_static(k, "top_k: k")
    if not 0 <= k <= a.shape[axis]:
        raise ValueError(f"top_k: k = {k} of {a.shape[axis]} elements along axis {axis}")
    chosen = (slice(None),) * axis + (slice(0, k),)
    places = argsort(a, axis, descending=mode == "largest")[chosen]
    return take_along_axis(a, places, axis), places


# -- flat indices --


def _coordinates(x, what):
    x = value(_as_array(x))
    if x.dtype.kind not in "iu":
        raise TypeError(f"{what}: indices of dtype {x.dtype.name}; they must be integers")
    return x


def _wide_for(total, x):
    """Integers as indices with a dtype that can index an array with `total` elements."""
    x = as_index(x)
    return cast(x, "int64") if isinstance(total, int) and total >= 2**31 else x


@op("indices")
def unravel_index(indices, shape):
    """The coordinates of flat indices in a shape, of the dtype of the indices. Those out of range are clamped."""
    indices = _coordinates(indices, "unravel_index")
    shape = shape if isinstance(shape, tuple) else (shape,)
    total = _math.prod(shape)
    dtype = indices.dtype
    indices = _wide_for(total, indices)
    indices = node("where", node("lt", indices, 0), node("add", indices, total), indices)
    indices = node("max", node("min", indices, total - 1), 0)
    out = []
    for d in reversed(shape):
        out.append(cast(node("mod", indices, d), dtype))
        indices = node("div", indices, d)
    return tuple(reversed(out))


def ravel_multi_index(multi_index, dims, mode="raise", order="C", *, dtype=None):
    """The flat indices of coordinates in a shape, of an integer dtype. mode "clip" or "wrap" handles coordinates out of
    range, "ignore" takes them as they are; "raise" refuses them, which compiled functions cannot.
    """
    if mode == "raise":
        if _rlx.tracing() or _b.any(isinstance(i, _rlx.Value) for i in multi_index):
            raise ValueError(
                'ravel_multi_index: mode="raise" needs the values of coordinates, which a compiled function does not '
                'know: use mode="clip", "wrap" or "ignore"'
            )
        for i, d in zip(multi_index, dims):
            i = held(i)
            if i.size and (int(i.min()) < 0 or int(i.max()) >= d):
                raise ValueError(f"invalid entry in ravel_multi_index: a coordinate is outside of an axis of {d}")
        mode = "ignore"
    return _ravel_multi_index(multi_index, dims, mode, order, dtype)


@op("*multi_index")
def _ravel_multi_index(multi_index, dims, mode, order, dtype):
    if mode not in ("clip", "wrap", "ignore"):
        raise ValueError(f"ravel_multi_index: mode {mode!r}; it must be one of clip, ignore, raise and wrap")
    given = [_coordinates(i, "ravel_multi_index") for i in multi_index]
    if len(given) != len(dims):
        raise ValueError(f"ravel_multi_index: {len(given)} coordinates for {len(dims)} axes")
    total = _math.prod(dims)
    if mode == "wrap":  # a uint64 is wrapped before it is cast to int64
        given = [i if i.dtype.name == "uint64" else _wide_for(total, i) for i in given]
        inside = [index_round(i, d) for i, d in zip(given, dims)]
    elif mode == "ignore":
        inside = [_wide_for(total, i) for i in given]
    else:
        inside = [node("max", node("min", _wide_for(total, i), d - 1), 0) for i, d in zip(given, dims)]
    pairs = list(zip(inside, dims))
    out = None
    for i, d in pairs if order == "C" else reversed(pairs):
        out = i if out is None else node("add", node("mul", out, d), i)
    return out if dtype is None else cast(out, dtype)
