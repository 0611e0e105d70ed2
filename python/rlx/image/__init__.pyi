# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

ResizeMethod: Any
def resize(image: Any, shape: ShapeLike, method: Any, antialias: bool = True) -> Array: ...
def scale_and_translate(
    image: Any,
    shape: ShapeLike,
    spatial_dims: Any,
    scale: Any,
    translation: Any,
    method: Any,
    antialias: bool = True,
    precision: Any = None,
) -> Array: ...
