# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

def constant(value: Any, dtype: DTypeLike | None = 'float32') -> Callable[..., Array]: ...
def delta_orthogonal(
    scale: Any = 1.0,
    column_axis: Any = -1,
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def glorot_normal(
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def glorot_uniform(
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def he_normal(
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def he_uniform(
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def kaiming_normal(
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def kaiming_uniform(
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def lecun_normal(
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def lecun_uniform(
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def normal(stddev: Any = 0.01, dtype: DTypeLike | None = 'float32') -> Callable[..., Array]: ...
def ones(key: ArrayLike, shape: ShapeLike, dtype: DTypeLike | None = 'float32') -> Array: ...
def orthogonal(
    scale: Any = 1.0,
    column_axis: Any = -1,
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def truncated_normal(
    stddev: Any = 0.01,
    dtype: DTypeLike | None = 'float32',
    lower: Any = -2.0,
    upper: Any = 2.0,
) -> Callable[..., Array]: ...
def uniform(scale: Any = 0.01, dtype: DTypeLike | None = 'float32') -> Callable[..., Array]: ...
def variance_scaling(
    scale: Any,
    mode: str,
    distribution: Any,
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def xavier_normal(
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def xavier_uniform(
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = 'float32',
) -> Callable[..., Array]: ...
def zeros(key: ArrayLike, shape: ShapeLike, dtype: DTypeLike | None = 'float32') -> Array: ...
