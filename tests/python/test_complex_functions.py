"""Functions, orders and products that take complex numbers or bools where NumPy does."""

import cmath
import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

EDGES = (0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 1e-20, 1e30, -1e30, 2.0, -2.0, 700.0, np.inf, -np.inf, np.nan)
GRID = np.array([complex(a, b) for a in EDGES for b in EDGES])
FINITE = np.array([z for z in GRID if cmath.isfinite(z) and abs(z) < 1e20])
SOFT = np.random.default_rng(0).standard_normal(40) * 3 + 1j * np.random.default_rng(1).standard_normal(40) * 3


@pytest.mark.parametrize("name", ["arcsinh", "arccosh", "expm1", "log1p", "sigmoid"])
def test_values(name):
    f = rlx.nn.sigmoid if name == "sigmoid" else getattr(rnp, name)
    exact = {
        "arcsinh": mpmath.asinh,
        "arccosh": mpmath.acosh,
        "expm1": mpmath.expm1,
        "log1p": lambda z: mpmath.log(1 + z),
        "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
    }[name]
    with mpmath.workdps(60):
        for dtype, eps in ((np.complex128, 2e-15), (np.complex64, 2e-6)):
            z = np.concatenate([FINITE, SOFT]).astype(dtype)
            z = z[np.abs(z) < 80] if name in ("expm1", "sigmoid") else z
            got = np.asarray(f(z))
            assert got.dtype == dtype
            for a, w in zip(got, z):
                if name == "log1p" and w == -1 or name == "sigmoid" and abs(1 + np.exp(-complex(w))) < 1e-3:
                    continue
                want = complex(exact(mpmath.mpc(complex(w))))
                if name == "arcsinh" and w.real == 0 and abs(w.imag) > 1:
                    continue  # on the cut; the test of the edges has it
                # Zeros have signs, which mpmath lacks: on a cut the side below is the conjugate of the side above.
                if np.signbit(w.imag) and w.imag == 0:
                    want = complex(exact(mpmath.mpc(complex(w).conjugate()))).conjugate()
                assert abs(complex(a) - want) <= eps * max(abs(want), 1e-300), (w, a, want)


@pytest.mark.parametrize("name", ["arcsinh", "arccosh", "log1p"])
def test_edges_are_those_of_numpy(name):
    with np.errstate(all="ignore"):
        want = getattr(np, name)(GRID)
    got = np.asarray(getattr(rnp, name)(GRID))
    for z, a, b in zip(GRID, got, want):
        for p, q in ((a.real, b.real), (a.imag, b.imag)):
            assert p == pytest.approx(q, rel=1e-12, abs=1e-12, nan_ok=True), (z, a, b)
        assert np.isnan(b.imag) or np.signbit(a.imag) == np.signbit(b.imag), (z, a, b)


def test_edges_of_expm1():
    rows = [(0, 0), (np.inf, 0), (-np.inf, 0), (np.nan, 0), (-np.inf, np.inf), (-np.inf, np.nan), (np.inf, np.inf)]
    want = [(0, 0), (np.inf, 0), (-1, 0), (np.nan, 0), (-1, 0), (-1, 0), (np.inf, np.nan)]
    got = np.asarray(rnp.expm1(np.array([complex(*r) for r in rows])))
    np.testing.assert_array_equal(np.stack([got.real, got.imag], 1), want)


@pytest.mark.parametrize("name", ["arcsinh", "arccosh", "expm1", "log1p", "sigmoid", "silu", "logaddexp"])
def test_derivatives_are_those_of_jax(name):
    z = SOFT.astype(np.complex128)
    if name in ("sigmoid", "silu"):
        f, g = getattr(rlx.nn, name), getattr(jax.nn, name)
    elif name == "logaddexp":
        f, g = (lambda z: rnp.logaddexp(z, 1.5 + 0.5j)), (lambda z: jnp.logaddexp(z, 1.5 + 0.5j))
    else:
        f, g = getattr(rnp, name), getattr(jnp, name)
    np.testing.assert_allclose(f(z), g(z), rtol=1e-12)
    ct = np.conj(z[::-1])
    if name == "arccosh":  # JAX's has the wrong sign where the real part is negative
        g = lambda z: jnp.log(z + jnp.sqrt(z - 1) * jnp.sqrt(z + 1))  # noqa: E731
    np.testing.assert_allclose(rlx.vjp(f, z)[1](ct)[0], jax.vjp(g, z)[1](ct)[0], rtol=1e-9)
    np.testing.assert_allclose(rlx.jvp(f, (z,), (ct,))[1], jax.jvp(g, (z,), (ct,))[1], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_order():
    v = (0.0, 1.0, -2.0, np.inf, np.nan)
    grid = np.array([complex(a, b) for a, b in itertools.product(v, v)], np.complex64)
    x, y = np.repeat(grid, grid.size), np.tile(grid, grid.size)
    for name in ("less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin"):
        want, got = getattr(np, name)(x, y), np.asarray(getattr(rnp, name)(x, y))
        if name.startswith(("max", "min", "f")):
            bad = np.isnan(want)
            assert np.array_equal(np.isnan(got), bad) and np.array_equal(got[~bad], want[~bad]), name
        else:
            assert np.array_equal(got, want), name
    assert np.array_equal(rlx.array(x) < y, x < y) and np.array_equal(rlx.jit(lambda x: x >= 1j)(x), x >= 1j)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "amax", "ptp"])
def test_extremes(name):
    rng = np.random.default_rng(0)
    x = (rng.integers(-2, 3, (4, 3, 5)) + 1j * rng.integers(-2, 3, (4, 3, 5))).astype(np.complex64)
    bad = x.copy()
    bad[0, 1, 2], bad[3, 0, 0] = np.nan, complex(1, np.nan)
    for a in (x, bad):
        for axis in (None, 0, -1) if name.startswith("arg") else (None, 0, -1, (0, 2)):
            want, got = getattr(np, name)(a, axis=axis), np.asarray(getattr(rnp, name)(a, axis=axis))
            assert np.array_equal(np.isnan(got), np.isnan(want)), axis
            assert np.array_equal(np.nan_to_num(got), np.nan_to_num(np.where(np.isnan(want), got, want))), axis
    if name in ("max", "min"):
        got = getattr(rnp, name)(x, axis=0, initial=1 + 1j, where=x.real > 0, keepdims=True)
        assert np.array_equal(got, getattr(np, name)(x, axis=0, initial=1 + 1j, where=x.real > 0, keepdims=True))


def test_products_of_bools():
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 3, 4)) < 0.3, rng.random((2, 4, 5)) < 0.3
    for f in (
        lambda m, x, y: m.matmul(x, y),
        lambda m, x, y: m.dot(x[0], y[0]),
        lambda m, x, y: m.einsum("bij,bjk->bik", x, y),
        lambda m, x, y: m.inner(x[0], x[1]),
        lambda m, x, y: m.vecdot(x, x),
        lambda m, x, y: m.tensordot(x[0], y[0], 1),
        lambda m, x, y: x[0] @ y[0],
    ):
        want, got = f(np, x, y), np.asarray(f(rnp, rlx.array(x), rlx.array(y)))
        assert got.dtype == bool and np.array_equal(got, want)
    got = rlx.lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))))
    assert got.dtype == "bool" and np.array_equal(got, x @ y)
    ones = np.ones(70000, bool)
    assert bool(rnp.dot(ones, ones))
