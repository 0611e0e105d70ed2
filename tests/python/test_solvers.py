"""minimize, iterative solvers, and the implicit derivatives of roots and linear systems, against SciPy and JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import rlx
import rlx.lax as lax
import rlx.numpy as rnp
from rlx.scipy import optimize
from rlx.scipy.sparse import linalg as rsl

RNG = np.random.default_rng(0)
A = RNG.standard_normal((5, 5)) + 4 * np.eye(5)
SPD = A @ A.T + np.eye(5)
B, W = RNG.standard_normal(5), RNG.standard_normal(5)


# -- minimize --


def rosenbrock(x):
    return rnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def quadratic(x):
    return 0.5 * rnp.dot(x, rnp.dot(SPD, x)) - rnp.dot(B, x)


@pytest.mark.parametrize(
    "f, x0", [(rosenbrock, [-1.2, 1.0]), (rosenbrock, [0.5] * 6), (himmelblau, [1.0, 1.0]), (quadratic, [0.0] * 5)]
)
def test_minimize(f, x0):
    x0 = np.array(x0)
    r = optimize.minimize(f, x0, method="BFGS", options={"gtol": 1e-7})
    assert bool(r.success) and int(r.status) == 0 and np.abs(r.jac).max() <= 1e-7
    np.testing.assert_allclose(r.x, scipy.optimize.minimize(lambda x: float(f(x)), x0, tol=1e-9).x, atol=1e-4)
    np.testing.assert_allclose(r.fun, f(r.x))
    single = optimize.minimize(f, x0.astype(np.float32), method="BFGS", tol=1e-2)
    assert single.x.dtype == np.float32
    np.testing.assert_allclose(single.x, r.x, atol=2e-2)
    if f is quadratic:
        np.testing.assert_allclose(r.hess_inv, np.linalg.inv(SPD), atol=5e-3)


def test_minimize_in_transforms():
    f = lambda x, a: rnp.sum((x - a) ** 4 + (x - a) ** 2)  # noqa: E731
    solve = lambda a: optimize.minimize(f, rnp.zeros(2), (a,), method="BFGS").x  # noqa: E731
    many = np.array([[1.0, 2.0], [-3.0, 0.5]], np.float32)
    np.testing.assert_allclose(rlx.vmap(solve)(many), many, atol=1e-3)
    np.testing.assert_allclose(rlx.jit(solve)(many[0]), many[0], atol=1e-3)
    short = optimize.minimize(rosenbrock, np.array([-1.2, 1.0]), method="BFGS", options={"maxiter": 3})
    assert not bool(short.success) and int(short.status) == 1 and int(short.nit) == 3
    wall = optimize.minimize(lambda x: rnp.sum(rnp.abs(x)) * rnp.nan, np.ones(2), method="BFGS")
    assert not bool(wall.success) and int(wall.status) == 3
    for call, text in (
        (lambda: optimize.minimize(rosenbrock, np.ones(2), method="CG"), "BFGS"),
        (lambda: optimize.minimize(rosenbrock, np.ones(2), method="BFGS", options={"xtol": 1}), "xtol"),
        (lambda: optimize.minimize(rosenbrock, np.ones((2, 2)), method="BFGS"), "must be a vector"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


# -- iterative solvers --

SOLVERS = {"cg": rsl.cg, "bicgstab": rsl.bicgstab, "gmres": rsl.gmres}


@pytest.mark.parametrize("name", SOLVERS)
def test_systems(name):
    solve, m = SOLVERS[name], SPD if name == "cg" else A
    want = np.linalg.solve(m, B)
    for a in (m, lambda x: m @ x):
        for options in ({}, {"M": np.diag(1 / np.diag(m))}, {"x0": want + 0.1}):
            x, info = solve(a, B, tol=1e-12, **options)
            np.testing.assert_allclose(x, want, rtol=1e-8)
            assert info is None
    np.testing.assert_allclose(rlx.jit(lambda b: solve(m, b, tol=1e-12)[0])(B), want, rtol=1e-8)
    np.testing.assert_allclose(solve(m.astype("f4"), B.astype("f4"), tol=1e-6)[0], want, rtol=1e-3)
    parts = {"a": B[:2], "b": B[2:]}
    whole = lambda t: rnp.concatenate([t["a"], t["b"]])  # noqa: E731
    split = lambda t: {"a": (m @ whole(t))[:2], "b": (m @ whole(t))[2:]}  # noqa: E731
    np.testing.assert_allclose(whole(solve(split, parts, tol=1e-12)[0]), want, rtol=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_of_systems(name):
    solve = SOLVERS[name]

    def ours(a, b):
        m = a @ a.T if name == "cg" else a
        return (solve(m, b, tol=1e-13)[0] * W).sum()

    def theirs(a, b):
        return (jnp.linalg.solve(a @ a.T if name == "cg" else a, b) * W).sum()

    for k in (0, 1):
        want = jax.grad(theirs, k)(A, B)
        np.testing.assert_allclose(rlx.grad(ours, k)(A, B), want, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(rlx.jacfwd(ours, k)(A, B), want, rtol=1e-7, atol=1e-10)


def test_gmres_in_several_rounds():
    n = 12
    m = RNG.standard_normal((n, n)) + 6 * np.eye(n)
    b = RNG.standard_normal(n)
    x, _ = rsl.gmres(m, b, restart=3, tol=1e-11, maxiter=100)
    np.testing.assert_allclose(x, np.linalg.solve(m, b), rtol=1e-7)
    complex_ = m + 1j * RNG.standard_normal((n, n))
    for solve in (rsl.gmres, rsl.bicgstab):
        np.testing.assert_allclose(solve(complex_, b + 1j, tol=1e-11)[0], np.linalg.solve(complex_, b + 1j), rtol=1e-6)


# -- roots --


def cube_root(a, lax_, np_, root):
    f = lambda x: x * x * x - a  # noqa: E731

    def newton(f, x):
        return lax_.while_loop(lambda s: s[1] < 40, lambda s: (s[0] - f(s[0]) / (3 * s[0] ** 2), s[1] + 1), (x, 0))[0]

    return root(f, np_.ones_like(a), newton, lambda g, y: y / g(np_.ones_like(y)))


OURS = lambda a: cube_root(a, lax, rnp, lax.custom_root)  # noqa: E731
THEIRS = lambda a: cube_root(a, jax.lax, jnp, jax.lax.custom_root)  # noqa: E731


def test_derivatives_of_roots():
    a = np.float64(5.0)
    assert float(OURS(a)) == pytest.approx(5 ** (1 / 3))
    assert float(rlx.grad(OURS)(a)) == pytest.approx(float(jax.grad(THEIRS)(a)))
    assert float(rlx.jvp(OURS, (a,), (a,))[1]) == pytest.approx(5 * float(jax.grad(THEIRS)(a)))
    for second in (rlx.grad(rlx.grad(OURS)), rlx.hessian(OURS)):
        assert float(second(a)) == pytest.approx(float(jax.grad(jax.grad(THEIRS))(a)))
    many = np.array([8.0, 27.0])
    np.testing.assert_allclose(rlx.vmap(rlx.grad(OURS))(many), [1 / 12, 1 / 27])


def test_roots_of_trees_with_more_results():
    def solve(a):
        f = lambda t: {"x": t["x"] ** 2 - a, "y": t["y"] - 3 * t["x"]}  # noqa: E731
        found = lambda f, t: ({"x": rnp.sqrt(a), "y": 3 * rnp.sqrt(a)}, rnp.int32(7))  # noqa: E731

        def linear(g, y):
            flat, back = rlx.flatten_util.ravel_pytree(y)
            m = rlx.jacobian(lambda v: rlx.flatten_util.ravel_pytree(g(back(v)))[0])(flat)
            return back(rnp.linalg.solve(m, flat))

        return lax.custom_root(f, {"x": rnp.ones(()), "y": rnp.ones(())}, found, linear, has_aux=True)

    (root, aux), a = solve(4.0), 4.0
    assert (float(root["x"]), float(root["y"]), int(aux)) == (2, 6, 7)
    assert float(rlx.grad(lambda a: solve(a)[0]["y"])(a)) == pytest.approx(0.75)
    with pytest.raises(TypeError, match="must return a tree like its argument"):
        lax.custom_root(lambda x: (x, x), 1.0, lambda f, x: x, lambda g, y: y)


def test_linear_systems_with_rules_of_their_own():
    def solver(module, np_, name):
        def solve(m, b):
            direct = lambda f, b: np_.linalg.solve(module.jacfwd(f)(b), b)  # noqa: E731
            return getattr(module.lax, name)(lambda x: m @ x, b, direct, direct)

        return solve

    ours, theirs = solver(rlx, rnp, "custom_linear_solve"), solver(jax, jnp, "custom_linear_solve")
    for k in (0, 1):
        f, g = (lambda m, b, s=s: (s(m, b) * W).sum() for s in (ours, theirs))
        np.testing.assert_allclose(rlx.grad(f, k)(A, B), jax.grad(g, k)(A, B), rtol=1e-10)
    got = rlx.jvp(ours, (A, B), (SPD, W))[1]
    np.testing.assert_allclose(got, jax.jvp(theirs, (A, B), (SPD, W))[1], rtol=1e-10)
    want = jax.hessian(lambda m: (theirs(m, B) * W).sum())(A)
    for second in (
        rlx.jacfwd(rlx.jacrev(lambda m: (ours(m, B) * W).sum())),
        rlx.hessian(lambda m: (ours(m, B) * W).sum()),
    ):
        np.testing.assert_allclose(second(A), want, rtol=1e-8, atol=1e-12)
    stacked = rlx.vmap(lambda b: rlx.grad(lambda m: (ours(m, b) * W).sum())(A))(np.stack([B, W]))
    np.testing.assert_allclose(stacked[1], jax.grad(lambda m: (theirs(m, W) * W).sum())(A), rtol=1e-9)


# -- functions without captured values, transposes --


def test_closure_convert():
    def f(t):
        g = lambda x: rnp.sin(x) * t + 2.0  # noqa: E731
        converted, consts = rlx.closure_convert(g, rnp.zeros(3))
        assert len(consts) == 1
        return converted(rnp.ones(3), *[c * 2 for c in consts]).sum()

    assert float(rlx.jit(f)(3.0)) == pytest.approx(3 * np.sin(1) * 6 + 6, rel=1e-6)
    assert float(rlx.grad(f)(3.0)) == pytest.approx(6 * np.sin(1), rel=1e-6)
    converted, consts = rlx.closure_convert(lambda x: x * 2, 1.0)
    assert consts == [] and float(converted(3.0)) == 6


def test_linear_transpose():
    f = lambda x, y: (A @ x, 2 * y)  # noqa: E731
    x, y = B.astype(np.float64), np.float64(1)
    for specs in ((x, y), (rlx.ShapeDtype((5,), "float64"), rlx.ShapeDtype((), "float64"))):
        t = rlx.linear_transpose(f, *specs)
        for call in (t, rlx.jit(t)):
            got = call((W, np.float64(3)))
            np.testing.assert_allclose(got[0], A.T @ W)
            assert float(got[1]) == 6
    with pytest.raises(TypeError, match="dtype int32"):
        rlx.linear_transpose(f, np.ones(5, np.int32), y)


def test_custom_gradient():
    f = lambda m: m.custom_gradient(lambda x: (x * x, lambda g: (g * x * 7,)))  # noqa: E731
    ours, theirs = f(rlx), f(jax)
    assert float(ours(3.0)) == 9
    assert float(rlx.grad(ours)(3.0)) == float(jax.grad(theirs)(3.0)) == 21
    assert float(rlx.grad(rlx.grad(ours))(3.0)) == float(jax.grad(jax.grad(theirs))(3.0)) == 7
    np.testing.assert_array_equal(rlx.vmap(rlx.grad(ours))(np.arange(3.0)), [0, 7, 14])
    forward, backward = rlx.fwd_and_bwd(lambda x, y: x * rnp.sin(y), (0, 1))
    out, kept = forward(2.0, 3.0)
    np.testing.assert_allclose(backward(kept, 1.0), [np.sin(3), 2 * np.cos(3)], rtol=1e-6)
    assert float(out) == pytest.approx(2 * np.sin(3))
