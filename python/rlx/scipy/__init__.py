"""The functions of jax.scipy, in the modules cluster, fft, integrate, interpolate, linalg, ndimage, signal, spatial,
special and stats.
"""

from .._names import getattr_of as _getattr_of

_MODULES = ("cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "signal", "spatial", "special", "stats")

__getattr__ = _getattr_of("rlx.scipy", {}, _MODULES, f"it has {', '.join(_MODULES[:-1])} and {_MODULES[-1]}")
