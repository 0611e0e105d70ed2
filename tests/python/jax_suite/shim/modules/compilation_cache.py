"""jax._src.compilation_cache: there is none."""

_cache = None


def reset_cache():
    pass


def is_persistent_cache_enabled():
    return False
