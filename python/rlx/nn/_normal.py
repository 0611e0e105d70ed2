"""Softmax and log-sum-exp, normalization layers, one-hot encoding."""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import as_index, axes_of, axis_of, cast, inexact, node
from .._op import op


def _over(x, axis, where, what):
    """(x with -inf where `where` is false, the axes)."""
    x = inexact(x)
    if where is not None:
        x = rnp.where(where, x, -float("inf"))
    return x, axes_of(axis, x.ndim, what)


def _top(x, axes):
    """The maximum over axes, without a derivative, which is subtracted before exponentials; 0 where it is infinite. And
    where it is -inf: nothing is there to add.
    """
    x = rnp.real(x) if x.dtype.kind == "c" else x
    top = node("stop_gradient", rnp.max(x, axes, keepdims=True, initial=-float("inf")))
    return rnp.where(rnp.isfinite(top), top, 0), rnp.equal(top, -float("inf"))


@op("x", "where")
def softmax(x, axis=-1, where=None):
    """exp(x) divided by its sum along one or several axes, over the elements where `where` is true. A row without such
    elements is 0.
    """
    x, axes = _over(x, axis, where, "softmax")
    if len(axes) == 1:
        return node("softmax", x, axis=axes[0])
    shifted = rnp.exp(x - _top(x, axes)[0])
    total = rnp.sum(shifted, axes, keepdims=True)
    return shifted / rnp.where(rnp.equal(total, 0), 1, total)


@op("x", "where")
def log_softmax(x, axis=-1, where=None):
    """x minus the log-sum-exp along one or several axes; -inf where `where` is false."""
    x, axes = _over(x, axis, where, "log_softmax")
    if len(axes) == 1:
        return node("log_softmax", x, axis=axes[0])
    return x - logsumexp(x, axes, keepdims=True)


@op("a", "b", "where")
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    """The logarithm of the sum of b * exp(a) over axes. return_sign: (the logarithm of the magnitude, the sign). Where
    all of a are -inf the derivative is 0.
    """
    a, axes = _over(a, axis, where, "logsumexp")
    if b is not None:
        a, b = rnp.broadcast_arrays(rnp.where(rnp.equal(b, 0), -float("inf"), a), b)
        axes = axes_of(axis, a.ndim, "logsumexp")
    top, none = _top(a, axes)
    terms = rnp.exp(a - top)
    total = rnp.sum(terms if b is None else b * terms, axes, keepdims=True)
    if total.dtype.kind == "c":
        sign, total = rnp.sign(total), rnp.abs(total) if return_sign else total
    else:
        sign = rnp.sign(total)
        total = rnp.where(rnp.less(total, 0), -total, total) if return_sign else total
    out = rnp.where(none, -float("inf"), rnp.log(rnp.where(none, 1, total)) + top)
    out, sign = (v if keepdims else rnp.squeeze(v, tuple(axes)) for v in (out, sign))
    return (out, sign) if return_sign else out


@op("x", "where")
def logmeanexp(x, axis=None, where=None, keepdims=False):
    """The logarithm of the mean of exponentials over axes."""
    x = inexact(x)
    shape = x.shape if where is None else rnp.broadcast_shapes(x.shape, _rlx.value(where).shape)
    counted = rnp.broadcast_to(True if where is None else where, shape)
    count = rnp.sum(rnp.astype(counted, x.dtype), axis, keepdims=keepdims)
    return logsumexp(x, axis, keepdims=keepdims, where=where) - rnp.log(count)


@op("x", "mean", "variance", "where")
def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *, algorithm="fast"):
    """(x - mean) / sqrt(variance + epsilon) along axes. The default mean and variance are those of x.

    algorithm: "fast" subtracts the square of the mean from the mean of squares, "stable" averages squared distances.
        Along the last axes, with the mean and variance of x, both are one layer_norm, which is stable and needs one
        pass.
    """
    x = inexact(x)
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm {algorithm!r}; it must be 'fast' or 'stable'")
    plain = mean is None and variance is None and where is None and x.dtype.kind != "c"
    if plain and isinstance(epsilon, (int, float)) and 1e-30 <= epsilon <= 1e30:
        axes = axes_of(axis, x.ndim, "standardize")
        if axes and axes == list(range(x.ndim - len(axes), x.ndim)):
            return layer_norm(x, axis=axes, eps=epsilon)
    own = rnp.mean(x, axis, keepdims=True, where=where) if mean is None else mean
    if variance is None and algorithm == "fast":
        variance = rnp.maximum(rnp.mean(rnp.square(x), axis, keepdims=True, where=where) - rnp.square(own), 0)
    elif variance is None:
        variance = rnp.mean(rnp.square(x - own), axis, keepdims=True, where=where)
    return (x - own) * node("rsqrt", inexact(variance) + epsilon)


@op("x")
def one_hot(x, num_classes, *, dtype="float32", axis=-1):
    """One-hot encoding along a new axis. Integers that are not a class give a row of zeros."""
    x = _rlx.value(x)
    if isinstance(num_classes, int) and num_classes < 0:
        raise ValueError(f"one_hot: num_classes must not be negative, got {num_classes}")
    # The classes have the dtype of the indices, which must hold all of them.
    if x.dtype.kind in "biu":
        x = as_index(x)
    elif x.dtype.name in ("float16", "bfloat16"):
        x = cast(x, "float32")
    axis = axis_of(axis, x.ndim + 1, "one_hot")
    classes = rnp.reshape(rnp.arange(num_classes, dtype=x.dtype), (num_classes,) + (1,) * (x.ndim - axis))
    return rnp.astype(rnp.equal(rnp.expand_dims(x, axis), classes), dtype)


@op("x", "gamma", "beta")
def layer_norm(x, gamma=None, beta=None, axis=-1, eps=1e-5):
    """(x - mean) / sqrt(var + eps) * gamma + beta along axes."""
    x = inexact(x)
    return node("layer_norm", x, axes=axes_of(axis, x.ndim, "layer_norm"), eps=eps, gamma=gamma, beta=beta)[0]


@op("x", "gamma", "beta")
def rms_norm(x, gamma=None, beta=None, axis=-1, eps=1e-6):
    """x / sqrt(mean(x^2) + eps) * gamma + beta along axes."""
    x = inexact(x)
    return node("rms_norm", x, axes=axes_of(axis, x.ndim, "rms_norm"), eps=eps, gamma=gamma, beta=beta)[0]


def _float(x, what):
    x = inexact(x)
    if x.dtype.kind != "f":
        raise TypeError(f"{what} of {x.dtype.name}; it takes real floating arrays")
    return x


@op("x", "gamma", "beta")
def group_norm(x, num_groups, gamma=None, beta=None, eps=1e-5):
    """(x - mean) / sqrt(var + eps) * gamma + beta over each of num_groups groups of channels, for each example: x [N,
    C, ..].
    """
    return _rlx.group_norm([_float(x, "group_norm"), gamma, beta], num_groups, eps)


@op("x", "gamma", "beta")
def instance_norm(x, gamma=None, beta=None, eps=1e-5):
    """Normalizes each channel of each example over its positions: x [N, C, ..], gamma and beta [C]."""
    x = _float(x, "instance_norm")
    if x.ndim < 3:
        raise ValueError(f"instance_norm: x has shape {x.shape}; it must be [N, C, ..] with at least three axes")
    return _rlx.group_norm([x, gamma, beta], x.shape[1], eps)


@op("x", "mean", "var", "gamma", "beta")
def batch_norm(x, mean=None, var=None, gamma=None, beta=None, eps=1e-5, axis=1):
    """(x - mean) / sqrt(var + eps) * gamma + beta for each channel, with the given means and variances.

    Without them, batch normalization in training: (y, mean, var), with the mean and the biased variance of x over all
    other axes.
    """
    x = _float(x, "batch_norm")
    if (mean is None) != (var is None):
        raise ValueError("batch_norm: give mean and var, or neither")
    axis = axis_of(axis, x.ndim, "batch_norm")
    if mean is None:
        return _rlx.batch_norm_training([x, gamma, beta], eps, axis)
    return _rlx.batch_norm([x, mean, var, gamma, beta], eps, axis)


@op("x")
def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0, axis=1):
    """x / (k + alpha / size * sum of squares of `size` neighbours along an axis) ** beta."""
    x = _float(x, "local_response_norm")
    return _rlx.local_response_norm([x], size, alpha, beta, k, axis_of(axis, x.ndim, "local_response_norm"))
