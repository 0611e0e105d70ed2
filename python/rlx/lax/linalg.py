"""The functions of jax.lax.linalg: factorizations of matrices in the last two axes."""

from .. import _rlx
from .._nodes import cast, inexact, node
from .._op import op
from ..numpy import broadcast_to, reshape
from ..numpy import sum as _sum
from ..numpy.linalg import _adjoint, _symmetrized
from ._control import fori_loop
from ._factors import (
    cholesky_update,
    eig,
    hessenberg,
    ormqr,
    qdwh,
    schur,
    symmetric_product,
    tridiagonal,
    tridiagonal_solve,
)
from ._kinds import EigImplementation, EighImplementation, SvdAlgorithm
from ._shapes import iota
from .._names import accept_names as _accept_names

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qdwh",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
]


@op("x")
def cholesky(x, *, symmetrize_input=True):
    """The lower Cholesky factor l with x = l l^H, of (x + x^H) / 2 or of the lower triangle alone. NaN if the matrix is
    not positive definite.
    """
    return node("cholesky", _symmetrized(inexact(x), symmetrize_input))


@op("a", "b")
def triangular_solve(a, b, *, left_side=False, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False):
    """Solves op(a) x = b with left_side, else x op(a) = b. The leading axes must be equal."""
    a, b = inexact(a), inexact(b)
    if b.ndim == a.ndim - 1:  # one vector for each matrix
        column = reshape(b, (*b.shape, 1)) if left_side else reshape(b, (*b.shape[:-1], 1, b.shape[-1]))
        out = triangular_solve(
            a,
            column,
            left_side=left_side,
            lower=lower,
            transpose_a=transpose_a,
            conjugate_a=conjugate_a,
            unit_diagonal=unit_diagonal,
        )
        return reshape(out, b.shape)
    dtype = _rlx.result_type(a, b)[0]
    return node(
        "triangular_solve",
        cast(a, dtype),
        cast(b, dtype),
        left=bool(left_side),
        lower=bool(lower),
        transpose=bool(transpose_a),
        conjugate=bool(conjugate_a),
        unit_diagonal=bool(unit_diagonal),
    )


@op("x")
def lu(x):
    """(lu, pivots, permutation): x[permutation] = l u, with both factors in one matrix. Row i was exchanged with row
    pivots[i].
    """
    return tuple(node("lu", inexact(x)))


@op("pivots")
def lu_pivots_to_permutation(pivots, permutation_size):
    """The permutation of `permutation_size` rows that exchanges row i with row pivots[i], one after the other."""
    pivots = _rlx.value(pivots)
    lead, count = pivots.shape[:-1], pivots.shape[-1]
    if permutation_size < count:
        raise ValueError(f"lu_pivots_to_permutation: there are {count} pivots, but only {permutation_size} rows")
    rows = broadcast_to(iota("int32", permutation_size), (*lead, permutation_size))
    at = iota("int32", permutation_size)

    def exchange(i, p):
        mine = node("eq", at, cast(i, "int32"))
        theirs = node("eq", at, _picked(pivots, i)[..., None])
        a = _chosen(p, mine)
        b = _chosen(p, theirs)
        return node("where", mine, b, node("where", theirs, a, p))

    return fori_loop(0, count, exchange, rows)


def _picked(pivots, i):
    here = node("eq", iota("int32", pivots.shape[-1]), cast(i, "int32"))
    return cast(_sum(node("where", here, cast(pivots, "int32"), 0), -1), "int32")


def _chosen(p, mask):
    return cast(_sum(node("where", mask, p, 0), -1, keepdims=True), "int32")


@op("x")
def qr(x, *, pivoting=False, full_matrices=True):
    """(q, r): a matrix with orthonormal columns and an upper triangular one."""
    if pivoting:
        raise NotImplementedError("qr: pivoting is not supported; rlx.scipy.linalg.qr(x, pivoting=True) has it")
    return tuple(node("qr", inexact(x), full=bool(full_matrices)))


@op("x")
def eigh(x, *, lower=True, symmetrize_input=True, sort_eigenvalues=True, subset_by_index=None, implementation=None):
    """(eigenvectors as columns, eigenvalues in ascending order) of (x + x^H) / 2, or of one triangle alone.
    `implementation` has no effect.
    """
    if subset_by_index is not None:
        raise NotImplementedError("eigh: subset_by_index is not supported; index the full result")
    x = _symmetrized(inexact(x), symmetrize_input)
    if not lower and not symmetrize_input:
        x = _adjoint(x)
    w, v = node("eigh", x)
    return v, w


@op("x")
def svd(x, *, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None):
    """(u, s, vh), or (s,) with compute_uv=False. `algorithm` has no effect."""
    if subset_by_index is not None:
        raise NotImplementedError("svd: subset_by_index is not supported; index the full result")
    x = inexact(x)
    if not compute_uv:
        return (node("svd", x, full=False)[1],)
    return tuple(node("svd", x, full=bool(full_matrices)))


@op("a", "taus")
def householder_product(a, taus):
    """The first columns of the product of the Householder reflections in a (below its diagonal) and taus."""
    return _rlx.linalg("householder_product", [inexact(a), inexact(taus)])[0]


_accept_names(globals())
