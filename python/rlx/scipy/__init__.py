"""SciPy's names for what rlx has, as jax.scipy has them."""

_INSTEAD = {
    "fft": "rlx.numpy.fft",
    "stats": "ndtr, betainc, gammainc and the like are in rlx.scipy.special, random numbers in rlx.random",
}


def __getattr__(name):
    if name in ("linalg", "signal", "special"):
        import importlib

        return importlib.import_module("rlx.scipy." + name)
    advice = _INSTEAD.get(name, "it has linalg, signal and special")
    raise AttributeError(f"module 'rlx.scipy' has no attribute {name!r}: {advice}")
