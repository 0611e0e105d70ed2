"""Reductions, cumulative reductions and sorts. Results keep the dtype of the operand."""

import builtins
import math

from .. import _rlx, tree
from .. import numpy as rnp
from .._nodes import axes_of, axis_of, cast, node
from .._op import op
from .._jit import cached_live
from .._transforms import vmap
from ..numpy._base import named
from ._control import associative_scan
from ._shapes import pad


def _reduction(name, text, kinds="iufc"):
    @op("operand")
    def function(operand, axes):
        x = _rlx.value(operand)
        if x.dtype.kind not in kinds:
            raise TypeError(f"{name} of {x.dtype.name}; cast it first")
        axes = axes_of(tuple(axes), x.ndim, name)
        return node(name, x, axes=axes, keep_dims=False) if axes else x

    return named(function, name, text)


reduce_sum = _reduction("reduce_sum", "The sum over axes.")
reduce_prod = _reduction("reduce_prod", "The product over axes.")
reduce_max = _reduction("reduce_max", "The maximum over axes.", "iufb")
reduce_min = _reduction("reduce_min", "The minimum over axes.", "iufb")


def _running(name, fn, text):
    @op("operand")
    def function(operand, axis=0, reverse=False):
        x = _rlx.value(operand)
        axis = axis_of(axis, x.ndim, name)
        x = rnp.flip(x, axis) if reverse else x
        out = node("cumulative_" + fn, x, axis=axis)
        return rnp.flip(out, axis) if reverse else out

    return named(function, name, text)


cumsum = _running("cumsum", "sum", "The cumulative sum along an axis, from its end with reverse.")
cumprod = _running("cumprod", "prod", "The cumulative product along an axis, from its end with reverse.")
cummax = _running("cummax", "max", "The cumulative maximum along an axis, from its end with reverse.")
cummin = _running("cummin", "min", "The cumulative minimum along an axis, from its end with reverse.")


@op("operand")
def cumlogsumexp(operand, axis=0, reverse=False):
    """The cumulative log-sum-exp along an axis, from its end with reverse."""
    return associative_scan(rnp.logaddexp, _rlx.value(operand), reverse, axis)


def _place(name, function, text):
    @op("operand")
    def place(operand, axis, index_dtype):
        if _rlx.dtype(index_dtype).kind not in "iu":
            raise TypeError(f"{name}: index_dtype {_rlx.dtype(index_dtype).name}; it must be an integer dtype")
        return cast(function(operand, axis_of(axis, _rlx.value(operand).ndim, name)), index_dtype)

    return named(place, name, text)


argmax = _place("argmax", rnp.argmax, "The index of the first maximum along an axis.")
argmin = _place("argmin", rnp.argmin, "The index of the first minimum along an axis.")


@op("operand")
def top_k(operand, k, *, axis=-1, is_stable=True):
    """[the k largest elements along an axis in descending order, their indices as int32]. Equal elements keep their
    order, whatever is_stable says.
    """
    x = _rlx.value(operand)
    axis = axis_of(axis, x.ndim, "top_k")
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"top_k: {k} of {x.shape[axis]} elements along axis {axis}")
    return [rnp.moveaxis(v, -1, axis) for v in node("top_k", rnp.moveaxis(x, axis, -1), k=k)]


# -- sorts: they are stable, so that further keys can be sorted first --


@op("*operand")
def _sorted(operand, dimension, num_keys):
    xs = [_rlx.value(x) for x in operand]
    if not 1 <= num_keys <= len(xs) or len({x.shape for x in xs}) != 1:
        raise ValueError(
            f"sort: num_keys {num_keys} for operands of shapes {[x.shape for x in xs]}; num_keys must be in "
            f"[1, {len(xs)}], and all shapes must be equal"
        )
    axis = axis_of(dimension, xs[0].ndim, "sort")
    if xs[0].dtype.kind == "c" and len(xs) == 1:
        return [rnp.sort(xs[0], axis)]
    if len(xs) == 1:
        return [_rlx.sort(xs, axis, False)]
    if num_keys == 1 and xs[0].dtype.kind != "c":
        return list(_rlx.sort(xs, axis, False))
    order = None
    for key in reversed(xs[:num_keys]):
        key = key if order is None else rnp.take_along_axis(key, order, axis)
        places = rnp.argsort(key, axis)
        order = places if order is None else rnp.take_along_axis(order, places, axis)
    return [rnp.take_along_axis(x, order, axis) for x in xs]


def sort(operand, dimension=-1, is_stable=True, num_keys=1):
    """Sorts along an axis, in ascending order. Several arrays are sorted together by the first num_keys of them."""
    if isinstance(operand, (tuple, list)):
        return tuple(_sorted(tuple(operand), dimension, num_keys))
    return _sorted((operand,), dimension, num_keys)[0]


def sort_key_val(keys, values, dimension=-1, is_stable=True):
    """(keys sorted along an axis, values in the same order)."""
    return sort((keys, values), dimension)


# -- reductions by a function --


def _elementwise(computation, count):
    """Makes `computation`, a function of trees of scalars, a function of lists of arrays."""

    def run(a, b, treedef):
        size = math.prod(a[0].shape)
        flat = [[rnp.reshape(x, (size,)) for x in xs] for xs in (a, b)]
        joined = vmap(lambda x, y: computation(treedef.unflatten(x), treedef.unflatten(y)))(*flat)
        return [rnp.reshape(j, x.shape) for j, x in zip(tree.leaves(joined), a)]

    return run


def reduce(operands, init_values, computation, dimensions):
    """Reduces axes with computation(a, b), beginning with init_values. The order of the calls is not specified.

    Operands are an array or a tree of arrays of one shape; init_values are scalars in the same tree.
    """
    if not _rlx.tracing():
        run = lambda: lambda xs, first: reduce(xs, first, computation, dimensions)  # noqa: E731
        return cached_live(("reduce", tuple(dimensions)), (computation,), run)(operands, init_values)
    leaves, treedef = tree.flatten(operands)
    xs = [_rlx.value(x) for x in leaves]
    axes = axes_of(tuple(dimensions), xs[0].ndim, "reduce")
    kept = tuple(d for i, d in enumerate(xs[0].shape) if i not in axes)
    count = math.prod(xs[0].shape[a] for a in axes)
    join = _elementwise(computation, len(xs))
    front = [rnp.reshape(rnp.moveaxis(x, tuple(axes), tuple(range(len(axes)))), (count, *kept)) for x in xs]
    rest = []
    while front[0].shape[0] > 1:
        half = front[0].shape[0] // 2
        if front[0].shape[0] % 2:
            rest.append([x[-1] for x in front])
        front = join([x[:half] for x in front], [x[half : 2 * half] for x in front], treedef)
    out = [rnp.broadcast_to(cast(i, x.dtype), kept) for i, x in zip(tree.leaves(init_values), xs)]
    for part in [*([[x[0] for x in front]] if count else []), *rest]:
        out = join(out, part, treedef)
    return treedef.unflatten(out)


def window_padding(padding, shape, window, strides):
    """(low, high) of each axis: as given, or from "VALID", "SAME" (the odd element after) or "SAME_LOWER" (the odd
    element before). `shape` is that of the operand before its dilation, as in JAX.
    """
    if not isinstance(padding, str):
        return [tuple(p) for p in padding]
    if padding.upper() == "VALID":
        return [(0, 0)] * len(shape)
    if padding.upper() not in ("SAME", "SAME_LOWER"):
        raise ValueError(
            f"padding {padding!r}; it must be 'VALID', 'SAME', 'SAME_LOWER' or a (low, high) for each axis"
        )
    out = []
    for d, w, s in zip(shape, window, strides):
        total = builtins.max((-(-d // s) - 1) * s + w - d, 0)
        less, more = total // 2, total - total // 2
        out.append((less, more) if padding.upper() == "SAME" else (more, less))
    return out


def windows(x, window, strides, dilation):
    """For each position in a window, the elements of all windows there: strided slices of x."""
    spans = [(w - 1) * d + 1 for w, d in zip(window, dilation)]
    counts = [(n - span) // s + 1 if n >= span else 0 for n, span, s in zip(x.shape, spans, strides)]
    for flat in range(math.prod(window)):
        starts = []
        for w, d in zip(reversed(window), reversed(dilation)):
            starts.insert(0, flat % w * d)
            flat //= w
        yield x[
            tuple(builtins.slice(a, a + (c - 1) * s + 1 if c else a, s) for a, c, s in zip(starts, counts, strides))
        ]


_WINDOW_KINDS = {rnp.add: "sum", rnp.multiply: "prod", rnp.maximum: "max", rnp.minimum: "min"}


def _window_kind(computation, init_value, dtype):
    """The reduction op for a computation whose init_value is its identity; None for others."""
    kind = _WINDOW_KINDS.get(computation) if getattr(computation, "__hash__", None) else None
    if kind is None or isinstance(init_value, _rlx.Value) or dtype.kind not in "biufc":
        return None
    init = init_value.tolist() if hasattr(init_value, "tolist") else init_value
    if not isinstance(init, (bool, int, float, complex)):
        return None
    if kind in ("sum", "prod"):
        return kind if dtype.kind != "b" and init == (kind == "prod") else None
    if dtype.kind == "c":
        return None
    if dtype.kind in "biu":
        low, high = (0, 1) if dtype.kind == "b" else (0, 2**dtype.bits - 1)
        if dtype.kind == "i":
            low, high = -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
    else:
        low, high = -math.inf, math.inf
    return kind if init == (low if kind == "max" else high) else None


@op("operand")
def _windows_of(operand, kind, window, strides, padding, base, dilation):
    x = _rlx.value(operand)
    ones = (1,) * x.ndim
    spans = [(w - 1) * d + 1 for w, d in zip(window, dilation or ones)]
    pads = window_padding(padding, x.shape, spans, strides or ones)
    out = node(
        "reduce_window_" + kind,
        x,
        window=window,
        strides=strides or (),
        low=[p[0] for p in pads],
        high=[p[1] for p in pads],
        base_dilation=base or (),
        window_dilation=dilation or (),
    )
    return out[0] if kind in ("max", "min") else out


def padtype_to_pads(in_shape, window_shape, window_strides, padding):
    """[(low, high) of each axis]: the padding that "SAME", "SAME_LOWER" or "VALID" means for windows of this shape."""
    sizes = [tuple(builtins.map(int, v)) for v in (in_shape, window_shape, window_strides)]
    return [tuple(builtins.map(int, pair)) for pair in window_padding(padding, *sizes)]


def reduce_window(
    operand,
    init_value,
    computation,
    window_dimensions,
    window_strides=None,
    padding="VALID",
    base_dilation=None,
    window_dilation=None,
):
    """Reduces each window with computation(a, b), beginning with init_value, also the padding. The operand is
    an array or a tree of arrays of one shape; init_value has the same tree.

    add, mul, max and min with their identity as init_value are one op. With other values or functions the size of the
    program grows with the size of the window.
    """
    leaves, treedef = tree.flatten(operand)
    several = len(leaves) != 1 or leaves[0] is not operand
    held = isinstance(operand, (_rlx.Value, _rlx.Array))
    kind = None if several else _window_kind(computation, init_value, (operand if held else rnp.asarray(operand)).dtype)
    if kind:
        lists = [v if v is None else tuple(v) for v in (window_dimensions, window_strides, base_dilation)]
        dilation = window_dilation if window_dilation is None else tuple(window_dilation)
        if len(lists[0]) != len(operand.shape if hasattr(operand, "shape") else rnp.asarray(operand).shape):
            raise ValueError(f"reduce_window: window_dimensions {lists[0]} do not fit the operand's axes")
        padding = padding if isinstance(padding, str) else tuple(map(tuple, padding))
        return _windows_of(operand, kind, lists[0], lists[1], padding, lists[2], dilation)
    sizes = [v if v is None else tuple(v) for v in (window_dimensions, window_strides, base_dilation, window_dilation)]
    padding = padding if isinstance(padding, str) else tuple(map(tuple, padding))
    if not _rlx.tracing():
        static = (computation, *sizes[:2], padding, *sizes[2:])
        run = lambda: lambda x, first: reduce_window(x, first, *static)  # noqa: E731
        return cached_live(("reduce_window", *static[1:]), (computation,), run)(operand, init_value)
    xs, firsts = [_rlx.value(x) for x in leaves], tree.leaves(init_value)
    if len(firsts) != len(xs) or len({x.shape for x in xs}) != 1:
        raise ValueError(
            f"reduce_window: {len(firsts)} initial values, operands of shapes {[x.shape for x in xs]}; there must be "
            "one value for each, and one shape"
        )
    x = xs[0]
    ones = (1,) * x.ndim
    strides, dilation, base = window_strides or ones, window_dilation or ones, base_dilation or ones
    spans = [(w - 1) * d + 1 for w, d in zip(window_dimensions, dilation)]
    pads = window_padding(padding, x.shape, spans, strides)
    pads = [(low, high, b - 1) for (low, high), b in zip(pads, base)]
    firsts = [cast(f, x.dtype) for f, x in zip(firsts, xs)]
    xs = [pad(x, f, pads) for x, f in zip(xs, firsts)]
    out, join = None, _elementwise(computation, len(xs))
    for parts in zip(*(windows(x, window_dimensions, strides, dilation) for x in xs)):
        out = [rnp.broadcast_to(f, p.shape) for f, p in zip(firsts, parts)] if out is None else out
        out = join(out, list(parts), treedef)
    return treedef.unflatten(out)
