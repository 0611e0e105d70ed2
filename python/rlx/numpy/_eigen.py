"""Eigenvalues of general matrices: the complex Schur form by the QR algorithm with shifts, written in ops."""

from .. import _control, _rlx
from ._base import FLOATS, cast, float_of, inexact, node, value
from ._complex import conj, imag, joined, real
from ._creation import eye
from ._joining import concatenate
from ._products import matmul
from ._qr_sweeps import deflated, each_matrix, magnitude as _magnitude
from ._real_schur import complex_form, real_schur_form
from ._reductions import max, sum
from ._shapes import broadcast_to, diagonal, matrix_transpose, reshape
from ._ufuncs import abs, ldexp, log2, sqrt, square


def square_matrix(a, what):
    a = inexact(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{what} of shape {a.shape}: the last two axes must be equal")
    if float_of(a.dtype) not in ("float32", "float64"):
        raise TypeError(f"{what} of {a.dtype.name}: cast it to float32 first")
    return a


def _complex(x):
    return cast(x, "complex128" if float_of(x.dtype) == "float64" else "complex64")


def eps_of(dtype):
    """The distance of 1 to the next number of the parts."""
    return 2.0 ** -FLOATS[float_of(dtype)][0]


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
    """(t, u) with a = u t u^H, t upper triangular and u unitary, of one matrix, complex."""
    n = a.shape[0]
    if n == 0:
        return _complex(a), _complex(a)
    if a.dtype.kind != "c":  # by the real form: real eigenvalues stay real, others are pairs
        t, u = complex_form(*map(_complex, real_schur_form(a)))
        index = node("iota", dims=(n,), dtype="int32", axis=0)
        return node("where", node("le", reshape(index, (n, 1)), reshape(index, (1, n))), t, 0), u

    def start(t, low, last, odd):
        beside = cast(_magnitude(t[last, last - 1]), t.dtype)
        shift = node("where", odd, t[last, last] + beside, _shift(t, last))
        return [t[low, low] - shift, t[low + 1, low]]

    t, u, scale, finite = deflated(a, 2, start)
    index = node("iota", dims=(n,), dtype="int32", axis=0)
    t = node("where", node("le", reshape(index, (n, 1)), reshape(index, (1, n))), t, 0) * cast(scale, a.dtype)
    bad = cast(float("nan"), a.dtype)
    return node("where", finite, t, bad), node("where", finite, u, bad)


def _vectors(t, u, d):
    """The eigenvectors of diag(d) u t u^H diag(d)^-1 as columns of norm 1, whose largest elements are real."""
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

    # One after the other: together they would be n matrices.
    v = matmul(u, matrix_transpose(_control.scan(lambda _, k: (None, one(k)), None, index)[1]))
    v = v * cast(reshape(d, (n, 1)), v.dtype)
    scale = max(_magnitude(v), 0, keepdims=True)
    v = v / cast(scale, v.dtype)
    norms = sqrt(sum(square(real(v)) + square(imag(v)), 0, keepdims=True))
    v = v / cast(norms, v.dtype)
    size = square(real(v)) + square(imag(v))
    place = node("arg_reduce_max", size, axis=0, keep_dims=True)
    top = _rlx.take_along_axis([v, place], 0)
    return v * conj(top) / cast(abs(top), v.dtype)


def _balanced(a):
    """(b, d) with a = diag(d) b diag(d)^-1: powers of 2 that make the rows of b about as large as its columns."""
    n = a.shape[0]
    index = node("iota", dims=(n,), dtype="int32", axis=0)
    size = _magnitude(a)
    finite = node("eq", node("sub", max(size), max(size)), 0)
    size = node("where", node("bit_and", finite, node("ne", reshape(index, (n, 1)), reshape(index, (1, n)))), size, 0)
    one = cast(value(1.0)._with_weak(False), size.dtype)
    size = size / node("where", node("eq", max(size), 0), one, max(size))
    reach = 500 if size.dtype.name == "float64" else 60  # of the exponents, that their quotients are numbers

    def row(state, i):
        d, changed = state
        c = sum(size[:, i] / d) * d[i]
        r = sum(size[i] * d) / d[i]
        none = node("bit_or", node("eq", c, 0), node("eq", r, 0))
        ratio = node("where", none, one, sqrt(r) / sqrt(node("where", none, one, c)))
        f = ldexp(one, cast(node("round", log2(ratio)), "int32"))
        better = node("lt", c * f + r / f, 0.95 * (c + r))
        inside = node("le", abs(log2(d[i] * f)), reach)
        better = node("bit_and", better, node("bit_and", inside, node("eq", none, False)))
        return (
            d * node("where", node("bit_and", node("eq", index, i), better), f, one),
            node("bit_or", changed, better),
        ), None

    def unbalanced(state):
        return node("bit_and", state[1], node("lt", state[2], 20))

    def sweep(state):
        d, changed = _control.scan(row, (state[0], node("ne", one, one)), index)[0]
        return d, changed, state[2] + 1

    start = (broadcast_to(one, (n,)), node("eq", one, one), cast(value(0)._with_weak(False), "int32"))
    d = _control.while_loop(unbalanced, sweep, start)[0]
    return a * cast(reshape(d, (1, n)) / reshape(d, (n, 1)), a.dtype), d


def _both(a):
    b, d = _balanced(a)
    t, u = schur_form(b)
    return diagonal(t), _vectors(t, u, d)


@_control.custom_jvp
def _decomposed(a):
    return each_matrix(_both, a)


@_decomposed.defjvp
def _decomposed_rule(primals, tangents):
    (a,), (da,) = primals, tangents
    w, v = _decomposed(a)
    da = cast(da, v.dtype)
    n = v.shape[-1]
    one = broadcast_to(eye(n, dtype=v.dtype), v.shape)
    both = _rlx.linalg("solve", (v, concatenate([matmul(da, v), one], -1)), None)[0]
    moved, inverse = both[..., :n], both[..., n:]  # V^-1 dA V
    # With fewer eigenvectors than eigenvalues there is no derivative; V is then singular up to rounding.
    size = max(_magnitude(node("stop_gradient", inverse)), (-2, -1), keepdims=True)
    moved = moved * cast(node("where", node("lt", size * (8 * n * eps_of(w.dtype)), 1), 1, float("nan")), v.dtype)
    dw = diagonal(moved, 0, -2, -1)
    apart = reshape(w, (*w.shape[:-1], 1, w.shape[-1])) - reshape(w, (*w.shape, 1))
    # Eigenvalues that rounding alone sets apart are equal, so that the derivative is not a number without meaning.
    least = max(_magnitude(w), -1, keepdims=True)[..., None] * (8 * n * eps_of(w.dtype))
    apart = node("where", node("le", _magnitude(apart), least), 0, apart)
    here = node("ne", one, 0)
    dv = matmul(v, node("where", here, 0, moved / node("where", here, 1, apart)))
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
        return _complex(reshape(a, a.shape[:-1]))
    return _decomposed(a)[0]


def eigen(a, what):
    """(eigenvalues, eigenvectors as columns) of general matrices."""
    a = square_matrix(a, what)
    if a.shape[-1] == 0:
        return _complex(reshape(a, a.shape[:-1])), _complex(a)
    return tuple(_decomposed(a))


def identity_like(a):
    """Unit matrices of the shape of a."""
    return broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
