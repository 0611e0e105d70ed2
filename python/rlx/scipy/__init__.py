"""The functions of jax.scipy: linalg, signal and special."""

from .._names import getattr_of as _getattr_of

_INSTEAD = {
    "fft": "rlx.numpy.fft",
    "stats": "rlx.scipy.special has ndtr, betainc and gammainc; rlx.random has random numbers",
}

__getattr__ = _getattr_of("rlx.scipy", _INSTEAD, ("linalg", "signal", "special"), "it has linalg, signal and special")
