# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

OptimizeResults: Any
def minimize(
    fun: Any,
    x0: Any,
    args: Any = (),
    *,
    method: Any,
    tol: Any = None,
    options: Any = None,
) -> OptimizeResults: ...
