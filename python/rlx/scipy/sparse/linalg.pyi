# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from ... import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

def bicgstab(
    A: Any,
    b: ArrayLike,
    x0: Any = None,
    *,
    tol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
) -> tuple[Any, None]: ...
def cg(
    A: Any,
    b: ArrayLike,
    x0: Any = None,
    *,
    tol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
) -> tuple[Any, None]: ...
def gmres(
    A: Any,
    b: ArrayLike,
    x0: Any = None,
    *,
    tol: Any = 1e-05,
    atol: Any = 0.0,
    restart: Any = 20,
    maxiter: Any = None,
    M: Any = None,
    solve_method: Any = 'batched',
) -> tuple[Any, None]: ...
