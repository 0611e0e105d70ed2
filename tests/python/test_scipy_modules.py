"""rlx.scipy.fft, ndimage, interpolate, integrate and cluster.vq, against SciPy and JAX."""

import jax.numpy as jnp
import jax.scipy.ndimage
import numpy as np
import pytest
import scipy.cluster.vq
import scipy.fft
import scipy.interpolate
import scipy.ndimage

import rlx
import rlx.numpy as rnp
from rlx.scipy import cluster, fft, integrate, interpolate, ndimage

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 8))


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_cosine_transforms(type, norm):
    for name in ("dct", "idct"):
        ours, theirs = getattr(fft, name), getattr(scipy.fft, name)
        for n, axis in ((None, -1), (None, 0), (5, -1), (11, 1)):
            np.testing.assert_allclose(ours(X, type, n, axis, norm), theirs(X, type, n, axis, norm), atol=1e-12)
        np.testing.assert_allclose(ours(X.astype("f4"), type, norm=norm), theirs(X, type, norm=norm), atol=1e-4)
        ours, theirs = getattr(fft, name + "n"), getattr(scipy.fft, name + "n")
        for s, axes in ((None, None), (None, (0,)), ((4, 6), None), ((4,), (1,))):
            np.testing.assert_allclose(ours(X, type, s, axes, norm), theirs(X, type, s, axes, norm), atol=1e-12)
    back = rlx.jit(lambda x: fft.idct(fft.dct(x, type, norm=norm), type, norm=norm))(X)
    np.testing.assert_allclose(back, X, atol=1e-12)
    m = np.asarray(rlx.jacrev(lambda x: fft.dct(x, type, norm=norm))(X[0]))
    np.testing.assert_allclose(m @ X[0], fft.dct(X[0], type, norm=norm), atol=1e-12)
    np.testing.assert_allclose(rlx.vmap(lambda x: fft.dct(x, type))(X), scipy.fft.dct(X, type), atol=1e-12)


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates(mode, order):
    for x, points in ((X, RNG.uniform(-6, 14, (2, 40))), (X[0], RNG.uniform(-20, 20, (1, 40)))):
        want = jax.scipy.ndimage.map_coordinates(jnp.array(x), list(jnp.array(points)), order, mode, 2.5)
        np.testing.assert_allclose(ndimage.map_coordinates(x, points, order, mode, 2.5), want, atol=1e-12)
        inside = np.clip(points, 0.01, np.array(x.shape)[:, None] - 1.01)
        want = scipy.ndimage.map_coordinates(x, inside, order=order)
        np.testing.assert_allclose(ndimage.map_coordinates(x, inside, order), want, atol=1e-12)
        whole = np.round(10 * x).astype(np.int32)
        got = ndimage.map_coordinates(whole, points, order, mode)
        want = jax.scipy.ndimage.map_coordinates(jnp.array(whole), list(jnp.array(points)), order, mode)
        assert got.dtype == np.int32
        assert np.abs(np.asarray(got) - want).max() <= order  # ties of the rounding
    if order:
        p = np.array([1.0, 1.3, 4.6])
        grad = rlx.grad(lambda c: ndimage.map_coordinates(X, [c[0:1], c[1:2]], 1, mode)[0])(p[1:])
        step = 1e-6 * np.eye(2)
        at = lambda c: float(ndimage.map_coordinates(X, [c[0:1], c[1:2]], 1, mode)[0])  # noqa: E731
        np.testing.assert_allclose(grad, [(at(p[1:] + s) - at(p[1:] - s)) / 2e-6 for s in step], rtol=1e-7)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grid_interpolation(method):
    grid = (np.array([0.0, 1, 3]), np.linspace(-1, 2, 8))
    points = RNG.uniform(-2, 4, (30, 2))
    for values, fill in ((X, np.nan), (X, None), (np.stack([X, X * 2], -1), 7.0)):
        ours = interpolate.RegularGridInterpolator(grid, values, method, False, fill)
        theirs = scipy.interpolate.RegularGridInterpolator(grid, values, method, False, fill)
        np.testing.assert_allclose(ours(points), theirs(points), atol=1e-12)
        np.testing.assert_allclose(rlx.jit(lambda p: ours(p))(points), theirs(points), atol=1e-12)
        np.testing.assert_allclose(ours(tuple(points.T)), theirs(points), atol=1e-12)
    assert np.isnan(ours(np.array([[np.nan, 0.0]]))).all()
    line = interpolate.RegularGridInterpolator((grid[1],), X[0])
    np.testing.assert_allclose(line(np.array([0.5])), np.interp(0.5, grid[1], X[0]))
    with pytest.raises(ValueError, match="points 0"):
        interpolate.RegularGridInterpolator((grid[1], grid[1]), X)
    with pytest.raises(ValueError, match="method"):
        interpolate.RegularGridInterpolator(grid, X, "cubic")


def test_vector_quantisation():
    codes = RNG.standard_normal((5, 8))
    for x, book in ((X, codes), (X[0], codes[0])):
        got, want = cluster.vq.vq(x, book), scipy.cluster.vq.vq(x, book)
        np.testing.assert_array_equal(got[0], want[0])
        np.testing.assert_allclose(got[1], want[1])
    with pytest.raises(ValueError, match="code_book of shape"):
        cluster.vq.vq(X, codes[:, :3])


def test_trapezoid():
    assert integrate.trapezoid is rnp.trapezoid


def test_refusals():
    for call, text in (
        (lambda: fft.dct(X, 5), "type"), (lambda: fft.dct(X, norm="some"), "norm"),
        (lambda: fft.dct(X[:, :1], 1), "1 elements"), (lambda: ndimage.map_coordinates(X, [X], 1), "one for each axis"),
        (lambda: ndimage.map_coordinates(X, [X, X], 1, "other"), "mode"),
    ):  # fmt: skip
        with pytest.raises((ValueError, NotImplementedError), match=text):
            call()
    with pytest.raises(NotImplementedError, match="order"):
        ndimage.map_coordinates(X, [X, X], 3)
    np.testing.assert_allclose(fft.dct(X * 1j), scipy.fft.dct(X * 1j), rtol=1e-5, atol=1e-5)
