"""Linear algebra beside NumPy and JAX: what the factors multiply to, values, derivatives, batches, special matrices."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
import rlx.numpy as rnp
import rlx.lax.linalg as rll
import rlx.scipy.linalg as rsl
from sampling import some

import rlx

TYPES = ["float32", "float64", "complex64", "complex128"]
# Orders around the blocks of the kernels, and primes.
ORDERS = [0, 1, 2, 5, 33, 67, 257]


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def drawn(*shape, dtype="float64", seed=0):
    g = np.random.default_rng(seed)
    x = g.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * g.standard_normal(shape)
    return x.astype(dtype)


def definite(*shape, dtype="float64", seed=0):
    a = drawn(*shape, dtype=dtype, seed=seed)
    n = shape[-1]
    return (a @ np.conj(np.swapaxes(a, -1, -2)) / max(n, 1) + np.eye(n)).astype(dtype)


def eps(dtype):
    return np.finfo(dtype).eps


def near(got, want, bound, what=""):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    assert np.array_equal(np.isfinite(got), np.isfinite(want)), f"{what}: not finite in other places"
    size = max(np.max(np.abs(want), initial=0.0, where=np.isfinite(want)), 1e-300)
    with np.errstate(invalid="ignore"):
        gap = np.max(np.abs(got - want), initial=0.0, where=np.isfinite(want))
    assert gap <= bound * size, f"{what}: {gap / size} of the largest, allowed {bound}"


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def unitary(q, dtype, what):
    q = np.asarray(q)
    n = q.shape[-1]
    near(adjoint(q) @ q, np.broadcast_to(np.eye(n), (*q.shape[:-2], n, n)), 20 * eps(dtype) * max(q.shape[-2], 4), what)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", ORDERS)
def test_factors_multiply_to_the_matrix(n, dtype):
    e = 20 * eps(dtype) * max(n, 4)
    a = drawn(n, n, dtype=dtype, seed=n)
    if n:
        p = definite(n, n, dtype=dtype, seed=n)
        l = np.asarray(rnp.linalg.cholesky(p))
        near(l @ adjoint(l), p, e, "cholesky")
        assert np.array_equal(l, np.tril(l))
        h = a + adjoint(a)
        w, v = map(np.asarray, rnp.linalg.eigh(h))
        near(v @ (w[:, None] * adjoint(v)), h, e, "eigh")
        unitary(v, dtype, "eigenvectors")
        near(w, np.linalg.eigvalsh(h), e, "eigenvalues")
    for m in {n, n // 2, 2 * n + 3}:
        x = drawn(m, n, dtype=dtype, seed=m)
        q, r = map(np.asarray, rnp.linalg.qr(x))
        near(q @ r, x, e, f"qr {m}")
        unitary(q, dtype, f"q {m}")
        assert np.array_equal(r, np.triu(r))
        if m and n:
            near(np.diag(r), np.diag(np.linalg.qr(x)[1]), 100 * e, f"diagonal of r {m}")  # LAPACK's signs
        u, s, vh = map(np.asarray, rnp.linalg.svd(x, full_matrices=False))
        near(u @ (s[:, None] * vh), x, e, f"svd {m}")
        unitary(u, dtype, f"u {m}")
        unitary(adjoint(vh), dtype, f"v {m}")
        if m and n:
            near(s, np.linalg.svd(x, compute_uv=False), e, f"singular values {m}")
            near(rnp.linalg.svdvals(x), s, e, f"svdvals {m}")
        lu, pivots, perm = map(np.asarray, rll.lu(x))
        k = min(m, n)
        near((np.tril(lu[:, :k], -1) + np.eye(m, k)) @ np.triu(lu[:k]), x[perm], e, f"lu {m}")
        assert sorted(perm.tolist()) == list(range(m)) and pivots.shape == (k,)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full", [False, True])
def test_full_bases(full, dtype):
    for shape in ((2, 5, 3), (2, 3, 5), (4, 0), (0, 4), (40, 7)):
        x = drawn(*shape, dtype=dtype)
        q, r = rnp.linalg.qr(x, "complete" if full else "reduced")
        u, s, vh = rnp.linalg.svd(x, full_matrices=full)
        want = np.linalg.svd(x, full_matrices=full)
        assert [u.shape, s.shape, vh.shape] == [w.shape for w in want]
        assert [q.shape, r.shape] == [w.shape for w in np.linalg.qr(x, "complete" if full else "reduced")]
        for basis in (q, u, adjoint(np.asarray(vh))):
            unitary(basis, dtype, f"{shape}")
        near(np.asarray(q) @ np.asarray(r), x, 100 * eps(dtype), "qr")


@pytest.mark.parametrize("dtype", TYPES)
def test_triangular_systems(dtype):
    for n, k in ((1, 1), (5, 3), (33, 70), (70, 1)):
        a = drawn(2, n, n, dtype=dtype) / n + 2 * np.eye(n, dtype=dtype)
        for left in (True, False):
            b = drawn(2, *((n, k) if left else (k, n)), dtype=dtype, seed=1)
            for lower in (True, False):
                for transpose in (True, False):
                    for conjugate in (True, False):
                        for unit in (True, False):
                            kwargs = dict(left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate)
                            x = np.asarray(rll.triangular_solve(a, b, unit_diagonal=unit, **kwargs))
                            t = np.tril(a) if lower else np.triu(a)
                            if unit:
                                t = t - t * np.eye(n) + np.eye(n)
                            t = np.conj(t) if conjugate else t
                            t = np.swapaxes(t, -1, -2) if transpose else t
                            near(t @ x if left else x @ t, b, 50 * n * eps(dtype), f"{n} {k} {kwargs} {unit}")


VALUES = {
    "solve": lambda m, a, b: m.linalg.solve(a, b),
    "inv": lambda m, a, b: m.linalg.inv(a),
    "det": lambda m, a, b: m.linalg.det(a),
    "slogdet": lambda m, a, b: tuple(m.linalg.slogdet(a)),
    "pinv": lambda m, a, b: m.linalg.pinv(a),
    "norm 2": lambda m, a, b: m.linalg.norm(a, 2, axis=(-2, -1)),
    "norm -2": lambda m, a, b: m.linalg.norm(a, -2, axis=(-2, -1), keepdims=True),
    "norm nuc": lambda m, a, b: m.linalg.norm(a, "nuc", axis=(-2, -1)),
    "cond": lambda m, a, b: m.linalg.cond(a),
    "cond 1": lambda m, a, b: m.linalg.cond(a, 1),
    "cond fro": lambda m, a, b: m.linalg.cond(a, "fro"),
    "cond -2": lambda m, a, b: m.linalg.cond(a, -2),
    "matrix_rank": lambda m, a, b: m.linalg.matrix_rank(a),
    "matrix_power -3": lambda m, a, b: m.linalg.matrix_power(a, -3),
    "eigvalsh": lambda m, a, b: m.linalg.eigvalsh(a + m.conj(m.matrix_transpose(a))),
    "cholesky": lambda m, a, b: m.linalg.cholesky(a @ m.conj(m.matrix_transpose(a))),
    "upper cholesky": lambda m, a, b: m.linalg.cholesky(a @ m.conj(m.matrix_transpose(a)), upper=True),
    "svdvals": lambda m, a, b: m.linalg.svdvals(a),
}


@pytest.mark.rotates(2)
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("shape, dtype", [((4, 4), "float32"), ((2, 1, 3, 3), "float64"), ((5, 5), "complex128")])
def test_values_and_derivatives_beside_jax(name, shape, dtype):
    a, b = drawn(*shape, dtype=dtype, seed=3), drawn(*shape, dtype=dtype, seed=4)
    f = VALUES[name]
    bound = 2e3 * eps(dtype) * max(np.max(np.linalg.cond(a)) ** (3 if "power" in name else 1), 1)
    want = f(jnp, jnp.asarray(a), jnp.asarray(b))
    got = f(rnp, rnp.asarray(a), rnp.asarray(b))
    for g, w in zip(got if isinstance(got, tuple) else (got,), jax.tree.leaves(want), strict=True):
        near(g, w, bound, name)

    def loss(m, real):
        def of(x, y):
            out = f(m, x, y)
            out = out if isinstance(out, tuple) else (out,)
            total = 0
            for o in out:
                if o.dtype.kind in "fc":
                    w = np.cos(np.arange(int(np.prod(o.shape)))).reshape(o.shape).astype(real)
                    parts = (m.real(o), m.imag(o) * 0.5) if o.dtype.kind == "c" else (o,)
                    total = total + sum((p * w).sum() for p in parts)
            return total

        return of

    if name == "matrix_rank":
        return
    real = "float32" if dtype in ("float32", "complex64") else "float64"
    want = jax.grad(loss(jnp, real), (0, 1))(jnp.asarray(a), jnp.asarray(b))
    got = rlx.grad(loss(rnp, real), (0, 1))(rnp.asarray(a), rnp.asarray(b))
    for g, w in zip(got, want):
        near(g, w, bound * 50, f"{name} grad")


def _eigh(m, a):
    w, v = m.linalg.eigh(a + a.mT.conj())
    return w, v * v[..., :1, :].conj()


def _svd(m, a):
    u, s, vh = m.linalg.svd(a, full_matrices=False)
    v = vh.mT
    return s, u * u[..., :1, :].conj(), v * v[..., :1, :].conj(), u[..., :1, :] * v[..., :1, :]


# Of vectors only what their signs and phases leave alone.
FACTORS = {
    "cholesky": lambda m, a: m.linalg.cholesky(a @ a.mT.conj() + m.eye(a.shape[-1], dtype=a.dtype)),
    "qr": lambda m, a: m.linalg.qr(a),
    "tall qr": lambda m, a: m.linalg.qr(a[..., :, :2]),
    "eigh": _eigh,
    "svd": _svd,
    "tall svd": lambda m, a: _svd(m, a[..., :, :2]),
    "wide svd": lambda m, a: _svd(m, a[..., :2, :]),
}


@pytest.mark.rotates(2)
@pytest.mark.parametrize("name,dtype", some(((n, t) for n in FACTORS for t in ("float64", "complex128")), 3))
def test_derivatives_of_factors_beside_jax(name, dtype):
    f = FACTORS[name]
    a, t = drawn(2, 4, 4, dtype=dtype, seed=5), drawn(2, 4, 4, dtype=dtype, seed=6)
    with jax.default_matmul_precision("highest"):
        want, dwant = jax.jvp(lambda x: f(jnp, x), (jnp.asarray(a),), (jnp.asarray(t),))
    got, dgot = rlx.jvp(lambda x: f(rnp, x), (rnp.asarray(a),), (rnp.asarray(t),))
    several = lambda x: tuple(x) if isinstance(x, tuple) else (x,)  # noqa: E731
    for g, w, dg, dw in zip(several(got), several(want), several(dgot), several(dwant), strict=True):
        near(g, w, 1e-11, name)
        near(dg, dw, 1e-9, f"{name} jvp")

    def loss(m):
        def of(x):
            out = f(m, x)
            total = 0
            for o in out if isinstance(out, tuple) else (out,):
                w = np.cos(np.arange(int(np.prod(o.shape)))).reshape(o.shape)
                total = total + (m.real(o) * w).sum()
            return total

        return of

    near(rlx.grad(loss(rnp))(rnp.asarray(a)), jax.grad(loss(jnp))(jnp.asarray(a)), 1e-9, f"{name} grad")
    if dtype == "float64":  # the second derivative, forward over reverse
        hess = lambda grad, jvp, m: jvp(grad(loss(m)), (m.asarray(a),), (m.asarray(t),))[1]  # noqa: E731
        near(hess(rlx.grad, rlx.jvp, rnp), hess(jax.grad, jax.jvp, jnp), 1e-7, f"{name} second derivative")


def test_vmap_is_a_batch():
    a, b = drawn(3, 4, 4), drawn(3, 4, 2)
    for f in (rnp.linalg.solve, lambda x, y: rnp.linalg.inv(x), lambda x, y: rnp.linalg.det(x)):
        near(rlx.vmap(f)(a, b), np.stack([np.asarray(f(x, y)) for x, y in zip(a, b)]), 1e-12)
    one = rlx.vmap(rnp.linalg.solve, in_axes=(None, 0))(a[0], b)
    near(one, np.linalg.solve(a[0], b), 1e-11)


def test_least_squares():
    for m, n in ((5, 3), (3, 5), (4, 4)):
        a, b = drawn(m, n), drawn(m, 2, seed=1)
        x, residuals, rank, s = rnp.linalg.lstsq(a, b)
        want = np.linalg.lstsq(a, b, rcond=None)
        near(x, want[0], 1e-12)
        assert int(rank) == want[2]
        near(s, want[3], 1e-13)
        assert residuals.shape == want[1].shape
        if m > n:
            near(residuals, want[1], 1e-12)
        one, of_one = rnp.linalg.lstsq(a, b[:, 0])[1], np.linalg.lstsq(a, b[:, 0], rcond=None)[1]
        assert one.shape == of_one.shape == ((1,) if m > n else (0,))
        near(one, of_one, 1e-12)
    low = np.outer(np.arange(1.0, 5), np.arange(1.0, 4))  # rank 1
    x, _, rank, _ = rnp.linalg.lstsq(low, np.ones(4))
    assert int(rank) == 1
    near(x, np.linalg.lstsq(low, np.ones(4), rcond=None)[0], 1e-12)


def test_derivatives_where_the_factors_have_none():
    """The pseudo-inverse beside equal singular values; the determinant of singular matrices."""
    x = rlx.grad(lambda a: rnp.linalg.pinv(a)[0, 1])(rnp.eye(3, dtype="float64"))
    near(x, -np.outer([0.0, 1.0, 0.0], [1.0, 0.0, 0.0]).T, 1e-14)
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    a[2] = 2 * a[1] - a[0]
    minor = lambda i, j: np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))  # noqa: E731
    cofactors = np.array([[minor(i, j) * (-1) ** (i + j) for j in range(3)] for i in range(3)])
    near(rlx.grad(rnp.linalg.det)(rnp.asarray(a)), cofactors, 1e-12)
    near(rlx.grad(rnp.linalg.det)(rnp.zeros((3, 3), dtype="float64")), np.zeros((3, 3)), 0)
    assert rnp.linalg.det(rnp.zeros((0, 0))).tolist() == 1.0


def test_singular_and_not_finite():
    zero = rnp.zeros((2, 2), dtype="float64")
    assert rnp.linalg.slogdet(zero)[0].tolist() == 0 and rnp.linalg.slogdet(zero)[1].tolist() == -np.inf
    assert not np.isfinite(np.asarray(rnp.linalg.inv(zero))).any()
    assert rnp.linalg.matrix_rank(rnp.ones((4, 3))).tolist() == 1
    assert np.isnan(np.asarray(rnp.linalg.cholesky(-rnp.eye(2)))[0, 0])
    bad = rnp.array([[1.0, np.nan], [0.0, 1.0]])
    for f in (rnp.linalg.svdvals, rnp.linalg.eigvalsh, rnp.linalg.inv):
        assert np.isnan(np.asarray(f(bad))).any()


def test_not_assumed_to_be_symmetric():
    a = drawn(4, 4)
    near(rnp.linalg.eigvalsh(a), np.linalg.eigvalsh((a + a.T) / 2), 1e-13)
    near(rnp.linalg.eigh(a, symmetrize_input=False)[0], np.linalg.eigh(a, "L")[0], 1e-13)
    near(rnp.linalg.eigh(a, "U", symmetrize_input=False)[0], np.linalg.eigh(a, "U")[0], 1e-13)
    p = definite(4, 4)
    p[0, 3] = 99.0
    near(rnp.linalg.cholesky(p, symmetrize_input=False), np.linalg.cholesky(np.tril(p) + np.tril(p, -1).T), 1e-13)
    # What is not read has no derivative.
    grad = rlx.grad(lambda x: rnp.linalg.eigh(x, symmetrize_input=False)[0][0])(rnp.asarray(a))
    assert np.array_equal(np.triu(np.asarray(grad), 1), np.zeros((4, 4)))


def test_matrix_functions():
    for dtype in ("float32", "float64", "complex128"):
        for scale in (1e-3, 0.5, 5.0, 40.0):
            a = drawn(2, 5, 5, dtype=dtype) * np.asarray(scale, np.finfo(dtype).dtype)
            near(rsl.expm(a), jsl.expm(jnp.asarray(a)), 2e3 * eps(dtype) * max(scale, 1) * 5, f"expm {dtype} {scale}")
    a, t = drawn(4, 4), drawn(4, 4, seed=1)
    got = rlx.jvp(rsl.expm, (rnp.asarray(a),), (rnp.asarray(t),))[1]
    near(got, jax.jvp(jsl.expm, (jnp.asarray(a),), (jnp.asarray(t),))[1], 1e-11)
    got = rlx.grad(lambda x: rsl.expm(x).sum())(rnp.asarray(a))
    near(got, jax.grad(lambda x: jsl.expm(x).sum())(jnp.asarray(a)), 1e-11)
    assert np.isnan(np.asarray(rsl.expm(a * 1e9))).all()


def test_scipy_names():
    a, b = drawn(5, 5) + 4 * np.eye(5), drawn(5, 2, seed=1)
    p = definite(5, 5)
    p_, l, u = map(np.asarray, rsl.lu(a))
    near(p_ @ l @ u, a, 1e-14)
    for trans in (0, 1, 2):
        near(rsl.lu_solve(rsl.lu_factor(a), b, trans), np.linalg.solve(a.T if trans else a, b), 1e-12)
    near(rsl.lu_solve(rsl.lu_factor(a), b[:, 0]), np.linalg.solve(a, b[:, 0]), 1e-12)
    for lower in (True, False):
        near(rsl.cho_solve(rsl.cho_factor(p, lower=lower), b), np.linalg.solve(p, b), 1e-12)
        near(rsl.solve(p, b, assume_a="pos", lower=lower), np.linalg.solve(p, b), 1e-12)
        t = (np.tril(a) if lower else np.triu(a)).T
        near(rsl.solve_triangular(a, b, lower=lower, trans="T"), np.linalg.solve(t, b), 1e-12)
    near(rsl.solve_triangular(a, b[:, 0]), np.linalg.solve(np.triu(a), b[:, 0]), 1e-12)
    near(rsl.cholesky(p), np.linalg.cholesky(p).T, 1e-13)
    blocks = rsl.block_diag(rnp.ones((1, 2)), rnp.full((2, 1), 3.0))
    assert blocks.tolist() == [[1, 1, 0], [0, 0, 3], [0, 0, 3]]
    reflections, taus = np.linalg.qr(a[:, :3], mode="raw")
    near(rll.householder_product(reflections.T, taus), np.linalg.qr(a[:, :3])[0], 1e-13)
    perm = rll.lu_pivots_to_permutation(np.array([[2, 2, 2], [0, 1, 2]], np.int32), 4)
    want = jax.lax.linalg.lu_pivots_to_permutation(jnp.array([[2, 2, 2], [0, 1, 2]], jnp.int32), 4)
    assert np.array_equal(np.asarray(perm), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_pivoted_qr(dtype):
    scipy = pytest.importorskip("scipy.linalg")
    for shape in ((5, 5), (6, 3), (3, 6), (30, 20)):
        a = drawn(*shape, dtype=dtype)
        q, r, p = map(np.asarray, rsl.qr(a, mode="economic", pivoting=True))
        assert p.tolist() == scipy.qr(a, pivoting=True)[2].tolist() and p.dtype == np.int32
        near(q @ r, a[:, p], 50 * eps(dtype), f"pivoted qr {shape}")
        near(rsl.qr(a, mode="r", pivoting=True)[0], rsl.qr(a[:, p], mode="r")[0], 50 * eps(dtype))
        sizes = np.abs(np.diag(r))
        assert (sizes[1:] <= sizes[:-1] * (1 + 50 * eps(dtype))).all()
    low = drawn(6, 2, dtype=dtype) @ drawn(2, 6, dtype=dtype, seed=1)  # of rank 2
    assert np.abs(np.diag(np.asarray(rsl.qr(low, pivoting=True)[1]))[2:]).max() < 100 * eps(dtype)
    assert np.asarray(rsl.qr(drawn(2, 4, 3, dtype=dtype), pivoting=True)[2]).shape == (2, 3)


def test_tensor_systems():
    a, b = drawn(2, 3, 6), drawn(2, 3, seed=1)
    near(rnp.linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b), 1e-12)
    c = drawn(4, 6, 8, 3)
    near(rnp.linalg.tensorinv(c), np.linalg.tensorinv(c), 1e-11)


def test_hermitian_svd_and_pinv():
    a = drawn(5, 5, dtype="complex128")
    h = a + adjoint(a)
    u, s, vh = map(np.asarray, rnp.linalg.svd(h, hermitian=True))
    near(u @ (s[:, None] * vh), h, 1e-13)
    near(s, np.linalg.svd(h)[1], 1e-13)
    near(rnp.linalg.pinv(h, hermitian=True), np.linalg.pinv(h), 1e-11)


MISUSE = {
    "half": (lambda: rnp.linalg.inv(rnp.ones((2, 2), dtype="float16")), "cast it to f32"),
    "not square": (lambda: rnp.linalg.det(rnp.ones((2, 3))), "last two axes must be equal"),
    "vector": (lambda: rnp.linalg.eigh(rnp.ones(3)), "last two axes must be equal"),
    "rows": (lambda: rnp.linalg.solve(rnp.eye(3), rnp.ones((2, 1))), "2 rows"),
    "batch of vectors": (lambda: rnp.linalg.solve(rnp.ones((2, 3, 3)), rnp.ones((2, 3))), "a last axis of extent 1"),
    "leading axes": (lambda: rnp.linalg.solve(rnp.ones((2, 3, 3)), rnp.ones((5, 3, 1))), "do not broadcast"),
    "mode": (lambda: rnp.linalg.qr(rnp.eye(2), mode="economic"), '"reduced", "complete" or "r"'),
    "UPLO": (lambda: rnp.linalg.eigh(rnp.eye(2), "X"), "'L' or 'U'"),
    "order": (lambda: rnp.linalg.norm(rnp.eye(2), 3), "ord 3 is not supported for matrices"),
    "full derivative": (
        lambda: rlx.grad(lambda x: rnp.linalg.svd(x)[0].sum())(rnp.ones((3, 2))),
        "full = false",
    ),
}


@pytest.mark.parametrize("name", MISUSE)
def test_misuse(name):
    call, text = MISUSE[name]
    with pytest.raises(Exception) as e:
        call()
    assert text in str(e.value), str(e.value)


WITH_PIVOTS = np.array([[2.0, -1, 1], [1, 3, -2], [0, 1, 1]])
# Functions whose results scale as a power of the matrix.
HOMOGENEOUS = {
    "eigvals": (rnp.linalg.eigvals, 1),
    "eigvalsh": (rnp.linalg.eigvalsh, 1),
    "svdvals": (rnp.linalg.svdvals, 1),
    "inv": (rnp.linalg.inv, -1),
    "pinv": (rnp.linalg.pinv, -1),
    "norm 2": (lambda a: rnp.linalg.norm(a, 2), 1),
    "norm nuc": (lambda a: rnp.linalg.norm(a, "nuc"), 1),
    "cond": (rnp.linalg.cond, 0),
    "qr": (lambda a: rnp.linalg.qr(a)[1], 1),
    "pivoted qr": (lambda a: rsl.qr(a, pivoting=True)[1], 1),
    "lu": (lambda a: rsl.lu(a)[2], 1),
    "schur": (lambda a: rsl.schur(a)[0], 1),
    "hessenberg": (rsl.hessenberg, 1),
    "sqrtm": (rsl.sqrtm, 0.5),
    "polar u": (lambda a: rsl.polar(a)[0], 0),
    "polar p": (lambda a: rsl.polar(a)[1], 1),
    "solve_sylvester": (lambda a: rsl.solve_sylvester(a, a, np.eye(3)), -1),
    "cholesky": (lambda a: rnp.linalg.cholesky(a @ np.diag([1.0, 1, 1]) + a.mT + 3 * rnp.diag(rnp.diag(a))), 0.5),
}


@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_matrices_of_any_scale(name):
    """Entries of 1e-200 and 1e200: the results are those of the matrix, scaled."""
    f, power = HOMOGENEOUS[name]
    want = np.asarray(f(rlx.array(WITH_PIVOTS)))
    for exponent in (-660, 660):
        got = np.asarray(f(rlx.array(np.ldexp(WITH_PIVOTS, exponent))))
        near(got * 2.0 ** (-power * exponent), want, 1e-12, f"{name} of 2^{exponent}")


def test_not_finite_entries():
    """They end with a result, which is not finite."""
    for value in (np.inf, -np.inf, np.nan):
        for i in (0, 2):
            a = WITH_PIVOTS.copy()
            a[i, i] = value
            for name, (f, power) in HOMOGENEOUS.items():
                got = np.abs(np.asarray(f(rlx.array(a))))
                # The inverse of an infinity is 0.
                assert not np.isfinite(got).all() or power <= 0 and np.isinf(value), (name, value, i)


def test_empty_matrices():
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        a = np.zeros(shape)
        for f in (rsl.sqrtm, rsl.schur, rnp.linalg.eig, rnp.linalg.eigvals, rsl.polar, rsl.hessenberg, rsl.expm):
            for part in out if isinstance(out := f(a), tuple) else (out,):
                assert np.asarray(part).shape[: len(shape) - 1] == shape[:-1]
        assert rsl.solve_sylvester(a, a, a).shape == shape
    for shape in ((3, 0), (0, 3), (0, 0)):
        q, r, p = rsl.qr(np.zeros(shape), mode="economic", pivoting=True)
        assert (q @ r).shape == shape and np.asarray(p).tolist() == list(range(shape[1]))
