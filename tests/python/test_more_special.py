"""Bessel functions, exponential integrals, zeta, the dilogarithm and kin: values and derivatives, against mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special

import rlx
import rlx.scipy.special as rss

LINE = np.linspace(-30, 30, 61)
POSITIVE = np.linspace(0.01, 30, 60)


def _scaled(order):
    return lambda x: mpmath.besseli(order, x) * mpmath.exp(-abs(x))


# name: (points, the function, its derivative, where a derivative vanishes or values do: absolute error there)
FUNCTIONS = {
    "i0e": ([*LINE, 1e-8, 100.0, 900.0], _scaled(0)),
    "i1": ([*LINE, 1e-8, 100.0, 700.0], lambda x: mpmath.besseli(1, x)),
    "i1e": ([*LINE, 1e-8, 100.0, 900.0], _scaled(1)),
    "erfcx": ([*np.linspace(-20, 30, 51), 1.999, 2.001, 300.0], lambda x: mpmath.erfc(x) * mpmath.exp(x * x)),
    "dawsn": (
        [*LINE, 1e-8, 0.19, 0.21, 9.9, 10.1],
        lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x),
    ),
    "exp1": ([*POSITIVE, 1e-10, 0.999, 1.001, 500.0], mpmath.e1),
    "expi": ([*LINE[LINE != 0], 50.0, 39.9, 40.1, 500.0, 1e-10], mpmath.ei),
    "spence": (
        [*np.linspace(0.01, 5, 60), 1e-10, 1.0, 0.4999, 0.5001, 1.9999, 2.0001, 1e10],
        lambda x: mpmath.re(mpmath.polylog(2, 1 - x)),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives(name):
    points, exact = FUNCTIONS[name]
    f, points = getattr(rss, name), np.array(points)
    with mpmath.workdps(50):
        want = [exact(mpmath.mpf(float(x))) for x in points]
        slopes = [mpmath.diff(exact, mpmath.mpf(float(x)), h=mpmath.mpf(10) ** -20) for x in points if x]
        for dtype, eps in ((np.float64, 5e-15), (np.float32, 3e-6)):
            for x, got, w in zip(points, np.asarray(f(points.astype(dtype))), want):
                if dtype is np.float32:
                    w = exact(mpmath.mpf(float(np.float32(x))))
                    if not 1e-37 < abs(w) < 1e38:
                        continue
                assert abs(mpmath.mpf(float(got)) - w) <= eps * max(abs(w), 1e-2 if name == "expi" else 0), (x, got, w)
    moving = points[points != 0]
    for got, w, x in zip(np.asarray(rlx.vmap(rlx.grad(f))(moving)), slopes, moving):
        assert abs(float(got) - float(w)) <= 2e-13 * abs(float(w)) + 1e-15, (x, got, w)
    second = rlx.grad(rlx.grad(f))(np.float64(1.3))
    h = 1e-5
    numeric = (rlx.grad(f)(np.float64(1.3 + h)) - rlx.grad(f)(np.float64(1.3 - h))) / (2 * h)
    assert float(second) == pytest.approx(float(numeric), rel=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_edges():
    inf, nan = np.inf, np.nan
    points = np.array([0.0, -0.0, inf, -inf, nan, -1.0, 1e300, -1e300])
    for name in ("i0e", "i1e", "erfcx", "dawsn", "exp1", "expi", "spence"):
        want = getattr(scipy.special, name)(points)
        want[2] = -inf if name == "spence" else want[2]  # the limit, where SciPy has NaN
        np.testing.assert_allclose(getattr(rss, name)(points), want, rtol=1e-14)
    signs = np.array([0.5, -0.5, -1.5, -2.5, 3, 0.0, -0.0, inf, nan, -3.0])
    np.testing.assert_array_equal(rss.gammasgn(signs), scipy.special.gammasgn(signs))


@pytest.mark.parametrize("n", [0, 1, 2, 5, 19, 20, 50])
def test_expn(n):
    x = np.array([*POSITIVE, 1e-5, 1.99, 2.01, 100.0])
    np.testing.assert_allclose(rss.expn(n, x), scipy.special.expn(n, x), rtol=1e-14)
    if n:
        np.testing.assert_allclose(
            rlx.vmap(rlx.grad(lambda x: rss.expn(n, x)))(x), -scipy.special.expn(n - 1, x), rtol=1e-14
        )
    with pytest.raises(ValueError, match="n = -1"):
        rss.expn(-1, x)


def test_zeta():
    s, q = np.meshgrid([1.001, 1.5, 2, 3, 10, 50], [0.1, 0.5, 1, 2.5, 10, 100], indexing="ij")
    with mpmath.workdps(60):
        exact = np.vectorize(lambda s, q: float(mpmath.zeta(mpmath.mpf(s), mpmath.mpf(q))))
        np.testing.assert_allclose(rss.zeta(s, q), exact(s, q), rtol=1e-13)
        grads = rlx.grad(lambda q: rss.zeta(s, q).sum())(q)
        np.testing.assert_allclose(grads, -s * exact(s + 1, q), rtol=1e-12)
    np.testing.assert_array_equal(
        rss.zeta(np.array([1.0, 0.5, 2.0]), np.array([1.0, 1, -1.5])), [np.inf, np.nan, np.nan]
    )
    np.testing.assert_allclose(rss.zeta(np.float64(2)), np.pi**2 / 6)


def test_functions_of_gamma():
    z, m = np.array([0.5, 2.5, -0.5, 3.0, 10]), np.array([3, 0.5, 2.0, 0, -2])
    np.testing.assert_allclose(rss.poch(z, m), scipy.special.poch(z, m), rtol=1e-13)
    n, k = np.arange(9)[:, None], np.arange(-1, 10)
    np.testing.assert_array_equal(rss.comb(n, k), scipy.special.comb(n, k))
    np.testing.assert_array_equal(rss.comb(5, 3, repetition=True), scipy.special.comb(5, 3, repetition=True))
    np.testing.assert_allclose(rss.comb(np.float64(5.5), np.float64(2.2)), scipy.special.comb(5.5, 2.2), rtol=1e-13)
    with pytest.raises(NotImplementedError, match="math.comb"):
        rss.comb(5, 2, exact=True)
    np.testing.assert_allclose(rss.bernoulli(60), scipy.special.bernoulli(60), rtol=1e-6)
    x, lam = np.array([0.5, 2.0, 1e-12, 3.0]), np.array([0.0, 0.3, 2.0, -1.0])
    np.testing.assert_allclose(rss.boxcox(x, lam), scipy.special.boxcox(x, lam), rtol=1e-12)
    np.testing.assert_allclose(rss.boxcox1p(x, lam), scipy.special.boxcox1p(x, lam), rtol=1e-12)
