"""Distinct values and sets. Functions whose result size depends on values take `size` inside compiled functions."""

import builtins as _b
import math as _math
from collections import namedtuple as _namedtuple

from .. import _control, _rlx
from ._base import axis_of, cast, constant, filled, held, int_static, named, node, op, refuse_shape, typed, value
from ._complex import parts
from ._creation import zeros
from ._joining import concatenate, stack
from ._reductions import _extreme, argmax, sum
from ._search import _nonzero, _outside, argsort, compress, searchsorted, sort, take, where
from ._shapes import expand_dims, moveaxis, ravel, reshape, transpose
from ._ufuncs import equal, greater, isnan, logical_and, logical_not, logical_or, logical_xor


def _starts(ordered, equal_nan=True):
    """True where a new value begins in a sorted vector, or a new row in a sorted matrix."""
    n = ordered.shape[0]
    if n <= 1:
        return filled((n,), True, "bool")
    a, b = ordered[1:], ordered[:-1]
    new = node("ne", a, b)
    if equal_nan:
        new = node("bit_and", new, node("not", node("bit_and", isnan(a), isnan(b))))
    if new.ndim == 2:
        new = _extreme(new, "max", 1, False, False, None)
    return node("concat", filled((1,), True, "bool"), new, axis=0)


def _rows(x, axis):
    """x as a vector, or its entries along an axis as the rows of a matrix of real numbers."""
    if axis is None:
        return ravel(x)
    n, rest = x.shape[axis], _math.prod(x.shape[:axis] + x.shape[axis + 1 :])
    x = moveaxis(x, axis, 0)
    if x.dtype.kind == "c":
        return reshape(stack(parts(x), -1), (n, 2 * rest))
    return reshape(x, (n, rest))


def _order(rows):
    """The indices that sort a vector, or the rows of a matrix by their first elements, then by the second, ..."""
    if rows.ndim == 1:
        return argsort(rows)
    order = node("iota", dims=(rows.shape[0],), dtype="int32", axis=0)
    if 0 in rows.shape:
        return order

    def step(order, column):
        again = _rlx.argsort([node("gather", column, order, axes=[0], mode="clamp")], 0, False)
        return node("gather", order, again, axes=[0], mode="clamp"), None

    return _control.scan(step, order, transpose(rows), reverse=True)[0]


@op("x")
def _distinct(x, axis, equal_nan):
    rows = _rows(value(x), axis)
    if not rows.shape[0]:
        return constant(0, "int32")
    ordered = node("gather", rows, _order(rows), axes=[0], mode="clamp")
    return sum(_starts(ordered, equal_nan), None, "int32")


@op("x", "fill_value")
def _unique(x, fill_value, size, axis, equal_nan):
    x = value(x)
    entries = ravel(x) if axis is None else moveaxis(x, axis, 0)
    rows = _rows(x, axis)
    n = rows.shape[0]
    if n == 0:
        if size:
            raise ValueError("unique: an array without elements needs size=0")
        none = filled((0,), 0, "int32")
        return x if axis is not None else entries, none, reshape(none, x.shape) if axis is None else none, none
    order = _order(rows)
    ordered = node("gather", rows, order, axes=[0], mode="clamp")
    new = _starts(ordered, equal_nan)
    (starts,) = _nonzero(new, size + 1, n)  # one more: the end of the last value
    first, ends = starts[:size], starts[1:]
    known = node("lt", first, n)
    places = node("gather", order, first, axes=[0], mode="clamp")
    picked = node("gather", entries, places, axes=[0], mode="clamp")
    rest = picked[0] if fill_value is None and size else cast(0 if fill_value is None else fill_value, entries.dtype)
    inside = reshape(known, (size,) + (1,) * (entries.ndim - 1))
    values = node("where", inside, picked, rest)
    number = node("sub", node("cumulative_sum", cast(new, "int32"), axis=0), 1)
    inverse = node("scatter_set", filled((n,), 0, "int32"), order, number, axes=[0], mode="drop")
    places = node("where", known, places, places[0] if size else 0)
    counts = node("where", known, node("sub", ends, first), 0)
    if axis is not None:
        return moveaxis(values, 0, axis), places, inverse, counts
    return values, places, reshape(inverse, x.shape), counts


def unique(
    x,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    *,
    equal_nan=True,
    size=None,
    fill_value=None,
    sorted=True,
):
    """The sorted distinct elements of x, or its distinct entries along an axis, with one NaN if equal_nan. The flags
    add their first indices, for each element the index of its value, and the counts. Inside compiled functions `size`
    is needed: the result is cut to it, or filled up with fill_value (the smallest element). The result is sorted
    whatever `sorted` says.
    """
    x = held(x)
    axis = None if axis is None else axis_of(axis, x.ndim, "unique")
    equal_nan = _b.bool(equal_nan)
    if size is None:
        if not _outside(x):
            refuse_shape("unique", "size=, the number of values")
        size = int(_distinct(x, axis, equal_nan))
    out = _unique(x, fill_value, int_static(size, "unique: size"), axis, equal_nan)
    chosen = [o for o, wanted in zip(out[1:], (return_index, return_inverse, return_counts)) if wanted]
    return (out[0], *chosen) if chosen else out[0]


UniqueAllResult = _namedtuple("UniqueAllResult", ("values", "indices", "inverse_indices", "counts"))
UniqueCountsResult = _namedtuple("UniqueCountsResult", ("values", "counts"))
UniqueInverseResult = _namedtuple("UniqueInverseResult", ("values", "inverse_indices"))


def unique_values(x, *, size=None, fill_value=None):
    """The sorted distinct elements of x; NaN differs from NaN. See unique."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def unique_counts(x, *, size=None, fill_value=None):
    """(the sorted distinct elements `values`, their `counts`); NaN differs from NaN. See unique."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(x, *, size=None, fill_value=None):
    """(the sorted distinct elements `values`, for each element the index of its value, `inverse_indices`); NaN differs
    from NaN. See unique.
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_all(x, *, size=None, fill_value=None):
    """(the sorted distinct elements `values`, their first `indices`, for each element the index of its value,
    `inverse_indices`, `counts`); NaN differs from NaN. See unique.
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


@op("element", "test_elements")
def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None, method="auto"):
    """True where an element is among test_elements. assume_unique, kind and method do not change the result."""
    element, tests = typed(element, test_elements)
    tests = ravel(tests)
    n = tests.shape[0]
    if n == 0:
        return filled(element.shape, _b.bool(invert), "bool")
    if element.dtype.kind == "c" or n <= 16:
        same = node("eq", expand_dims(element, -1), tests)
        found = _extreme(same, "max", -1, False, None, None)
    else:
        tests = sort(tests)
        at = node("gather", tests, searchsorted(tests, element), axes=[0], mode="clamp")
        found = node("eq", at, element)
    return node("not", found) if invert else found


def _joined_sets(a, b):
    return concatenate([ravel(held(a)), ravel(held(b))])


def union1d(ar1, ar2, *, size=None, fill_value=None):
    """The sorted distinct elements of both; see unique."""
    return unique(_joined_sets(ar1, ar2), size=size, fill_value=fill_value)


def _set_operation(name, text, keep):
    def function(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
        ar1, ar2 = held(ar1), held(ar2)
        both = ar1 if name == "setdiff1d" else _joined_sets(ar1, ar2)
        if size is None and not (_outside(ar1) and _outside(ar2)):
            refuse_shape(name, "size=, the number of values")
        if assume_unique and name == "setxor1d" and both.size:  # an element is in both if it comes twice
            values = sort(both)
            same = concatenate([zeros((1,), "bool"), equal(values[1:], values[:-1]), zeros((1,), "bool")])
            kept = logical_not(logical_or(same[1:], same[:-1]))
        elif size is None:
            values = unique(both)
            kept = keep(values, ar1, ar2)
        else:
            values, counts = unique(both, return_counts=True, size=both.size)
            kept = logical_and(greater(counts, 0), keep(values, ar1, ar2))
        if size is None:
            return compress(kept, values)
        if fill_value is None:  # the least of the result, which is sorted
            least = name != "setdiff1d" and both.size
            fill_value = where(greater(sum(kept), 0), values[argmax(kept)], 0) if least else 0
        return compress(kept, values, size=size, fill_value=fill_value)

    return named(
        function,
        name,
        text
        + " Inside compiled functions `size` is needed: the result is cut to it, or filled up with fill_value "
        + ("(0)." if name == "setdiff1d" else "(its least value)."),
    )


_intersect1d = _set_operation(
    "intersect1d",
    "The sorted distinct elements that are in both.",
    lambda v, a, b: logical_and(isin(v, a), isin(v, b)),
)


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False, *, size=None, fill_value=None):
    """The sorted distinct elements that are in both; with return_indices also their first indices in ravel(ar1) and in
    ravel(ar2). Inside compiled functions `size` is needed: the result is cut to it, or filled up with fill_value (its
    least value), indices with the number of elements.
    """
    values = _intersect1d(ar1, ar2, size=size, fill_value=fill_value)
    if not return_indices:
        return values
    return (values, *(_first_places(held(a), values) for a in (ar1, ar2)))


def _first_places(x, values):
    """The first index in ravel(x) of each value; the number of elements for a value that is not there."""
    x = ravel(x)
    if 0 in (x.shape[0], values.shape[0]):
        return zeros(values.shape, "int32") + x.shape[0]
    order = argsort(x)
    places = take(order, searchsorted(x, values, sorter=order), mode="clip")
    return where(equal(take(x, places, mode="clip"), values), places, x.shape[0])


setdiff1d = _set_operation(
    "setdiff1d",
    "The sorted distinct elements of the first that are not in the second.",
    lambda v, a, b: isin(v, b, invert=True),
)
setxor1d = _set_operation(
    "setxor1d",
    "The sorted distinct elements that are in exactly one of both.",
    lambda v, a, b: logical_xor(isin(v, a), isin(v, b)),
)
