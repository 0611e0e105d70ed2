"""jax._src.deprecations."""


def is_accelerated(name):
    return True
