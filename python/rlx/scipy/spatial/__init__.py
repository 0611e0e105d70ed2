"""scipy.spatial: transform."""

from ..._names import getattr_of as _getattr_of

__getattr__ = _getattr_of("rlx.scipy.spatial", {}, ("transform",))
