"""Ranks and pseudo-inverses with a bound for each matrix."""

from .._control import custom_jvp
from ._base import cast, node, value
from ._complex import conj
from ._creation import eye
from ._products import matmul
from ._reductions import max, sum
from ._shapes import expand_dims, matrix_transpose


def of_vector(x):
    """The rank of a vector or a number: 1 unless all elements are 0."""
    return cast(node("gt", sum(cast(node("ne", x, 0), "int32")), 0), "int32")


def _above(s, rtol, tol):
    """True for the singular values above tol, or above rtol times the largest."""
    bound = value(rtol if tol is None else tol)
    bound = cast(bound, s.dtype)
    bound = expand_dims(bound, -1) if bound.ndim else bound
    if tol is None:
        bound = node("mul", bound, max(s, -1, keepdims=True)) if s.shape[-1] else bound
    return node("gt", s, bound)


def rank_above(m, rtol, tol):
    """The number of singular values of matrices above bounds."""
    return sum(cast(_above(node("svd", m, full=False)[1], rtol, tol), "int32"), -1)


def _adjoint(x):
    return conj(matrix_transpose(x))


@custom_jvp
def pinv_above(a, rtol):
    """The pseudo-inverses of matrices without singular values up to rtol times the largest."""
    u, s, vh = node("svd", a, full=False)
    kept = _above(s, rtol, None)
    inverse = node("where", kept, node("div", 1, node("where", kept, s, 1)), 0)
    return matmul(_adjoint(vh) * expand_dims(cast(inverse, a.dtype), -2), _adjoint(u))


@pinv_above.defjvp
def _pinv_rule(primals, tangents):
    (a, rtol), (da, _) = primals, tangents
    p = pinv_above(a, rtol)
    rows, columns = a.shape[-2:]
    off_rows = eye(rows, dtype=a.dtype) - matmul(a, p)
    off_columns = eye(columns, dtype=a.dtype) - matmul(p, a)
    turned = _adjoint(da)
    dp = matmul(matmul(matmul(p, _adjoint(p)), turned), off_rows) - matmul(matmul(p, da), p)
    return p, dp + matmul(matmul(off_columns, turned), matmul(_adjoint(p), p))
