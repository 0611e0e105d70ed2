"""Functions of jax.lax that are short compositions of others."""

from .. import _rlx, tree
from .. import numpy as rnp
from .._names import a_function
from .._nodes import axis_of, cast, node, plain_int
from .._op import op
from ..numpy._base import both_inexact, named, typed
from ..scipy._special import i0e, i1e, zeta  # noqa: F401
from ._convolutions import _layouts, conv_general_dilated_patches
from ._elementwise import igamma_grad_a
from ._indexed import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, gather, scatter
from ._parallel import _extent, all_to_all, axis_index, psum
from ._reductions import top_k


@op("a", "x")
def random_gamma_grad(a, x, *, dtype=None):
    """The derivative by a of x, a number with the gamma distribution of shape a."""
    a, x = typed(*both_inexact(a, x))
    if dtype is not None:
        a, x = cast(a, dtype), cast(x, dtype)
    log = node("sub", node("mul", node("sub", a, 1), node("log", x)), node("add", x, node("lgamma", a)))
    return node("div", node("neg", igamma_grad_a(a, x)), node("exp", log))


bessel_i0e, bessel_i1e = i0e, i1e


@op("operand")
def approx_max_k(
    operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True
):
    """[the k largest elements along an axis, their indices]; all of them, so the other arguments have no effect."""
    return top_k(operand, k, axis=reduction_dimension)


@op("operand")
def approx_min_k(
    operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True
):
    """[the k smallest elements along an axis, their indices]; all of them, so the other arguments have no effect."""
    values, places = top_k(node("neg", _rlx.value(operand)), k, axis=reduction_dimension)
    return [node("neg", values), places]


@op("lhs", "rhs")
def conv_general_dilated_local(
    lhs,
    rhs,
    window_strides,
    padding,
    filter_shape,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    precision=None,
):
    """A convolution with a kernel of its own at each place: rhs [O, C * window, *places], or in other layouts."""
    x, w = _rlx.value(lhs), _rlx.value(rhs)
    numbers = _layouts(dimension_numbers, x.ndim)
    plain = tuple(tuple(range(x.ndim)) for _ in range(3))
    x, w = rnp.transpose(x, numbers.lhs_spec), rnp.transpose(w, numbers.rhs_spec)
    rows = conv_general_dilated_patches(
        x, tuple(filter_shape), window_strides, padding, lhs_dilation, rhs_dilation, plain
    )
    if w.shape[1:] != rows.shape[1:]:
        raise ValueError(
            f"conv_general_dilated_local: rhs of shape {w.shape} in the layout OI..; it must have the features times "
            f"the window and the places {rows.shape[1:]}"
        )
    letters = "xyzuv"[: x.ndim - 2]
    out = rnp.einsum(f"nc{letters},oc{letters}->no{letters}", rows, w)
    order = [0] * x.ndim
    for i, place in enumerate(numbers.out_spec):
        order[place] = i
    return rnp.transpose(out, order)


def broadcast_like(arr, like_arr):
    """arr with the shape of another array."""
    return rnp.broadcast_to(arr, rnp.shape(like_arr))


def dtype(x):
    """The dtype of an array or a number."""
    return _rlx.result_type(x)[0]


@op("src", "*idxs")
def index_take(src, idxs, axes):
    """The rows of src at the indices idxs along these axes, which become one first axis."""
    src = _rlx.value(src)
    axes = tuple(axis_of(a, src.ndim, "index_take") for a in axes)
    indices = rnp.concatenate([rnp.expand_dims(i, 1) for i in idxs], 1)
    indices = indices % rnp.array([src.shape[a] for a in axes], indices.dtype)
    sizes = tuple(1 if a in axes else n for a, n in enumerate(src.shape))
    window = tuple(range(1, src.ndim - len(axes) + 1))
    return gather(src, indices, GatherDimensionNumbers(window, axes, axes), sizes)


def scatter_apply(
    operand,
    scatter_indices,
    func,
    dimension_numbers,
    *,
    update_shape=(),
    indices_are_sorted=False,
    unique_indices=False,
    mode=None,
):
    """operand with func applied to the windows at the index vectors; each is taken once."""
    d = ScatterDimensionNumbers(*dimension_numbers)
    x, indices = rnp.asarray(operand), rnp.asarray(scatter_indices)
    shape, sizes, window = tuple(update_shape), [], iter(d.update_window_dims)
    for a in range(x.ndim):
        gone = a in d.inserted_window_dims or a in d.operand_batching_dims
        sizes.append(1 if gone else shape[next(window)])
    numbers = GatherDimensionNumbers(
        *(d.update_window_dims, d.inserted_window_dims, d.scatter_dims_to_operand_dims),
        *(d.operand_batching_dims, d.scatter_indices_batching_dims),
    )
    mode = GatherScatterMode.from_any(mode)
    found = gather(x, indices, numbers, tuple(sizes), mode="clip" if mode != GatherScatterMode.FILL_OR_DROP else "fill")
    return scatter(x, indices, func(found), d, unique_indices=unique_indices, mode=mode)


# -- named axes --


def pbroadcast(x, axis_name, source):
    """The value at `source` along a named axis, everywhere, of each leaf of x."""
    here = rnp.equal(axis_index(axis_name), source)
    return tree.map(lambda v: psum(rnp.where(here, v, rnp.zeros_like(v)), axis_name), x)


def pswapaxes(x, axis_name, axis):
    """x with a named axis and another one exchanged."""
    return all_to_all(x, axis_name, axis, axis)


def psum_scatter(x, axis_name, *, scatter_dimension=0, tiled=False):
    """The part of psum(x, axis_name) that belongs to this place: an entry along scatter_dimension, with tiled a block
    of it.
    """
    size = _extent(axis_name, "psum_scatter")

    def part(leaf):
        total = psum(leaf, axis_name)
        axis = axis_of(scatter_dimension, total.ndim, "psum_scatter")
        if total.shape[axis] % size or not tiled and total.shape[axis] != size:
            raise ValueError(f"psum_scatter: axis {axis} of extent {total.shape[axis]} for {size} places")
        rows = rnp.moveaxis(total, axis, 0)
        rows = rnp.reshape(rows, (size, rows.shape[0] // size, *rows.shape[1:]))
        mine = rnp.take(rows, axis_index(axis_name), axis=0)
        return rnp.moveaxis(mine, 0, axis) if tiled else mine[0]

    return tree.map(part, x)


# -- functions by name --


def composite(decomposition, name, version=0):
    """decomposition: the name and the version have no effect."""
    a_function(decomposition, "composite: decomposition")
    if not isinstance(name, str):
        raise TypeError(f"composite: name must be a text, got {name!r} ({type(name).__name__})")

    def function(*args, **kwargs):
        return decomposition(*args, **kwargs)

    return named(function, name.rpartition(".")[2], decomposition.__doc__)


def platform_dependent(*args, default=None, **per_platform):
    """The function of the platform cpu of these arguments, or `default`."""
    chosen = per_platform.get("cpu", default)
    if chosen is None:
        raise NotImplementedError("platform_dependent: there is neither a function for cpu nor a default")
    return chosen(*args)


def shape_as_value(shape):
    """A shape as an array of integers."""
    return rnp.array([plain_int(n) for n in shape], "int32") if len(shape) else rnp.zeros((0,), "int32")
