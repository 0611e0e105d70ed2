# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

def map_coordinates(input: Any, coordinates: Any, order: Any, mode: str = 'constant', cval: Any = 0.0) -> Array: ...
