"""SciPy's names for what rlx has, as jax.scipy has them."""


def __getattr__(name):
    if name in ("linalg", "signal", "special"):
        import importlib

        return importlib.import_module("rlx.scipy." + name)
    raise AttributeError(f"module 'rlx.scipy' has no attribute {name!r}")
