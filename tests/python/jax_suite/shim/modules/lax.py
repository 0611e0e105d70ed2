"""jax.lax: rlx.lax, with the control flow of rlx."""
