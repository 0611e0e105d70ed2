"""First and second derivatives of linear algebra at singular, repeated and zero matrices, in every mode.

The oracle takes differences of the function in 50 digits (mpmath), which are exact to about 1e-20.
"""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
import rlx.numpy as rnp
import rlx.scipy.linalg as rsl
from sampling import some

import rlx

STEP = mp.mpf(10) ** -12


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(50):
        yield


# -- the functions in mpmath --


def leibniz(a):
    """The determinant as a polynomial of its elements."""
    n, total = a.rows, mp.mpf(0)
    for p in itertools.permutations(range(n)):
        odd = sum(p[i] > p[j] for i in range(n) for j in range(i + 1, n)) % 2
        total += (-1) ** odd * mp.fprod(a[i, p[i]] for i in range(n))
    return mp.matrix([[total]])


def pinv(a):
    """The pseudo-inverse at full rank."""
    return mp.inverse(a.T * a) * a.T if a.rows >= a.cols else a.T * mp.inverse(a * a.T)


def gram_schmidt(a):
    q, r = mp.matrix(a.rows, a.cols), mp.matrix(a.cols, a.cols)
    for j in range(a.cols):
        v = a[:, j]
        for i in range(j):
            r[i, j] = (q[:, i].T * a[:, j])[0]
            v = v - q[:, i] * r[i, j]
        r[j, j] = mp.sqrt((v.T * v)[0])
        q[:, j] = v / r[j, j]
    return q, r


def positive_qr(a):
    q, r = rnp.linalg.qr(a)
    sign = rnp.sign(rnp.diagonal(r))
    return rnp.concatenate([q * sign, r * sign[:, None]])


def stacked(parts):
    rows = [p[i, :] for p in parts for i in range(p.rows)]
    return mp.matrix([[row[j] for j in range(row.cols)] for row in rows])


def symmetric(a):
    return (a + a.T) / 2


def power_sum(values, k):
    return mp.matrix([[mp.fsum(v**k for v in values)]])


def log_abs_det(a):
    return mp.matrix([[mp.log(abs(leibniz(a)[0]))]])


def frobenius(a):
    return mp.matrix([[mp.sqrt(mp.fsum(v * v for v in a))]])


B = np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0], [-1.0, 0.5]])
FULL = {
    "identity": np.eye(3),
    "scaled identity": 4 * np.eye(3),
    "orthogonal": np.array([[0.0, 1, 0], [0, 0, -1], [1, 0, 0]]),
    "repeated": np.array([[2.0, 1, 1], [1, 2, 1], [1, 1, 2]]),
    "general": np.array([[2.0, -1, 0.5], [1, 3, -2], [0.25, 1, 1]]),
    "one": np.array([[-2.0]]),
}
TALL = {
    "isometry": np.array([[1.0, 0], [0, 1], [0, 0], [0, 0]]),
    "equal singular values": np.array([[1.0, 1], [1, -1], [1, 1], [1, -1]]),
    "general tall": np.array([[2.0, -1], [1, 3], [0.25, 1], [0, 1]]),
}
WIDE = {k + " transposed": v.T for k, v in TALL.items()}
SMOOTH = {
    "zero": np.zeros((3, 3)),
    "nilpotent": np.array([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]]),
    "defective": np.array([[2.0, 1, 0], [0, 2, 0], [0, 0, 2]]),
    "rank 1": np.outer([1.0, 2, 3], [1.0, -1, 0.5]),
}
definite = lambda a: a @ a.mT + rnp.eye(a.shape[-1])  # noqa: E731
# name: function of rlx, of mpmath, matrices, orders
CASES = {
    "inv": (rnp.linalg.inv, mp.inverse, FULL),
    "solve": (lambda a: rnp.linalg.solve(a, B[: len(a)]), lambda a: mp.inverse(a) * mp.matrix(B[: a.rows]), FULL),
    "matrix_power 3": (lambda a: rnp.linalg.matrix_power(a, 3), lambda a: a**3, FULL | SMOOTH),
    "matrix_power 0": (lambda a: rnp.linalg.matrix_power(a, 0), lambda a: a**0, FULL | SMOOTH),
    "matrix_power -2": (lambda a: rnp.linalg.matrix_power(a, -2), lambda a: mp.inverse(a) ** 2, FULL),
    "expm": (rsl.expm, mp.expm, FULL | SMOOTH),
    "pinv": (rnp.linalg.pinv, pinv, FULL | TALL | WIDE),
    "lstsq": (
        lambda a: rnp.linalg.lstsq(a, B[: len(a)])[0],
        lambda a: pinv(a) * mp.matrix(B[: a.rows]),
        FULL | TALL | WIDE,
    ),
    "cholesky": (
        lambda a: rnp.linalg.cholesky(definite(a)),
        lambda a: mp.cholesky(a * a.T + mp.eye(a.rows)),
        FULL | SMOOTH,
    ),
    "qr": (positive_qr, lambda a: stacked(gram_schmidt(a)), FULL | TALL),
    "slogdet": (lambda a: rnp.linalg.slogdet(a)[1], log_abs_det, FULL),
    "norm": (rnp.linalg.norm, frobenius, FULL | TALL | {"rank 1": SMOOTH["rank 1"]}),
    "multi_dot": (
        lambda a: rnp.linalg.multi_dot([a, a, a]),
        lambda a: a * a * a,
        FULL | SMOOTH,
    ),
}
# Functions of eigenvalues and singular values that are smooth where these are equal; their second derivatives are not
# finite there.
FIRST = {
    "sum of eigvalsh": (
        lambda a: (rnp.linalg.eigvalsh(a) ** 3).sum(),
        lambda a: power_sum(mp.eigsy(symmetric(a), eigvals_only=True), 3),
        FULL | SMOOTH,
    ),
    "sum of svdvals": (
        lambda a: (rnp.linalg.svdvals(a) ** 4).sum(),
        lambda a: power_sum(mp.svd_r(a, compute_uv=False), 4),
        FULL | TALL | WIDE | SMOOTH,
    ),
}


def singular_values(a):
    return sorted(mp.svd_r(a, compute_uv=False), reverse=True)


def column(values):
    return mp.matrix([[v] for v in values])


def operator_norm(p):
    """The norm of order 1 or -1."""

    def norm(a):
        sums = [mp.fsum(abs(a[i, j]) for i in range(a.rows)) for j in range(a.cols)]
        return column([max(sums) if p > 0 else min(sums)])

    return norm


def by_eigenvalues(f, a):
    """f of a symmetric matrix."""
    w, q = mp.eigsy(a)
    return q * mp.diag([f(v) for v in w]) * q.T


def polar_factor(a):
    if a.rows < a.cols:
        return polar_factor(a.T).T
    return a * by_eigenvalues(lambda v: 1 / mp.sqrt(v), a.T * a)


def kronecker_sylvester(a):
    """x with a x + x b = q, as one system for its elements."""
    n = a.rows
    b, q = (mp.matrix(m[:n, :n]) for m in (SYLVESTER_B, SYLVESTER_Q))
    k = mp.zeros(n * n)
    for i in range(n):
        for j in range(n):
            for m in range(n):
                k[i * n + j, m * n + j] += a[i, m]
                k[i * n + j, i * n + m] += b[m, j]
    x = mp.lu_solve(k, mp.matrix([q[i, j] for i in range(n) for j in range(n)]))
    return mp.matrix([[x[i * n + j] for j in range(n)] for i in range(n)])


def block_exponential(a):
    """The derivative of the exponential in the direction of ones: a block of that of a matrix twice as large."""
    n = a.rows
    whole = mp.zeros(2 * n)
    for i in range(n):
        for j in range(n):
            whole[i, j] = whole[n + i, n + j] = a[i, j]
            whole[i, n + j] = 1
    whole = mp.expm(whole)
    return mp.matrix([[whole[i, n + j] for j in range(n)] for i in range(n)])


def upper(a):
    return mp.matrix([[a[i, j] if j >= i else 0 for j in range(a.cols)] for i in range(a.rows)])


def tridiagonal(a):
    n = a.cols
    beside = lambda i, j: a[1, min(i, j)] if abs(i - j) == 1 else 0  # noqa: E731
    return mp.matrix([[a[0, i] if i == j else beside(i, j) for j in range(n)] for i in range(n)])


SYLVESTER_B = np.array([[7.0, 1, 0], [0, 8, 2], [1, 0, 9]])
SYLVESTER_Q = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 10]])
# Distinct eigenvalues and singular values, zero pivots first and last, of lower rank.
DISTINCT = {
    "general": FULL["general"],
    "wide": TALL["general tall"].T,
    "tall": TALL["general tall"],
    "one": FULL["one"],
    "mirror": np.array([[-1.0, 2], [3, 5]]),
    "diagonal": np.diag([3.0, 1, -2]),
    "row": np.array([[3.0, -4, 1]]),
    "zero pivot": np.array([[0.0, 2, 1], [1, 1, 5], [2, 3, 1]]),
    "rank 2": np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]]),
}
FULL_RANK = {k: v for k, v in DISTINCT.items() if np.linalg.matrix_rank(v) == min(v.shape)}
SQUARE = {k: v for k, v in DISTINCT.items() if v.shape[0] == v.shape[1]}
REGULAR = {k: v for k, v in FULL_RANK.items() if v.shape[0] == v.shape[1]}
ANY_RANK = FULL | TALL | WIDE | FULL_RANK
joined = lambda parts: (lambda f, s, g: (f * s) @ g)(*parts)  # noqa: E731
turned_back = lambda parts: parts[1] @ parts[0] @ parts[1].mT  # noqa: E731
CASES |= {
    "norm 2": (lambda a: rnp.linalg.norm(a, 2), lambda a: column(singular_values(a)[:1]), DISTINCT),
    "norm -2": (lambda a: rnp.linalg.norm(a, -2), lambda a: column(singular_values(a)[-1:]), FULL_RANK),
    "norm nuc": (lambda a: rnp.linalg.norm(a, "nuc"), lambda a: power_sum(singular_values(a), 1), ANY_RANK),
    "norm 1": (lambda a: rnp.linalg.norm(a, 1), operator_norm(1), {"general": FULL["general"]}),
    "norm -1": (lambda a: rnp.linalg.norm(a, -1), operator_norm(-1), {"general": FULL["general"]}),
    "svdvals": (rnp.linalg.svdvals, lambda a: column(singular_values(a)), FULL_RANK),
    "eigvalsh": (
        rnp.linalg.eigvalsh,
        lambda a: column(sorted(mp.eigsy(symmetric(a), eigvals_only=True))),
        SQUARE,
    ),
    "svd": (lambda a: joined(rnp.linalg.svd(a, full_matrices=False)), lambda a: a, FULL_RANK),
    "eig": (
        lambda a: rnp.real((lambda w, v: (v * w**2) @ rnp.linalg.inv(v))(*rnp.linalg.eig(a))),
        lambda a: a * a,
        REGULAR,
    ),
    "cond": (
        rnp.linalg.cond,
        lambda a: (lambda s: column([s[0] / s[-1]]))(singular_values(a)),
        {k: v for k, v in FULL_RANK.items() if min(v.shape) > 1},
    ),
    "cond fro": (lambda a: rnp.linalg.cond(a, "fro"), lambda a: frobenius(a) * frobenius(mp.inverse(a)), FULL),
    "tensorinv": (lambda a: rnp.linalg.tensorinv(a, 1), mp.inverse, FULL | REGULAR),
    "pinv hermitian": (lambda a: rnp.linalg.pinv(a, hermitian=True), lambda a: mp.inverse(symmetric(a)), FULL),
    "polar u": (lambda a: rsl.polar(a)[0], polar_factor, ANY_RANK),
    "polar p": (lambda a: rsl.polar(a, "left")[1], lambda a: polar_factor(a.T).T * a.T, FULL | WIDE),
    "sqrtm": (
        lambda a: rnp.real(rsl.sqrtm(definite(a))),
        lambda a: by_eigenvalues(mp.sqrt, a * a.T + mp.eye(a.rows)),
        FULL | SMOOTH | SQUARE,
    ),
    "solve_sylvester": (
        lambda a: rsl.solve_sylvester(a, *(m[: len(a), : len(a)] for m in (SYLVESTER_B, SYLVESTER_Q))),
        kronecker_sylvester,
        FULL | SMOOTH | SQUARE,
    ),
    "expm_frechet": (
        lambda a: rsl.expm_frechet(a, rnp.ones_like(a), compute_expm=False),
        block_exponential,
        FULL | SMOOTH,
    ),
    "funm": (lambda a: rnp.real(rsl.funm(a, rnp.exp)), mp.expm, REGULAR),
    "schur": (lambda a: turned_back(rsl.schur(a)), lambda a: a, REGULAR),
    "lu": (lambda a: (lambda p, l, u: p @ l @ u)(*rsl.lu(a)), lambda a: a, FULL | REGULAR | TALL),
    "pivoted qr": (
        lambda a: (lambda q, r, p: (q @ r)[:, rnp.argsort(p)])(*rsl.qr(a, mode="economic", pivoting=True)),
        lambda a: a,
        FULL | REGULAR | TALL,
    ),
    "lu_solve": (
        lambda a: rsl.lu_solve(rsl.lu_factor(a), B[: len(a)], 1),
        lambda a: mp.inverse(a.T) * mp.matrix(B[: a.rows]),
        FULL | REGULAR,
    ),
    "cho_solve": (
        lambda a: rsl.cho_solve(rsl.cho_factor(definite(a)), B[: len(a)]),
        lambda a: mp.inverse(a * a.T + mp.eye(a.rows)) * mp.matrix(B[: a.rows]),
        FULL | SMOOTH,
    ),
    "solve_triangular": (
        lambda a: rsl.solve_triangular(a + 5 * rnp.eye(len(a)), B[: len(a)], trans=1),
        lambda a: mp.inverse(upper(a + 5 * mp.eye(a.rows)).T) * mp.matrix(B[: a.rows]),
        FULL | SMOOTH,
    ),
    "eigh_tridiagonal": (
        lambda a: rsl.eigh_tridiagonal(a[0], a[1][:-1], eigvals_only=True),
        lambda a: column(sorted(mp.eigsy(tridiagonal(a), eigvals_only=True))),
        {"general": FULL["general"], "tall": TALL["general tall"]},
    ),
}

# -- derivatives --


def weights(shape):
    return np.cos(np.arange(math.prod(shape))).reshape(shape)


def loss_of(f):
    def loss(a):
        out = f(a)
        return (out * weights(out.shape)).sum()

    return loss


def loss_in_digits(f):
    def loss(a):
        out = f(a)
        w = weights((out.rows, out.cols)).reshape(-1)
        return mp.fsum(mp.mpf(float(w[i * out.cols + j])) * out[i, j] for i in range(out.rows) for j in range(out.cols))

    return loss


def units(shape):
    for i in range(shape[0]):
        for j in range(shape[1]):
            e = mp.matrix(*shape)
            e[i, j] = STEP
            yield e


def exact_gradient(f, a):
    slopes = [float((f(a + e) - f(a - e)) / (2 * STEP)) for e in units((a.rows, a.cols))]
    return np.array(slopes).reshape(a.rows, a.cols)


def exact_second(f, a, t):
    """The derivative of the gradient along t."""
    t = t * STEP
    pairs = [f(a + e + t) - f(a - e + t) - f(a + e - t) + f(a - e - t) for e in units((a.rows, a.cols))]
    return np.array([float(v / (4 * STEP * STEP)) for v in pairs]).reshape(a.rows, a.cols)


def near(got, want, what, bound=1e-9):
    got = np.asarray(got)
    assert got.shape == want.shape, what
    size = max(1.0, np.abs(want).max())
    assert np.abs(got - want).max() <= bound * size, f"{what}: {got.tolist()}, expected {want.tolist()}"


def direction(a):
    return np.sin(np.arange(a.size) + 1.0).reshape(a.shape)


def check(f, g, a, what, second=True, bound=1e-9):
    loss, exact, t = loss_of(f), loss_in_digits(g), direction(a)
    there, along = mp.matrix(a), mp.matrix(t)
    first = exact_gradient(exact, there)
    near(rlx.grad(loss)(a), first, f"{what}, reverse", bound)
    near(rlx.jacfwd(loss)(a), first, f"{what}, forward", bound)
    if not second:
        return
    hessian = exact_second(exact, there, along)
    near(rlx.jvp(rlx.grad(loss), (a,), (t,))[1], hessian, f"{what}, forward over reverse", bound * 10)
    near(rlx.grad(lambda x: (rlx.grad(loss)(x) * t).sum())(a), hessian, f"{what}, reverse over reverse", bound * 10)
    near(rlx.grad(lambda x: rlx.jvp(loss, (x,), (t,))[1])(a), hessian, f"{what}, reverse over forward", bound * 10)
    whole = np.asarray((hessian * t).sum())
    near(rlx.jvp(lambda x: rlx.jvp(loss, (x,), (t,))[1], (a,), (t,))[1], whole, f"{what}, forward twice", bound * 10)


@pytest.mark.parametrize("name, at", some([(n, m) for n, c in CASES.items() for m in c[2]], 8))
def test_derivatives_of_both_orders(name, at):
    f, g, matrices = CASES[name]
    check(f, g, matrices[at], f"{name} at {at}", bound=1e-8)


@pytest.mark.parametrize("name, at", some([(n, m) for n, c in FIRST.items() for m in c[2]], 6))
def test_first_derivatives_at_equal_values(name, at):
    f, g, matrices = FIRST[name]
    check(f, g, matrices[at], f"{name} at {at}", second=False)


@pytest.mark.parametrize("name", some(CASES, 6))
def test_batches_and_float32(name):
    """Values and gradients of batches and under vmap are those of each matrix, in float32 as far as it goes."""
    f, _, matrices = CASES[name]
    a = next((m for m in (*REGULAR.values(), *TALL.values()) if any(m is v for v in matrices.values())), None)
    if a is None:
        a = next(iter(matrices.values()))
    loss = loss_of(f)
    many = np.stack([a, a * 1.25, a * -1.0])
    want, slopes = (np.stack([np.asarray(g(m)) for m in many]) for g in (loss, rlx.grad(loss)))
    near(rlx.vmap(loss)(many), want, f"{name}, vmap", 1e-9)
    near(rlx.vmap(rlx.grad(loss))(many), slopes, f"{name}, vmap of grad", 1e-8)
    near(rlx.grad(lambda x: rlx.vmap(loss)(x).sum())(many), slopes, f"{name}, grad of vmap", 1e-8)
    near(rlx.jit(rlx.vmap(rlx.grad(loss)))(many.astype("float32")), slopes, f"{name}, float32", 2e-3)


def singular_matrices():
    """Integers of every rank up to order 5: zero pivots first, in the middle and last, exact and rounded."""
    for n in range(1, 6):
        yield f"zero {n}", np.zeros((n, n))
        yield f"identity {n}", np.eye(n)
        yield f"shift {n}", np.eye(n, k=1)
        for drop in range(n):
            yield f"identity {n} without {drop}", np.diag([float(i != drop) for i in range(n)])
        for rank in range(1, n):
            g = np.random.default_rng(10 * n + rank)
            left, right = g.integers(-2, 3, (n, rank)), g.integers(-2, 3, (rank, n))
            yield f"rank {rank} of {n}", (left @ right).astype(float)
            yield f"thirds of rank {rank} of {n}", (left @ right) / 3.0
    yield "counting", np.arange(1.0, 10).reshape(3, 3)
    yield "counting to 16", np.arange(1.0, 17).reshape(4, 4)
    yield "graded", np.diag([1e9, 1.0, 1e-9, 3.0]) + np.eye(4, k=1)


MATRICES = dict(singular_matrices())


@pytest.mark.parametrize("at", some(MATRICES, 9))
def test_det_at_matrices_of_every_rank(at):
    check(rnp.linalg.det, leibniz, MATRICES[at], f"det at {at}", bound=1e-10)
    square = lambda a: rnp.linalg.det(a) ** 2 + rnp.linalg.det(a)  # noqa: E731
    exact = lambda a: mp.matrix([[leibniz(a)[0] ** 2 + leibniz(a)[0]]])  # noqa: E731
    check(square, exact, MATRICES[at], f"det^2 at {at}", bound=1e-10)


def test_det_of_all_small_singular_matrices():
    """Every singular matrix of order 2 with entries -1, 0, 1 and 2, in one batch, one by one under vmap, in float32."""
    every = np.array(list(itertools.product((-1.0, 0.0, 1.0, 2.0), repeat=4))).reshape(-1, 2, 2)
    m = every[every[:, 0, 0] * every[:, 1, 1] == every[:, 0, 1] * every[:, 1, 0]]
    want = np.stack([m[:, 1, 1], -m[:, 1, 0], -m[:, 0, 1], m[:, 0, 0]], -1).reshape(-1, 2, 2)
    for dtype in ("float32", "float64", "complex64", "complex128"):
        a = m.astype(dtype)
        real = lambda x: rnp.real(rnp.linalg.det(x))  # noqa: E731
        near(rlx.grad(lambda x: real(x).sum())(a), want, f"batch {dtype}", 1e-6)
        near(rlx.vmap(rlx.grad(real))(a), want, f"vmap {dtype}", 1e-6)
    hessian = rlx.vmap(rlx.jacfwd(rlx.grad(rnp.linalg.det)))(m).reshape(-1, 4, 4)
    near(hessian, np.broadcast_to(np.fliplr(np.diag([1.0, -1, -1, 1])), hessian.shape), "Hessians", 1e-12)


def test_det_of_batches_of_mixed_rank():
    """Singular and regular matrices in one batch, at once and under vmap, complex too."""
    m = np.stack([v for v in MATRICES.values() if v.shape == (4, 4)])
    want = np.stack([exact_gradient(loss_in_digits(leibniz), mp.matrix(a)) for a in m])
    for dtype in ("float64", "complex128"):
        real = lambda x: rnp.real(rnp.linalg.det(x))  # noqa: E731
        near(rlx.grad(lambda x: real(x).sum())(m.astype(dtype)), want, f"batch {dtype}")
        near(rlx.vmap(rlx.grad(real))(m.astype(dtype)), want, f"vmap {dtype}")
    turn = np.diag(np.exp(1j * np.arange(4)))
    turned = rlx.grad(lambda x: rnp.real(rnp.linalg.det(x)))
    for a, w in zip(m, want):  # det(turn a) = e^(6 i) det(a)
        near(turned(turn @ a), np.conj(turn) @ (w * np.exp(6j)), "turned")


def test_third_derivatives_of_det():
    """Up to order 3 at every matrix, above at regular ones."""
    for a in (np.zeros((3, 3)), np.diag([1.0, 0, 0]), np.array([[1.0, 2], [2, 4]]), np.eye(4), np.diag([1.0, 2, 3, 4])):
        t = direction(a)
        along = lambda f: lambda x: rlx.jvp(f, (x,), (t,))[1]  # noqa: E731
        got = along(along(along(rnp.linalg.det)))(a)
        h = mp.mpf(10) ** -8
        at = [leibniz(mp.matrix(a) + k * h * mp.matrix(t))[0] for k in (-2, -1, 1, 2)]
        want = np.asarray(float((at[3] - 2 * at[2] + 2 * at[1] - at[0]) / (2 * h**3)))
        near(got, want, "third derivative", 1e-8)


def test_pinv_where_the_rank_stays():
    """Derivatives of pinv and lstsq along curves of matrices of lower rank, in both modes."""
    for m, n, r in ((4, 3, 2), (3, 4, 1), (3, 3, 2)):
        f, g = np.array(B.ravel()[: m * r]).reshape(m, r), np.cos(np.arange(r * n)).reshape(r, n)
        df, dg = direction(f), direction(g)

        def exact(t, f=f, g=g, df=df, dg=dg):
            x, y = mp.matrix(f) + t * mp.matrix(df), mp.matrix(g) + t * mp.matrix(dg)
            return y.T * mp.inverse(y * y.T) * mp.inverse(x.T * x) * x.T

        def curve(t, f=f, g=g, df=df, dg=dg):
            return loss_of(rnp.linalg.pinv)((f + t * df) @ (g + t * dg))

        of = loss_in_digits(exact)
        first = np.asarray(float((of(STEP) - of(-STEP)) / (2 * STEP)))
        second = np.asarray(float((of(STEP) - 2 * of(mp.mpf(0)) + of(-STEP)) / STEP**2))
        zero = np.float64(0)
        near(rlx.grad(curve)(zero), first, "reverse")
        near(rlx.jvp(curve, (zero,), (1.0,))[1], first, "forward")
        near(rlx.grad(rlx.grad(curve))(zero), second, "reverse twice", 1e-8)
        near(rlx.jvp(rlx.grad(curve), (zero,), (1.0,))[1], second, "forward over reverse", 1e-8)


def test_norms_of_zero():
    """A norm has no derivative at 0; it gives 0, a subgradient, as abs does."""
    for f in (
        rnp.linalg.norm,
        lambda x: rnp.linalg.norm(x, axis=0).sum(),
        lambda x: rnp.linalg.vector_norm(x),
        lambda x: rnp.linalg.matrix_norm(x),
        lambda x: rnp.linalg.norm(x, 3, axis=1).sum(),
        lambda x: rnp.linalg.norm(x, 1, axis=1).sum(),
        lambda x: rnp.linalg.norm(x, np.inf, axis=1).sum(),
    ):
        for dtype in ("float32", "float64", "complex128"):
            a = np.zeros((3, 3), dtype)
            assert not np.asarray(rlx.grad(f)(a)).any()
            assert not np.asarray(rlx.jvp(f, (a,), (np.ones_like(a),))[1]).any()
            a[0, 0] = 3
            slope = np.asarray(rlx.grad(f)(a))
            assert np.isfinite(slope).all() and slope[0, 0] == pytest.approx(1, abs=1e-6)
