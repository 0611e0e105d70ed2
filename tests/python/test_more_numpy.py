"""Polynomials that are fitted, roots, joined ranges, quantiles with weights, modes of indices: against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 6))
METHODS = """linear weibull hazen median_unbiased normal_unbiased interpolated_inverted_cdf inverted_cdf
averaged_inverted_cdf closest_observation lower higher midpoint nearest""".split()


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_quantiles(method):
    few = np.round(X * 2) / 2  # with ties
    for x in (X, few):
        for q in (0.0, 0.3, 0.5, 1.0, np.array([0.1, 0.25, 0.75, 0.9])):
            for axis in (None, 0, -1, (0, 1)):
                got = rnp.quantile(x, q, axis, method=method, keepdims=True)
                np.testing.assert_allclose(got, np.quantile(x, q, axis, method=method, keepdims=True), rtol=1e-12)
    with_nan = X.copy()
    with_nan[0, 1] = np.nan
    got = rnp.nanpercentile(with_nan, 30, 1, method=method)
    np.testing.assert_allclose(got, np.nanpercentile(with_nan, 30, 1, method=method), rtol=1e-12)
    assert np.isnan(rnp.quantile(with_nan, 0.3, 1, method=method)[0])


def test_quantiles_with_weights():
    how = dict(method="inverted_cdf")
    for weights in (RNG.integers(0, 4, X.shape) + 1, RNG.random(X.shape), np.ones(X.shape)):
        for q in (0.0, 0.3, 1.0, np.array([0.25, 0.5])):
            for axis in (None, 0, 1, (0, 1)):
                for keepdims in (False, True):
                    got = rnp.quantile(X, q, axis, weights=weights, keepdims=keepdims, **how)
                    want = np.quantile(X, q, axis, weights=weights, keepdims=keepdims, **how)
                    assert np.array_equal(got, want) and got.shape == want.shape
    w = np.array([1, 0, 2, 1, 0, 3])
    assert np.array_equal(rnp.quantile(X, 0.0, 1, weights=w, **how), np.quantile(X, 0.0, 1, weights=w, **how))
    assert np.array_equal(rnp.percentile(X, 40, 1, weights=w, **how), np.percentile(X, 40, 1, weights=w, **how))
    with_nan = X.copy()
    with_nan[0, 1] = np.nan
    wide = np.broadcast_to(w, X.shape)
    got = rnp.nanquantile(with_nan, 0.4, 1, weights=w, **how)
    assert np.array_equal(got, np.nanquantile(with_nan, 0.4, 1, weights=wide, **how))
    assert np.array_equal(
        rlx.jit(lambda x: rnp.quantile(x, 0.4, 1, weights=w, **how))(X), rnp.quantile(X, 0.4, 1, weights=w, **how)
    )
    with pytest.raises(ValueError, match='weights need method="inverted_cdf"'):
        rnp.quantile(X, 0.5, weights=X)
    with pytest.raises(ValueError, match="weights of shape"):
        rnp.quantile(X, 0.5, 0, weights=w, **how)


@pytest.mark.parametrize("mode", ["fill", "clip", "wrap", "promise_in_bounds"])
def test_modes_of_take_along_axis(mode):
    indices = np.array([[0, 5, -1, -6], [1, 2, 3, 4], [0, 0, 0, 0], [5, 4, 3, 2]])
    assert np.array_equal(rnp.take_along_axis(X, indices, 1, mode=mode), np.take_along_axis(X, indices, 1))
    if mode == "wrap":
        far = np.array([[0, 6, -7, 13]] * 4)
        assert np.array_equal(rnp.take_along_axis(X, far, 1, mode=mode), np.take_along_axis(X, far % 6, 1))
    if mode in ("wrap", "promise_in_bounds"):
        return
    for dtype in (np.float32, np.int8, np.uint8, bool):
        x, far = (X * 9).astype(dtype), np.array([[0, 6, -7, 2]] * 4)
        want = jnp.take_along_axis(x, far, 1, mode=mode)
        if mode == "clip":
            want = want.at[:, 2].set(x[:, 0])  # JAX clips after it has counted from the end
        np.testing.assert_array_equal(rnp.take_along_axis(x, far, 1, mode=mode), want)
    far = np.array([[0, 6, -7, 2]] * 4)
    got = rnp.take_along_axis(X, far, 1, fill_value=7.5)
    np.testing.assert_array_equal(got, jnp.take_along_axis(X, far, 1, fill_value=7.5))
    with pytest.raises(ValueError, match="mode 'none'; it must be one of"):
        rnp.take_along_axis(X, indices, 1, mode="none")


def test_polyfit():
    x = np.linspace(-1, 2, 12)
    y = 3 * x**3 - x + 0.1 * RNG.standard_normal(12)
    many = np.stack([y, -y + x], 1)
    w = RNG.random(12) + 0.5
    for target in (y, many):
        for weights in (None, w):
            for deg in (0, 1, 3):
                want = np.polyfit(x, target, deg, w=weights)
                np.testing.assert_allclose(rnp.polyfit(x, target, deg, w=weights), want, rtol=1e-9, atol=1e-12)
    for got, want in zip(rnp.polyfit(x, y, 3, full=True), np.polyfit(x, y, 3, full=True)):
        np.testing.assert_allclose(got, want, rtol=1e-9)
    for cov in (True, "unscaled"):
        for target in (y, many) if cov is True else (y,):
            for got, want in zip(rnp.polyfit(x, target, 2, cov=cov), np.polyfit(x, target, 2, cov=cov)):
                np.testing.assert_allclose(got, want, rtol=1e-8)
    fit = lambda y: rnp.polyfit(x, y, 2)[0]  # noqa: E731
    np.testing.assert_allclose(rlx.grad(fit)(y), jax.grad(lambda y: jnp.polyfit(x, y, 2)[0])(y), rtol=1e-7)
    with pytest.raises(ValueError, match="deg = -1 is negative"):
        rnp.polyfit(x, y, -1)
    with pytest.raises(ValueError, match="y has as many rows"):
        rnp.polyfit(x, y[:3], 1)


def _in_order(z):
    return np.sort_complex(np.round(np.asarray(z), 6) + 0.0)


def test_roots():
    for p in ([1, -6, 11, -6], [1, 0, 0, 0, -1], [0, 0, 1, -3, 2, 0], [5.0], [0, 0], [1, 2, 1], [2, -4], [1, 1j, 2]):
        p = np.array(p)
        p = p.astype(np.result_type(p, np.float64))
        want = np.roots(p)
        np.testing.assert_allclose(_in_order(rnp.roots(p)), _in_order(want), atol=2e-6)
    p = np.array([1.0, -6, 11, -6])
    inside = rlx.jit(lambda p: rnp.roots(p, strip_zeros=False))(p)
    np.testing.assert_allclose(_in_order(inside), [1, 2, 3], atol=1e-6)
    with pytest.raises(TypeError, match="strip_zeros=False"):
        rlx.jit(rnp.roots)(p)


@pytest.mark.parametrize(
    "pick",
    [
        lambda r, c: r[1:4, 0, 7],
        lambda r, c: r[np.array([1, 2, 3]), 0, 0, np.array([4, 5])],
        lambda r, c: r[-1:1:6j, [0] * 3, 5, 6],
        lambda r, c: r["0,2", np.array([1, 2]), np.array([3, 4])],
        lambda r, c: r["-1", X, X],
        lambda r, c: r["1,2,0", np.array([1, 2]), np.array([3, 4])],
        lambda r, c: r["0,2,0", [1, 2], [3, 4]],
        lambda r, c: c[np.array([1, 2, 3]), np.array([4, 5, 6])],
        lambda r, c: c[np.array([[1, 2, 3]]), 0, 0, np.array([[4, 5, 6]])],
        lambda r, c: c[X, X],
        lambda r, c: c[0:4],
    ],
)
def test_joined_ranges(pick):
    want = pick(np.r_, np.c_)
    got = pick(rnp.r_, rnp.c_)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_small_differences_from_numpy():
    top = np.finfo(np.float64).max
    assert rnp.i0(np.float64(top)) == rnp.i0(np.float64(1e300)) == np.inf and np.isfinite(rnp.i0(np.float64(709)))
    for ends in ((np.ones((2, 2)), 0.0), (0.0, 1.0)):
        for num in (0, 1):
            got, want = rnp.linspace(*ends, num, retstep=True)[1], np.linspace(*ends, num, retstep=True)[1]
            assert np.shape(got) == np.shape(want) and np.isnan(got)
    for shape in ((1, 3), (3, 1), (2, 5), (3,)):
        x = RNG.standard_normal(shape)
        with np.errstate(all="ignore"):
            want = jnp.cov(x, rowvar=False)
        assert rnp.cov(x, rowvar=False).shape == want.shape
        np.testing.assert_allclose(rnp.cov(x, rowvar=False), want, rtol=1e-12)


def test_windows_of_dilated_operands():
    x = np.asarray(RNG.standard_normal((5, 4)), np.float32)
    for padding in ("SAME", "SAME_LOWER", "VALID"):
        for base in ((1, 1), (2, 1), (3, 2)):
            for strides in ((1, 1), (2, 3)):
                for m_add in ("add", "max"):
                    first = np.float32(0 if m_add == "add" else -np.inf)
                    want = jax.lax.reduce_window(x, first, getattr(jax.lax, m_add), (3, 2), strides, padding, base)
                    got = rlx.lax.reduce_window(x, first, getattr(rlx.lax, m_add), (3, 2), strides, padding, base)
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
