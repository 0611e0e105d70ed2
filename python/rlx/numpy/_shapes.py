"""Shapes, axes and order: functions that move elements and do not compute with them."""

import builtins as _b
import math as _math

from .. import _rlx
from .._indexing import _broadcast_shape
from ._base import array, axes_of, axis_of, cast, constant, dims_of, named, near_diagonal, node, op, reduced
from ._base import refuse_shape, summed, value


@op("x")
def astype(x, dtype, *, copy=True, device=None):
    """x as another dtype (None: float32). Floats become integers by truncation and saturation, and NaN becomes 0. Bool
    is True where x is not zero. copy has no effect: arrays are immutable.
    """
    return cast(value(x), _rlx.dtype("float32" if dtype is None else dtype))


@op("x")
def reshape(x, shape, order="C", *, copy=None):
    """The same elements in another shape. One extent may be -1. order "F": the first axis varies fastest. copy has no
    effect: arrays are immutable.
    """
    if order == "C":
        return _rlx.reshape([x], dims_of(shape))
    if order != "F":
        raise ValueError(f'reshape: order {order!r}; it must be "C" or "F"')
    return transpose(_rlx.reshape([transpose(x)], dims_of(shape)[::-1]))


@op("x")
def ravel(x, order="C"):
    """The elements as a vector."""
    return reshape(x, (-1,), order)


@op("x")
def transpose(x, axes=None):
    """x with its axes permuted; reversed without `axes`."""
    x = value(x)
    perm = list(reversed(range(x.ndim))) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    if axes is not None:
        if len(perm) != x.ndim:
            raise ValueError(f"transpose: {len(perm)} axes for an array with {x.ndim}")
        perm = [p % x.ndim if -x.ndim <= p < x.ndim else p for p in perm]
    return node("transpose", x, perm=perm)


permute_dims = transpose


@op("x")
def matrix_transpose(x):
    """x with its last two axes swapped."""
    x = value(x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: an array with {x.ndim} axes; it needs two or more")
    return swapaxes(x, -1, -2)


@op("x")
def swapaxes(x, axis1, axis2):
    """x with two axes swapped."""
    x = value(x)
    perm = list(range(x.ndim))
    (a,), (b,) = axes_of(axis1, x.ndim, "swapaxes"), axes_of(axis2, x.ndim, "swapaxes")
    perm[a], perm[b] = b, a
    return node("transpose", x, perm=perm)


@op("x")
def moveaxis(x, source, destination):
    """x with axes moved to other positions. The other axes keep their order."""
    x = value(x)
    source = list(source) if isinstance(source, (tuple, list)) else [source]
    destination = list(destination) if isinstance(destination, (tuple, list)) else [destination]
    if len(source) != len(destination):
        raise ValueError("moveaxis: source and destination have different lengths")
    source = [axis_of(a, x.ndim, "moveaxis") for a in source]
    destination = [axis_of(a, x.ndim, "moveaxis") for a in destination]
    if len(set(source)) != len(source) or len(set(destination)) != len(destination):
        raise ValueError("moveaxis: an axis is named twice")
    order = [a for a in range(x.ndim) if a not in source]
    for d, s in sorted(zip(destination, source)):
        order.insert(d, s)
    return node("transpose", x, perm=order)


@op("x")
def rollaxis(x, axis, start=0):
    """x with an axis moved before the axis `start`. moveaxis is clearer."""
    x = value(x)
    axis = axis_of(axis, x.ndim, "rollaxis")
    if not -x.ndim <= start <= x.ndim:
        raise ValueError(f"rollaxis: start {start} is out of range for an array with {x.ndim} axes")
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


@op("x")
def expand_dims(x, axis):
    """x with axes of extent 1 added at the positions `axis` of the result."""
    x = value(x)
    many = axis if isinstance(axis, (tuple, list)) else (axis,)
    places = axes_of(many, x.ndim + len(many), "expand_dims")
    shape = list(x.shape)
    for p in places:
        shape.insert(p, 1)
    return _rlx.reshape([x], tuple(shape))


@op("x")
def squeeze(x, axis=None):
    """x without axes of extent 1."""
    x = value(x)
    if axis is None:
        drop = [i for i, d in enumerate(x.shape) if d == 1]
    else:
        drop = axes_of(axis, x.ndim, "squeeze")
        for a in drop:
            if x.shape[a] != 1:
                raise ValueError(f"squeeze: axis {a} has extent {x.shape[a]}, not 1")
    return _rlx.reshape([x], tuple(d for i, d in enumerate(x.shape) if i not in drop))


@op("x")
def broadcast_to(x, shape):
    """x broadcast to a shape."""
    return _rlx.expand([x], dims_of(shape))


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes broadcast to."""
    try:
        return _broadcast_shape([dims_of(s) for s in shapes] or [()])
    except IndexError as e:
        raise ValueError(str(e).replace("index arrays of ", "")) from None


@op("arrays")
def broadcast_arrays(*arrays):
    """The arrays, broadcast to one shape."""
    values = [value(a) for a in arrays]
    shape = broadcast_shapes(*[v.shape for v in values])
    return [_rlx.expand([v], shape) for v in values]


def _at_least(name, text, widen):
    @op("arrays")
    def function(*arrays):
        out = [_rlx.reshape([v], widen(v.shape)) if widen(v.shape) != v.shape else v for v in map(value, arrays)]
        return out[0] if len(out) == 1 else out

    return named(function, name, text)


atleast_1d = _at_least("atleast_1d", "Arrays with at least one axis.", lambda s: s if s else (1,))
atleast_2d = _at_least(
    "atleast_2d", "Arrays with at least two axes; new axes are first.", lambda s: (1,) * (2 - len(s)) + s
)
atleast_3d = _at_least(
    "atleast_3d",
    "Arrays with at least three axes: vectors become [1, n, 1], matrices [m, n, 1].",
    lambda s: {0: (1, 1, 1), 1: (1, *s, 1), 2: (*s, 1)}.get(len(s), s),
)


@op("x")
def flip(x, axis=None):
    """x with the order along axes reversed."""
    x = value(x)
    axes = axes_of(axis, x.ndim, "flip")
    return node("reverse", x, axes=axes) if axes else x


@op("x")
def flipud(x):
    """x with its rows in reverse order."""
    return flip(x, 0)


@op("x")
def fliplr(x):
    """x with its columns in reverse order."""
    return flip(x, 1)


@op("x")
def rot90(x, k=1, axes=(0, 1)):
    """x rotated k times by 90 degrees, from the first towards the second of two axes."""
    x = value(x)
    if len(axes) != 2:
        raise ValueError(f"rot90: {len(axes)} axes; it needs two")
    (a,), (b,) = axes_of(axes[0], x.ndim, "rot90"), axes_of(axes[1], x.ndim, "rot90")
    if a == b:
        raise ValueError("rot90: both axes are the same")
    k %= 4
    if k == 0:
        return x
    if k == 2:
        return flip(x, (a, b))
    return swapaxes(flip(x, b), a, b) if k == 1 else flip(swapaxes(x, a, b), b)


@op("x", "shift")
def roll(x, shift, axis=None):
    """x with its elements shifted along axes. Elements that leave at one end enter at the other. shift may be an
    array.
    """
    x = value(x)
    if axis is None:
        if isinstance(shift, _rlx.Value) and shift.ndim:
            raise ValueError("roll: several shifts need `axis`")
        return _rlx.reshape([roll(_rlx.reshape([x], (-1,)), shift, 0)], x.shape)
    axes = [axis_of(a, x.ndim, "roll") for a in (axis if isinstance(axis, (tuple, list)) else [axis])]
    shifts = cast(shift, "int32")
    if shifts.ndim > 1 or (shifts.ndim == 1 and len(axes) not in (1, shifts.shape[0]) and shifts.shape[0] != 1):
        raise ValueError(f"roll: shifts of shape {shifts.shape} do not match {len(axes)} axes")
    shifts = _rlx.expand([shifts], (_b.max(len(axes), shifts.shape[0] if shifts.ndim else 1),))
    axes = axes * (shifts.shape[0] if len(axes) == 1 else 1)
    for k, a in enumerate(axes):
        n = x.shape[a]
        if n == 0:
            continue
        places = node("mod", node("sub", node("iota", dims=(n,), dtype="int32", axis=0), shifts[k]), n)
        x = node("gather", x, places, axes=[a], mode="clamp")
    return x


def repeat(x, repeats, axis=None, total_repeat_length=None):
    """x with every element repeated. repeats is an integer or one for each element. Traced repeats need
    total_repeat_length, the extent of the result; it is cut to it or filled up with the last element.
    """
    if not isinstance(repeats, _rlx.Value):
        return _repeat(x, repeats, axis, total_repeat_length)
    if total_repeat_length is None:
        refuse_shape("repeat of traced repeats", "total_repeat_length=, the extent of the result")
    return _repeat_traced(x, repeats, axis, total_repeat_length)


@op("x", "repeats")
def _repeat_traced(x, repeats, axis, length):
    x, repeats = value(x), value(repeats)
    if axis is None:
        x, axis = _rlx.reshape([x], (-1,)), 0
    axis = axis_of(axis, x.ndim, "repeat")
    n = x.shape[axis]
    if repeats.ndim > 1 or repeats.dtype.kind not in "iu" or (repeats.ndim and repeats.shape[0] not in (1, n)):
        raise ValueError(f"repeat: counts {repeats.dtype.name}{list(repeats.shape)} for {n} elements; give one or {n}")
    counts = _rlx.expand([_rlx.reshape([cast(repeats, "int32")], (-1,))], (n,))
    ends = node("cumulative_sum", counts, axis=0)
    places = node("iota", dims=(length,), dtype="int32", axis=0)
    before = node("le", _rlx.reshape([ends], (1, n)), _rlx.reshape([places], (length, 1)))
    at = node("reduce_sum", cast(before, "int32"), axes=[1], keep_dims=False)
    return node("gather", x, node("min", at, n - 1), axes=[axis], mode="clamp")


@op("x")
def _repeat(x, repeats, axis=None, total_repeat_length=None):
    x = value(x)
    if axis is None:
        x, axis = _rlx.reshape([x], (-1,)), 0
    axis = axis_of(axis, x.ndim, "repeat")
    counts = list(repeats) if isinstance(repeats, tuple) else [repeats]
    n = x.shape[axis]
    if len(counts) != 1 and len(counts) != n:
        raise ValueError(f"repeat: {len(counts)} counts do not match {n} elements")
    if _b.any(c < 0 for c in counts):
        raise ValueError("repeat: a negative count")
    if len(counts) == 1 and total_repeat_length is None:
        wide = x.shape[: axis + 1] + (counts[0],) + x.shape[axis + 1 :]
        x = _rlx.expand([expand_dims(x, axis + 1)], wide)
        return _rlx.reshape([x], wide[:axis] + (n * counts[0],) + wide[axis + 2 :])
    counts = counts * n if len(counts) == 1 else counts
    places = [i for i, c in enumerate(counts) for _ in range(c)]
    if total_repeat_length is not None:
        places = (places + [places[-1] if places else 0] * total_repeat_length)[:total_repeat_length]
    return pick(x, places, axis)


def pick(x, places, axis):
    """x at known indices along an axis."""
    return node("gather", x, constant(places, "int32") if places else filled_places(), axes=[axis], mode="clamp")


def filled_places():
    """No indices."""
    return _rlx.expand([constant(0, "int32")], (0,))


@op("x")
def tile(x, reps):
    """x repeated along each axis."""
    x = value(x)
    reps = dims_of(reps)
    rank = _b.max(len(reps), x.ndim)
    reps = (1,) * (rank - len(reps)) + tuple(reps)
    shape = (1,) * (rank - x.ndim) + tuple(x.shape)
    x = _rlx.reshape([x], tuple(v for d in shape for v in (1, d)))
    x = _rlx.expand([x], tuple(v for r, d in zip(reps, shape) for v in (r, d)))
    return _rlx.reshape([x], tuple(r * d for r, d in zip(reps, shape)))


@op("x")
def resize(x, new_shape):
    """The elements of x in a new shape, repeated from the start if needed."""
    x = ravel(x)
    new_shape = dims_of(new_shape)
    size, n = _math.prod(new_shape), x.shape[0]
    if _b.any(d < 0 for d in new_shape):
        raise ValueError(f"resize: a negative extent in {new_shape}")
    if size == 0 or n == 0:
        return _rlx.expand([constant(0, x.dtype)], new_shape)
    return _rlx.reshape([tile(x, -(-size // n))[:size]], new_shape)


@op("x")
def size_of(x, axis):
    """The extent of an axis as an int64 value. A symbolic extent becomes its value in the current run."""
    return _rlx.dim_size([value(x)], axis)


def _has_shape(x):
    return x if hasattr(x, "shape") else array(x)


def shape(x):
    """The shape of x."""
    return tuple(_has_shape(x).shape)


def ndim(x):
    """The number of axes of x."""
    return len(shape(x))


def size(x, axis=None):
    """The number of elements of x, or the extent of one axis (or the product of several)."""
    s = shape(x)
    return _math.prod(s if axis is None else [s[a] for a in axes_of(axis, len(s), "size")])


def trim_zeros(x, trim="fb", axis=None):
    """x without the zeros at the front ("f"), the back ("b") or both ends ("fb") of its axes, or of those that `axis`
    names. It cannot be used in compiled functions, because the number of zeros depends on values.
    """
    if not isinstance(trim, str) or trim.lower() not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros: trim {trim!r}; it must be 'f', 'b' or 'fb'")
    if _rlx.tracing() or isinstance(x, _rlx.Value):
        refuse_shape("trim_zeros", "a slice, x[2:-2]")
    x = array(x)
    if x.ndim == 0:
        return x
    places = [p.tolist() for p in x.nonzero()]
    trim, trimmed = trim.lower(), axes_of(axis, x.ndim, "trim_zeros")
    if not places[0]:
        return x[tuple(slice(0, 0) if a in trimmed else slice(None) for a in range(x.ndim))]
    ends = [(_b.min(p) if "f" in trim else None, _b.max(p) + 1 if "b" in trim else None) for p in places]
    return x[tuple(slice(*e) if a in trimmed else slice(None) for a, e in enumerate(ends))]


# -- triangles and diagonals --


@op("x")
def tril(x, k=0):
    """x with zeros above the k-th diagonal."""
    return _triangle(x, k, "ge")


@op("x")
def triu(x, k=0):
    """x with zeros below the k-th diagonal."""
    return _triangle(x, k, "lt")


def _triangle(x, k, keep):
    x = value(x)
    if x.ndim < 2:
        raise ValueError(f"the triangle of an array with {x.ndim} axes")
    rows = node("iota", dims=x.shape[-2:], dtype="int32", axis=0)
    columns = node("iota", dims=x.shape[-2:], dtype="int32", axis=1)
    k = near_diagonal(k, *x.shape[-2:])
    rows = node("add", rows, k if keep == "ge" else k - 1)
    return node("where", node(keep, rows, columns), x, constant(0, x.dtype))


@op("x")
def diagonal(x, offset=0, axis1=0, axis2=1):
    """The elements x[i, i + offset] along two axes, as the last axis."""
    x = value(x)
    if x.ndim < 2:
        raise ValueError(f"diagonal of an array with {x.ndim} axes")
    (axis1,), (axis2,) = axes_of(axis1, x.ndim, "diagonal"), axes_of(axis2, x.ndim, "diagonal")
    if axis1 == axis2:
        raise ValueError("diagonal: both axes are the same")
    x = transpose(x, [a for a in range(x.ndim) if a not in (axis1, axis2)] + [axis1, axis2])
    n, m = x.shape[-2:]
    offset = near_diagonal(offset, n, m)
    row, column = _b.max(-offset, 0), _b.max(offset, 0)
    count = _b.max(0, _b.min(n - row, m - column))
    i = node("iota", dims=(count,), dtype="int32", axis=0)
    axes = [x.ndim - 2, x.ndim - 1]
    return node("gather", x, node("add", i, row), node("add", i, column), axes=axes, mode="clamp")


@op("x")
def diag(x, k=0):
    """The k-th diagonal of a matrix, or the matrix with x on its k-th diagonal."""
    x = value(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag: an array with {x.ndim} axes; it must have one or two")
    low, high = _b.max(k, 0), _b.max(-k, 0)
    row = expand_dims(
        _rlx.pad([x, constant(0, x.dtype)], [low], [high], [0]), 0
    )  # a row with the elements in their columns
    n = row.shape[1]
    rows = node("iota", dims=(n, n), dtype="int32", axis=0)
    columns = node("iota", dims=(n, n), dtype="int32", axis=1)
    return node("where", node("eq", node("add", rows, k), columns), row, constant(0, x.dtype))


@op("x")
def diagflat(x, k=0):
    """The matrix with the elements of x on its k-th diagonal."""
    return diag(ravel(x), k)


@op("x")
def trace(x, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum of a diagonal."""
    return reduced(summed(diagonal(x, offset, axis1, axis2), dtype), "sum", -1, False, "trace")


@op("x", "val")
def fill_diagonal(x, val, wrap=False, inplace=False):
    """x with `val` on its main diagonal, as a new array. val is repeated if it is shorter."""
    if inplace:
        raise ValueError("fill_diagonal: arrays are immutable; use inplace=False and the result")
    x = value(x)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) != 1):
        raise ValueError(f"fill_diagonal: shape {x.shape}; it must be a matrix, or have axes of equal extent")
    width = x.shape[-1]
    if x.ndim == 2:
        stride, end = width + 1, _math.prod(x.shape) if wrap else width * width
    else:
        stride, end = _b.sum(width**k for k in range(x.ndim)), _math.prod(x.shape)
    count = len(range(0, _b.min(end, _math.prod(x.shape)), stride))
    flat = _rlx.reshape([x], (-1,))
    places = node("mul", node("iota", dims=(count,), dtype="int32", axis=0), stride)
    values = _rlx.expand([value(val)], (1,)) if value(val).ndim == 0 else ravel(val)
    if not count:
        return x
    out = node("scatter_set", flat, places, cast(resize(values, (count,)), x.dtype), axes=[0], mode="drop")
    return _rlx.reshape([out], x.shape)
