"""Factorizations and systems of jax.lax.linalg that are programs of other ops."""

from .. import _control, _rlx
from .. import numpy as rnp
from .._nodes import cast, inexact, node
from .._op import op
from ..numpy import conj, matmul, matrix_transpose, where
from ..numpy._qr_sweeps import each_matrix
from ..numpy._schur import real_schur_of, schur_of


def _adjoint(x):
    return conj(matrix_transpose(x))


def _eye(n, dtype):
    return rnp.eye(n, dtype=dtype)


# -- tridiagonal systems --


def _size(x):
    return node("abs", x) if x.dtype.kind != "c" else node("abs", rnp.real(x)) + node("abs", rnp.imag(x))


def _one_system(dl, d, du, b, perturb):
    """x of one system with rows dl[i] x[i-1] + d[i] x[i] + du[i] x[i+1] = b[i], by elimination with exchanges. perturb:
    pivots near 0 are made larger.
    """
    n, zero = d.shape[0], cast(0, d.dtype)
    first = (d[0], where(n > 1, du[0], zero), b[0])  # of the row that is eliminated next: x[i], x[i+1], b

    def step(row, below):
        a, c, right = row
        low, middle, high, other = below
        swap = _size(low) > _size(a)
        pivot, p1, p2, pb = (
            where(swap, low, a),
            where(swap, middle, c),
            where(swap, high, zero),
            where(swap, other, right),
        )
        e0, e1, e2, eb = where(swap, a, low), where(swap, c, middle), where(swap, zero, high), where(swap, right, other)
        none = pivot == 0  # then there is nothing to eliminate
        factor = where(none, 0, e0 / where(none, 1, pivot)) if perturb else e0 / pivot
        return (e1 - factor * p1, e2 - factor * p2, eb - factor * pb), (pivot, p1, p2, pb)

    last = rnp.concatenate([du[1:-1], rnp.zeros((1,), d.dtype)]) if n > 1 else du[1:]
    row, done = _control.scan(step, first, (dl[1:], d[1:], last, b[1:]))
    if perturb:
        sizes = [rnp.max(_size(v), initial=0) for v in (*done[:3], row[0], row[1])]
        largest = sizes[0]
        for s in sizes[1:]:
            largest = node("max", largest, s)
        eps = rnp.finfo(d.dtype).eps
        least = node("stop_gradient", where(largest > 0, largest, 1) * eps)

        def enlarged(pivot):
            side = where(rnp.real(pivot) < 0, -least, least)
            return where(_size(pivot) < least, cast(side, d.dtype), pivot)

        row, done = (enlarged(row[0]), *row[1:]), (enlarged(done[0]), *done[1:])

    def back(after, equation):
        x1, x2 = after
        pivot, p1, p2, pb = equation
        x = (pb - p1 * x1 - p2 * x2) / pivot
        return (x, x1), x

    end = row[2] / row[0]
    xs = _control.scan(back, (end, rnp.zeros_like(end)), done, reverse=True)[1]
    return rnp.concatenate([xs, end[None]])


@op("dl", "d", "du", "b")
def tridiagonal_solve(dl, d, du, b, *, perturb_singular=False):
    """Solves systems with rows dl[i] x[i - 1] + d[i] x[i] + du[i] x[i + 1] = b[i], [.., N] and [.., N, K]; dl[0] and
    du[N - 1] have no effect. Rows are exchanged where that is more accurate. perturb_singular: pivots near 0 are made
    as large as the rounding errors of the largest, so that singular systems have finite solutions.
    """
    values = [inexact(v) for v in (dl, d, du, b)]
    dtype = _rlx.result_type(*values)[0]
    dl, d, du, b = (cast(v, dtype) for v in values)
    n = d.shape[-1] if d.ndim else 0
    if d.ndim < 1 or b.ndim < d.ndim + 1 or any(v.shape[-1] != n for v in (dl, du)) or b.shape[-2] != n:
        raise ValueError(
            f"tridiagonal_solve: diagonals of shapes {dl.shape}, {d.shape}, {du.shape} and b of shape {b.shape}; "
            "they must be [.., N] and [.., N, K]"
        )
    if n == 0:
        return b
    lead = rnp.broadcast_shapes(*(v.shape[:-1] for v in (dl, d, du)), b.shape[:-2])
    dl, d, du = (rnp.broadcast_to(v, (*lead, n)) for v in (dl, d, du))
    b = rnp.broadcast_to(b, (*lead, *b.shape[-2:]))
    perturb = bool(perturb_singular)
    solve = lambda dl, d, du, b: _one_system(dl, d, du, b, perturb)  # noqa: E731
    for _ in lead:
        solve = _control.vmap(solve)
    return solve(dl, d, du, b)


# -- reduction to Hessenberg and to tridiagonal form, by Householder's reflections --


def _reflection(x, place):
    """(v, tau, beta): I - tau v v^H takes the vector x, whose entries before `place` are left alone, to beta at
    `place` and 0 behind it; v is 1 at `place`. tau 0: nothing is left to do.
    """
    index = rnp.arange(x.shape[0])
    behind = where(index > place, x, 0)
    head = rnp.sum(where(index == place, x, 0))
    largest = rnp.max(_size(behind))
    scale = where(largest > 0, largest, 1)
    part = behind / cast(scale, x.dtype)
    front = head / cast(scale, x.dtype)
    squares = rnp.sum(rnp.square(rnp.real(part)) + rnp.square(rnp.imag(part)))
    idle = (largest == 0) & (rnp.imag(front) == 0)
    norm = rnp.sqrt(squares + rnp.square(rnp.real(front)) + rnp.square(rnp.imag(front)))
    beta = where(rnp.real(front) > 0, -norm, norm)
    safe = where(idle, 1, beta)
    tau = cast(safe, x.dtype) - front
    tau = tau / cast(safe, x.dtype)
    below = where(idle, 1, front - cast(safe, x.dtype))
    v = where(index == place, 1, part / below)
    v = where(index < place, 0, v)
    return v, where(idle, 0, tau), where(idle, head, cast(beta * scale, x.dtype))


def _hessenberg_of(a):
    """(a, taus) as LAPACK's gehrd: the form above the second diagonal, the vectors of the reflections below it."""
    n = a.shape[0]
    index = rnp.arange(n)

    def step(m, k):
        v, tau, beta = _reflection(m[:, k], k + 1)
        right = matmul(m, v)
        m = m - tau * rnp.expand_dims(right, 1) * rnp.expand_dims(conj(v), 0)
        left = matmul(conj(v), m)
        m = m - conj(tau) * rnp.expand_dims(v, 1) * rnp.expand_dims(left, 0)
        # Column k holds the vector of the reflection instead of its zeros.
        kept = where(index > k + 1, v, where(index == k + 1, beta, m[:, k]))
        return where(rnp.expand_dims(index == k, 0), rnp.expand_dims(kept, 1), m), tau

    def column(state, k):
        m, vectors = state
        shown = m
        m, tau = step(shown, k)
        stored = where(index > k + 1, m[:, k], 0)
        vectors = where(rnp.expand_dims(index == k, 0), rnp.expand_dims(stored, 1), vectors)
        cleared = where(rnp.expand_dims(index == k, 0) & rnp.expand_dims(index > k + 1, 1), 0, m)
        return (cleared, vectors), tau

    if n < 2:
        return a, rnp.zeros((0,), a.dtype)
    (m, vectors), taus = _control.scan(column, (a, rnp.zeros_like(a)), rnp.arange(n - 1))
    return m + vectors, taus


def _square(a, what):
    a = inexact(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{what} of shape {a.shape}: the last two axes must be equal")
    return a


@op("a")
def hessenberg(a):
    """(a, taus): the form h = q^H a q with zeros below the second diagonal, where the vectors of the reflections stand
    whose product is q; see householder_product.
    """
    return each_matrix(_hessenberg_of, _square(a, "hessenberg"))


@op("a")
def tridiagonal(a, *, lower=True):
    """(a, d, e, taus) of one triangle of Hermitian matrices: a = q t q^H with the diagonal d and the elements e beside
    it, and q the product of the reflections whose vectors stand below the second diagonal, or above it if not lower.
    """
    a = _square(a, "tridiagonal")
    if not lower:  # the lower triangle of the matrix with both axes reversed
        out, d, e, taus = tridiagonal(rnp.flip(a, (-2, -1)))
        return rnp.flip(out, (-2, -1)), rnp.flip(d, -1), rnp.flip(e, -1), rnp.flip(taus, -1)
    below = rnp.tril(a, -1)
    full = below + _adjoint(below) + _eye(a.shape[-1], a.dtype) * cast(rnp.real(a), a.dtype)
    out, taus = hessenberg(full)
    d = rnp.real(rnp.diagonal(out, 0, -2, -1))
    return rnp.tril(out) + rnp.triu(a, 1), d, rnp.real(rnp.diagonal(out, -1, -2, -1)), taus


def _whole_q(a, taus):
    """The product of reflections as square matrices."""
    m, n = a.shape[-2:]
    if n < m:
        a = rnp.concatenate([a, rnp.zeros((*a.shape[:-1], m - n), a.dtype)], -1)
    a = a[..., :m]
    missing = m - taus.shape[-1]
    if missing:
        taus = rnp.concatenate([taus, rnp.zeros((*taus.shape[:-1], missing), taus.dtype)], -1)
    return _rlx.linalg("householder_product", [a, taus])[0]


@op("a", "taus", "c")
def ormqr(a, taus, c, *, left=True, transpose=False):
    """q c, or c q with left False, where q is the product of the reflections in a and taus; transpose: of q^H."""
    a, taus, c = inexact(a), inexact(taus), inexact(c)
    q = _whole_q(a, taus)
    q = _adjoint(q) if transpose else q
    return matmul(q, c) if left else matmul(c, q)


@op("x")
def eig(
    x,
    *,
    compute_left_eigenvectors=True,
    compute_right_eigenvectors=True,
    enable_eigvec_derivs=False,
    implementation=None,
    use_magma=None,
):
    """[eigenvalues, left eigenvectors, right eigenvectors] of general matrices, those that are asked for. The left ones
    have norm 1 too. All have derivatives, whatever enable_eigvec_derivs says.
    """
    w, v = rnp.linalg.eig(x)
    out = [w]
    if compute_left_eigenvectors:
        left = _adjoint(rnp.linalg.inv(v))
        size = rnp.sqrt(rnp.sum(rnp.square(rnp.real(left)) + rnp.square(rnp.imag(left)), -2, keepdims=True))
        out.append(left / cast(size, left.dtype))
    return out + [v] if compute_right_eigenvectors else out


@op("a_matrix", "c_matrix")
def symmetric_product(a_matrix, c_matrix, *, alpha=1.0, beta=0.0, symmetrize_output=False):
    """alpha a a^T + beta c. All of the result is computed, so symmetrize_output has no effect."""
    return alpha * matmul(a_matrix, matrix_transpose(a_matrix)) + beta * _rlx.value(c_matrix)


@op("r_matrix", "w_vector")
def cholesky_update(r_matrix, w_vector):
    """The upper Cholesky factor of r^T r + w w^T."""
    r, w = inexact(r_matrix), inexact(w_vector)
    stacked = rnp.concatenate([r, rnp.expand_dims(w, -2)], -2)
    _, out = node("qr", stacked, full=False)
    signs = where(rnp.diagonal(out, 0, -2, -1) < 0, -1, 1)
    return out * cast(rnp.expand_dims(signs, -1), out.dtype)


@op("x")
def qdwh(x, *, is_hermitian=False, max_iterations=None, eps=None, dynamic_shape=None):
    """(u, h, iterations, converged) of the polar decomposition x = u h, from the singular value decomposition; the
    options have no effect.
    """
    if dynamic_shape is not None:
        raise NotImplementedError("qdwh: dynamic_shape is not supported")
    u, s, vh = node("svd", inexact(x), full=False)
    h = matmul(_adjoint(vh) * rnp.expand_dims(cast(s, vh.dtype), -2), vh)
    return matmul(u, vh), h, rnp.zeros((), "int32"), rnp.ones((), "bool")


@op("x")
def schur(x, *, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None):
    """(t, u) of the Schur form of square matrices: real ones of real matrices, with blocks on the diagonal."""
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError("schur: sorted eigenvalues are not supported")
    x = inexact(x)
    t, u = schur_of(x, "schur") if x.dtype.kind == "c" else real_schur_of(x, "schur")
    return (t, u) if compute_schur_vectors else (t,)
