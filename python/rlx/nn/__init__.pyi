# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

def adaptive_avg_pool(inputs: Any, sizes: Any, *, channels_last: bool = True) -> Array: ...
def adaptive_max_pool(inputs: Any, sizes: Any, *, channels_last: bool = True) -> Array: ...
def avg_pool(
    inputs: Any,
    window_shape: Any,
    strides: Any = None,
    padding: Any = 'VALID',
    count_include_pad: bool = True,
    *,
    dilation: Any = 1,
    ceil_mode: bool = False,
    channels_last: bool = True,
) -> Array: ...
def batch_norm(
    x: ArrayLike,
    mean: Any = None,
    var: Any = None,
    gamma: Any = None,
    beta: Any = None,
    eps: Any = 1e-05,
    axis: Axis = 1,
) -> Any: ...
def celu(x: ArrayLike, alpha: Any = 1.0) -> Array: ...
def dot_product_attention(
    query: Any,
    key: ArrayLike,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: Any = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: Any = None,
    return_residual: bool = False,
) -> Array: ...
def elu(x: ArrayLike, alpha: Any = 1.0) -> Array: ...
def erf(x: ArrayLike) -> Array: ...
def gelu(x: ArrayLike, approximate: bool = True) -> Array: ...
def glu(x: ArrayLike, axis: Axis = -1) -> Array: ...
def group_norm(x: ArrayLike, num_groups: Any, gamma: Any = None, beta: Any = None, eps: Any = 1e-05) -> Array: ...
def hard_sigmoid(x: ArrayLike) -> Array: ...
def hard_silu(x: ArrayLike) -> Array: ...
def hard_swish(x: ArrayLike) -> Array: ...
def hard_tanh(x: ArrayLike) -> Array: ...
def identity(x: ArrayLike) -> Array: ...
from . import initializers as initializers
def instance_norm(x: ArrayLike, gamma: Any = None, beta: Any = None, eps: Any = 1e-05) -> Array: ...
def layer_norm(x: ArrayLike, gamma: Any = None, beta: Any = None, axis: Axis = -1, eps: Any = 1e-05) -> Array: ...
def leaky_relu(x: ArrayLike, negative_slope: Any = 0.01) -> Array: ...
def local_response_norm(
    x: ArrayLike,
    size: Any,
    alpha: Any = 0.0001,
    beta: Any = 0.75,
    k: Any = 1.0,
    axis: Axis = 1,
) -> Array: ...
def log1mexp(x: ArrayLike) -> Array: ...
def log_sigmoid(x: ArrayLike) -> Array: ...
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array: ...
def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array: ...
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array: ...
def lp_pool(
    inputs: Any,
    p: Any,
    window_shape: Any,
    strides: Any = None,
    padding: Any = 'VALID',
    *,
    ceil_mode: bool = False,
    channels_last: bool = True,
) -> Array: ...
def max_pool(
    inputs: Any,
    window_shape: Any,
    strides: Any = None,
    padding: Any = 'VALID',
    *,
    dilation: Any = 1,
    ceil_mode: bool = False,
    channels_last: bool = True,
) -> Array: ...
def max_pool_with_indices(
    inputs: Any,
    window_shape: Any,
    strides: Any = None,
    padding: Any = 'VALID',
    *,
    dilation: Any = 1,
    ceil_mode: bool = False,
    channels_last: bool = True,
) -> tuple[Array, Array]: ...
def max_unpool(inputs: Any, indices: Any, space: Any) -> Array: ...
def min_pool(
    inputs: Any,
    window_shape: Any,
    strides: Any = None,
    padding: Any = 'VALID',
    *,
    dilation: Any = 1,
    ceil_mode: bool = False,
    channels_last: bool = True,
) -> Array: ...
def mish(x: ArrayLike) -> Array: ...
def one_hot(x: ArrayLike, num_classes: Any, *, dtype: DTypeLike | None = 'float32', axis: Axis = -1) -> Array: ...
def prod_pool(
    inputs: Any,
    window_shape: Any,
    strides: Any = None,
    padding: Any = 'VALID',
    *,
    dilation: Any = 1,
    ceil_mode: bool = False,
    channels_last: bool = True,
) -> Array: ...
def relu(x: ArrayLike) -> Array: ...
def relu6(x: ArrayLike) -> Array: ...
def rms_norm(x: ArrayLike, gamma: Any = None, beta: Any = None, axis: Axis = -1, eps: Any = 1e-06) -> Array: ...
def selu(x: ArrayLike) -> Array: ...
def sigmoid(x: ArrayLike) -> Array: ...
def silu(x: ArrayLike) -> Array: ...
def soft_sign(x: ArrayLike) -> Array: ...
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array: ...
def softplus(x: ArrayLike) -> Array: ...
def sparse_plus(x: ArrayLike) -> Array: ...
def sparse_sigmoid(x: ArrayLike) -> Array: ...
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array: ...
def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-05,
    where: ArrayLike | None = None,
    *,
    algorithm: Any = 'fast',
) -> Array: ...
def sum_pool(
    inputs: Any,
    window_shape: Any,
    strides: Any = None,
    padding: Any = 'VALID',
    *,
    dilation: Any = 1,
    ceil_mode: bool = False,
    channels_last: bool = True,
) -> Array: ...
def swish(x: ArrayLike) -> Array: ...
def tanh(x: ArrayLike) -> Array: ...
