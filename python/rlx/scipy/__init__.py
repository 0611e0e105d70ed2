"""SciPy's names for what rlx has, as jax.scipy has them."""

from .._names import getattr_of as _getattr_of

_INSTEAD = {
    "fft": "rlx.numpy.fft",
    "stats": "ndtr, betainc, gammainc and the like are in rlx.scipy.special, random numbers in rlx.random",
}

__getattr__ = _getattr_of("rlx.scipy", _INSTEAD, ("linalg", "signal", "special"), "it has linalg, signal and special")
