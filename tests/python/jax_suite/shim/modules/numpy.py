"""jax.numpy: rlx.numpy; dtypes are called and compared as JAX's are."""

import numpy as _np
import rlx as _rlx
import rlx.numpy as _rnp
from jax._src.top_array import Array as ndarray  # noqa: F401
from jax import dtypes as _dtypes

dtype = _np.dtype
floating, integer, signedinteger, unsignedinteger = _np.floating, _np.integer, _np.signedinteger, _np.unsignedinteger
inexact, complexfloating, number, generic, character, object_, flexible = (
    _np.inexact, _np.complexfloating, _np.number, _np.generic, _np.character, _np.object_, _np.flexible
)  # fmt: skip
bool = _rnp.bool_
_DTYPES = {d.name: d for d in _rlx.dtypes}


def issubdtype(a, b):
    return _dtypes.issubdtype(a, b)


def finfo(x):
    return _dtypes.finfo(x)


def iinfo(x):
    return _dtypes.iinfo(x)


def result_type(*args):
    return _dtypes.canonicalize_dtype(_np.dtype(_rnp.result_type(*args)))


def promote_types(a, b):
    return _dtypes.canonicalize_dtype(_np.dtype(_rnp.promote_types(a, b)))
