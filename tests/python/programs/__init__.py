"""Random programs: made from a seed, run by rlx and by JAX, compared, shrunk, and kept as text."""
