"""Integrals of Fresnel, sine and cosine, Owen's T, hypergeometric and Bessel functions, spherical harmonics, and
functions of complex numbers: values and derivatives against mpmath and SciPy.
"""

import mpmath
import numpy as np
import pytest
import scipy.special as ss
from mpmath import mp, mpf

import rlx
import rlx.scipy.special as rss

RNG = np.random.default_rng(0)
EDGES = [
    0.0,
    -0.0,
    1e-300,
    1e-8,
    0.1,
    0.5,
    1,
    1.49,
    1.5,
    1.51,
    2,
    3.9999,
    4,
    4.01,
    5,
    50,
    123.456,
    1e5,
    1e8,
    1e12,
    1e15,
]
LINE = np.array([*EDGES, *(-x for x in EDGES), 1e300, -1e300, np.inf, -np.inf, np.nan])


def half(x):
    return mpmath.sign(x) / 2


INTEGRALS = {
    "fresnel S": (lambda x: rss.fresnel(x)[0], lambda x: mpmath.fresnels(x) if abs(x) < 1e20 else half(x), 0),
    "fresnel C": (lambda x: rss.fresnel(x)[1], lambda x: mpmath.fresnelc(x) if abs(x) < 1e20 else half(x), 0),
    "Si": (lambda x: rss.sici(x)[0], lambda x: mpmath.si(x) if abs(x) < 1e20 else half(x) * mp.pi, 0),
    "Ci": (lambda x: rss.sici(x)[1], lambda x: mpmath.ci(abs(x)) if abs(x) < 1e20 else mpf(0), 1e-2),
}


@pytest.mark.parametrize("name", INTEGRALS)
def test_values(name):
    f, exact, scale = INTEGRALS[name]
    for dtype, eps in ((np.float64, 4e-15), (np.float32, 2e-6), (np.float16, 2e-3)):
        with np.errstate(over="ignore"):
            points = LINE.astype(dtype)
        got = np.asarray(f(points))
        assert got.dtype == dtype
        for x, y in zip(points.astype(float), got.astype(float)):
            if np.isnan(x) or name == "Ci" and x == -np.inf:
                assert np.isnan(y)
            elif name == "Ci" and x == 0:
                assert y == -np.inf
            else:
                with mpmath.workdps(60):
                    want = exact(mpf(x))
                if abs(want) < np.finfo(dtype).tiny and want:
                    continue
                assert abs(mpf(y) - want) <= eps * max(abs(want), scale), (x, y, want)
                assert want or name == "Ci" or np.signbit(y) == np.signbit(x)


@pytest.mark.parametrize("name", INTEGRALS)
def test_derivatives(name):
    f, exact, _ = INTEGRALS[name]
    points = np.array([0.3, 1.2, 1.4999, 1.5001, 2.7, 3.9999, 4.0001, 6.1, 300.25])
    first, second = rlx.vmap(rlx.grad(f))(points), rlx.vmap(rlx.grad(rlx.grad(f)))(points)
    for x, d1, d2 in zip(points, np.asarray(first), np.asarray(second)):
        with mpmath.workdps(80):
            w1, w2 = (mpmath.diff(exact, mpf(x), k, h=mpf(10) ** -25) for k in (1, 2))
        assert abs(mpf(float(d1)) - w1) <= 1e-13 * max(abs(w1), 1e-2)
        assert abs(mpf(float(d2)) - w2) <= 1e-12 * max(abs(w2), 1)
    at_zero = {"fresnel S": (0, 0), "fresnel C": (1, 0), "Si": (1, 0)}.get(name)
    if at_zero:
        zero = np.float64(0)
        assert (float(rlx.grad(f)(zero)), float(rlx.grad(rlx.grad(f))(zero))) == at_zero
    push = rlx.jvp(f, (points,), (np.ones_like(points),))[1]
    np.testing.assert_allclose(push, first, rtol=1e-12)


def test_owens_t():
    def exact(h, a):
        f = lambda t: mpmath.exp(-(mpf(h) ** 2) * (1 + t * t) / 2) / (1 + t * t)  # noqa: E731
        cuts = [mpf(0), mpf(a)] if abs(a) < 1 or not h else [mpf(0), mpf(a) / 100, mpf(a) / 10, mpf(a)]
        return mpmath.quad(f, cuts) / (2 * mp.pi)

    for h in (0.0, 1e-5, 0.5, 1.0, 2.0, 5.0, 12.0, -1.5):
        for a in (0.0, 1e-8, 0.1, 0.9, 1.0, 1.1, 2.0, 5.0, -0.5, -3.0):
            got = float(rss.owens_t(np.float64(h), np.float64(a)))
            with mpmath.workdps(30):
                want = exact(h, a)
            assert abs(got - want) <= 1e-13 * abs(want) + 1e-17, (h, a, got, want)
    np.testing.assert_allclose(rss.owens_t(np.array([0.0, 1.0, 3.0]), np.inf), ss.owens_t([0.0, 1.0, 3.0], np.inf))
    step, h, a = 1e-6, 1.2, 0.7
    by_h, by_a = (rlx.grad(lambda h, a: rss.owens_t(h, a), k)(np.float64(h), np.float64(a)) for k in (0, 1))
    assert float(by_h) == pytest.approx((ss.owens_t(h + step, a) - ss.owens_t(h - step, a)) / (2 * step), rel=1e-7)
    assert float(by_a) == pytest.approx((ss.owens_t(h, a + step) - ss.owens_t(h, a - step)) / (2 * step), rel=1e-7)


# -- hypergeometric functions --


def near(f, exact, cases, most, typical):
    """The relative errors of f at rows of arguments: all below `most`, and half of them below `typical`."""
    got, off = np.asarray(f(*np.array(cases).T)), []
    for at, y in zip(cases, got):
        with mpmath.workdps(50):
            try:
                want = exact(*map(mpf, at))
            except (ValueError, ZeroDivisionError, mpmath.libmp.NoConvergence):
                continue
        want = float(want.real if isinstance(want, mpmath.mpc) else want)
        if np.isfinite(want) and want and abs(want) > 1e-290:
            off.append(abs(y - want) / abs(want))
            assert off[-1] <= most, (at, y, want)
    assert len(off) > len(cases) / 2 and np.median(off) <= typical


def test_hyp1f1():
    draw = RNG.choice
    n = 80
    a, b = draw([0.5, 1, 1.5, 2, -0.5, 3.25, -3, 0, 7.1, 15, -2.3], n), draw([0.5, 1, 2, 3.7, -0.5, 12, 5], n)
    x = draw([0, 0.1, 1, 3, 10, 30, 59, 61, 100, 300, 600, 1e-5], n) * draw([-1, 1], n)
    near(rss.hyp1f1, mpmath.hyp1f1, list(zip(a.tolist(), b.tolist(), x.tolist())), 1e-11, 1e-15)
    assert np.isnan(float(rss.hyp1f1(1.5, -2.0, 1.0)))  # a pole
    assert float(rss.hyp1f1(-1.0, -2.0, np.float64(3.0))) == 2.5  # the sum ends before it


def test_hyp2f1():
    draw = RNG.choice
    n = 80
    a, b = draw([0.5, 1, 1.5, 2, -0.5, 3.25, 0, 7.1], n), draw([0.5, 1, 2, 3.7, -0.5, 5], n)
    c = draw([0.5, 1, 2, 3.7, 1.5, 12, 5.25, 20], n)
    x = draw([0, 0.1, 0.5, 0.75, 0.9, 0.99, 0.9999, -0.1, -0.5, -1, -2, -10, -1e3], n)
    near(rss.hyp2f1, mpmath.hyp2f1, list(zip(*(v.tolist() for v in (a, b, c, x)))), 1e-8, 2e-15)
    one = np.float64(1)
    np.testing.assert_allclose(rss.hyp2f1(0.5, 1.0, 3.7, one), ss.hyp2f1(0.5, 1.0, 3.7, 1), rtol=1e-13)
    assert float(rss.hyp2f1(1.0, 1.0, 2.0, one)) == np.inf and np.isnan(float(rss.hyp2f1(0.5, 0.5, 1.0, 2.0)))
    assert float(rss.hyp2f1(-2.0, 3.0, 4.0, np.float64(3.0))) == pytest.approx(ss.hyp2f1(-2, 3, 4, 3.0))


@pytest.mark.parametrize(
    "f, exact, at",
    [
        (rss.hyp1f1, mpmath.hyp1f1, (1.3, 2.1, 3.4)),
        (rss.hyp1f1, mpmath.hyp1f1, (1.3, 2.1, -80.0)),
        (rss.hyp2f1, mpmath.hyp2f1, (1.3, 2.1, 3.4, 0.83)),
        (rss.hyp2f1, mpmath.hyp2f1, (1.3, 2.1, 3.4, -5.0)),
    ],
)
def test_derivatives_of_hypergeometric_functions(f, exact, at):
    at = tuple(map(np.float64, at))
    for k in range(len(at)):
        with mpmath.workdps(50):
            g = lambda z: exact(*(mpf(float(v)) if i != k else z for i, v in enumerate(at)))  # noqa: B023, E731
            want = [float(mpmath.diff(g, mpf(float(at[k])), order)) for order in (1, 2)]
        assert float(rlx.grad(f, k)(*at)) == pytest.approx(want[0], rel=1e-11)
        push = rlx.jvp(lambda z: f(*at[:k], z, *at[k + 1 :]), (at[k],), (np.float64(1),))[1]  # noqa: B023
        assert float(push) == pytest.approx(want[0], rel=1e-11)
        if k == len(at) - 1:
            assert float(rlx.grad(rlx.grad(f, k), k)(*at)) == pytest.approx(want[1], rel=1e-10)


# -- Bessel functions and spherical harmonics --


def test_bessel_jn():
    z = np.array([0, 1e-9, 1e-3, 0.5, 1, 5, 10, 20, -3])
    want = np.array([ss.jv(k, z) for k in range(7)])
    np.testing.assert_allclose(rss.bessel_jn(z, v=6, n_iter=80), want, atol=1e-14)
    np.testing.assert_allclose(rss.bessel_jn(z.astype("f4"), v=6), want, atol=1e-6)
    for k in range(4):
        f = lambda z: rss.bessel_jn(z, v=3)[k]  # noqa: B023, E731
        np.testing.assert_allclose(rlx.vmap(rlx.grad(f))(z), ss.jvp(k, z), atol=1e-13)
        np.testing.assert_allclose(rlx.vmap(rlx.grad(rlx.grad(f)))(z), ss.jvp(k, z, 2), atol=1e-12)
    with pytest.raises(ValueError, match="n_iter"):
        rss.bessel_jn(z, v=60)


def test_spherical_harmonics():
    n, m = np.meshgrid(range(8), range(-7, 8), indexing="ij")
    theta, phi = np.linspace(0, np.pi, 11)[:, None, None], 1.3
    inside = np.abs(m) <= n
    got, want = np.asarray(rss.sph_harm_y(n, m, theta, np.float64(phi))), ss.sph_harm_y(n, m, theta, phi)
    np.testing.assert_allclose(got[:, inside], want[:, inside], atol=1e-13)
    f = lambda t: rlx.numpy.real(rss.sph_harm_y(5, 2, t, 0.4))  # noqa: E731
    slope = (f(np.float64(0.700001)) - f(np.float64(0.699999))) / 2e-6
    assert float(rlx.grad(f)(np.float64(0.7))) == pytest.approx(float(slope), rel=1e-6)
    g = lambda n: rss.sph_harm_y(n, 1, 0.3, 0.4, n_max=9)  # noqa: E731
    np.testing.assert_allclose(rlx.jit(g)(np.array([1, 9])), ss.sph_harm_y([1, 9], 1, 0.3, 0.4), rtol=1e-5)
    with pytest.raises(TypeError, match="n_max"):
        rlx.jit(lambda n: rss.sph_harm_y(n, 1, 0.3, 0.4))(2)


# -- complex numbers --


def test_functions_of_complex_numbers():
    z = (RNG.standard_normal(500) + 1j * RNG.standard_normal(500)) * 10.0 ** RNG.uniform(-3, 2.5, 500)
    z = np.concatenate([z, [1, 2, 0.5, -0.5 + 1e-10j, -2.5 + 0j, -2.5 - 1e-30j, 1e-8, 5j, -20.3 + 0.1j]])
    want = ss.loggamma(z)
    assert (np.abs(rss.loggamma(z) - want) <= 5e-14 * np.maximum(np.abs(want), 1)).all()
    x = np.concatenate([z, np.linspace(-8, 8, 401)])
    x = x[(x.imag > 0) | (np.abs(x) < 20)]
    want = ss.wofz(x)
    good = np.isfinite(want) & (np.abs(want) < 1e300)
    assert (np.abs(rss.wofz(x) - want)[good] <= 1e-12 * np.abs(want[good])).all()
    for f in (rss.loggamma, rss.wofz):
        for p in (0.3 + 0.7j, -2.3 + 0.4j, 4 - 3j):
            slope = (f(np.complex128(p + 1e-6)) - f(np.complex128(p - 1e-6))) / 2e-6
            assert complex(rlx.grad(f, holomorphic=True)(np.complex128(p))) == pytest.approx(complex(slope), rel=1e-7)
    line = np.array([0.5, 3.0, -0.5, 0.0])
    np.testing.assert_allclose(rss.loggamma(line), [*ss.loggamma(line[:2]), np.nan, np.inf], rtol=1e-14)
    assert rss.wofz(np.float32(0.5)).dtype == rlx.complex64
