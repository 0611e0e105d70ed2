"""jax.ops: rows joined by the numbers of the segments that they belong to."""

import operator

from . import _rlx
from . import numpy as rnp
from ._op import as_index, op


def _joined(what, how, first, data, segment_ids, num_segments):
    data, ids = _rlx.value(data), _rlx.value(segment_ids)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{what}: segment_ids are integers, not {ids.dtype.name}")
    if ids.shape != data.shape[: ids.ndim]:
        raise ValueError(f"{what}: segment_ids {ids.shape} are one for each row of data {data.shape}")
    if num_segments is None:
        raise TypeError(f"{what}: give num_segments, which a compiled function has to know: int(segment_ids.max()) + 1")
    count = operator.index(num_segments)
    if count < 0:
        raise ValueError(f"{what}: num_segments = {count} is negative")
    start = rnp.full((count, *data.shape[ids.ndim :]), first(data.dtype), data.dtype)
    # Negative numbers are no segments either, where an index would count from the end.
    ids = as_index(ids)
    ids = rnp.where(rnp.less(ids, 0), count, ids)
    return getattr(start.at[ids], how)(data)


def _least(dtype):
    return False if dtype.kind == "b" else -rnp.inf if dtype.kind == "f" else rnp.iinfo(dtype).min


def _largest(dtype):
    return True if dtype.kind == "b" else rnp.inf if dtype.kind == "f" else rnp.iinfo(dtype).max


_ARGUMENTS = """

    Row i, of the leading axes of segment_ids, belongs to segment segment_ids[i], 0 to num_segments - 1; what belongs to
    another counts nowhere. indices_are_sorted, unique_indices, bucket_size and mode are hints that nothing follows.
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

    call.__name__ = call.__qualname__ = name
    call.__doc__ = sentence + _ARGUMENTS
    return op("data", "segment_ids")(call)


segment_sum = _function("segment_sum", "add", lambda _: 0, "Sums of the rows of each segment, 0 of none.")
segment_prod = _function("segment_prod", "multiply", lambda _: 1, "Products of the rows of each segment, 1 of none.")
segment_max = _function(
    "segment_max", "max", _least, "The largest of the rows of each segment, -inf or the least integer of none."
)
segment_min = _function(
    "segment_min", "min", _largest, "The smallest of the rows of each segment, inf or the largest integer of none."
)
