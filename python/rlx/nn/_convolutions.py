"""Convolutions with the arguments of PyTorch: x [N, C, *spatial], filters [O, C / groups, *window]."""

from .. import _rlx
from .. import numpy as rnp


def _each(amount, space, what):
    amount = tuple(amount) if isinstance(amount, (tuple, list)) else (amount,) * space
    if len(amount) != space:
        raise ValueError(f"{what} {amount} for {space} spatial axes")
    return amount


def _general(*args, **kwargs):
    from ..lax import conv_general_dilated  # imported at first use

    return conv_general_dilated(*args, **kwargs)


def _with_bias(y, bias, space, what):
    if bias is None:
        return y
    shape, features = tuple(rnp.shape(bias)), y.shape[1]
    if shape != (features,):
        raise _rlx.ShapeMismatch(f"{what}: bias {shape} must be [O], and the filters w make O = {features} features")
    return rnp.add(y, rnp.reshape(bias, (-1, *(1,) * space)))


def _checked(what, space, x, w):
    if rnp.ndim(x) == rnp.ndim(w) == space + 2:
        return
    axes = "L" if space == 1 else ", ".join("DHW"[-space:])
    window = ", ".join(f"k{a}" for a in "DHW"[-space:]) if space > 1 else "K"
    filters = f"C, O / groups, {window}" if "transpose" in what else f"O, C / groups, {window}"
    raise ValueError(f"{what}: x {tuple(rnp.shape(x))} must be [N, C, {axes}] and w {tuple(rnp.shape(w))} [{filters}]")


def _amounts(space):
    return "a number" + (f", or {space} of them, one for each axis" if space > 1 else "")


def _conv(space, x, w, bias, stride, padding, dilation, groups):
    _checked(f"conv{space}d", space, x, w)
    stride, dilation = _each(stride, space, "stride"), _each(dilation, space, "dilation")
    if isinstance(padding, str):
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding 'same' needs stride 1; give numbers")
        padding = padding.upper()
        if padding not in ("SAME", "SAME_LOWER", "VALID"):
            raise ValueError(
                f"conv{space}d: padding {padding.lower()!r}; it must be 'same', 'valid', or {_amounts(space)}"
            )
    else:
        padding = _each(padding, space, "padding")
        if not all(hasattr(p, "__index__") for p in padding):
            raise ValueError(f"conv{space}d: padding {padding}; it must be 'same', 'valid', or {_amounts(space)}")
        padding = tuple((p, p) for p in padding)
    y = _general(x, w, stride, padding, None, dilation, None, groups)
    return _with_bias(y, bias, space, f"conv{space}d")


def conv1d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolves x [N, C, L] with filters [O, C / groups, K], plus bias [O]. padding: a number, "same" or "valid"."""
    return _conv(1, x, w, bias, stride, padding, dilation, groups)


def conv2d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolves x [N, C, H, W] with filters [O, C / groups, kH, kW], plus bias [O]. Options are one number or two."""
    return _conv(2, x, w, bias, stride, padding, dilation, groups)


def conv3d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolves x [N, C, D, H, W] with filters [O, C / groups, kD, kH, kW], plus bias [O]."""
    return _conv(3, x, w, bias, stride, padding, dilation, groups)


def _conv_transpose(space, x, w, bias, stride, padding, output_padding, groups, dilation):
    _checked(f"conv_transpose{space}d", space, x, w)
    stride, dilation = _each(stride, space, "stride"), _each(dilation, space, "dilation")
    more = _each(output_padding, space, "output_padding")
    if any(m >= max(s, d) or m < 0 for m, s, d in zip(more, stride, dilation)):
        raise ValueError(f"output_padding {more} must be less than the stride {stride} or the dilation {dilation}")
    reach = [d * (k - 1) for d, k in zip(dilation, w.shape[2:])]
    pads = tuple((r - p, r - p + m) for r, p, m in zip(reach, _each(padding, space, "padding"), more))
    c, per_group, *window = w.shape
    if groups < 1 or c % groups:
        raise ValueError(f"{groups} groups do not divide {c} features")
    w = rnp.flip(w, tuple(range(2, space + 2)))
    # Groups move from the features of x to the filters.
    w = rnp.moveaxis(rnp.reshape(w, (groups, c // groups, per_group, *window)), 0, 1)
    w = rnp.reshape(w, (c // groups, groups * per_group, *window))
    axes = tuple(range(space + 2))
    y = _general(
        x, w, (1,) * space, pads, stride, dilation, (axes, (1, 0, *axes[2:]), axes), feature_group_count=groups
    )
    return _with_bias(y, bias, space, f"conv_transpose{space}d")


def conv_transpose1d(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transpose of conv1d: x [N, C, L], filters [C, O / groups, K]."""
    return _conv_transpose(1, x, w, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transpose of conv2d: x [N, C, H, W], filters [C, O / groups, kH, kW]."""
    return _conv_transpose(2, x, w, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transpose of conv3d: x [N, C, D, H, W], filters [C, O / groups, kD, kH, kW]."""
    return _conv_transpose(3, x, w, bias, stride, padding, output_padding, groups, dilation)
