"""scipy.integrate: trapezoid."""

from .._names import accept_names as _accept_names, getattr_of as _getattr_of
from ..numpy import trapezoid

__all__ = ["trapezoid"]
__getattr__ = _getattr_of("rlx.scipy.integrate", {})

_accept_names(globals())
