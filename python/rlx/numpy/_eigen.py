"""Eigenvalues of general matrices: the complex Schur form by the QR algorithm with shifts, written in ops."""

from .. import _control, _rlx
from .._transforms import vmap
from ._base import FLOATS, cast, float_of, inexact, node, value
from ._complex import conj, imag, joined, real
from ._creation import eye
from ._products import matmul
from ._reductions import max, sum
from ._shapes import broadcast_to, diagonal, matrix_transpose, reshape
from ._ufuncs import abs, sqrt, square

# Sweeps for each eigenvalue; the algorithm needs two or three.
_SWEEPS = 40


def square_matrix(a, what):
    """The matrices as complex ones."""
    a = inexact(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{what} of shape {a.shape}: the last two axes must be equal")
    if float_of(a.dtype) not in ("float32", "float64"):
        raise TypeError(f"{what} of {a.dtype.name}: cast it to float32 first")
    return cast(a, "complex128" if float_of(a.dtype) == "float64" else "complex64")


def each_matrix(f, *arrays):
    """f of each matrix of the leading axes."""
    for _ in range(arrays[0].ndim - 2):
        f = vmap(f)
    return f(*arrays)


def _magnitude(x):
    """The sum of the magnitudes of both parts: enough to compare sizes, without overflow."""
    return abs(real(x)) + abs(imag(x))


def _shift(t, k):
    """The eigenvalue of the block of rows k - 1 and k that is nearer to its last element."""
    a, b, c, d = t[k - 1, k - 1], t[k - 1, k], t[k, k - 1], t[k, k]
    half = (a - d) * 0.5
    root = sqrt(half * half + b * c)
    away = node("lt", real(half) * real(root) + imag(half) * imag(root), 0)
    sum_ = half + node("where", away, node("neg", root), root)
    none = node("eq", _magnitude(sum_), 0)
    return d - node("where", none, 0, b * c / node("where", none, 1, sum_))


def schur_form(a):
    """(t, u) with a = u t u^H, t upper triangular and u unitary, of one complex matrix."""
    n = a.shape[0]
    if n == 0:
        return a, a
    small = 2.0 ** -FLOATS[float_of(a.dtype)][0]
    index = node("iota", dims=(n,), dtype="int32", axis=0)
    rows, columns = reshape(index, (n, 1)), reshape(index, (1, n))
    one = eye(n, dtype=a.dtype)
    size = max(_magnitude(a))
    scale = node("where", node("eq", size, 0), 1, size)
    finite = node("eq", node("sub", size, size), 0)

    def unfinished(state):
        _, _, k, sweeps = state
        return node("bit_and", node("gt", k, 0), node("lt", sweeps, _SWEEPS * n))

    def step(state):
        t, u, k, sweeps = state
        # The rest of row k is negligible: the eigenvalue at [k, k] is found.
        left = node("bit_and", node("eq", rows, k), node("lt", columns, k))
        rest = max(node("where", left, _magnitude(t), 0))
        beside = _magnitude(t[k, k]) + _magnitude(t[k - 1, k - 1])
        found = node("le", rest, small * node("max", beside, 0.01 * small))
        inside = node("bit_and", node("le", rows, k), node("le", columns, k))
        # A shift that is not an eigenvalue of the last block breaks cycles.
        odd = node("eq", node("mod", sweeps, 11), 10)
        shift = node("where", odd, t[k, k] + cast(rest, t.dtype), _shift(t, k))
        q, _ = node("qr", node("where", inside, t - shift * one, one), full=True)
        q = node("where", found, one, q)
        cleared = node("where", node("bit_and", left, found), 0, t)
        turned = matmul(conj(matrix_transpose(q)), matmul(t, q))
        t = node("where", found, cleared, turned)
        return t, matmul(u, q), k - cast(found, "int32"), sweeps + 1

    start = node("where", finite, cast(a / cast(scale, a.dtype), a.dtype), 0)
    k, sweeps = value(n - 1)._with_weak(False), value(0)._with_weak(False)
    t, u, _, _ = _control.while_loop(unfinished, step, (start, one, cast(k, "int32"), cast(sweeps, "int32")))
    t = node("where", node("le", rows, columns), t, 0) * cast(scale, a.dtype)
    bad = cast(float("nan"), a.dtype)
    return node("where", finite, t, bad), node("where", finite, u, bad)


def _vectors(t, u):
    """The eigenvectors of u t u^H as columns of norm 1, whose largest elements are real."""
    n = t.shape[0]
    index = node("iota", dims=(n,), dtype="int32", axis=0)
    rows, columns = reshape(index, (n, 1)), reshape(index, (1, n))
    size = max(_magnitude(t))
    least = node("max", size * 2.0 ** -FLOATS[float_of(t.dtype)][0], cast(1e-30, size.dtype))

    def one(k):
        d = diagonal(t) - t[k, k]
        # An eigenvalue that occurs twice has a pivot of 0; a small one gives a vector of its space.
        d = node("where", node("lt", _magnitude(d), least), cast(least, t.dtype), d)
        inside = node("bit_and", node("lt", rows, k), node("lt", columns, k))
        strict = node("bit_and", inside, node("lt", rows, columns))
        m = node("where", strict, t, 0)
        pivots = node("where", node("lt", index, k), d, 1)
        m = node("where", node("eq", rows, columns), reshape(pivots, (n, 1)), m)
        b = node("where", node("lt", index, k), node("neg", t[:, k]), cast(node("eq", index, k), t.dtype))
        options = dict(lower=False, transpose=False, conjugate=False, unit_diagonal=False)
        return node("triangular_solve", m, reshape(b, (n, 1)), **options)[:, 0]

    v = matmul(u, matrix_transpose(vmap(one)(index)))
    scale = max(_magnitude(v), 0, keepdims=True)
    v = v / cast(scale, v.dtype)
    norms = sqrt(sum(square(real(v)) + square(imag(v)), 0, keepdims=True))
    v = v / cast(norms, v.dtype)
    size = square(real(v)) + square(imag(v))
    place = node("arg_reduce_max", size, axis=0, keep_dims=True)
    top = _rlx.take_along_axis([v, place], 0)
    return v * conj(top) / cast(abs(top), v.dtype)


def _both(a):
    t, u = schur_form(a)
    return diagonal(t), _vectors(t, u)


@_control.custom_jvp
def _decomposed(a):
    return each_matrix(_both, a)


@_decomposed.defjvp
def _decomposed_rule(primals, tangents):
    (a,), (da,) = primals, tangents
    w, v = _decomposed(a)
    moved = _rlx.linalg("solve", (v, matmul(da, v)), None)[0]  # V^-1 dA V
    dw = diagonal(moved, 0, -2, -1)
    apart = reshape(w, (*w.shape[:-1], 1, w.shape[-1])) - reshape(w, (*w.shape, 1))
    one = node("gt", broadcast_to(eye(w.shape[-1]), a.shape), 0)
    dv = matmul(v, node("where", one, 0, moved / node("where", one, 1, apart)))
    # The norm stays 1, and the largest element real.
    along = sum(real(v) * real(dv) + imag(v) * imag(dv), -2, keepdims=True)
    place = node("arg_reduce_max", square(real(v)) + square(imag(v)), axis=a.ndim - 2, keep_dims=True)
    top, dtop = (_rlx.take_along_axis([x, place], a.ndim - 2) for x in (v, dv))
    turned = imag(dtop) / real(top)
    return (w, v), (dw, dv - v * joined(along, turned, v.dtype))


def eigenvalues(a, what):
    """The eigenvalues of general matrices, in the order of the Schur form."""
    a = square_matrix(a, what)
    if a.shape[-1] == 0:
        return reshape(a, a.shape[:-1])
    return _decomposed(a)[0]


def eigen(a, what):
    """(eigenvalues, eigenvectors as columns) of general matrices."""
    a = square_matrix(a, what)
    if a.shape[-1] == 0:
        return reshape(a, a.shape[:-1]), a
    return tuple(_decomposed(a))


def schur_of(a, what):
    """(t, u) of the complex Schur form of general matrices."""
    return each_matrix(schur_form, square_matrix(a, what))


def identity_like(a):
    """Unit matrices of the shape of a."""
    return broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
