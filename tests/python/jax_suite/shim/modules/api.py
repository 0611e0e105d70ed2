"""jax._src.api: the transformations."""

import rlx
from jax._src.standins import UsesInternals

jit = rlx.jit


def make_jaxpr(*args, **kwargs):
    raise UsesInternals("jax.make_jaxpr")


from rlx import (  # noqa: E402, F401
    block_until_ready, checkpoint, eval_shape, grad, hessian, jacfwd, jacrev, jacobian, jvp, linearize,
    value_and_grad, vjp, vmap, custom_jvp, custom_vjp, clear_caches, disable_jit, remat, pure_callback,
)  # fmt: skip
