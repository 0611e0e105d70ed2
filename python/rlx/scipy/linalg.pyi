# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

def block_diag(*arrs: Any) -> Array: ...
def cho_factor(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, bool]: ...
def cho_solve(c_and_lower: Any, b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True) -> Array: ...
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array: ...
def det(a: ArrayLike) -> Array: ...
def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False) -> Any: ...
def eigh_tridiagonal(
    d: Any,
    e: Any,
    *,
    eigvals_only: bool = False,
    select: Any = 'a',
    select_range: Any = None,
    tol: Any = None,
) -> Array: ...
def expm(A: Any, *, upper_triangular: bool = False, max_squarings: Any = 16) -> Array: ...
def expm_frechet(a: ArrayLike, e: Any, *, method: Any = None, compute_expm: bool = True) -> Array: ...
def hilbert(n: Any) -> Array: ...
def inv(a: ArrayLike) -> Array: ...
def lu(
    a: ArrayLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]: ...
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, ...]: ...
def lu_solve(
    lu_and_piv: Any,
    b: ArrayLike,
    trans: Any = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array: ...
def polar(
    a: ArrayLike,
    side: Any = 'right',
    *,
    method: Any = None,
    eps: Any = None,
    max_iterations: Any = None,
) -> Array: ...
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = 'full',
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]: ...
def schur(a: ArrayLike, output: Any = 'real') -> Array: ...
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: Any = 'gen',
) -> Array: ...
def solve_sylvester(a: ArrayLike, b: ArrayLike, q: Any) -> Array: ...
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array: ...
def sqrtm(a: ArrayLike, blocksize: Any = 1) -> Array: ...
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: Any = 'gesdd',
) -> Any: ...
def toeplitz(c: Any, r: Any = None) -> Array: ...
