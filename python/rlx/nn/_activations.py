"""Activation functions. Integers become float32 if the result is not an integer."""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import axis_of, inexact, node
from .._op import op
from ..numpy import _complex_functions
from ..numpy import tanh  # noqa: F401
from ..numpy._base import both_inexact, named, typed


def _function(name, text, of=None, of_complex=None):
    @op("x")
    def function(x):
        x = inexact(x)
        return of_complex(x) if of_complex is not None and x.dtype.kind == "c" else node(of or name, x)

    return named(function, name, text)


silu = _function("silu", "x * sigmoid(x).", of_complex=lambda x: node("mul", x, _complex_functions.sigmoid(x)))
swish = silu
sigmoid = _function("sigmoid", "1 / (1 + exp(-x)).", of_complex=_complex_functions.sigmoid)
softplus = _function("softplus", "log(1 + exp(x)).")
mish = _function("mish", "x * tanh(softplus(x)).")
log_sigmoid = _function("log_sigmoid", "log(sigmoid(x)).")
hard_swish = _function("hard_swish", "x * relu6(x + 3) / 6.")
hard_silu = hard_swish
soft_sign = _function("soft_sign", "x / (1 + |x|).", "softsign")
erf = _function("erf", "The error function.")


@op("x")
def identity(x):
    """x."""
    return _rlx.value(x)


@op("x")
def relu(x):
    """max(x, 0)."""
    return node("relu", _rlx.value(x))


def _steps(x, low, high):
    """x clipped to [low, high], with derivative 0 at the bounds and outside."""
    inside = rnp.logical_not(rnp.logical_or(rnp.less_equal(x, low), rnp.greater_equal(x, high)))
    return rnp.where(inside, x, rnp.clip(_constant(x), low, high))


def _constant(x):
    return node("stop_gradient", x)


@op("x")
def relu6(x):
    """min(max(x, 0), 6)."""
    return _steps(inexact(x), 0, 6)


@op("x")
def hard_sigmoid(x):
    """relu6(x + 3) / 6."""
    return node("hard_sigmoid", inexact(x))


@op("x")
def hard_tanh(x):
    """x clipped to [-1, 1]."""
    x = _rlx.value(x)
    return rnp.where(rnp.greater(x, 1), 1, rnp.where(rnp.less(x, -1), -1, x))


@op("x")
def gelu(x, approximate=True):
    """x times the cumulative distribution function of the normal distribution; approximate: the tanh approximation, as
    in jax.nn.gelu.
    """
    return node("gelu_approx" if approximate else "gelu", inexact(x))


def _below(x):
    """min(x, 0), so that an exponential of the branch that is not selected cannot overflow."""
    return rnp.where(rnp.greater(x, 0), 0, x)


@op("x", "alpha")
def elu(x, alpha=1.0):
    """x above 0, alpha * (exp(x) - 1) below."""
    x = inexact(x)
    if isinstance(alpha, (int, float)):
        return node("elu", x, alpha=alpha)
    return rnp.where(rnp.greater(x, 0), x, alpha * rnp.expm1(_below(x)))


@op("x", "alpha")
def celu(x, alpha=1.0):
    """x above 0, alpha * (exp(x / alpha) - 1) below."""
    x = inexact(x)
    return rnp.where(rnp.greater(x, 0), x, alpha * rnp.expm1(_below(x) / alpha))


@op("x")
def selu(x):
    """elu with the alpha and the scale that keep mean 0 and variance 1 from layer to layer."""
    return 1.0507009873554804934193349852946 * node("elu", inexact(x), alpha=1.6732632423543772848170429916717)


@op("x", "negative_slope")
def leaky_relu(x, negative_slope=0.01):
    """x above 0, a small multiple of it below."""
    x = inexact(x)
    if isinstance(negative_slope, (int, float)):
        return node("leaky_relu", x, alpha=negative_slope)
    return rnp.where(rnp.greater_equal(x, 0), x, negative_slope * x)


@op("x", "b")
def squareplus(x, b=4):
    """(x + sqrt(x^2 + b)) / 2."""
    x = inexact(x)
    if isinstance(b, (int, float)):
        return _rlx.squareplus(x, b)
    # Below 0, where the root cancels x, it is the quotient of b and the other solution.
    below = rnp.less(x, 0)
    total = rnp.hypot(x, rnp.sqrt(b)) + rnp.where(below, -x, x)
    return rnp.where(below, 0.5 * b / total, 0.5 * total)


@op("x")
def sparse_plus(x):
    """0 up to -1, (x + 1)^2 / 4 up to 1, x above."""
    x = inexact(x)
    bend = rnp.square(_steps(x, -1, 1) + 1) / 4
    return rnp.where(rnp.less_equal(x, -1), 0, rnp.where(rnp.greater_equal(x, 1), x, bend))


@op("x")
def sparse_sigmoid(x):
    """(x + 1) / 2 clipped to [0, 1]: the derivative of sparse_plus."""
    return 0.5 * rnp.clip(inexact(x), -1, 1) + 0.5


@op("x")
def log1mexp(x):
    """log(1 - exp(-x)) of x > 0."""
    x = inexact(x)
    small = rnp.less(x, 0.6931471805599453)
    near, far = rnp.where(small, x, 0.5), rnp.where(small, 1, x)
    return rnp.where(small, rnp.log(-rnp.expm1(-near)), rnp.log1p(-rnp.exp(-far)))


@op("x")
def glu(x, axis=-1):
    """The first half along an axis times the sigmoid of the second half."""
    x = inexact(x)
    axis = axis_of(axis, x.ndim, "glu")
    if x.shape[axis] % 2:
        raise ValueError(f"glu: axis {axis} of shape {x.shape} has an odd extent")
    half, gate = (rnp.astype(v, rnp.promote_types(v.dtype, "float32")) for v in rnp.split(x, 2, axis))
    return rnp.astype(half * node("sigmoid", gate), x.dtype)  # the gate of a half may be 0 where the product is not


@op("x", "slope")
def prelu(x, slope):
    """x where it is 0 or above, slope * x below 0. slope broadcasts against x (ONNX PRelu)."""
    return _rlx.special("prelu", *typed(*both_inexact(x, slope)))


@op("x")
def thresholded_relu(x, alpha=1.0):
    """x above alpha, 0 elsewhere (ONNX ThresholdedRelu)."""
    return _rlx.thresholded_relu(inexact(x), alpha)


@op("x")
def shrink(x, lambd=0.5, bias=0.0):
    """x moved by bias towards 0 where |x| > lambd, 0 elsewhere (ONNX Shrink)."""
    return _rlx.shrink(inexact(x), lambd, bias)


@op("x")
def tanh_shrink(x):
    """x - tanh(x)."""
    return _rlx.special("tanh_shrink", inexact(x))
