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
    "nuclear norm": (
        lambda a: rnp.linalg.norm(a, "nuc"),
        lambda a: power_sum(mp.svd_r(a, compute_uv=False), 1),
        FULL | TALL | WIDE,
    ),
    "sum of svdvals": (
        lambda a: (rnp.linalg.svdvals(a) ** 4).sum(),
        lambda a: power_sum(mp.svd_r(a, compute_uv=False), 4),
        FULL | TALL | WIDE | SMOOTH,
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
