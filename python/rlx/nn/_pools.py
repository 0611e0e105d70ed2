"""Pools over windows of space, as flax.linen has them, with what PyTorch and ONNX add."""

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
            raise ValueError(f"padding {padding!r}; it is 'VALID', 'SAME', 'SAME_LOWER', or (low, high) of each axis")
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
    """The largest element of each window of the axes in front of the channels (behind them without channels_last).

    window_shape, strides (1 if None), dilation: one for each axis of space. padding: "VALID", "SAME", "SAME_LOWER", a
    number, or (low, high) of each axis; ceil_mode adds a last window that ends outside. NaN wins.
    """
    return _pool(inputs, "max", window_shape, strides, padding, dilation, ceil_mode, True, channels_last)


@op("inputs")
def min_pool(inputs, window_shape, strides=None, padding="VALID", *, dilation=1, ceil_mode=False, channels_last=True):
    """The smallest element of each window; arguments are those of max_pool."""
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
    """The mean of each window, of its elements alone without count_include_pad; other arguments as in max_pool."""
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
    """(max_pool, where each maximum lies in its plane of space, row-major as int32)."""
    return _pool(inputs, "max_with_indices", window_shape, strides, padding, dilation, ceil_mode, True, channels_last)


@op("inputs", "indices")
def max_unpool(inputs, indices, space):
    """Zeros [.., space] with inputs [.., h, w] at those indices of each plane; the channels are not last. A number is
    the extent of each axis of space, those behind the first two.
    """
    if not isinstance(space, (tuple, list)):
        space = (int_static(space, "max_unpool: space"),) * max(len(inputs.shape) - 2, 1)
    return _rlx.max_unpool([inputs, indices], tuple(space))


@op("inputs")
def adaptive_avg_pool(inputs, sizes, *, channels_last=True):
    """Means of windows that cut each axis of space into `sizes`, as PyTorch cuts them."""
    return _rlx.adaptive_pool([inputs], False, _list(sizes), channels_last)


@op("inputs")
def adaptive_max_pool(inputs, sizes, *, channels_last=True):
    """The largest elements of the windows of adaptive_avg_pool."""
    return _rlx.adaptive_pool([inputs], True, _list(sizes), channels_last)
