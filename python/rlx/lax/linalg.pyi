# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array: ...
def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: Any = None,
) -> tuple[Array, ...]: ...
def householder_product(a: ArrayLike, taus: Any) -> Array: ...
def lu(x: ArrayLike) -> tuple[Array, ...]: ...
def lu_pivots_to_permutation(pivots: Any, permutation_size: Any) -> Array: ...
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True) -> tuple[Array, ...]: ...
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: Any = None,
    algorithm: Any = None,
) -> tuple[Array, ...]: ...
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array: ...
