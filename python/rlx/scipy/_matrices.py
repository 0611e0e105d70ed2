"""Matrix equations, matrix functions and special matrices of scipy.linalg."""

import builtins as _b

from .. import _control
from .._nodes import cast, inexact, node
from .._op import op
from ..numpy import arange, concatenate, conj, diagonal, expand_dims, eye, matmul, matrix_transpose, real, reshape
from ..numpy import broadcast_shapes, broadcast_to, result_type, sqrt, where, zeros
from ..numpy import linalg as _linalg
from .._transforms import vmap
from ..numpy._base import held
from ..numpy._eigen import schur_form, square_matrix
from ..numpy._polar import polar_factor, sylvester
from ..numpy._qr_sweeps import each_matrix


def _adjoint(x):
    return conj(matrix_transpose(x))


def _by_columns(r, s, f):
    """y with r y + y s = f, for upper triangular r and s."""
    n, m = f.shape
    index = arange(m)

    def step(y, k):
        known = f[:, k] - matmul(y, where(index < k, s[:, k], 0))
        shifted = r + s[k, k] * eye(n, dtype=r.dtype)
        options = dict(lower=False, transpose=False, conjugate=False, unit_diagonal=False)
        column = node("triangular_solve", shifted, reshape(known, (n, 1)), **options)
        return where(index == k, column, y), None

    return _control.scan(step, zeros((n, m), f.dtype), index)[0]


def _by_forms(r, u, s, v):
    """The solution of a y + y b = q as a function of q, by the Schur forms a = u r u^H and b = v s v^H."""
    return lambda q: matmul(u, matmul(_by_columns(r, s, matmul(_adjoint(u), matmul(q, v))), _adjoint(v)))


def _sylvester(a, b, q):
    """y with a y + y b = q, complex."""
    (r, u), (s, v) = (schur_form(node("stop_gradient", x)) for x in (a, b))
    a, b, q = (cast(x, u.dtype) for x in (a, b, q))
    return sylvester(a, b, q, _by_forms(r, u, s, v), _by_forms(s, v, r, u))


def _as(dtype, x):
    """A complex result as the dtype of the operands."""
    return x if dtype.kind == "c" else real(x)


@op("a", "b", "q")
def solve_sylvester(a, b, q, *, method="schur", tol=1e-8):
    """x with a x + x b = q. Leading axes are batches, which broadcast. method ("schur" or "eigen") and tol have no
    effect.
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f'solve_sylvester: method {method!r}; it must be "schur" or "eigen"')
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2], q.shape[:-2])
    if 0 in (*batch, *q.shape[-2:]):
        dtype = result_type(inexact(a), inexact(b), inexact(q))
        return zeros((*batch, *q.shape[-2:]), dtype)
    if not batch:
        return _solve_sylvester(a, b, q)
    flat = [reshape(broadcast_to(x, (*batch, *x.shape[-2:])), (-1, *x.shape[-2:])) for x in (a, b, q)]
    return reshape(vmap(_solve_sylvester)(*flat), (*batch, *q.shape[-2:]))


@op("a", "b", "q")
def _solve_sylvester(a, b, q):
    dtype = result_type(inexact(a), inexact(b), inexact(q))
    a, b = square_matrix(cast(a, dtype), "solve_sylvester"), square_matrix(cast(b, dtype), "solve_sylvester")
    if q.shape != (a.shape[-1], b.shape[-1]):
        raise ValueError(f"solve_sylvester: q of shape {q.shape} for {a.shape[-1]} rows and {b.shape[-1]} columns")
    return _as(dtype, _sylvester(a, b, q))


def _root_of(t):
    """The upper triangular square root of an upper triangular matrix."""
    n = t.shape[0]
    d, index = sqrt(diagonal(t)), arange(n)
    strict = expand_dims(index, 1) < expand_dims(index, 0)
    one = eye(n, dtype=t.dtype)

    def step(r, k):
        # The rows above the diagonal of column k: (r + d[k]) x = t[:, k].
        above = index < k
        pivots = where(above, d + d[k], 1)
        m = where(strict & expand_dims(above, 0), r, 0) + one * where(pivots == 0, 1, pivots)
        options = dict(lower=False, transpose=False, conjugate=False, unit_diagonal=False)
        x = node("triangular_solve", m, reshape(where(above, t[:, k], 0), (n, 1)), **options)[:, 0]
        column = where(above, x, where(index == k, d, 0))
        return where(index == k, expand_dims(column, 1), r), None

    return _control.scan(step, zeros((n, n), t.dtype), index)[0]


def _root(a):
    t, u = schur_form(a)
    return matmul(u, matmul(_root_of(t), _adjoint(u)))


@_control.custom_jvp
def _sqrtm(a):
    return each_matrix(_root, a)


@_sqrtm.defjvp
def _sqrtm_rule(primals, tangents):
    x = _sqrtm(primals[0])
    return x, each_matrix(lambda x, da: _sylvester(x, x, da), x, tangents[0])


@op("a")
def sqrtm(a, blocksize=1):
    """The principal square root of matrices, complex. blocksize has no effect."""
    a = square_matrix(a, "sqrtm")
    return (
        _sqrtm(a) if a.shape[-1] else cast(a, "complex64" if a.dtype.name in ("float32", "complex64") else "complex128")
    )


@op("a")
def polar(a, side="right", *, method=None, eps=None, max_iterations=None):
    """(u, p) with a = u p, or with side "left" a = p u: u has orthonormal columns or rows, p is positive semidefinite.
    The other arguments have no effect.
    """
    if side not in ("left", "right"):
        raise ValueError(f'polar: side {side!r}; it must be "left" or "right"')
    a = inexact(a)
    u = polar_factor(a)
    p = matmul(_adjoint(u), a) if side == "right" else matmul(a, _adjoint(u))
    return u, (p + _adjoint(p)) * 0.5


@op("d", "e")
def eigh_tridiagonal(d, e, *, eigvals_only=False, select="a", select_range=None, tol=None):
    """(eigenvalues, eigenvectors as columns) of a symmetric matrix with diagonal d and the elements e beside it.
    select="i" with select_range=(first, last) takes eigenvalues by index. It is computed as a full matrix.
    """
    d, e = inexact(d), inexact(e)
    dtype = result_type(d, e)
    d, e, n = cast(d, dtype), cast(e, dtype), d.shape[-1]
    if d.ndim != 1 or e.shape != (_b.max(n - 1, 0),):
        raise ValueError(f"eigh_tridiagonal: d of shape {d.shape} and e of shape {e.shape}")
    if select not in ("a", "i"):
        raise NotImplementedError(f'eigh_tridiagonal: select={select!r}; it must be "a" or "i"')
    rows, columns = expand_dims(arange(n), 1), expand_dims(arange(n), 0)
    below = concatenate([e, zeros((1,), dtype)])
    full = where(rows == columns, d, where(rows == columns + 1, below, 0))
    w, v = _linalg.eigh(full, "L", symmetrize_input=False)
    if select == "i":
        first, last = select_range
        w, v = w[first : last + 1], v[:, first : last + 1]
    return w if eigvals_only else (w, v)


def hilbert(n):
    """The matrix 1 / (i + j + 1)."""
    index = arange(n, dtype="float32")
    return 1 / (expand_dims(index, 1) + expand_dims(index, 0) + 1)


__all__ = [
    "eigh_tridiagonal",
    "hilbert",
    "polar",
    "solve_sylvester",
    "sqrtm",
]
