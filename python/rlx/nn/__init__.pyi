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
def binary_cross_entropy(probs: Any, targets: Any, weight: Any = None, *, reduction: Any = 'mean') -> Array: ...
def binary_cross_entropy_with_logits(
    logits: Any,
    targets: Any,
    weight: Any = None,
    pos_weight: Any = None,
    *,
    reduction: Any = 'mean',
) -> Array: ...
def causal_conv1d(x: ArrayLike, w: Any, context: Any = None, bias: Any = None) -> Array: ...
def celu(x: ArrayLike, alpha: Any = 1.0) -> Array: ...
def conv1d(
    x: ArrayLike,
    w: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> Array: ...
def conv2d(
    x: ArrayLike,
    w: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> Array: ...
def conv3d(
    x: ArrayLike,
    w: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> Array: ...
def conv_transpose1d(
    x: ArrayLike,
    w: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: Any = 1,
    dilation: Any = 1,
) -> Array: ...
def conv_transpose2d(
    x: ArrayLike,
    w: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: Any = 1,
    dilation: Any = 1,
) -> Array: ...
def conv_transpose3d(
    x: ArrayLike,
    w: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: Any = 1,
    dilation: Any = 1,
) -> Array: ...
def cosine_distance(predictions: Any, targets: Any, epsilon: Any = 0.0, axis: Axis = -1) -> Array: ...
def cosine_embedding_loss(
    a: ArrayLike,
    b: ArrayLike,
    targets: Any,
    *,
    margin: Any = 0.0,
    reduction: Any = 'mean',
) -> Array: ...
def cosine_similarity(predictions: Any, targets: Any, epsilon: Any = 0.0, axis: Axis = -1) -> Array: ...
def cross_entropy(
    logits: Any,
    labels: Any,
    weight: Any = None,
    *,
    ignore_index: Any = None,
    label_smoothing: Any = 0.0,
    axis: Axis = -1,
    reduction: Any = 'mean',
) -> Array: ...
def ctc_loss(logits: Any, logit_paddings: Any, labels: Any, label_paddings: Any, blank_id: Any = 0) -> Array: ...
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
    implementation: Any = None,
) -> Array: ...
def elu(x: ArrayLike, alpha: Any = 1.0) -> Array: ...
def erf(x: ArrayLike) -> Array: ...
def gated_delta_net(
    q: Any,
    k: Any,
    v: Any,
    g: Any,
    beta: Any,
    state: Any = None,
    *,
    scale: Any = None,
    chunk: Any = 32,
) -> Array: ...
def gaussian_nll_loss(
    x: ArrayLike,
    targets: Any,
    var: Any,
    *,
    full: bool = False,
    eps: Any = 1e-06,
    reduction: Any = 'mean',
) -> Array: ...
def gelu(x: ArrayLike, approximate: bool = True) -> Array: ...
def glu(x: ArrayLike, axis: Axis = -1) -> Array: ...
def group_norm(x: ArrayLike, num_groups: Any, gamma: Any = None, beta: Any = None, eps: Any = 1e-05) -> Array: ...
def gru(
    x: ArrayLike,
    weights: Any,
    h0: Any = None,
    *,
    lengths: Any = None,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> Array: ...
def gru_cell(x: ArrayLike, h: Any, weights: Any) -> Array: ...
def hard_sigmoid(x: ArrayLike) -> Array: ...
def hard_silu(x: ArrayLike) -> Array: ...
def hard_swish(x: ArrayLike) -> Array: ...
def hard_tanh(x: ArrayLike) -> Array: ...
def hinge_embedding_loss(x: ArrayLike, targets: Any, *, margin: Any = 1.0, reduction: Any = 'mean') -> Array: ...
def hinge_loss(predictor_outputs: Any, targets: Any) -> Array: ...
def huber_loss(predictions: Any, targets: Any = None, delta: Any = 1.0) -> Array: ...
def identity(x: ArrayLike) -> Array: ...
from . import initializers as initializers
def instance_norm(x: ArrayLike, gamma: Any = None, beta: Any = None, eps: Any = 1e-05) -> Array: ...
def kl_div(x: ArrayLike, targets: Any, *, log_target: bool = False, reduction: Any = 'mean') -> Array: ...
def kl_divergence(log_predictions: Any, targets: Any, axis: Axis = -1) -> Array: ...
def kl_divergence_with_log_targets(log_predictions: Any, log_targets: Any, axis: Axis = -1) -> Array: ...
def l1_loss(x: ArrayLike, targets: Any, *, reduction: Any = 'mean') -> Array: ...
def l2_loss(predictions: Any, targets: Any = None) -> Array: ...
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
def log_cosh(predictions: Any, targets: Any = None) -> Array: ...
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
def lstm(
    x: ArrayLike,
    weights: Any,
    h0: Any = None,
    c0: Any = None,
    *,
    lengths: Any = None,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> Array: ...
def lstm_cell(x: ArrayLike, h: Any, c: Any, weights: Any) -> Array: ...
def mamba2(
    x: ArrayLike,
    dt: Any,
    a: ArrayLike,
    b: ArrayLike,
    c: Any,
    d: Any = None,
    z: Any = None,
    dt_bias: Any = None,
    state: Any = None,
    *,
    dt_softplus: bool = False,
    chunk: Any = 64,
) -> Array: ...
def margin_ranking_loss(
    a: ArrayLike,
    b: ArrayLike,
    targets: Any,
    *,
    margin: Any = 0.0,
    reduction: Any = 'mean',
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
def mse_loss(x: ArrayLike, targets: Any, *, reduction: Any = 'mean') -> Array: ...
def nll_loss(
    log_probs: Any,
    labels: Any,
    weight: Any = None,
    *,
    ignore_index: Any = None,
    axis: Axis = -1,
    reduction: Any = 'mean',
) -> Array: ...
def one_hot(x: ArrayLike, num_classes: Any, *, dtype: DTypeLike | None = 'float32', axis: Axis = -1) -> Array: ...
def poisson_nll_loss(
    x: ArrayLike,
    targets: Any,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: Any = 1e-08,
    reduction: Any = 'mean',
) -> Array: ...
def prelu(x: ArrayLike, slope: Any) -> Array: ...
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
def rnn(
    x: ArrayLike,
    weights: Any,
    h0: Any = None,
    *,
    lengths: Any = None,
    bidirectional: bool = False,
    batch_first: bool = False,
    nonlinearity: Any = 'tanh',
) -> Array: ...
def rnn_cell(x: ArrayLike, h: Any, weights: Any, nonlinearity: Any = 'tanh') -> Array: ...
def selective_scan(
    x: ArrayLike,
    delta: Any,
    a: ArrayLike,
    b: ArrayLike,
    c: Any,
    d: Any = None,
    z: Any = None,
    delta_bias: Any = None,
    state: Any = None,
    *,
    delta_softplus: bool = False,
) -> Array: ...
def selu(x: ArrayLike) -> Array: ...
def shrink(x: ArrayLike, lambd: Any = 0.5, bias: Any = 0.0) -> Array: ...
def sigmoid(x: ArrayLike) -> Array: ...
def sigmoid_binary_cross_entropy(logits: Any, labels: Any) -> Array: ...
def sigmoid_focal_loss(logits: Any, labels: Any, alpha: Any = None, gamma: Any = 2.0) -> Array: ...
def silu(x: ArrayLike) -> Array: ...
def smooth_l1_loss(x: ArrayLike, targets: Any, *, beta: Any = 1.0, reduction: Any = 'mean') -> Array: ...
def smooth_labels(labels: Any, alpha: Any) -> Array: ...
def soft_margin_loss(x: ArrayLike, targets: Any, *, reduction: Any = 'mean') -> Array: ...
def soft_sign(x: ArrayLike) -> Array: ...
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array: ...
def softmax_cross_entropy(logits: Any, labels: Any, axis: Axis = -1, where: ArrayLike | None = None) -> Array: ...
def softmax_cross_entropy_with_integer_labels(logits: Any, labels: Any, axis: Axis = -1) -> Array: ...
def softplus(x: ArrayLike) -> Array: ...
def sparse_plus(x: ArrayLike) -> Array: ...
def sparse_sigmoid(x: ArrayLike) -> Array: ...
def squared_error(predictions: Any, targets: Any = None) -> Array: ...
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
def tanh_shrink(x: ArrayLike) -> Array: ...
def thresholded_relu(x: ArrayLike, alpha: Any = 1.0) -> Array: ...
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    margin: Any = 1.0,
    p: Any = 2.0,
    eps: Any = 1e-06,
    swap: bool = False,
    reduction: Any = 'mean',
) -> Array: ...
