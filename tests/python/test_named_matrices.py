"""Matrices with names, Schur and Hessenberg forms, functions of matrices and tridiagonal systems, against SciPy."""

import jax
import numpy as np
import pytest
import scipy.linalg as sl

import rlx
import rlx.numpy as rnp
import rlx.scipy.linalg as rsl
from rlx.lax import linalg as rll

RNG = np.random.default_rng(0)
A = RNG.standard_normal((5, 5))
C = A + 1j * RNG.standard_normal((5, 5))
ROW, LONG = RNG.standard_normal(5), RNG.standard_normal(7)
MATRICES = [
    ("circulant", (ROW,)), ("companion", (ROW,)), ("companion", (ROW[:2],)), ("fiedler", (ROW,)),
    ("fiedler_companion", (ROW[:2],)), ("fiedler_companion", (ROW[:3],)), ("fiedler_companion", (LONG,)),
    ("fiedler_companion", (LONG[:6],)), ("hankel", (ROW,)), ("hankel", (ROW, LONG)), ("leslie", (ROW, LONG[:4])),
    ("convolution_matrix", (ROW, 4)), ("convolution_matrix", (ROW, 3, "same")),
    ("convolution_matrix", (ROW, 8, "same")),
    ("convolution_matrix", (ROW, 3, "valid")), ("convolution_matrix", (ROW, 8, "valid")), ("dft", (6,)),
    ("dft", (5, "sqrtn")), ("dft", (4, "n")), ("dft", (1,)), ("hadamard", (8,)), ("hadamard", (1,)), ("helmert", (5,)),
    ("helmert", (4, True)), ("invhilbert", (6,)), ("pascal", (6,)), ("pascal", (5, "lower")), ("pascal", (5, "upper")),
    ("invpascal", (6,)), ("invpascal", (5, "lower")), ("invpascal", (5, "upper")),
]  # fmt: skip


@pytest.mark.parametrize("name, given", MATRICES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(MATRICES)])
def test_values(name, given):
    want, got = getattr(sl, name)(*given), np.asarray(getattr(rsl, name)(*given))
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-6 if got.dtype != np.float64 else 1e-12, atol=3e-7)
    if isinstance(given[0], np.ndarray):
        rows = [(np.stack([g, 2 * g]) if isinstance(g, np.ndarray) else g) for g in given]
        axes = tuple(0 if isinstance(g, np.ndarray) else None for g in given)
        arrays = [r for r, axis in zip(rows, axes) if axis == 0]
        rest = given[len(arrays) :]
        many = rlx.vmap(lambda *xs: getattr(rsl, name)(*xs, *rest))(*arrays)
        np.testing.assert_allclose(many[0], want, rtol=1e-12, atol=1e-12)


def test_matrices_refuse_what_they_cannot_be():
    for call, text in (
        (lambda: rsl.hadamard(6), "positive power of 2"), (lambda: rsl.companion(np.ones(1)), "at least 2"),
        (lambda: rsl.leslie(ROW, ROW), "lengths"), (lambda: rsl.dft(4, "m"), "scale"),
        (lambda: rsl.pascal(3, "odd"), "kind"), (lambda: rsl.convolution_matrix(ROW, 0), "positive"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            call()


# -- Schur forms --


def real_cases():
    for n in (1, 2, 3, 5, 8):
        a = RNG.standard_normal((n, n))
        yield a
        yield a - a.T
        yield a + a.T
        yield np.roll(np.eye(n), 1, 1)
        yield np.zeros((n, n))
        yield a * 10.0 ** RNG.uniform(-6, 6, (n, 1))


@pytest.mark.parametrize("dtype, tol", [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_real_schur_form(dtype, tol):
    for a in real_cases():
        a, n = a.astype(dtype), len(a)
        t, z = (np.asarray(x) for x in rsl.schur(a))
        size = np.abs(a).max() or 1
        assert t.dtype == z.dtype == dtype
        assert np.abs(z @ t @ z.T - a).max() <= tol * size
        assert np.abs(z @ z.T - np.eye(n)).max() <= tol
        assert not np.tril(t, -2).any()
        below = np.diagonal(t, -1)
        for i in np.flatnonzero(below):
            assert i + 1 == n - 1 or not below[i + 1]
            block = t[i : i + 2, i : i + 2]
            assert block[0, 0] == block[1, 1] and block[0, 1] * block[1, 0] < 0  # complex eigenvalues
        tc, zc = (np.asarray(x) for x in rsl.rsf2csf(t, z))
        assert np.abs(np.tril(tc, -1)).max() <= tol * size
        assert np.abs(zc @ tc @ zc.conj().T - a).max() <= 4 * tol * size


def test_schur_forms_in_batches_and_of_complex_numbers():
    many = np.stack([A, A.T, A @ A])
    for t, z, a in zip(*rsl.schur(many), many):
        np.testing.assert_allclose(np.asarray(z) @ t @ np.asarray(z).T, a, atol=1e-12)
    for a, output in ((C, "real"), (A, "complex")):
        t, z = (np.asarray(x) for x in rsl.schur(a, output))
        assert not np.tril(t, -1).any()
        np.testing.assert_allclose(z @ t @ z.conj().T, a, atol=1e-12)
    t, z = rll.schur(A)
    np.testing.assert_allclose(np.asarray(z) @ t @ np.asarray(z).T, A, atol=1e-12)
    assert np.isnan(rsl.schur(np.array([[np.nan, 1], [0, 1]]))[0]).all()


@pytest.mark.parametrize("a", [A, C, A[:1, :1], A[:2, :2], np.triu(A, -1)])
def test_hessenberg_form(a):
    h, q = (np.asarray(x) for x in rsl.hessenberg(a, calc_q=True))
    assert not np.tril(h, -2).any()
    np.testing.assert_allclose(q @ h @ q.conj().T, a, atol=1e-12)
    np.testing.assert_allclose(q @ q.conj().T, np.eye(len(a)), atol=1e-12)
    np.testing.assert_allclose(np.abs(rsl.hessenberg(a)), np.abs(sl.hessenberg(a)), atol=1e-12)


def test_functions_of_matrices():
    for a in (A, C, np.triu(A)):
        for ours, theirs in ((rnp.sin, np.sin), (rnp.exp, np.exp), (lambda x: x**2, lambda x: x**2)):
            np.testing.assert_allclose(rsl.funm(a, ours), sl.funm(a, theirs), atol=1e-9)
    out, error = rsl.funm(A, rnp.exp, disp=False)
    assert 0 < float(error) < 1e-8
    np.testing.assert_allclose(rlx.jit(lambda a: rsl.funm(a, rnp.exp))(A), out, atol=1e-12)
    with pytest.raises(ValueError, match="square"):
        rsl.funm(A[:2], rnp.exp)


def test_products_with_q():
    for a, c in ((A[:, :3], A), (A, A @ A), (A[:3], A[:, :3])):
        for mode in ("right", "left"):
            rows = c if mode == "right" else c[: min(a.shape)]
            rows = rows[:, : len(a)] if mode == "right" else rows
            got = [np.asarray(x) for x in rsl.qr_multiply(a, rows, mode)]
            want = sl.qr_multiply(a, rows, mode)
            signs = np.sign(np.diagonal(got[1]) * np.diagonal(want[1]))
            np.testing.assert_allclose(got[1] * signs[:, None], want[1], atol=1e-12)
            if mode == "right":
                np.testing.assert_allclose(got[0] * signs, want[0], atol=1e-12)
            else:
                q = np.asarray(rsl.qr_multiply(a, np.eye(len(rows)), "left")[0])
                np.testing.assert_allclose(got[0], q @ rows, atol=1e-12)
                np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=1e-12)
    a, taus = (np.asarray(x) for x in np.linalg.qr(A, "raw"))
    q = np.linalg.qr(A, "complete")[0]
    np.testing.assert_allclose(rll.ormqr(a.T, taus, C), q @ C, atol=1e-12)
    np.testing.assert_allclose(rll.ormqr(a.T, taus, C, left=False, transpose=True), C @ q.T, atol=1e-12)


def test_tridiagonal_form():
    for s in (A + A.T, C + C.conj().T):
        out, d, e, taus = (np.asarray(x) for x in rll.tridiagonal(np.tril(s)))
        t = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        np.testing.assert_allclose(np.linalg.eigvalsh(t), np.linalg.eigvalsh(s), atol=1e-12)
        assert d.dtype == e.dtype == np.float64


def test_other_factorizations():
    w, left, right = (np.asarray(x) for x in rll.eig(A))
    np.testing.assert_allclose(A @ right, right * w, atol=1e-12)
    np.testing.assert_allclose(left.conj().T @ A, w[:, None] * left.conj().T, atol=1e-12)
    assert len(rll.eig(A, compute_left_eigenvectors=False)) == 2
    np.testing.assert_allclose(rll.symmetric_product(A, A.T, alpha=2.0, beta=3.0), 2 * A @ A.T + 3 * A.T)
    r = np.linalg.cholesky(A @ A.T).T
    new = np.asarray(rll.cholesky_update(r, ROW))
    np.testing.assert_allclose(new, np.linalg.cholesky(A @ A.T + np.outer(ROW, ROW)).T, atol=1e-12)
    u, h, *_ = (np.asarray(x) for x in rll.qdwh(A))
    np.testing.assert_allclose(u @ h, A, atol=1e-12)


# -- tridiagonal systems --


def matrix(dl, d, du):
    return np.diag(d) + np.diag(du[:-1], 1) + np.diag(dl[1:], -1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_tridiagonal_solve(n, dtype):
    dl, d, du = RNG.standard_normal((3, n)).astype(dtype)
    b = RNG.standard_normal((n, 2)).astype(dtype)
    for diagonal in (d, d * (np.arange(n) % 2)):  # zeros on the diagonal need exchanges
        m = matrix(dl, diagonal, du)
        if abs(np.linalg.det(m)) < 1e-3:
            continue
        got = np.asarray(rll.tridiagonal_solve(dl, diagonal, du, b))
        np.testing.assert_allclose(got, np.linalg.solve(m, b), rtol=1e-3 if dtype == np.float32 else 1e-9)
    many = rll.tridiagonal_solve(*(np.stack([v, 2 * v]) for v in (dl, d, du)), np.stack([b, b]))
    np.testing.assert_allclose(many[1] * 2, many[0], rtol=1e-5)


def test_derivatives_of_tridiagonal_systems():
    dl, d, du, b = RNG.standard_normal((3, 4)).tolist() + [RNG.standard_normal((4, 1))]
    dl, d, du = map(np.array, (dl, d, du))

    def ours(dl, d, du, b):
        return (rll.tridiagonal_solve(dl, d, du, b) ** 2).sum()

    def theirs(dl, d, du, b):
        import jax.numpy as jnp

        m = jnp.diag(d) + jnp.diag(du[:-1], 1) + jnp.diag(dl[1:], -1)
        return (jnp.linalg.solve(m, b) ** 2).sum()

    for k in range(4):
        want = jax.grad(theirs, k)(dl, d, du, b)
        np.testing.assert_allclose(rlx.grad(ours, k)(dl, d, du, b), want, rtol=1e-9)
        np.testing.assert_allclose(rlx.jacfwd(ours, k)(dl, d, du, b), want, rtol=1e-9)
