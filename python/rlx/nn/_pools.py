"""Pooling over spatial windows, as in flax.linen, with options of PyTorch and ONNX."""

from .. import _rlx
from .._op import op
from ..numpy._base import int_static


def _list(value):
    return [int(v) for v in value] if isinstance(value, (tuple, list)) else [int(value)]


def _pool(x, fn, window_shape, strides, padding, dilation, ceil_mode, count_include_pad, channels_last, p=2.0):
    window = _list(window_shape)
    low, high, form = [0], [], ""
    if isinstance(padding, str):
        form = padding.upper()
        if form not in ("VALID", "SAME", "SAME_LOWER"):
            raise ValueError(
                f"padding {padding!r}; it must be 'VALID', 'SAME', 'SAME_LOWER', or (low, high) of each axis"
            )
    elif isinstance(padding, (tuple, list)):
        pairs = [q if isinstance(q, (tuple, list)) else (q, q) for q in padding]
        low, high = [int(a) for a, _ in pairs], [int(b) for _, b in pairs]
    else:
        low = [int(padding)]
    return _rlx.pool(
        [x],
        fn,
        float(p),
        window,
        [1] if strides is None else _list(strides),
        low,
        high,
        _list(dilation),
        form,
        ceil_mode,
        count_include_pad,
        channels_last,
    )


@op("inputs")
def max_pool(inputs, window_shape, strides=None, padding="VALID", *, dilation=1, ceil_mode=False, channels_last=True):
    """The maximum of each window over the spatial axes, which are before the channels (after them with
    channels_last=False).

    window_shape, strides (1 if None), dilation: one number for each spatial axis. padding: "VALID", "SAME",
    "SAME_LOWER", a number, or (low, high) for each axis. ceil_mode adds a last window that ends outside. NaN is larger
    than all numbers.
    """
    return _pool(inputs, "max", window_shape, strides, padding, dilation, ceil_mode, True, channels_last)


@op("inputs")
def min_pool(inputs, window_shape, strides=None, padding="VALID", *, dilation=1, ceil_mode=False, channels_last=True):
    """The minimum of each window; arguments are those of max_pool."""
    return _pool(inputs, "min", window_shape, strides, padding, dilation, ceil_mode, True, channels_last)


@op("inputs")
def avg_pool(
    inputs,
    window_shape,
    strides=None,
    padding="VALID",
    count_include_pad=True,
    *,
    dilation=1,
    ceil_mode=False,
    channels_last=True,
):
    """The mean of each window. count_include_pad=False leaves out padding. Other arguments are those of max_pool."""
    return _pool(inputs, "mean", window_shape, strides, padding, dilation, ceil_mode, count_include_pad, channels_last)


@op("inputs")
def sum_pool(inputs, window_shape, strides=None, padding="VALID", *, dilation=1, ceil_mode=False, channels_last=True):
    """The sum of each window; arguments are those of max_pool."""
    return _pool(inputs, "sum", window_shape, strides, padding, dilation, ceil_mode, True, channels_last)


@op("inputs")
def prod_pool(inputs, window_shape, strides=None, padding="VALID", *, dilation=1, ceil_mode=False, channels_last=True):
    """The product of each window; arguments are those of max_pool."""
    return _pool(inputs, "prod", window_shape, strides, padding, dilation, ceil_mode, True, channels_last)


@op("inputs")
def lp_pool(inputs, p, window_shape, strides=None, padding="VALID", *, ceil_mode=False, channels_last=True):
    """(sum of |x|^p)^(1/p) of each window; other arguments are those of max_pool."""
    return _pool(inputs, "lp", window_shape, strides, padding, 1, ceil_mode, True, channels_last, p)


@op("inputs")
def max_pool_with_indices(
    inputs, window_shape, strides=None, padding="VALID", *, dilation=1, ceil_mode=False, channels_last=True
):
    """(max_pool, the row-major index of each maximum in its spatial plane, int32)."""
    return _pool(inputs, "max_with_indices", window_shape, strides, padding, dilation, ceil_mode, True, channels_last)


@op("inputs", "indices")
def max_unpool(inputs, indices, space):
    """The inverse of max_pool_with_indices: zeros [.., *space] with inputs [.., h, w] at their indices in each plane.
    The channels are not last. A number is the extent of each spatial axis, all after the first two.
    """
    if not isinstance(space, (tuple, list)):
        space = (int_static(space, "max_unpool: space"),) * max(len(inputs.shape) - 2, 1)
    return _rlx.max_unpool([inputs, indices], tuple(space))


@op("inputs")
def adaptive_avg_pool(inputs, sizes, *, channels_last=True):
    """The means of windows that divide each spatial axis into `sizes` parts, as in PyTorch."""
    return _rlx.adaptive_pool([inputs], False, _list(sizes), channels_last)


@op("inputs")
def adaptive_max_pool(inputs, sizes, *, channels_last=True):
    """The maxima of the windows of adaptive_avg_pool."""
    return _rlx.adaptive_pool([inputs], True, _list(sizes), channels_last)
