"""scipy.integrate: trapezoid."""

from .._names import getattr_of as _getattr_of
from ..numpy import trapezoid

__all__ = ["trapezoid"]
__getattr__ = _getattr_of("rlx.scipy.integrate", {})
