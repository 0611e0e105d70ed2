"""scipy.cluster.vq."""

from ... import _rlx
from ... import numpy as rnp
from ..._nodes import cast as _cast
from ..._nodes import inexact as _inexact
from ..._op import op as _op
from ..._names import accept_names as _accept_names

__all__ = ["vq"]


@_op("obs", "code_book")
def vq(obs, code_book, check_finite=True):
    """(index of the nearest code, distance to it) of each observation [M, N], for codes [K, N]."""
    x, codes = _inexact(obs), _inexact(code_book)
    dtype = _rlx.result_type(x, codes)[0]
    x, codes = _cast(x, dtype), _cast(codes, dtype)
    if x.ndim != codes.ndim or x.ndim not in (1, 2) or x.shape[1:] != codes.shape[1:]:
        raise ValueError(
            f"vq: obs of shape {x.shape} and code_book of shape {codes.shape}; they must be [M, N] and [K, N]"
        )
    if x.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    squares = rnp.sum(rnp.square(x[:, None] - codes[None]), -1)
    place = rnp.argmin(squares, 1)
    return _cast(place, "int32"), rnp.sqrt(rnp.min(squares, 1))


_accept_names(globals())
