"""Functions of neural networks, as jax.nn has them: activations, softmax and norms, attention; convolutions as
PyTorch has them; and initializers."""

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
    prelu,
    relu,
    relu6,
    selu,
    shrink,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
    tanh_shrink,
    thresholded_relu,
)
from ._attention import dot_product_attention  # noqa: F401
from ._convolutions import (  # noqa: F401
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
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
