"""Functions of neural networks, as jax.nn has them: activations, softmax and norms, attention; and initializers."""

from . import initializers  # noqa: F401
from ._activations import (  # noqa: F401
    celu,
    elu,
    erf,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from ._attention import dot_product_attention  # noqa: F401
from ._normal import (  # noqa: F401
    layer_norm,
    log_softmax,
    logmeanexp,
    logsumexp,
    one_hot,
    rms_norm,
    softmax,
    standardize,
)
from ._sequence import (  # noqa: F401
    causal_conv1d,
    gated_delta_net,
    gru,
    gru_cell,
    lstm,
    lstm_cell,
    mamba2,
    rnn,
    rnn_cell,
    selective_scan,
)
