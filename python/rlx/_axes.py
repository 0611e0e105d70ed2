"""Named batch axes: rlx.vmap(f, axis_name="i") lets f sum over its batch with rlx.lax.psum(x, "i")."""

import threading

from . import _rlx, tree
from ._custom import custom_op
from ._jit import ShapeDtype
from ._nodes import node


class _Open(threading.local):
    """The named axes of the vmaps that are being traced or transformed, the innermost last: (name, extent, index)."""

    def __init__(self):
        self.axes = []


_open = _Open()


class Axis:
    """The axis of one vmap while its function is traced and transformed; `name` None: it has no name."""

    def __init__(self, name, size):
        self.name, self.size, self.index = name, size, None

    def __enter__(self):
        _open.axes.append(self)
        return self

    def __exit__(self, *error):
        _open.axes.pop()


def named(name, what):
    """The open axis of this name."""
    for axis in reversed(_open.axes):
        if axis.name is not None and axis.name == name:
            return axis
    names = [a.name for a in _open.axes if a.name is not None]
    raise NameError(
        f"{what}: no axis is named {name!r}"
        + (f"; there are {names}" if names else "")
        + f": give vmap the name: rlx.vmap(f, axis_name={name!r})"
    )


def _last_first(x, count):
    """x with its first axis moved behind `count` others."""
    return node("transpose", x, perm=[*range(1, count + 1), 0, *range(count + 1, x.ndim)])


# For each kind: the result over a batch, of x [size, *shape], the indices [size] and the options.


def _sum_of(x, index, option):
    return _rlx.expand([node("reduce_sum", x, axes=[0], keep_dims=True)], x.shape)


def _max_of(x, index, option):
    return _rlx.expand([node("reduce_max", x, axes=[0], keep_dims=True)], x.shape)


def _min_of(x, index, option):
    return _rlx.expand([node("reduce_min", x, axes=[0], keep_dims=True)], x.shape)


def _gathered(x, index, option):
    whole = _last_first(x, option[0]) if option[0] else x
    return _rlx.expand([_rlx.reshape([whole], (1, *whole.shape))], (x.shape[0], *whole.shape))


def _permuted(x, index, option):
    sources = dict((to, source) for source, to in option)
    places = [sources.get(k, x.shape[0]) for k in range(x.shape[0])]
    return node("gather", x, _rlx.array_from(places, "int32"), axes=[0], mode="fill", fill=0.0)


def _swapped(x, index, option):
    """Element k of axis `split` goes to place k of the named axis, which becomes axis `concat`."""
    split, concat = option
    x = node("transpose", x, perm=[split + 1, *[a for a in range(x.ndim) if a != split + 1]])  # [split, batch, ...]
    order = [0, *range(2, concat + 2), 1, *range(concat + 2, x.ndim)]
    return node("transpose", x, perm=order)


_KINDS = {
    "sum": _sum_of,
    "max": _max_of,
    "min": _min_of,
    "gather": _gathered,
    "permute": _permuted,
    "swap": _swapped,
}


def _shape(x, index, *, kind, name, extent, option):
    if kind == "gather":
        return ShapeDtype((*x.shape[: option[0]], extent, *x.shape[option[0] :]), x.dtype)
    if kind == "swap":
        rest = [d for a, d in enumerate(x.shape) if a != option[0]]
        return ShapeDtype((*rest[: option[1]], extent, *rest[option[1] :]), x.dtype)
    return ShapeDtype(x.shape, x.dtype)


def _batch(operands, batched, size, **attrs):
    x, index = operands
    wide = lambda v: _rlx.expand([_rlx.reshape([v], (1, *v.shape))], (size, *v.shape))  # noqa: E731
    x = x if batched[0] else wide(x)
    if _open.axes[-1].name == attrs["name"]:
        return _KINDS[attrs["kind"]](x, index, attrs["option"])
    # The batch of another vmap: the op applies to each of its rows.
    kind, option = attrs["kind"], attrs["option"]
    if kind in ("gather", "swap"):
        option = [a + 1 for a in option]
    x = _op(x, index[0] if batched[1] else index, **{**attrs, "option": option})
    return x


def _pulled(cotangents, operands, results, **attrs):
    ct, index = cotangents[0], operands[1]
    kind, option = attrs["kind"], attrs["option"]
    if kind == "sum":
        return _op(ct, index, **attrs), None
    if kind == "permute":
        return _op(ct, index, **{**attrs, "option": [[to, source] for source, to in option]}), None
    if kind == "swap":
        return _op(ct, index, **{**attrs, "option": option[::-1]}), None
    if kind == "gather":
        total = _op(ct, index, **{**attrs, "kind": "sum", "option": []})
        return node("gather", total, index, axes=[option[0]], mode="clamp"), None
    raise TypeError(f"p{kind} over the axis {attrs['name']!r} has no derivative")


def _pushed(operands, tangents, results, **attrs):
    if attrs["kind"] in ("max", "min"):
        raise TypeError(f"p{attrs['kind']} over the axis {attrs['name']!r} has no derivative")
    return _op(tangents[0], operands[1], **attrs)


def _unbatched(x, index, **attrs):
    raise NameError(f"an operation over the axis {attrs['name']!r} is left outside of the vmap of this name")


_op = custom_op(
    "rlx.over_axis",
    kernel=_unbatched,
    shape=_shape,
    vjp=_pulled,
    jvp=_pushed,
    batch=_batch,
    doc="An operation over the batch axis of a vmap with axis_name.",
)


def over(kind, x, axis_name, what, option=()):
    """The operation over the named axis, or over several ones after each other, of each leaf of x."""
    names = axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in names:
        axis = named(name, what)
        apply = lambda leaf: _op(  # noqa: E731
            _rlx.value(leaf), axis.index, kind=kind, name=name, extent=axis.size, option=list(option)  # noqa: B023
        )
        x = tree.map(apply, x)
    return x
