"""The functions of jax.scipy: cluster, fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial,
special and stats.
"""

from .._names import getattr_of as _getattr_of

_MODULES = "cluster fft integrate interpolate linalg ndimage optimize signal sparse special stats".split()

__getattr__ = _getattr_of("rlx.scipy", {}, _MODULES, f"it has {', '.join(_MODULES)}")
