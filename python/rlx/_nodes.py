"""Builders of nodes: they take traced values, Python numbers and arrays, and give traced values."""

from . import _rlx, tree


def extent_value(extent):
    """An extent as a weakly typed value. A symbolic extent becomes its value in the current run."""
    if not isinstance(extent, _rlx.Dim):
        return _rlx.value(extent)
    has_it = _rlx.add_node("iota", (), {"dims": (extent,), "dtype": "int32", "axis": 0})
    return _rlx.dim_size([has_it], 0)._with_weak(True)


def plain_int(x):
    """An integer of NumPy, or an array of one integer, as a Python integer; other objects unchanged."""
    if type(x) is int or isinstance(x, (bool, _rlx.Value, _rlx.Dim)) or getattr(x, "shape", None) != ():
        return x
    return x.__index__() if _rlx.dtype(x.dtype).kind in "iu" else x


_WIDE = {float: "float64", complex: "complex128"}


def number(x, dtype):
    """A Python number as a weak array of this dtype."""
    return _rlx.array_from(x, dtype)._with_weak(True)


def wide_number(x):
    """A Python number with a fraction as a weak array that has all its digits; other objects unchanged."""
    return number(x, _WIDE[type(x)]) if type(x) in _WIDE else x


def is_wide(x):
    """True for arrays and values of float64, but for Python numbers of that dtype."""
    name = getattr(getattr(x, "dtype", None), "name", "")
    return name in ("float64", "complex128") and not getattr(x, "weak_type", False)


def with_wide_numbers(leaves, beside=()):
    """The leaves; beside arrays of float64 Python numbers become weak float64, so that they keep all their digits, as
    in a call of a compiled function. beside: more leaves that are looked at.
    """
    if not any(type(x) in _WIDE for x in leaves):
        return leaves
    if any(map(is_wide, (*leaves, *beside))):
        return [wide_number(x) for x in leaves]
    return leaves


def with_leaves(args, kwargs, static_places, static_names, change):
    """The arguments of a call with change(leaves) for the leaves of those that are not static."""
    places = [i for i in range(len(args)) if i not in static_places]
    names = [k for k in kwargs if k not in static_names]
    leaves, treedef = tree.flatten([args[i] for i in places] + [kwargs[k] for k in names])
    changed = change(leaves)
    if changed is leaves:
        return args, kwargs
    args, kwargs, parts = list(args), dict(kwargs), treedef.unflatten(changed)
    for i, x in zip(places, parts):
        args[i] = x
    for k, x in zip(names, parts[len(places) :]):
        kwargs[k] = x
    return args, kwargs


def values_of(leaves, beside=()):
    """The leaves as traced values."""
    return [_rlx.value(x) for x in with_wide_numbers(leaves, beside)]


def node(name, *operands, **attrs):
    """The node `name` of the op table over the operands."""
    for i, x in enumerate(operands):
        if type(x) is _rlx.Dim:
            operands = (*operands[:i], extent_value(x), *operands[i + 1 :])
    return _rlx.add_node(name, operands, attrs)


def cast(x, dtype):
    """x as dtype."""
    x = _rlx.value(x)
    dtype = _rlx.dtype(dtype)
    return x._with_weak(False) if x.dtype == dtype else _rlx.add_node("cast", (x,), {"to": dtype})


def as_index(x):
    """Integers as indices: int32, or int64 for wider dtypes. A uint64 beyond the range of int64 becomes the largest
    int64, which is past the end of every axis.
    """
    x = _rlx.value(x)
    if x.dtype.name == "uint64":
        x = node("min", x, 2**63 - 1)
    return x if x.dtype.name in ("int32", "int64") else cast(x, "int64" if x.dtype.itemsize >= 4 else "int32")


def index_round(x, n):
    """Integers as indices that wrap around an axis with n entries."""
    x = _rlx.value(x)
    if x.dtype.name == "uint64":  # as_index would clamp values that exceed int64
        return cast(node("mod", x, n), "int64")
    return node("mod", as_index(x), n)


def inexact(x):
    """x as a value. Integers and bools become float32."""
    x = _rlx.value(x)
    if x.dtype.kind in "fc":
        return x
    return cast(x, "float32")._with_weak(x.weak_type)


class AxisError(ValueError, IndexError):
    """An axis that an array does not have."""


def axes_of(axis, ndim, what):
    """`axis` as a sorted list of axes from 0 on; None: all axes."""
    if axis is None:
        return list(range(ndim))
    out = []
    for a in axis if isinstance(axis, (tuple, list)) else (axis,):
        try:
            a = a.__index__()
        except AttributeError:
            raise TypeError(f"{what}: axis {a!r} is not an integer") from None
        if not -ndim <= a < ndim:
            raise AxisError(f"{what}: axis {a} of an array with {ndim} axes")
        out.append(a % ndim)
    if len(set(out)) != len(out):
        raise ValueError(f"{what}: an axis is named twice in {axis}")
    return sorted(out)


def axis_of(axis, ndim, what):
    """The axis that `axis` names, from 0 on."""
    try:
        axis = axis.__index__()
    except AttributeError:
        raise TypeError(f"{what}: an axis must be one integer, got {axis!r}") from None
    return axes_of(axis, ndim, what)[0]


def dims_of(shape):
    """A shape as a tuple; an integer is a shape with one axis."""
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def constant(x, dtype):
    """A number or a nested list as a value of this dtype."""
    return _rlx.value(_rlx.array_from(x, dtype))._with_weak(False)


def filled(shape, number, dtype):
    """A number in every place of a shape."""
    return _rlx.expand([constant(number, dtype)], dims_of(shape))


def counted(count, dtype, start=0, step=1):
    """start, start + step, ...: `count` integers or floats."""
    x = node("iota", dims=(count,), dtype=dtype, axis=0)
    if step != 1:
        x = node("mul", x, constant(step, dtype))
    return x if start == 0 else node("add", x, constant(start, dtype))


def grid_index(shape, axis):
    """The index along an axis at each place of a shape, int32."""
    return node("iota", dims=tuple(shape), dtype="int32", axis=axis)


def near_diagonal(k, n, m):
    """The number k of a diagonal of an [n, m] array. A diagonal far outside becomes the first one outside, which int32
    holds.
    """
    if isinstance(k, (_rlx.Array, _rlx.Value)) or not hasattr(k, "__index__"):
        return k
    low, high = (d if isinstance(d, int) else 2**30 for d in (n, m))
    return max(-low, min(k.__index__(), high))


def diagonal_ones(n, m, k, dtype):
    """Ones on the k-th diagonal of an [n, m] array of zeros."""
    k = near_diagonal(k, n, m)
    return cast(node("eq", node("add", grid_index((n, m), 0), k), grid_index((n, m), 1)), dtype)


def stacked(values, axis=0, dtype=None):
    """Values of one shape, in their common dtype or in `dtype`, joined along a new axis."""
    if any(v.shape != values[0].shape for v in values):
        raise ValueError(
            f"stack: arrays of shapes {', '.join(sorted({str(v.shape) for v in values}))}; they must have one shape"
        )
    axis = axis_of(axis, values[0].ndim + 1, "stack")
    common, _ = _rlx.result_type(*values)
    values = [cast(v, common) for v in values]
    rows = [_rlx.reshape([v], (*v.shape[:axis], 1, *v.shape[axis:])) for v in values]
    return node("concat", *[cast(r, common if dtype is None else dtype) for r in rows], axis=axis)
