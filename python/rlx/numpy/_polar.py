"""Equations a x + x b = q and polar factors, whose derivatives are solutions of such equations again."""

from .. import _rlx
from .._control import custom_jvp
from .._implicit import ruled
from ._base import cast, node
from ._complex import conj, real
from ._creation import eye
from ._products import matmul
from ._reductions import sum
from ._shapes import expand_dims, matrix_transpose


def _adjoint(x):
    return conj(matrix_transpose(x))


def sylvester(a, b, q, solve, swapped):
    """x with a x + x b = q. solve(q) gives it, and swapped(q) the y with b y + y a = q; both by constants that they
    capture, for example factors of stop_gradient(a).
    """

    def again(a, b, q):
        return ruled("sylvester", [a, b, q], lambda xs: [solve(xs[2])], jvp=jvp, forward=forward, backward=backward)[0]

    def jvp(given):
        a, b, q, da, db, dq = given
        x = again(a, b, q)
        return [x, again(a, b, dq - matmul(da, x) - matmul(x, db))]

    def forward(given):
        x = again(*given)
        return [x, *given[:2], x]

    def backward(given):
        a, b, x, ct = given
        # The transposed equation a^T y + y b^T = ct is b y^T + y^T a = ct^T.
        y = matrix_transpose(sylvester(b, a, matrix_transpose(ct), swapped, solve))
        xt = matrix_transpose(x)
        return [node("neg", matmul(y, xt)), node("neg", matmul(xt, y)), y]

    return again(a, b, q)


def _hermitian_sylvester(p, q):
    """x with p x + x p = q of a Hermitian p."""
    w, v = node("eigh", node("stop_gradient", p))
    sums = cast(expand_dims(w, -1) + expand_dims(w, -2), q.dtype)
    solve = lambda q: matmul(v, matmul(matmul(_adjoint(v), matmul(q, v)) / sums, _adjoint(v)))  # noqa: E731
    return sylvester(p, p, q, solve, solve)


@custom_jvp
def _tall_factor(a):
    w, _, vh = node("svd", a, full=False)
    return matmul(w, vh)


@_tall_factor.defjvp
def _tall_rule(primals, tangents):
    (a,), (da,) = primals, tangents
    u = _tall_factor(a)
    p = matmul(_adjoint(u), a)
    p = (p + _adjoint(p)) * 0.5
    along = matmul(_adjoint(u), da)
    du = matmul(u, _hermitian_sylvester(p, along - _adjoint(along)))
    m, n = a.shape[-2:]
    if m == n:
        return u, du
    rest = matmul(eye(m, dtype=a.dtype) - matmul(u, _adjoint(u)), da)
    return u, du + _adjoint(_rlx.linalg("solve", (p, _adjoint(rest)), None)[0])


def polar_factor(a):
    """The matrix with orthonormal columns, or rows, that is nearest to each matrix of full rank."""
    return _adjoint(_tall_factor(_adjoint(a))) if a.shape[-2] < a.shape[-1] else _tall_factor(a)


@custom_jvp
def nuclear_norm(a):
    """The sum of the singular values of each matrix."""
    return sum(node("svd", a, full=False)[1], -1)


@nuclear_norm.defjvp
def _nuclear_rule(primals, tangents):
    (a,), (da,) = primals, tangents
    along = sum(conj(polar_factor(a)) * da, (-2, -1))
    return nuclear_norm(a), real(along) if a.dtype.kind == "c" else along
