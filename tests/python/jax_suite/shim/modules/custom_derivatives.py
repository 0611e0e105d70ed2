"""jax.custom_derivatives."""

from rlx import custom_jvp, custom_vjp  # noqa: F401
