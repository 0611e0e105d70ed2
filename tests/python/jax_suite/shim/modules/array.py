"""jax._src.array."""

from jax._src.top_array import Array, ArrayImpl  # noqa: F401
