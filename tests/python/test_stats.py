"""The distributions of rlx.scipy.stats against SciPy: values, tails, supports, derivatives."""

import jax
import jax.scipy.stats
import numpy as np
import pytest
import scipy.stats

import rlx
import rlx.scipy.stats as rst

LINE = np.array([-9.0, -3.2, -1.0, -0.3, 0.0, 0.2, 0.5, 0.9, 1.0, 1.7, 3.0, 6.0, 12.0])
COUNTS = np.array([-1.0, 0, 1, 2, 3, 5, 7, 10, 11, 1.5, 3.7])
Q = np.array([0.01, 0.2, 0.5, 0.77, 0.999])
CONTINUOUS = {
    "norm": (),
    "expon": (),
    "uniform": (),
    "laplace": (),
    "logistic": (),
    "cauchy": (),
    "gumbel_r": (),
    "gumbel_l": (),
    "gamma": (2.3,),
    "chi2": (3.0,),
    "beta": (2.0, 3.5),
    "t": (4.0,),
    "pareto": (2.5,),
    "gennorm": (1.7,),
    "truncnorm": (-0.5, 2.0),
    "vonmises": (1.3,),
    "wrapcauchy": (0.4,),
}
DISCRETE = {
    "bernoulli": (0.3,),
    "poisson": (2.5,),
    "geom": (0.3,),
    "binom": (10.0, 0.35),
    "nbinom": (3.0, 0.4),
    "betabinom": (10.0, 2.0, 3.0),
}
FUNCTIONS = "logpdf pdf cdf logcdf sf logsf ppf isf logpmf pmf".split()


def _functions(name):
    return [f for f in FUNCTIONS if hasattr(getattr(rst, name), f)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_values(name):
    ours, theirs = getattr(rst, name), getattr(scipy.stats, name)
    shapes = CONTINUOUS.get(name) or DISCRETE.get(name, ())
    more = [(), (0.5, 2.0)] if name in CONTINUOUS else [(), (1.0,)]
    if name == "vonmises":
        more = [()]
    for f in _functions(name):
        x = Q if f in ("ppf", "isf") else LINE if name in CONTINUOUS else COUNTS
        if name == "vonmises":
            x = LINE[(LINE > -np.pi) & (LINE < np.pi)]
        for extra in more:
            with np.errstate(all="ignore"):
                want = getattr(theirs, f)(x, *shapes, *extra)
            got = np.asarray(getattr(ours, f)(x, *shapes, *extra))
            assert got.dtype == np.float64
            np.testing.assert_allclose(got, want, rtol=3e-12, atol=1e-300, err_msg=f)
    single = getattr(ours, _functions(name)[0])(np.float32(1), *shapes)
    assert single.dtype == "float32" and np.asarray(rlx.jit(getattr(ours, _functions(name)[0]))(1, *shapes)).shape == ()


@pytest.mark.filterwarnings("ignore")
def test_tails():
    far = np.array([-40.0, -10.0, 10.0, 40.0])
    for name in ("norm", "logistic", "laplace", "cauchy", "t", "gumbel_r", "gumbel_l"):
        shapes = CONTINUOUS[name]
        for f in ("sf", "cdf", "logpdf"):
            want = getattr(getattr(scipy.stats, name), f)(far, *shapes)
            np.testing.assert_allclose(
                getattr(getattr(rst, name), f)(far, *shapes), want, rtol=1e-11, err_msg=(name, f)
            )
    np.testing.assert_allclose(
        rst.truncnorm.logpdf(np.float64(30.5), 30.0, 31.0), scipy.stats.truncnorm.logpdf(30.5, 30, 31), rtol=1e-10
    )
    x = np.float64(30.5)
    np.testing.assert_allclose(rst.truncnorm.cdf(x, 30.0, 31.0), scipy.stats.truncnorm.cdf(x, 30, 31), rtol=1e-10)
    assert np.isnan(rst.norm.ppf(np.array([-0.1, 1.1]))).all()
    np.testing.assert_array_equal(rst.norm.ppf(np.array([0.0, 1.0])), [-np.inf, np.inf])


@pytest.mark.rotates(2)
@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n != "truncnorm"])
def test_derivatives(name):
    shapes = CONTINUOUS[name]
    x = {"wrapcauchy": np.float64(1.2), "pareto": np.float64(2.2)}.get(name, np.float64(0.7))
    args = (x, *shapes) + (() if name in ("vonmises", "wrapcauchy", "gennorm") else (0.1, 0.9))
    args = tuple(np.float64(a) for a in args)
    numbers = tuple(range(len(args)))
    got = rlx.grad(getattr(rst, name).logpdf, numbers)(*args)
    h = 1e-6
    if not name.startswith("gumbel"):  # which JAX refuses
        want = jax.grad(getattr(jax.scipy.stats, name).logpdf, numbers)(*args)
        np.testing.assert_allclose(got, want, rtol=1e-9)
    cdf = getattr(getattr(rst, name), "cdf", None)
    if cdf is not None:
        slope = (cdf(x + h, *shapes) - cdf(x - h, *shapes)) / (2 * h)
        np.testing.assert_allclose(rlx.grad(cdf)(x, *shapes), slope, rtol=1e-7)
        np.testing.assert_allclose(rlx.grad(cdf)(x, *shapes), getattr(rst, name).pdf(x, *shapes), rtol=1e-11)
    outside = {"expon": -1.0, "uniform": 2.0, "gamma": -1.0, "chi2": -1.0, "beta": 1.5, "pareto": 0.5}.get(name)
    if outside is not None:
        assert rlx.grad(getattr(rst, name).logpdf)(np.float64(outside), *shapes) == 0


def test_vectors():
    rng = np.random.default_rng(0)
    alpha = np.array([0.8, 2.0, 3.0])
    x = rng.dirichlet(alpha, 5).T
    for got in (rst.dirichlet.logpdf(x, alpha), rst.dirichlet.logpdf(x[:2], alpha)):
        np.testing.assert_allclose(got, scipy.stats.dirichlet.logpdf(x, alpha), rtol=1e-11)
    assert rst.dirichlet.pdf(np.array([0.5, 0.6, 0.1]), alpha) == 0
    p = np.array([0.2, 0.5, 0.3])
    for counts in ([1, 2, 3], [0, 6, 0], [1, 1, 1]):
        want = scipy.stats.multinomial.pmf(counts, 6, p)
        np.testing.assert_allclose(rst.multinomial.pmf(np.array(counts), 6, p), want, rtol=1e-12)
    a = rng.standard_normal((3, 3))
    cov, mean, points = a @ a.T + np.eye(3), rng.standard_normal(3), rng.standard_normal((4, 2, 3))
    want = scipy.stats.multivariate_normal.logpdf(points, mean, cov)
    np.testing.assert_allclose(rst.multivariate_normal.logpdf(points, mean, cov), want, rtol=1e-12)
    got = rlx.grad(lambda m: rst.multivariate_normal.logpdf(points, m, cov).sum())(mean)
    want = jax.grad(lambda m: jax.scipy.stats.multivariate_normal.logpdf(points, m, cov).sum())(mean)
    np.testing.assert_allclose(got, want, rtol=1e-10)
    one = rst.multivariate_normal.pdf(points[0, 0], mean, np.float64(2.0))
    np.testing.assert_allclose(one, scipy.stats.multivariate_normal.pdf(points[0, 0], mean, 2.0))


def test_samples():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, (6, 5))
    for axis in (0, 1, None):
        for keepdims in (False, True):
            got, want = rst.mode(a, axis, keepdims=keepdims), scipy.stats.mode(a, axis, keepdims=keepdims)
            assert np.array_equal(got.mode, want.mode) and np.array_equal(got.count, want.count)
            assert got.mode.shape == np.shape(want.mode)
        for method in ("average", "min", "max", "dense", "ordinal"):
            assert np.array_equal(rst.rankdata(a, method, axis=axis), scipy.stats.rankdata(a, method, axis=axis))
        x = rng.standard_normal((6, 5))
        np.testing.assert_allclose(rst.sem(x, axis), scipy.stats.sem(x, axis), rtol=1e-12)
    with pytest.raises(ValueError, match="one of average, min"):
        rst.rankdata(a, "mean")
    with pytest.raises(NotImplementedError, match='only "propagate"'):
        rst.mode(a, nan_policy="omit")
