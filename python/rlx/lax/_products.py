"""Products and convolutions."""

import math

from .. import _rlx
from .. import numpy as rnp
from .._op import cast, node, op
from ._reductions import window_padding, windows


@op("lhs", "rhs")
def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None):
    """The product over contracted and batch axes: ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)).

    The result has the batch axes, then those left of lhs, then those left of rhs.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    axes = {"lhs_contract": lhs_contract, "rhs_contract": rhs_contract, "lhs_batch": lhs_batch, "rhs_batch": rhs_batch}
    lhs, rhs = _rlx.value(lhs), _rlx.value(rhs)
    dtype = _rlx.result_type(lhs, rhs)[0]
    wanted = dtype if preferred_element_type is None else _rlx.dtype(preferred_element_type)
    if wanted.kind in "fc" and dtype.kind in "iu":
        dtype = wanted
    out = node("dot_general", cast(lhs, dtype), cast(rhs, dtype), out=wanted, **axes)
    return cast(out, wanted)


@op("lhs", "rhs")
def dot(lhs, rhs, *, precision=None, preferred_element_type=None):
    """The product of vectors and matrices: over the last axis of lhs and the first of rhs."""
    lhs, rhs = _rlx.value(lhs), _rlx.value(rhs)
    if not (1 <= lhs.ndim <= 2 and 1 <= rhs.ndim <= 2):
        raise TypeError(f"dot takes vectors and matrices, not shapes {lhs.shape} and {rhs.shape}; see dot_general")
    return dot_general(lhs, rhs, (((lhs.ndim - 1,), (0,)), ((), ())), None, preferred_element_type)


@op("lhs", "rhs")
def batch_matmul(lhs, rhs, precision=None):
    """Products of matrices in the last two axes, one for each place of the others."""
    return rnp.matmul(lhs, rhs)


def _places(spec, spatial, what):
    """Axes in the order (batch or out, feature or in, *spatial) of a layout such as "NHWC", or such numbers."""
    if not isinstance(spec, str):
        return tuple(spec)
    if sorted(spec) != sorted(what + spatial):
        raise ValueError(f"conv: the layout {spec!r} has other letters than {what + spatial!r}")
    return tuple(spec.index(c) for c in what + spatial)


def _layouts(numbers, rank):
    if numbers is None:
        return (tuple(range(rank)),) * 3
    if not isinstance(numbers, (tuple, list)):  # an object with these fields, as JAX's ConvDimensionNumbers
        numbers = (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec)
    lhs, rhs, out = numbers
    spatial = "".join(c for c in rhs if c not in "IO") if isinstance(rhs, str) else ""
    return _places(lhs, spatial, "NC"), _places(rhs, spatial, "OI"), _places(out, spatial, "NC")


@op("lhs", "rhs")
def conv_general_dilated(
    lhs,
    rhs,
    window_strides,
    padding,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    feature_group_count=1,
    batch_group_count=1,
    precision=None,
    preferred_element_type=None,
):
    """The convolution (without reversing rhs) of [N, C, *spatial] with [O, C / groups, *window], or other layouts.

    It is one product with the windows of lhs laid out side by side, which take the window's size times its bytes.
    """
    x, w = _rlx.value(lhs), _rlx.value(rhs)
    if batch_group_count != 1:
        raise NotImplementedError("conv_general_dilated: groups of the batch; split it and join the results")
    if x.ndim != w.ndim or x.ndim < 2:
        raise ValueError(f"conv_general_dilated: shapes {x.shape} and {w.shape} have as many axes, at least two")
    lhs_places, rhs_places, out_places = _layouts(dimension_numbers, x.ndim)
    x, w = rnp.transpose(x, lhs_places), rnp.transpose(w, rhs_places)
    (batch, features, *extents), (outs, inner, *window), groups = x.shape, w.shape, feature_group_count
    if features != inner * groups or outs % groups:
        raise ValueError(
            f"conv_general_dilated: {features} features, {groups} groups and a kernel of {inner} to {outs} features; "
            "features are groups times those of the kernel, which gives as many for each group"
        )
    ones = (1,) * len(window)
    base, dilation = lhs_dilation or ones, rhs_dilation or ones
    if isinstance(padding, str) and any(b != 1 for b in base):
        raise ValueError(f"conv_general_dilated: padding {padding!r} of a dilated lhs; give (low, high) of each axis")
    dilated = [(d - 1) * b + 1 if d else 0 for d, b in zip(extents, base)]
    spans = [(n - 1) * d + 1 for n, d in zip(window, dilation)]
    pads = window_padding(padding, dilated, spans, window_strides)
    config = [(0, 0, 0)] * 2 + [(low, high, b - 1) for (low, high), b in zip(pads, base)]
    low, high, interior = zip(*config)
    x = _rlx.pad([x, cast(0, x.dtype)], list(low), list(high), list(interior))
    parts = list(windows(x, (1, 1, *window), (1, 1, *window_strides), (1, 1, *dilation)))
    places = parts[0].shape[2:]
    # [groups, N places, C / groups * window] and [groups, C / groups * window, O / groups]
    columns = rnp.reshape(rnp.stack(parts, 2), (batch, groups, inner * math.prod(window), math.prod(places)))
    kernel = rnp.reshape(w, (groups, outs // groups, inner * math.prod(window)))
    out = dot_general(kernel, columns, (((2,), (2,)), ((0,), (1,))), None, preferred_element_type)
    out = rnp.moveaxis(rnp.reshape(out, (outs, batch, *places)), 1, 0)
    order = [0] * len(out_places)
    for i, place in enumerate(out_places):
        order[place] = i
    return rnp.transpose(out, order)


def conv(lhs, rhs, window_strides, padding, precision=None, preferred_element_type=None):
    """The convolution of [N, C, *spatial] with [O, C, *window]."""
    kind = preferred_element_type
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=kind)


def conv_with_general_padding(
    lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=None, preferred_element_type=None
):
    """The convolution with dilated operands."""
    return conv_general_dilated(
        *(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
