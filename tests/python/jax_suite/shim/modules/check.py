"""jax.test_util."""

from jax._src.public_test_util import check_grads, check_jvp, check_vjp  # noqa: F401
