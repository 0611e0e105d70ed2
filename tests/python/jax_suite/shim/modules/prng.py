"""jax._src.random.prng: the one kind of key of rlx."""

from jax._src.standins import Internal

threefry_prng_impl = Internal("jax._src.random.prng.threefry_prng_impl")
prngs = {"threefry2x32": threefry_prng_impl}
