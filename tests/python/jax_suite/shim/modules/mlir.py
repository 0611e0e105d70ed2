"""jax._src.interpreters.mlir: what marks of tests read."""

_platforms_with_donation = ["cpu", "gpu", "tpu"]
