"""Eigenvalues, Schur forms and functions of general matrices, against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import rlx
import rlx.numpy as rnp
import rlx.scipy.linalg as rsl

RNG = np.random.default_rng(0)
A = RNG.standard_normal((4, 4))
E = RNG.standard_normal((4, 4))
C = A + 1j * RNG.standard_normal((4, 4))
SPD = A @ A.T + np.eye(4)
H = 1e-6


def _ones(n, k=0):
    return np.diag(np.ones(n - abs(k)), k)


MATRICES = {
    "zero": np.zeros((3, 3)),
    "unit": np.eye(4),
    "jordan": _ones(4, 1) + 2 * np.eye(4),
    "nilpotent": _ones(4, 1),
    "rotation": np.array([[0.0, 1], [-1, 0]]),
    "permutation": np.roll(np.eye(6), 1, 0),
    "companion": np.array([[0, 0, 0, -1.0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]),
    "symmetric": A + A.T,
    "triangular": np.triu(A),
    "graded": np.array([[1, 1e-5, 0], [1e5, 1, 1e-8], [0, 1e8, 1]]),
    "one": np.array([[3.0]]),
    "complex": C,
    "single": A.astype(np.float32),
    "single_complex": C.astype(np.complex64),
    "batch": RNG.standard_normal((2, 3, 5, 5)),
    "large": RNG.standard_normal((30, 30)),
}


def _nearest(found, wanted):
    """The largest distance between two lists of numbers, in the order that fits best."""
    left, worst = list(found), 0.0
    for w in wanted:
        k = int(np.argmin(np.abs(np.array(left) - w)))
        worst = max(worst, abs(left.pop(k) - w))
    return worst


@pytest.mark.parametrize("name", MATRICES)
def test_eig(name):
    a = MATRICES[name]
    w, v = (np.asarray(x) for x in rnp.linalg.eig(a))
    eps = 1e-5 if a.dtype in (np.float32, np.complex64) else 1e-13
    size = np.linalg.norm(a.reshape(-1, *a.shape[-2:]), axis=(1, 2)).max()
    assert w.dtype == v.dtype == (np.complex64 if eps == 1e-5 else np.complex128)
    assert np.abs(a @ v - v * w[..., None, :]).max() <= eps * max(size, 1)
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, rtol=1e-5 if eps == 1e-5 else 1e-12)
    loose = 1e-6 if name in ("jordan", "nilpotent") else 20 * eps * max(size, 1)
    n = a.shape[-1]
    for got, want in zip(w.reshape(-1, n), np.linalg.eigvals(a).reshape(-1, n)):
        assert _nearest(got, want) <= loose
    assert np.array_equal(rnp.linalg.eigvals(a), w)


def test_eig_of_scales_and_nan():
    for scale in (1e-200, 1e200):
        assert _nearest(np.asarray(rnp.linalg.eigvals(A * scale)) / scale, np.linalg.eigvals(A)) < 1e-13
    assert np.isnan(rnp.linalg.eigvals(np.array([[np.nan, 1], [1, 1]]))).all()
    assert rnp.linalg.eigvals(np.zeros((0, 0))).shape == (0,)
    with pytest.raises(ValueError, match="eig of shape"):
        rnp.linalg.eig(np.ones((2, 3)))
    inside = rlx.jit(rlx.vmap(rnp.linalg.eigvals))(np.stack([A, E]))
    assert np.allclose(inside, [rnp.linalg.eigvals(A), rnp.linalg.eigvals(E)])


def test_derivatives_of_eig():
    f = lambda a: rnp.linalg.eig(a)  # noqa: E731
    (_, _), (dw, dv) = rlx.jvp(f, (A,), (E,))
    (wp, vp), (wm, vm) = f(A + H * E), f(A - H * E)
    np.testing.assert_allclose(dw, (np.asarray(wp) - np.asarray(wm)) / (2 * H), atol=1e-7)
    np.testing.assert_allclose(dv, (np.asarray(vp) - np.asarray(vm)) / (2 * H), atol=1e-7)
    cubes = lambda a: (rnp.linalg.eigvals(a) ** 3).sum().real  # noqa: E731  the trace of a^3
    np.testing.assert_allclose(rlx.grad(cubes)(A), 3 * (A @ A).T, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(rlx.grad(cubes)(np.eye(3)), 3 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(rlx.jvp(rlx.grad(cubes), (A,), (E,))[1], 3 * (A @ E + E @ A).T, rtol=1e-8, atol=1e-9)
    squares = lambda m: lambda a: (m.linalg.eigvals(a) ** 2).imag.sum()  # noqa: E731
    np.testing.assert_allclose(rlx.grad(squares(rnp))(C.real), jax.grad(squares(jnp))(C.real), atol=1e-9)


def test_schur_forms():
    for a in (C, C.astype(np.complex64), RNG.standard_normal((2, 5, 5)) + 0j):
        t, z = (np.asarray(x) for x in rsl.schur(a))
        eps = 1e-5 if a.dtype == np.complex64 else 1e-13
        assert np.abs(z @ t @ np.conj(np.swapaxes(z, -1, -2)) - a).max() < 10 * eps
        assert np.abs(np.conj(np.swapaxes(z, -1, -2)) @ z - np.eye(a.shape[-1])).max() < 10 * eps
        assert np.array_equal(np.tril(t, -1), np.zeros_like(t))
    t, z = (np.asarray(x) for x in rsl.schur(A, output="complex"))
    np.testing.assert_allclose(z @ t @ z.conj().T, A, atol=1e-12)


@pytest.mark.parametrize("kind", ["real", "symmetric", "complex", "cyclic", "hessenberg", "batch"])
def test_schur_forms_of_large_matrices(kind):
    """They converge, in O(n^3): a sweep over a matrix of order n takes n turns of a few rows."""
    n = 100
    g = np.random.default_rng(3)
    a = g.standard_normal((3, 40, 40) if kind == "batch" else (n, n))
    a = {
        "symmetric": a + np.swapaxes(a, -1, -2),
        "complex": a + 1j * g.standard_normal(a.shape),
        "cyclic": np.roll(np.eye(n), 1, 0),
        "hessenberg": np.triu(a, -1),
    }.get(kind, a)
    t, z = (np.asarray(x) for x in rsl.schur(a))
    size = np.abs(a).max()
    assert np.abs(z @ t @ np.conj(np.swapaxes(z, -1, -2)) - a).max() < 1e-13 * size
    assert np.abs(np.conj(np.swapaxes(z, -1, -2)) @ z - np.eye(a.shape[-1])).max() < 1e-13
    below = np.diagonal(t, -1, -2, -1)
    assert not np.tril(t, -2).any() and not (kind in ("symmetric", "complex") and below.any())
    assert not (below[..., 1:] * below[..., :-1]).any()  # blocks of two rows at most
    # The last sweep ends: blocks of two rows have complex eigenvalues and equal elements on the diagonal.
    for m in t.reshape(-1, *t.shape[-2:]):
        for i in np.flatnonzero(np.diagonal(m, -1)):
            assert m[i, i] == m[i + 1, i + 1] and m[i, i + 1] * m[i + 1, i] < 0
    for m in a.reshape(-1, *a.shape[-2:]):
        w = np.asarray(rnp.linalg.eigvals(m))
        assert _nearest(w, np.linalg.eigvals(m)) < 1e-11 * size
        if a.dtype.kind != "c":
            assert np.array_equal(np.sort_complex(w), np.sort_complex(w.conj()))  # real ones and pairs


def test_eigenvectors_of_graded_matrices():
    """Rows and columns of very different sizes are balanced first."""
    d = 10.0 ** np.arange(-12, 13, 4)
    a = RNG.standard_normal((7, 7))
    for m, eps in ((d[:, None] * a / d, 1e-12), ((d[:, None] * a / d).astype(np.complex64), 1e-3)):
        w, v = (np.asarray(x) for x in rnp.linalg.eig(m))
        assert _nearest(w, np.linalg.eigvals(a)) < eps
        residual = np.abs(m @ v - v * w) / (np.abs(m) @ np.abs(v))
        assert residual.max() < eps


def _slope(f, x, e):
    return (np.asarray(f(x + H * e)) - np.asarray(f(x - H * e))) / (2 * H)


def _gradient(f, x):
    units = np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([_slope(f, x, u) for u in units]).reshape(x.shape)


def test_square_roots():
    for a in (SPD, C, A, np.diag([4.0, 9.0]), np.zeros((2, 2))):
        root = np.asarray(rsl.sqrtm(a))
        np.testing.assert_allclose(root @ root, a, atol=1e-11)
        np.testing.assert_allclose(root, scipy.linalg.sqrtm(a), atol=1e-10)
    assert np.allclose(rsl.sqrtm(np.stack([SPD, 2 * SPD])), [scipy.linalg.sqrtm(SPD), scipy.linalg.sqrtm(2 * SPD)])
    np.testing.assert_allclose(rlx.jvp(rsl.sqrtm, (SPD,), (E,))[1], _slope(scipy.linalg.sqrtm, SPD, E), atol=1e-7)
    loss = lambda root: lambda a: (root(a).real * E).sum()  # noqa: E731
    np.testing.assert_allclose(
        rlx.grad(loss(rsl.sqrtm))(SPD), _gradient(loss(scipy.linalg.sqrtm), SPD), rtol=1e-5, atol=1e-7
    )


def test_sylvester_equations():
    b, q = SPD[:3, :3], A[:, :3]
    for a in (A + 9 * np.eye(4), C):
        np.testing.assert_allclose(rsl.solve_sylvester(a, b, q), scipy.linalg.solve_sylvester(a, b, q), atol=1e-11)
    a = A + 9 * np.eye(4)
    for k in range(3):
        given = [a, b, q]

        def loss(m, x):
            return (m.solve_sylvester(*given[:k], x, *given[k + 1 :]) ** 2).sum()  # noqa: B023

        got, want = rlx.grad(lambda x: loss(rsl, x))(given[k]), _gradient(lambda x: loss(scipy.linalg, x), given[k])
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-8)
    with pytest.raises(ValueError, match="q of shape"):
        rsl.solve_sylvester(a, b, a)


def test_other_functions_of_scipy():
    for side, m in (("right", A), ("left", A), ("right", A[:, :2]), ("left", A[:2]), ("right", C), ("left", C)):
        for got, want in zip(rsl.polar(m, side), scipy.linalg.polar(m, side)):
            np.testing.assert_allclose(got, want, atol=1e-12)
    d, e = A[0], A[1, :3]
    w, v = (np.asarray(x) for x in rsl.eigh_tridiagonal(d, e))
    np.testing.assert_allclose(w, scipy.linalg.eigh_tridiagonal(d, e)[0], atol=1e-12)
    np.testing.assert_allclose((np.diag(d) + np.diag(e, 1) + np.diag(e, -1)) @ v, v * w, atol=1e-12)
    some = dict(eigvals_only=True, select="i", select_range=(1, 2))
    np.testing.assert_allclose(rsl.eigh_tridiagonal(d, e, **some), scipy.linalg.eigh_tridiagonal(d, e, **some))
    for given in ((A[0],), (C[0],), (C[0], C[1, :3]), (A[0, :1], A[1])):
        np.testing.assert_array_equal(rsl.toeplitz(*given), scipy.linalg.toeplitz(*given))
    assert rsl.toeplitz(A).shape == (4, 4, 4)
    np.testing.assert_allclose(rsl.hilbert(5), scipy.linalg.hilbert(5), rtol=1e-6)
    for got, want in zip(rsl.expm_frechet(A, E), scipy.linalg.expm_frechet(A, E)):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


def test_triangular_systems_broadcast():
    many = RNG.standard_normal((3, 4, 4)) + 5 * np.eye(4)
    one = scipy.linalg.solve_triangular
    for b in (A[:, :1], A[0], A):
        want = np.stack([one(m, b) for m in many])
        np.testing.assert_allclose(rsl.solve_triangular(many, b), want, atol=1e-12)
    want = np.stack([one(many[0], b) for b in many])
    np.testing.assert_allclose(rsl.solve_triangular(many[0], many), want, atol=1e-12)
    np.testing.assert_allclose(
        rsl.solve_triangular(many, A[:3]), np.stack([one(m, b) for m, b in zip(many, A[:3])]), atol=1e-12
    )


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_eigenvalues_of_cyclic_shifts(n):
    """Orthogonal matrices, on which an unshifted step of the algorithm does nothing."""
    for shift in (1, -1):
        a = np.roll(np.eye(n), shift, 1)
        roots = np.exp(2j * np.pi * np.arange(n) / n)
        got = np.asarray(rnp.linalg.eigvals(a))
        assert np.abs(got[:, None] - roots).min(0).max() < 1e-13
