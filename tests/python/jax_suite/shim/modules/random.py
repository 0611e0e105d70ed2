"""jax.random: rlx.random; only the keys of threefry."""
