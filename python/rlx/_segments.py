"""The segment reductions of jax.ops."""

import functools
import operator

from . import _rlx
from . import numpy as rnp
from ._nodes import as_index
from ._op import op
from .numpy._base import named


def _joined(what, how, first, data, segment_ids, num_segments):
    data, ids = _rlx.value(data), _rlx.value(segment_ids)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{what}: segment_ids must be integers, not {ids.dtype.name}")
    if ids.shape != data.shape[: ids.ndim]:
        raise ValueError(f"{what}: segment_ids {ids.shape} must match the leading axes of data {data.shape}")
    if num_segments is None:
        raise TypeError(f"{what}: num_segments is needed, because it is part of the shape: int(segment_ids.max()) + 1")
    count = operator.index(num_segments)
    if count < 0:
        raise ValueError(f"{what}: num_segments = {count} is negative")
    start = rnp.full((count, *data.shape[ids.ndim :]), first(data.dtype), data.dtype)
    # Negative ids name no segment, but a negative index would count from the end.
    ids = as_index(ids)
    ids = rnp.where(rnp.less(ids, 0), count, ids)
    return getattr(start.at[ids], how)(data)


def _least(dtype):
    return False if dtype.kind == "b" else -rnp.inf if dtype.kind == "f" else rnp.iinfo(dtype).min


def _largest(dtype):
    return True if dtype.kind == "b" else rnp.inf if dtype.kind == "f" else rnp.iinfo(dtype).max


_ARGUMENTS = """

    Row i of data, over the axes of segment_ids, belongs to segment segment_ids[i]. Rows whose id is not in
    [0, num_segments) are ignored. num_segments is needed where segment_ids are traced; it is their maximum and 1
    otherwise. indices_are_sorted, unique_indices, bucket_size and mode have no effect.
    """


def _function(name, how, first, sentence):
    def call(
        data,
        segment_ids,
        num_segments=None,
        indices_are_sorted=False,
        unique_indices=False,
        bucket_size=None,
        mode=None,
    ):
        return _joined(name, how, first, data, segment_ids, num_segments)

    inner = op("data", "segment_ids")(named(call, name, sentence + _ARGUMENTS))

    @functools.wraps(inner)
    def function(*args, **kwargs):
        given = args[2] if len(args) > 2 else kwargs.get("num_segments")
        ids = args[1] if len(args) > 1 else kwargs.get("segment_ids")
        if given is None and ids is not None and not isinstance(ids, _rlx.Value):
            import numpy as np

            ids = np.asarray(ids)
            count = max(int(ids.max()) + 1, 0) if ids.size and ids.dtype.kind in "iu" else 0
            if len(args) > 2:
                args = (*args[:2], count, *args[3:])
            else:
                kwargs["num_segments"] = count
        return inner(*args, **kwargs)

    return function


segment_sum = _function(
    "segment_sum", "add", lambda _: 0, "The sum of the rows of each segment; 0 for an empty segment."
)
segment_prod = _function(
    "segment_prod", "multiply", lambda _: 1, "The product of the rows of each segment; 1 for an empty segment."
)
segment_max = _function(
    "segment_max",
    "max",
    _least,
    "The maximum of the rows of each segment; -inf or the least integer for an empty segment.",
)
segment_min = _function(
    "segment_min",
    "min",
    _largest,
    "The minimum of the rows of each segment; inf or the largest integer for an empty segment.",
)
