"""The functions of jax.scipy.linalg, over the factorizations of rlx.numpy.linalg."""

from .. import _rlx
from .._names import accept_names as _accept_names, getattr_of as _getattr_of
from .._control import fori_loop
from .._nodes import cast, inexact, node
from .._op import op
from .._transforms import jvp
from ..lax.linalg import lu_pivots_to_permutation
from ..numpy import abs as abs_
from ..numpy import (
    arange,
    argmax,
    broadcast_shapes,
    broadcast_to,
    concatenate,
    conj,
    eye,
    maximum,
    sqrt,
    square,
    take_along_axis,
)
from ..numpy import tril, triu, where, zeros
from ..numpy import linalg as _linalg
from ..numpy.linalg import _adjoint, det, inv  # noqa: F401

from ._matrices import (  # noqa: F401
    eigh_tridiagonal,
    hilbert,
    polar,
    solve_sylvester,
    sqrtm,
)
from ._special_matrices import (  # noqa: F401
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from ._matrix_functions import funm, hessenberg, rsf2csf, schur  # noqa: F401

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lu",
    "lu_factor",
    "lu_solve",
    "pascal",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "toeplitz",
]


def _trans(trans):
    trans = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    if trans not in (0, 1, 2):
        raise ValueError(f"trans {trans!r}; it must be 0, 1, 2, 'N', 'T' or 'C'")
    return trans


@op("a")
def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """The Cholesky factor of one triangle of a: u with a = u^H u, or with lower l with a = l l^H."""
    a = inexact(a)
    l = node("cholesky", a if lower else _adjoint(a))
    return l if lower else _adjoint(l)


@op("a")
def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """(the Cholesky factor of one triangle of a, lower), for cho_solve."""
    return cholesky(a, lower=lower), lower


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """Solves a x = b with the factor of cho_factor. b is a vector or a matrix."""
    c, lower = c_and_lower
    return _cho_solve(c, b, bool(lower))


@op("c", "b")
def _cho_solve(c, b, lower):
    return _rlx.linalg("cholesky_solve", [inexact(c), inexact(b)], float(lower))[0]


@op("a", "b")
def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    """Solves op(a) x = b with one triangle of a. trans: 0; 1 or "T", the transpose; 2 or "C", the conjugate transpose.
    b is a vector or a matrix; leading axes of a and b broadcast.
    """
    a, b = inexact(a), inexact(b)
    dtype = _rlx.result_type(a, b)[0]
    a, b = cast(a, dtype), cast(b, dtype)
    vector = b.ndim == 1 or b.shape == a.shape[:-1]
    if b.ndim > 1 and not vector:
        lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = broadcast_to(a, (*lead, *a.shape[-2:])), broadcast_to(b, (*lead, *b.shape[-2:]))
    elif b.ndim == 1:
        b = broadcast_to(b, (*a.shape[:-2], *b.shape))
    trans = _trans(trans)
    x = node(
        "triangular_solve",
        a,
        b[..., None] if vector else b,
        lower=bool(lower),
        transpose=trans > 0,
        conjugate=trans == 2,
        unit_diagonal=bool(unit_diagonal),
    )
    return x[..., 0] if vector else x


@op("a")
def lu_factor(a, overwrite_a=False, check_finite=True):
    """(lu, pivots): both factors in one matrix, and for each row the row that it was exchanged with."""
    lu_, pivots, _ = node("lu", inexact(a))
    return lu_, pivots


def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """Solves a x = b (trans 1: a^T, 2: a^H) with the result of lu_factor. b is a vector or a matrix."""
    lu_, pivots = lu_and_piv
    return _lu_solve(lu_, pivots, b, _trans(trans))


@op("lu", "pivots", "b")
def _lu_solve(lu, pivots, b, trans):
    lu, b = inexact(lu), inexact(b)
    dtype = _rlx.result_type(lu, b)[0]
    lu, b = cast(lu, dtype), cast(b, dtype)
    permutation = lu_pivots_to_permutation(pivots, lu.shape[-1])
    vector = b.ndim == 1 or b.ndim == lu.ndim - 1
    x = _rlx.linalg("lu_solve", [lu, permutation, b[..., None] if vector else b], float(trans))[0]
    return x[..., 0] if vector else x


@op("a")
def lu(a, permute_l=False, overwrite_a=False, check_finite=True):
    """(p, l, u) with a = p l u; with permute_l (p l, u)."""
    a = inexact(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    f, _, permutation = node("lu", a)
    l = tril(f[..., :, :k], -1) + eye(m, k, dtype=f.dtype)
    u = triu(f[..., :k, :])
    p = cast(node("eq", permutation[..., None, :], arange(m, dtype="int32")[:, None]), f.dtype)
    return (p @ l, u) if permute_l else (p, l, u)


def _columns_by_length(a):
    """The order of the columns in a QR with pivoting, int32 [.., N]. Each step takes the column with the largest norm
    after projection on the complement of the columns taken before.
    """
    m, n = a.shape[-2:]
    places = arange(n, dtype="int32")
    order = broadcast_to(places, (*a.shape[:-2], n))
    if m == 0 or n == 0:
        return order
    largest = maximum(abs_(a.real), abs_(a.imag)).max((-2, -1), keepdims=True)
    a = a / where(largest > 0, largest, 1)  # squares of the columns neither vanish nor overflow

    def take(j, state):
        left, order = state
        sizes = where(node("ge", places, j), square(left.real).sum(-2) + square(left.imag).sum(-2), -1)
        chosen = argmax(sizes, -1)[..., None].astype("int32")
        # Exchange column j and the chosen one.
        here = where(places == j, chosen, where(places == chosen, j, places))
        left = take_along_axis(left, here[..., None, :], -1)
        order = take_along_axis(order, here, -1)
        q = take_along_axis(left, broadcast_to(j, (*left.shape[:-1], 1)), -1)
        length = sqrt(square(q.real).sum(-2, keepdims=True) + square(q.imag).sum(-2, keepdims=True))
        q = q / where(length > 0, length, 1)
        for _ in range(2):  # a second time, because rounding leaves a part of q after the first
            left = left - q * (conj(q) * left).sum(-2, keepdims=True) * (places > j)
        return left, order

    return fori_loop(0, min(m, n), take, (a, order))[1]


@op("a")
def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    """(q, r); mode "full", "economic", or "r" for (r,).

    With pivoting (q, r, p) or (r, p), the factors of the columns a[:, p]. The order p makes the diagonal of r descend.
    """
    if mode not in ("full", "economic", "r"):
        raise NotImplementedError(f'qr: mode {mode!r}; it must be "full", "economic" or "r"')
    a = inexact(a)
    order = ()
    if pivoting:
        order = (_columns_by_length(_rlx.add_node("stop_gradient", (a,), {})),)
        a = take_along_axis(a, order[0][..., None, :], -1)
    q, r = node("qr", a, full=mode != "economic")
    return (r, *order) if mode == "r" else (q, r, *order)


@op("a", "c")
def qr_multiply(a, c, mode="right", pivoting=False, conjugate=False, overwrite_a=False, overwrite_c=False):
    """(c q, r) with a = q r, or with mode "left" (q c, r); with pivoting also the order of columns. conjugate: of the
    conjugate of q.
    """
    if mode not in ("left", "right"):
        raise ValueError(f'qr_multiply: mode {mode!r}; it must be "left" or "right"')
    a, c = inexact(a), inexact(c)
    q, r, *order = qr(a, mode="full", pivoting=pivoting)
    k = min(a.shape[-2:])
    q = conj(q) if conjugate else q
    vector = c.ndim == 1
    if mode == "left":
        rows = c[..., None] if vector else c
        q = q[..., : rows.shape[-2]] if rows.shape[-2] <= a.shape[-2] else q
        out = _linalg.matmul(q[..., :, : rows.shape[-2]], rows)
        out = out[..., 0] if vector else out
    else:
        out = _linalg.matmul(c[None, :] if vector else c, q[..., :, :k])
        out = out[0] if vector else out
    return (out, r[..., :k, :], *order)


@op("a")
def svd(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, lapack_driver="gesdd"):
    """(u, s, vh), or s alone: see rlx.numpy.linalg.svd."""
    out = _linalg.svd(a, full_matrices, compute_uv)
    return tuple(out) if compute_uv else out


@op("a")
def eigh(a, b=None, lower=True, eigvals_only=False):
    """(eigenvalues, eigenvectors) of one triangle of a, or the eigenvalues alone. b must be None."""
    if b is not None:
        raise NotImplementedError("eigh: b (a generalised problem) is not supported")
    a = inexact(a)
    w, v = node("eigh", a if lower else _adjoint(a))
    return w if eigvals_only else (w, v)


@op("a", "b")
def solve(a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a="gen"):
    """Solves a x = b. assume_a="pos" uses the Cholesky factor of one triangle of a."""
    if assume_a == "pos":
        return _cho_solve(cholesky(a, lower=lower), b, bool(lower))
    if assume_a not in ("gen", "sym", "her"):
        raise ValueError(f'solve: assume_a {assume_a!r}; it must be "gen", "sym", "her" or "pos"')
    return _linalg.solve(a, b)


@op("A")
def expm(A, *, upper_triangular=False, max_squarings=16):
    """The matrix exponential by Pade's approximation; NaN if it needs more than max_squarings squarings."""
    return _rlx.linalg("expm", [inexact(A)], float(max_squarings))[0]


@op("*arrs")
def block_diag(*arrs):
    """The block diagonal matrix of these matrices; of none, a matrix of shape (1, 0)."""
    if not arrs:
        return zeros((1, 0))
    parts = [_rlx.value(a) for a in arrs]
    parts = [p if p.ndim == 2 else p.reshape(1, -1) for p in parts]
    dtype = _rlx.result_type(*parts)[0]
    columns, rows, before = sum(p.shape[1] for p in parts), [], 0
    for p in parts:
        behind = columns - before - p.shape[1]
        pieces = [zeros((p.shape[0], before), dtype), cast(p, dtype), zeros((p.shape[0], behind), dtype)]
        rows.append(concatenate(pieces, 1))
        before += p.shape[1]
    return concatenate(rows, 0)


@op("a", "e")
def expm_frechet(a, e, *, method=None, compute_expm=True):
    """(expm(a), its derivative in the direction e), or the derivative alone. method has no effect."""
    a, e = inexact(a), inexact(e)
    dtype = _rlx.result_type(a, e)[0]
    out = jvp(expm, (cast(a, dtype),), (cast(e, dtype),))
    return out if compute_expm else out[1]


__getattr__ = _getattr_of("rlx.scipy.linalg", {})

_accept_names(globals())
