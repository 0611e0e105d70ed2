"""Convolutions in any layout, with the op `conv`."""

import builtins
import math
import typing

from .. import _rlx
from .. import numpy as rnp
from .._nodes import cast, node
from .._op import op
from ._reductions import window_padding, windows


class ConvDimensionNumbers(typing.NamedTuple):
    """The axes of lhs and out as (batch, feature, *spatial), and those of rhs as (out, in, *spatial)."""

    lhs_spec: typing.Sequence[int]
    rhs_spec: typing.Sequence[int]
    out_spec: typing.Sequence[int]


def _places(spec, spatial, what):
    """The axes of a layout such as "NHWC", or given as numbers, in the order (batch or out, feature or in,
    *spatial).
    """
    if not isinstance(spec, str):
        return tuple(spec)
    if sorted(spec) != sorted(what + spatial):
        raise ValueError(f"conv: the layout {spec!r} must have the letters {what + spatial!r}")
    return tuple(spec.index(c) for c in what + spatial)


def _layouts(numbers, rank):
    if numbers is None:
        return ConvDimensionNumbers(*((tuple(range(rank)),) * 3))
    if not isinstance(numbers, (tuple, list)):  # an object with these fields, as JAX's ConvDimensionNumbers
        numbers = (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec)
    lhs, rhs, out = numbers
    spatial = "".join(c for c in rhs if c not in "IO") if isinstance(rhs, str) else ""
    return ConvDimensionNumbers(_places(lhs, spatial, "NC"), _places(rhs, spatial, "OI"), _places(out, spatial, "NC"))


def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers):
    """The numbers of the axes of layouts such as ("NHWC", "HWIO", "NHWC"); None: ("NC..", "OI..", "NC..")."""
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError(f"conv_dimension_numbers: shapes {lhs_shape} and {rhs_shape} must have the same number of axes")
    return _layouts(dimension_numbers, len(lhs_shape))


def _amounts(x, padding, window, strides, base, dilation, what):
    """(low, high) for each spatial axis; x has their extents."""
    if isinstance(padding, str) and any(b != 1 for b in base):
        raise ValueError(f"{what}: padding {padding!r} with a dilated lhs; give (low, high) for each axis")
    if isinstance(padding, str) and padding.upper() == "VALID":
        return [(0, 0)] * len(window)
    spans = [(n - 1) * d + 1 for n, d in zip(window, dilation)]
    dilated = x if not isinstance(padding, str) else [(d - 1) * b + 1 if d else 0 for d, b in zip(x, base)]
    return window_padding(padding, dilated, spans, strides)


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
    """The convolution (without reversing rhs) of [N, C, *spatial] with [O, C / groups, *window], or in other
    layouts.
    """
    x, w = _rlx.value(lhs), _rlx.value(rhs)
    if x.ndim != w.ndim or x.ndim < 2:
        raise ValueError(
            f"conv_general_dilated: shapes {x.shape} and {w.shape} must have the same number of axes, at least two"
        )
    dtype = _rlx.result_type(x, w)[0]
    wanted = dtype if preferred_element_type is None else _rlx.dtype(preferred_element_type)
    if wanted.kind in "fc" and dtype.kind in "iu":
        dtype = wanted
    numbers = _layouts(dimension_numbers, x.ndim)
    space = x.ndim - 2
    if space == 0:
        return _without_space(cast(x, dtype), cast(w, dtype), numbers, feature_group_count, batch_group_count, wanted)
    ones = (1,) * space
    strides, base, dilation = window_strides, lhs_dilation or ones, rhs_dilation or ones
    for name, amounts in (("window_strides", strides), ("lhs_dilation", base), ("rhs_dilation", dilation)):
        if len(amounts) != space:
            raise ValueError(f"conv_general_dilated: {name} {tuple(amounts)} for {space} spatial axes")
    extents = [x.shape[a] for a in numbers.lhs_spec[2:]]
    window = [w.shape[a] for a in numbers.rhs_spec[2:]]
    pads = _amounts(extents, padding, window, strides, base, dilation, "conv_general_dilated")
    if len(pads) != space:
        raise ValueError(f"conv_general_dilated: {len(pads)} paddings for {space} spatial axes")
    low, high = zip(*pads)
    out = node(
        "conv",
        cast(x, dtype),
        cast(w, dtype),
        strides=list(strides),
        low=list(low),
        high=list(high),
        lhs_dilation=list(base),
        rhs_dilation=list(dilation),
        groups=feature_group_count,
        batch_groups=batch_group_count,
        lhs_spec=list(numbers.lhs_spec),
        rhs_spec=list(numbers.rhs_spec),
        out_spec=list(numbers.out_spec),
        out=wanted,
    )
    return cast(out, wanted)


def _without_space(x, w, numbers, groups, batch_groups, wanted):
    """A convolution without spatial axes, as one with a spatial axis of extent 1."""
    (n, c), (o, i), (yn, yc) = numbers
    x, w = rnp.transpose(x, (n, c)), rnp.transpose(w, (o, i))
    out = node(
        "conv",
        rnp.reshape(x, (*x.shape, 1)),
        rnp.reshape(w, (*w.shape, 1)),
        groups=groups,
        batch_groups=batch_groups,
        out=wanted,
    )
    out = rnp.reshape(out, out.shape[:2])
    return out if (yn, yc) == (0, 1) else rnp.transpose(out, (1, 0))


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


_LAST = {1: ("NHC", "HIO", "NHC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NHWDC", "HWDIO", "NHWDC")}


def _transpose_padding(span, stride, padding):
    """The padding of the dilated lhs for which the result has the extent of the input of the forward convolution."""
    if padding == "SAME":
        total = span + stride - 2
        low = span - 1 if stride > span - 1 else -(-total // 2)
    elif padding == "VALID":
        total = span + stride - 2 + builtins.max(span - stride, 0)
        low = span - 1
    else:
        raise ValueError(
            f"conv_transpose: padding {padding!r}; it must be 'SAME', 'VALID' or a (low, high) for each axis"
        )
    return low, total - low


def conv_transpose(
    lhs,
    rhs,
    strides,
    padding,
    rhs_dilation=None,
    dimension_numbers=None,
    transpose_kernel=False,
    precision=None,
    preferred_element_type=None,
    use_consistent_padding=False,
):
    """The transposed convolution: lhs is dilated by `strides`. With transpose_kernel it is the gradient of a
    convolution with respect to its lhs.

    The layouts are [N, *spatial, C] and [*window, I, O] unless `dimension_numbers` gives others. A (low, high) is the
    padding of the dilated lhs, or with use_consistent_padding that of the forward convolution.
    """
    rank = len(lhs.shape)
    if dimension_numbers is None:
        if rank - 2 not in _LAST:
            raise ValueError(f"conv_transpose: {rank - 2} spatial axes need dimension_numbers")
        dimension_numbers = _LAST[rank - 2]
    numbers = _layouts(dimension_numbers, rank)
    window = [rhs.shape[a] for a in numbers.rhs_spec[2:]]
    dilation = rhs_dilation or (1,) * (rank - 2)
    spans = [(n - 1) * d + 1 for n, d in zip(window, dilation)]
    if isinstance(padding, str):
        pads = [_transpose_padding(n, s, padding.upper()) for n, s in zip(spans, strides)]
    elif use_consistent_padding:
        pads = [(n - 1 - low, n - 1 - high) for n, (low, high) in zip(spans, padding)]
    else:
        pads = [tuple(p) for p in padding]
    if transpose_kernel:
        rhs = rnp.flip(rhs, tuple(numbers.rhs_spec[2:]))
        out, features, *space = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(features, out, *space))
    return conv_general_dilated(
        *(lhs, rhs, (1,) * (rank - 2), pads, tuple(strides), rhs_dilation, tuple(map(tuple, numbers))),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@op("lhs")
def conv_general_dilated_patches(
    lhs,
    filter_shape,
    window_strides,
    padding,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    precision=None,
    preferred_element_type=None,
):
    """The elements of each window of lhs as features: features of lhs times positions in the window, features first.

    Only the layouts of lhs and of the result matter. The size of the program grows with the size of the window.
    """
    x = _rlx.value(lhs)
    numbers = _layouts(dimension_numbers, x.ndim)
    x = rnp.transpose(x, numbers.lhs_spec)
    ones = (1,) * len(filter_shape)
    if len(filter_shape) != x.ndim - 2:
        raise ValueError(f"conv_general_dilated_patches: a window with {len(ones)} axes for {x.ndim - 2} spatial axes")
    base, dilation = lhs_dilation or ones, rhs_dilation or ones
    pads = _amounts(x.shape[2:], padding, filter_shape, window_strides, base, dilation, "conv_general_dilated_patches")
    config = [(0, 0, 0)] * 2 + [(low, high, b - 1) for (low, high), b in zip(pads, base)]
    low, high, interior = zip(*config)
    padded = _rlx.pad([x, cast(0, x.dtype)], list(low), list(high), list(interior))
    parts = list(windows(padded, (1, 1, *filter_shape), (1, 1, *window_strides), (1, 1, *dilation)))
    places = parts[0].shape[2:]
    out = rnp.reshape(rnp.stack(parts, 2), (x.shape[0], x.shape[1] * math.prod(filter_shape), *places))
    order = [0] * x.ndim
    for i, place in enumerate(numbers.out_spec):
        order[place] = i
    out = rnp.transpose(out, order)
    return out if preferred_element_type is None else cast(out, preferred_element_type)
