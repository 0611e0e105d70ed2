# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

EigImplementation: Any
EighImplementation: Any
SvdAlgorithm: Any
def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array: ...
def cholesky_update(r_matrix: Any, w_vector: Any) -> Array: ...
def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: Any = None,
    use_magma: Any = None,
) -> list[Array]: ...
def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: Any = None,
    implementation: Any = None,
) -> tuple[Array, ...]: ...
def hessenberg(a: ArrayLike) -> tuple[Array, ...]: ...
def householder_product(a: ArrayLike, taus: Any) -> Array: ...
def lu(x: ArrayLike) -> tuple[Array, ...]: ...
def lu_pivots_to_permutation(pivots: Any, permutation_size: Any) -> Array: ...
def ormqr(a: ArrayLike, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array: ...
def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: Any = None,
    eps: Any = None,
    dynamic_shape: Any = None,
) -> tuple[Array, ...]: ...
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True) -> tuple[Array, ...]: ...
def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Any = None,
) -> tuple[Array, ...]: ...
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: Any = None,
    algorithm: Any = None,
) -> tuple[Array, ...]: ...
def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: Any = 1.0,
    beta: Any = 0.0,
    symmetrize_output: bool = False,
) -> Array: ...
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
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, ...]: ...
def tridiagonal_solve(dl: Any, d: Any, du: Any, b: ArrayLike, *, perturb_singular: bool = False) -> Array: ...
