"""scipy.cluster.vq: vector quantisation."""

from ... import numpy as _rnp
from ..._names import getattr_of as _getattr_of
from ..._nodes import inexact as _inexact
from ..._op import op as _op


@_op("obs", "code_book")
def vq(obs, code_book, check_finite=True):
    """(the index of the nearest row of the code book for each observation, its distance). check_finite has no
    effect.
    """
    obs, codes = _inexact(obs), _inexact(code_book)
    if obs.ndim != codes.ndim:
        raise ValueError("vq: observation and code_book should have the same rank")
    if obs.ndim == 1:
        obs, codes = obs[..., None], codes[..., None]
    if obs.ndim != 2:
        raise ValueError("vq: ndim different than 1 or 2 are not supported")
    distances = _rnp.linalg.norm(obs[:, None, :] - codes[None, :, :], axis=-1)
    nearest = _rnp.argmin(distances, -1)
    return nearest, _rnp.take_along_axis(distances, nearest[:, None], -1)[:, 0]


__all__ = ["vq"]
__getattr__ = _getattr_of("rlx.scipy.cluster.vq", {})
