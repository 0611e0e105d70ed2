"""Linear algebra: factorizations, systems of equations, determinants, norms, powers, over the last two axes.

Integer matrices become float32; float16 and bfloat16 are errors: cast them. Singular and non-finite matrices give
infinities and NaN where NumPy raises an error, as in JAX. Eigenvectors and left singular vectors are scaled so that
their first element with at least 0.3 of the largest magnitude is real and positive.
"""

import math as _math
from collections import namedtuple as _namedtuple

from .. import _rlx
from .._arrays import asarray
from .._names import accept_names as _accept_names
from .._names import getattr_of as _getattr_of
from . import _ranks
from ._base import axes_of, axis_of, cast, inexact, int_static, node, op, value
from ._complex import conj as _conj
from ._complex import parts as _parts
from ._creation import eye
from ._eigen import eigen as _eigen
from ._eigen import eigenvalues as _eigenvalues
from ._polar import nuclear_norm as _nuclear_norm
from ._products import _power_of_matrix
from ._products import cross as _cross
from ._products import matmul, outer as _outer, tensordot, vecdot
from ._reductions import max, min, sum
from ._search import argsort as _argsort
from ._search import take_along_axis as _take_along_axis
from ._shapes import broadcast_to, diagonal as _diagonal, matrix_transpose, moveaxis, reshape, trace as _trace
from ._ufuncs import abs, sqrt
from ._ufuncs import sign as _sign

__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

EigResult = _namedtuple("EigResult", ("eigenvalues", "eigenvectors"))
EighResult = _namedtuple("EighResult", ("eigenvalues", "eigenvectors"))
QRResult = _namedtuple("QRResult", ("Q", "R"))
SVDResult = _namedtuple("SVDResult", ("U", "S", "Vh"))
SlogdetResult = _namedtuple("SlogdetResult", ("sign", "logabsdet"))


__getattr__ = _getattr_of("rlx.numpy.linalg", {}, otherwise=f"it has {', '.join(__all__)}")


def _linalg(name, *operands, number=None):
    return _rlx.linalg(name, operands, number)


def _adjoint(x):
    return _conj(matrix_transpose(x))


def _symmetrized(x, symmetrize):
    return (x + _adjoint(x)) * 0.5 if symmetrize else x


def _square(x, what):
    x = inexact(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{what} of shape {x.shape}: the last two axes must be equal")
    return x


@op("a")
def cholesky(a, *, upper=False, symmetrize_input=True):
    """The lower factor l with a = l l^H, or with upper the factor u with a = u^H u.

    The matrix is (a + a^H) / 2, or with symmetrize_input=False the lower (upper) triangle alone. The result is NaN if
    it is not positive definite.
    """
    a = _symmetrized(_square(a, "cholesky"), symmetrize_input)
    if upper and not symmetrize_input:
        a = _adjoint(a)
    l = node("cholesky", a)
    return _adjoint(l) if upper else l


@op("a")
def eigh(a, UPLO=None, symmetrize_input=True):
    """(eigenvalues in ascending order, eigenvectors as columns) of Hermitian matrices.

    The matrix is (a + a^H) / 2, or with symmetrize_input=False the triangle that UPLO names, by default the lower one.
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"eigh: UPLO {UPLO!r}; it must be 'L' or 'U'")
    a = _symmetrized(_square(a, "eigh"), symmetrize_input)
    if UPLO == "U" and not symmetrize_input:
        a = _adjoint(a)
    return EighResult(*node("eigh", a))


@op("a")
def eigvalsh(a, UPLO="L", *, symmetrize_input=True):
    """The eigenvalues of Hermitian matrices in ascending order; see eigh."""
    return eigh(a, UPLO, symmetrize_input)[0]


@op("a")
def eig(a):
    """(eigenvalues, eigenvectors as columns) of general matrices, complex. Their order is not stated. The eigenvectors
    have norm 1 and a real largest element. The derivative of eigenvectors is that at distinct eigenvalues.
    """
    return EigResult(*_eigen(a, "eig"))


@op("a")
def eigvals(a):
    """The eigenvalues of general matrices, complex, in the order of eig."""
    return _eigenvalues(a, "eigvals")


@op("a")
def qr(a, mode="reduced"):
    """(q, r): a matrix with orthonormal columns and an upper triangular one. mode "complete": q is square; "r": r
    alone.
    """
    if mode == "raw":
        raise NotImplementedError('qr: mode "raw", the Householder reflections of LAPACK, is not supported')
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f'qr: mode {mode!r}; it must be "reduced", "complete" or "r"')
    q, r = node("qr", inexact(a), full=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@op("a")
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """(u, s, vh) with a = u diag(s) vh and s descending; s alone with compute_uv=False.

    hermitian uses the eigenvalues of (a + a^H) / 2. Derivatives of u and vh need full_matrices=False or a square a.
    """
    a = inexact(a)
    if hermitian:
        w, v = eigh(a)
        size = abs(w)
        if not compute_uv:
            return node("reverse", node("sort", size, axis=size.ndim - 1), axes=(size.ndim - 1,))
        order = _argsort(size, -1, descending=True)
        u = _take_along_axis(v, order[..., None, :], -1)
        w = _take_along_axis(w, order, -1)
        turned = cast(_sign(w) + cast(node("eq", w, 0), w.dtype), v.dtype)
        return SVDResult(u, abs(w), turned[..., :, None] * _adjoint(u))
    if not compute_uv:
        return node("svd", a, full=False)[1]
    return SVDResult(*node("svd", a, full=bool(full_matrices)))


@op("x")
def svdvals(x, /):
    """The singular values in descending order."""
    return svd(x, False, False)


@op("a")
def det(a):
    """Determinants. The derivative at a singular matrix is that of the cofactors."""
    return _linalg("det", _square(a, "det"))[0]


@op("a")
def slogdet(a, *, method=None):
    """(sign, log |det a|); 0 and -inf for singular matrices. method ("lu" or "qr") has no effect."""
    if method not in (None, "lu", "qr"):
        raise ValueError(f'slogdet: method {method!r}; it must be "lu" or "qr"')
    return SlogdetResult(*_linalg("slogdet", _square(a, "slogdet")))


@op("a", "b")
def solve(a, b):
    """Solves a x = b. b is a vector if it has one axis, else matrices whose leading axes broadcast with those of a."""
    return _linalg("solve", _square(a, "solve"), inexact(b))[0]


@op("a")
def inv(a):
    """The inverse of matrices."""
    return _linalg("inv", _square(a, "inv"))[0]


def pinv(a, rtol=None, hermitian=False, *, rcond=None):
    """The pseudo-inverse of matrices. Singular values up to rtol times the largest count as 0.

    rtol is a number, or an array with one for each matrix; by default 10 max(M, N) times eps of the dtype. The
    derivative is that at constant rank.
    """
    bound = rtol if rcond is None else rcond
    return _pinv(a, bound, hermitian) if _is_number(bound) else _pinv_each(a, bound, hermitian)


def _is_number(bound):
    """True if a bound is a number that is known while a function is traced, or None."""
    return bound is None or not isinstance(bound, (list, tuple, _rlx.Value)) and getattr(bound, "ndim", 0) == 0


def _for_pinv(a, hermitian):
    a = inexact(a)
    return _symmetrized(_square(a, "pinv"), True) if hermitian else a


@op("a")
def _pinv(a, bound, hermitian):
    return _linalg("pinv", _for_pinv(a, hermitian), number=None if bound is None else float(bound))[0]


@op("a", "bound")
def _pinv_each(a, bound, hermitian):
    return _ranks.pinv_above(_for_pinv(a, hermitian), bound)


def lstsq(a, b, rcond=None, *, numpy_resid=False):
    """(x, residuals, rank, s): the least-squares solution of a x = b with the smallest norm.

    Singular values up to rcond times the largest count as 0; the default is eps max(M, N). The residuals have shape
    (1,) for one right-hand side, and (0,) if the matrix does not have more rows than columns, as in NumPy. With
    numpy_resid they have shape (0,) below full rank too, which compiled functions cannot know.
    """
    x, residuals, rank, s = _lstsq(a, b, rcond)
    if numpy_resid:
        if _rlx.tracing() or isinstance(rank, _rlx.Value):
            raise TypeError("lstsq: numpy_resid in a compiled function: the shape would depend on the rank")
        if rank.ndim == 0 and int(rank) < s.shape[-1]:
            residuals = reshape(residuals, (-1,))[:0]
    return x, residuals, rank, s


@op("a", "b")
def _lstsq(a, b, rcond):
    a, b = inexact(a), inexact(b)
    x, residuals, rank, s = _linalg("lstsq", a, b, number=None if rcond is None else float(rcond))
    if a.ndim == 2 and all(isinstance(d, int) for d in a.shape) and a.shape[0] <= a.shape[1]:
        residuals = reshape(residuals, (-1,))[:0]
    elif a.ndim == 2 and b.ndim == 1:
        residuals = reshape(residuals, (1,))
    return x, residuals, rank, s


def matrix_rank(M, rtol=None, *, tol=None, hermitian=False):
    """The number of singular values above rtol times the largest, by default eps max(M, N); or above tol. Both are
    numbers, or arrays with one for each matrix.
    """
    if tol is not None or not _is_number(rtol):
        return _rank_above(M, rtol, tol)
    return _matrix_rank(M, rtol)


@op("M")
def _matrix_rank(M, rtol):
    M = inexact(M)
    if M.ndim < 2:
        return _ranks.of_vector(M)
    return _linalg("matrix_rank", M, number=None if rtol is None else float(rtol))[0]


@op("M", "rtol", "tol")
def _rank_above(M, rtol, tol):
    M = inexact(M)
    return _ranks.of_vector(M) if M.ndim < 2 else _ranks.rank_above(M, rtol, tol)


@op("x")
def cond(x, p=None):
    """The condition number |x| |x^-1| in the norm p: None, 2, -2 (from singular values), "fro", "nuc", 1, -1, inf."""
    x = inexact(x)
    if x.ndim < 2:
        raise ValueError(f"cond of shape {x.shape}: it must be a matrix")
    if p in (None, 2, -2):
        return _linalg("cond", x, number=_ORDERS[2 if p is None else p])[0]
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))


@op("a", "b")
def tensorsolve(a, b, axes=None):
    """Solves tensordot(a, x, x.ndim) = b."""
    a, b = inexact(a), inexact(b)
    if axes is not None:
        moved = axes_of(axes, a.ndim, "tensorsolve")
        last = [k % a.ndim for k in (axes if isinstance(axes, (list, tuple)) else (axes,))]
        a = node("transpose", a, perm=[k for k in range(a.ndim) if k not in moved] + last)
    shape = a.shape[b.ndim :]
    n = _math.prod(shape)
    if n != _math.prod(a.shape[: b.ndim]) or a.shape[: b.ndim] != b.shape:
        raise ValueError(f"tensorsolve: shapes {a.shape} and {b.shape} do not make a square system")
    return reshape(solve(reshape(a, (n, n)), reshape(b, (-1,))), shape)


@op("a")
def tensorinv(a, ind=2):
    """The inverse of a as a map from its last axes to its first `ind`."""
    a = inexact(a)
    if ind <= 0:
        raise ValueError("tensorinv: ind must be positive")
    first, last = a.shape[:ind], a.shape[ind:]
    n = _math.prod(first)
    if n != _math.prod(last):
        raise ValueError(
            f"tensorinv: {first} and {last} must have equal numbers of entries, not {n} and {_math.prod(last)}"
        )
    return reshape(inv(reshape(a, (n, n))), last + first)


def _squares(x):
    if x.dtype.kind != "c":
        return node("square", x)
    re, im = _parts(x)
    return node("add", node("square", re), node("square", im))


def _root(total, power=None):
    """The square root, or another power, of a sum of sizes. Its derivative is 0 where the sum is 0, as that of abs."""
    zero = node("eq", total, 0)
    some = node("where", zero, 1, total)
    return node("where", zero, total, sqrt(some) if power is None else node("pow", some, power))


def _vector(x, ord, axis, keepdims):
    if ord == 2:
        return _root(sum(_squares(x), axis, keepdims=keepdims))
    size = abs(x)
    if ord == _math.inf:
        return max(size, axis, keepdims=keepdims, initial=None if size.shape[axis] else 0)
    if ord == -_math.inf:
        return min(size, axis, keepdims=keepdims)
    if ord == 0:
        return sum(node("ne", size, 0), axis, size.dtype, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"norm: ord {ord!r} is not supported for vectors")
    total = sum(node("pow", size, float(ord)), axis, keepdims=keepdims)
    return _root(total, 1.0 / ord) if ord > 0 else node("pow", total, 1.0 / ord)


_ORDERS = {2: 4, -2: 5}  # values of rlx::linalg::MatrixNorm


def _matrix(x, ord, axes, keepdims):
    rows, columns = axes
    if rows == columns:
        raise ValueError("norm: both axes are the same")
    if ord in (None, "fro", "f"):
        return _root(sum(_squares(x), axes, keepdims=keepdims))
    if ord in (2, "nuc") and 0 in (x.shape[rows], x.shape[columns]):
        return sum(abs(x), axes, keepdims=keepdims)  # no singular values
    if ord in (2, -2, "nuc"):
        kept = tuple(1 if a in axes else d for a, d in enumerate(x.shape))
        x = moveaxis(x, axes, (-2, -1))
        out = _nuclear_norm(x) if ord == "nuc" else _linalg("matrix_norm", x, number=_ORDERS[ord])[0]
        return reshape(out, kept) if keepdims else out
    if ord not in (1, -1, _math.inf, -_math.inf):
        raise ValueError(f"norm: ord {ord!r} is not supported for matrices")
    along, over = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = sum(abs(x), along, keepdims=True)
    if ord > 0:
        out = max(sums, over, keepdims=True, initial=None if sums.shape[over] else 0)
    else:
        out = min(sums, over, keepdims=True)
    if keepdims:
        return out
    return reshape(out, tuple(d for a, d in enumerate(x.shape) if a not in axes))


@op("x")
def norm(x, ord=None, axis=None, keepdims=False):
    """The norm of vectors (one axis), matrices (two), or all elements. ord: None, a number, inf, -inf; of matrices
    "fro", "nuc", 1, -1, 2, -2, inf, -inf.
    """
    x = inexact(x)
    if axis is None:
        if ord is None:
            out = _root(sum(_squares(x)))
            return reshape(out, (1,) * x.ndim) if keepdims else out
        if x.ndim not in (1, 2):
            raise ValueError(f"norm: ord needs one or two axes; the array has {x.ndim}: give `axis`")
        axis = tuple(range(x.ndim))
    axes = tuple(axis_of(a, x.ndim, "norm") for a in (axis if isinstance(axis, tuple) else (axis,)))
    if len(axes) == 1:
        return _vector(x, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(f"norm: {len(axes)} axes; there must be one or two")
    return _matrix(x, ord, axes, keepdims)


@op("x")
def vector_norm(x, *, axis=None, keepdims=False, ord=2):
    """The norm of vectors along an axis, along several axes joined to one, or of all elements."""
    x = inexact(x)
    if axis is None or isinstance(axis, tuple):
        axes = axes_of(axis, x.ndim, "vector_norm")
        rest = [a for a in range(x.ndim) if a not in axes]
        kept = tuple(1 if a in axes else d for a, d in enumerate(x.shape))
        x = node("transpose", x, perm=rest + axes)
        x = reshape(x, (*[x.shape[k] for k in range(len(rest))], _math.prod(x.shape[len(rest) :])))
        out = _vector(x, ord, x.ndim - 1, False)
        return reshape(out, kept) if keepdims else out
    return _vector(x, ord, axis_of(axis, x.ndim, "vector_norm"), keepdims)


@op("x")
def matrix_norm(x, *, keepdims=False, ord="fro"):
    """The norm of matrices in the last two axes."""
    x = inexact(x)
    return _matrix(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


@op("x")
def matrix_power(x, n):
    """Powers of square matrices. n is a Python integer; a negative n uses the inverse."""
    x = value(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power of shape {x.shape}: the last two axes must be equal")
    n = int_static(n, "matrix_power: n")
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    return _power_of_matrix(x, n)


@op("*arrays")
def multi_dot(arrays):
    """The product of several matrices in the cheapest order. The first and the last may be vectors."""
    values = [value(a) for a in arrays]
    if len(values) < 2:
        raise ValueError("multi_dot: at least two matrices are needed")
    first, last = values[0].ndim == 1, values[-1].ndim == 1
    values[0] = reshape(values[0], (1, -1)) if first else values[0]
    values[-1] = reshape(values[-1], (-1, 1)) if last else values[-1]
    if any(v.ndim != 2 for v in values):
        raise ValueError("multi_dot: operands must be matrices, or vectors at the ends")
    sizes = [values[0].shape[0]] + [v.shape[1] for v in values]
    for a, b in zip(values, values[1:]):
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"multi_dot: shapes {a.shape} and {b.shape} do not fit")
    best = {}

    def cheapest(i, j):
        if i == j:
            return 0, None
        if (i, j) not in best:
            best[i, j] = sorted(
                (cheapest(i, k)[0] + cheapest(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )[0]
        return best[i, j]

    def product(i, j):
        if i == j:
            return values[i]
        k = cheapest(i, j)[1]
        return matmul(product(i, k), product(k + 1, j))

    out = product(0, len(values) - 1)
    return reshape(out, (() if first else out.shape[:1]) + (() if last else out.shape[1:]))


def cross(x, y, *, axis=-1):
    """The cross product of vectors with three entries along an axis."""
    x, y = asarray(x), asarray(y)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ValueError(
            f"linalg.cross: vectors with {x.shape[axis]} and {y.shape[axis]} entries; they must have three"
        )
    return _cross(x, y, axis=axis)


@op("x", "y")
def outer(x, y):
    """x[i] * y[j] of two vectors."""
    x, y = value(x), value(y)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"linalg.outer: {x.ndim} and {y.ndim} axes; both must be vectors")
    return _outer(x, y)


@op("x")
def diagonal(x, *, offset=0):
    """The diagonals of matrices in the last two axes."""
    return _diagonal(x, offset, -2, -1)


@op("x")
def trace(x, *, offset=0, dtype=None):
    """The sums of the diagonals of matrices in the last two axes."""
    return _trace(x, offset, -2, -1, dtype)


_accept_names(globals())
