"""Functions of neural networks, as jax.nn has them."""

from . import _rlx
from . import numpy as rnp
from ._op import axes_of as _axes_of
from ._op import inexact as _inexact
from ._op import node as _node
from ._op import op as _op


def _function(name, text, node=None):
    @_op("x")
    def function(x):
        return _node(node or name, _inexact(x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


silu = _function("silu", "x * sigmoid(x).")
swish = silu
sigmoid = _function("sigmoid", "1 / (1 + exp(-x)).")
softplus = _function("softplus", "log(1 + exp(x)).")
mish = _function("mish", "x * tanh(softplus(x)).")
log_sigmoid = _function("log_sigmoid", "log(sigmoid(x)).")
hard_swish = _function("hard_swish", "x * relu6(x + 3) / 6.")
soft_sign = _function("soft_sign", "x / (1 + |x|).", "softsign")
erf = _function("erf", "The error function.")


@_op("x")
def relu(x):
    """max(x, 0)."""
    return _node("relu", _rlx.value(x))


@_op("x")
def gelu(x, approximate=True):
    """x times the distribution function of a normal number; approximate: by tanh, as jax.nn.gelu's default."""
    return _node("gelu_approx" if approximate else "gelu", _inexact(x))


@_op("x")
def elu(x, alpha=1.0):
    """x above 0, alpha * (exp(x) - 1) below."""
    return _node("elu", _inexact(x), alpha=alpha)


@_op("x")
def leaky_relu(x, negative_slope=0.01):
    """x above 0, a small multiple of it below."""
    return _node("leaky_relu", _inexact(x), alpha=negative_slope)


@_op("x")
def softmax(x, axis=-1):
    """exp(x) over its sum along an axis (or several); a row of -inf gives zeros."""
    x = _inexact(x)
    axes = _axes_of(axis, x.ndim, "softmax")
    if len(axes) == 1:
        return _node("softmax", x, axis=axes[0])
    shifted = rnp.exp(x - rnp.max(x, axes, keepdims=True))
    return shifted / rnp.sum(shifted, axes, keepdims=True)


@_op("x")
def log_softmax(x, axis=-1):
    """x minus the logarithm of the sum of exponentials along an axis."""
    x = _inexact(x)
    return _node("log_softmax", x, axis=_axes_of(axis, x.ndim, "log_softmax")[0])


@_op("x")
def logsumexp(x, axis=None, keepdims=False):
    """The logarithm of the sum of exponentials over axes."""
    x = _inexact(x)
    top = rnp.max(x, axis, keepdims=True)
    from ._transforms import stop_gradient

    top = stop_gradient(rnp.where(rnp.isfinite(top), top, 0))
    out = rnp.log(rnp.sum(rnp.exp(x - top), axis, keepdims=True)) + top
    return out if keepdims else rnp.squeeze(out, tuple(_axes_of(axis, x.ndim, "logsumexp")))


@_op("x")
def one_hot(x, num_classes, dtype="float32"):
    """A row of zeros with a one at x for each integer of x."""
    x = _rlx.value(x)
    classes = rnp.arange(num_classes, dtype=x.dtype)
    return rnp.astype(rnp.equal(rnp.expand_dims(x, -1), classes), dtype)


@_op("x", "gamma", "beta")
def layer_norm(x, gamma=None, beta=None, axis=-1, eps=1e-5):
    """(x - mean) / sqrt(var + eps) * gamma + beta along axes."""
    x = _inexact(x)
    return _node("layer_norm", x, axes=_axes_of(axis, x.ndim, "layer_norm"), eps=eps, gamma=gamma, beta=beta)[0]


@_op("x", "gamma", "beta")
def rms_norm(x, gamma=None, beta=None, axis=-1, eps=1e-6):
    """x / sqrt(mean(x^2) + eps) * gamma + beta along axes."""
    x = _inexact(x)
    return _node("rms_norm", x, axes=_axes_of(axis, x.ndim, "rms_norm"), eps=eps, gamma=gamma, beta=beta)[0]
