"""The functions of jax.scipy: linalg, signal, special and stats."""

from .._names import getattr_of as _getattr_of

_INSTEAD = {
    "fft": "rlx.numpy.fft",
}

__getattr__ = _getattr_of(
    "rlx.scipy", _INSTEAD, ("linalg", "signal", "special", "stats"), "it has linalg, signal, special and stats"
)
