"""What the tests of JAX have shown: values beside NumPy and SciPy."""

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.spatial.transform
import scipy.special
import scipy.stats

import rlx
import rlx.image
import rlx.numpy as rnp
import rlx.scipy.cluster.vq
import rlx.scipy.fft
import rlx.scipy.interpolate
import rlx.scipy.linalg
import rlx.scipy.ndimage
import rlx.scipy.signal
import rlx.scipy.special
import rlx.scipy.spatial.transform
import rlx.scipy.stats

RNG = np.random.default_rng(7)


def close(got, wanted, tolerance=1e-5):
    assert np.shape(got) == np.shape(wanted)
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=tolerance, atol=tolerance)


# Index arrays that a ... without axes separates have their axes first.
@pytest.mark.parametrize(
    "index",
    [
        (slice(None), np.array([0, 1]), Ellipsis, np.array([0, 1])),
        (slice(None), np.array([[0, 1, 2]]), Ellipsis, np.array([[0], [3]])),
        (slice(0, 2), 1, Ellipsis, np.array([0, 1])),
        (slice(None), None, np.array([0, 1]), Ellipsis, np.array([0, 1])),
        (slice(None), [0, 1], Ellipsis, 2),
        (0, Ellipsis, np.array([1, 2]), np.array([1, 2])),
    ],
)
def test_ellipsis_without_axes(index):
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    wanted = x[index]
    close(rnp.array(x)[index], wanted)
    close(rlx.jit(lambda v: v[index])(x), wanted)
    values = RNG.random(wanted.shape, np.float32)
    changed = x.copy()
    np.add.at(changed, index, values)
    close(rnp.array(x).at[index].add(values), changed)


def test_slopes_of_xlogy():
    def by_x(f):
        return rlx.grad(rlx.grad(f, 1), 0)

    for x in (0.0, 2.0):
        close(by_x(rlx.scipy.special.xlogy)(x, 3.0), 1 / 3)
        close(by_x(rlx.scipy.special.xlog1py)(x, 3.0), 1 / 4)
    assert rlx.grad(rlx.scipy.special.xlogy, 1)(0.0, 0.0) == 0


def test_gradient_of_halves_rounds_once():
    x = RNG.standard_normal((6, 7)).astype(np.float16)
    for got, wanted in zip(rnp.gradient(x), np.gradient(x)):
        assert np.array_equal(np.asarray(got), wanted)


def test_reductions():
    x, weights = RNG.random((2, 3, 4)), RNG.random((4, 2))
    close(rnp.average(x, (2, 0), weights), np.average(x, (2, 0), weights))
    small = np.array([[100, 100], [1, 0]], np.int8)
    assert rnp.sum(small, promote_integers=False).dtype == "int8" and rnp.sum(small).dtype == "int32"
    for name in ("sum", "prod"):
        close(getattr(rnp, name)(small, 1, dtype=bool), getattr(np, name)(small, 1, dtype=bool))
    close(rnp.cumsum(small, 1, dtype=bool), np.cumsum(small, 1, dtype=bool))
    close(rnp.cov(x[0], dtype="float64"), np.cov(x[0]))
    z = np.array([1 + 2j, 3, 4j], np.complex64)
    close(rnp.std(z, where=np.array([True, False, True])), np.std(z, where=np.array([True, False, True])))
    close(rlx.nn.logsumexp(z), np.log(np.exp(z).sum()))
    assert rnp.log10(0j) == complex(-np.inf, 0) and rnp.iscomplexobj(z)
    with pytest.raises(TypeError, match="bool"):
        rnp.sum(small, where=small)
    with pytest.raises(ValueError, match="one number"):
        rnp.sum(small, initial=[1, 2])
    with pytest.raises(ValueError, match="ddof and correction"):
        rnp.var(x, ddof=1, correction=1)


def test_joining_with_traced_indices():
    x, counts = np.arange(3), np.array([1, 2, 3])
    assert rlx.jit(lambda c: rnp.repeat(x, c, total_repeat_length=6))(counts).tolist() == np.repeat(x, counts).tolist()
    y = np.arange(12.0).reshape(3, 4)
    close(rlx.jit(lambda i: rnp.insert(y, i, np.array([[1, 2, 3]]), 1))(2), np.insert(y, 2, np.array([[1, 2, 3]]), 1))
    close(rlx.jit(lambda i: rnp.delete(y, i, 1))(-3), np.delete(y, -3, 1))
    with pytest.raises(TypeError, match="total_repeat_length"):
        rlx.jit(lambda c: rnp.repeat(x, c))(counts)


def test_views():
    z = np.array([1 + 2j, 3, 4j], np.complex64)
    assert np.array_equal(rnp.array(z).view("float32"), z.view("float32"))
    assert np.array_equal(rnp.array(z).view("int64"), z.view("int64"))
    assert np.array_equal(rnp.array(z.view("float32")).view("complex64"), z)
    assert (
        rnp.array([True, False]).view("int8").tolist() == [1, 0]
        and rnp.array(np.float32(1)).view("int32") == 1 << 23 | 0x3F000000
    )


def test_small_arguments():
    close(rnp.interp(np.array([0.5, 3.9]), [1.0, 2.0, 3.0], [10.0, 20.0, 30.0], "extrapolate", "extrapolate"), [5, 39])
    x = np.array([[0, 0, 1], [0, 2, 0]])
    assert np.array_equal(rnp.trim_zeros(x, axis=1), np.trim_zeros(x, axis=1))
    assert rnp.argsort(x, dtype="int64").dtype == "int64"
    assert rnp.polymul([0, 1, 2], [1, 1], trim_leading_zeros=True).tolist() == np.polymul([0, 1, 2], [1, 1]).tolist()
    assert rnp.ravel_multi_index(([0, 1], [1, 2]), (2, 3)).tolist() == [1, 5]
    with pytest.raises(ValueError, match="outside"):
        rnp.ravel_multi_index(([0, 2], [1, 2]), (2, 3))
    a = np.arange(3.0, dtype=np.float32)
    assert rnp.take_along_axis(a, np.array([-1, 3]), mode="one_hot").tolist() == [2, 0]
    assert rnp.take_along_axis(a, np.array([-1]), wrap_negative_indices=False).tolist() == [0]
    close(rnp.logaddexp2(1j, 2.0), np.log2(np.exp2(1j) + np.exp2(2.0)))
    half = np.array([60000, 60000], np.float16)
    assert rnp.vecdot(half, half, preferred_element_type="float32") == 2 * 60000.0**2 // 1
    close(rnp.convolve(a, a, precision=rlx.lax.Precision.HIGHEST), np.convolve(a, a))
    assert rlx.grad(rlx.custom_gradient(lambda x: (rnp.sin(x), lambda ct: ct * 7)))(1.0) == 7


def test_random():
    key = rlx.random.key(3, impl="threefry2x32")
    z = np.asarray(rlx.random.normal(key, (20000,), "complex64"))
    assert abs(z.mean()) < 0.03 and abs((abs(z) ** 2).mean() - 1) < 0.03
    assert rlx.random.bernoulli(key, 1e-9, (50000,), mode="high").sum() == 0
    assert abs(float(rlx.random.gumbel(key, (20000,), mode="high").mean()) - 0.5772) < 0.05
    draws = rlx.random.categorical(key, rnp.log(rnp.array([0.2, 0.8])), shape=(20000,), mode="high")
    assert abs(float(draws.mean()) - 0.8) < 0.02
    q = np.asarray(rlx.random.orthogonal(key, 4, dtype="complex64"))
    close(q @ q.conj().T, np.eye(4))
    assert rlx.random.key_data(key).tolist() == key.tolist() and rlx.random.key_impl(key) == "threefry2x32"
    weights = np.asarray(rlx.nn.initializers.lecun_uniform()(key, (300, 200), "complex64"))
    assert abs((abs(weights) ** 2).mean() * 300 - 1) < 0.03
    with pytest.raises(NotImplementedError, match="threefry"):
        rlx.random.key(0, impl="rbg")


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_ranks(method):
    for x, axis in ((RNG.integers(0, 4, 9), None), (RNG.integers(0, 4, (5, 6)).astype(np.float32), 0)):
        close(rlx.scipy.stats.rankdata(x, method, axis=axis), scipy.stats.rankdata(x, method, axis=axis))
    assert np.isnan(rlx.scipy.stats.rankdata(np.array([1, np.nan], np.float32), method)).all()


def test_distributions_refuse_parameters_by_nan():
    stats = rlx.scipy.stats
    values = [stats.beta.pdf(0.5, -1.0, 2.0), stats.truncnorm.cdf(0.5, 1.0, -1.0), stats.norm.cdf(0.0, 0.0, -1.0)]
    assert np.isnan(np.asarray(values)).all()
    x = RNG.integers(0, 3, (4, 9))
    assert np.array_equal(stats.mode(x, 1).mode, scipy.stats.mode(x, 1).mode)
    close(
        stats.bernoulli.ppf(np.array([0.1, 0.3, 0.9]), 0.4), scipy.stats.bernoulli.ppf(np.array([0.1, 0.3, 0.9]), 0.4)
    )


@pytest.mark.parametrize("n", range(2, 7))
def test_special_matrices(n):
    ours, theirs, a = rlx.scipy.linalg, scipy.linalg, RNG.random(n) + 0.5
    for name in ("circulant", "companion", "fiedler", "fiedler_companion", "hankel", "toeplitz"):
        close(getattr(ours, name)(a), getattr(theirs, name)(a))
    for name in ("dft", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"):
        close(getattr(ours, name)(n), getattr(theirs, name)(n))
    for mode in ("full", "same", "valid"):
        close(ours.convolution_matrix(a, 3, mode), theirs.convolution_matrix(a, 3, mode))
    close(ours.leslie(a, a[1:]), theirs.leslie(a, a[1:]))
    assert np.array_equal(ours.hadamard(8), theirs.hadamard(8))
    c = RNG.random((n, 4))
    close(ours.qr_multiply(RNG.random((4, n)), RNG.random((2, 4)))[0].shape, (2, min(4, n)))
    close(ours.toeplitz(c, a), theirs.toeplitz(c, a))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 4, 9])
def test_cosine_transforms(norm, n):
    x = RNG.random((3, 6)).astype(np.float32)
    for name in ("dct", "idct"):
        got = getattr(rlx.scipy.fft, name)(x, n=n, axis=0, norm=norm)
        close(got, getattr(scipy.fft, name)(x, n=n, axis=0, norm=norm), 1e-4)
    close(rlx.scipy.fft.idctn(rlx.scipy.fft.dctn(x, norm=norm), norm=norm), x)


@pytest.mark.parametrize("seq", ["xyz", "ZYX", "zxz", "XYX"])
def test_rotations(seq):
    ours, theirs = rlx.scipy.spatial.transform.Rotation, scipy.spatial.transform.Rotation
    quat, v = RNG.standard_normal((5, 4)), RNG.standard_normal(3)
    a, b = ours.from_quat(quat), theirs.from_quat(quat)
    for method in ("as_matrix", "as_rotvec", "as_mrp", "magnitude"):
        close(getattr(a, method)(), getattr(b, method)())
    close(a.as_euler(seq), b.as_euler(seq))
    close(ours.from_euler(seq, b.as_euler(seq)).as_matrix(), b.as_matrix())
    close(ours.from_matrix(b.as_matrix()).as_matrix(), b.as_matrix())
    close((a * a.inv()).as_rotvec(), np.zeros((5, 3)))
    close(a.apply(v), b.apply(v))
    close(abs(a.mean().as_quat() @ b.mean().as_quat()), 1.0)
    times = np.arange(5.0)
    between = scipy.spatial.transform.Slerp(times, b)([0.25, 3.5]).as_matrix()
    close(rlx.scipy.spatial.transform.Slerp.init(times, a)(np.array([0.25, 3.5])).as_matrix(), between)
    assert np.isfinite(rlx.grad(lambda r: ours.from_rotvec(r).as_matrix().sum())(np.zeros(3, np.float32))).all()


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_map_coordinates(mode):
    x, at = RNG.random((4, 5)), [RNG.random(20) * 3, RNG.random(20) * 4]
    for order in (0, 1):
        got = rlx.scipy.ndimage.map_coordinates(x, at, order, mode)
        close(got, scipy.ndimage.map_coordinates(x, at, order=order, mode=mode))


def test_grids_clusters_images():
    points, values = (np.arange(4.0), np.arange(5.0)), RNG.random((4, 5))
    at = np.array([[0.5, 1.25], [2.0, 3.9], [5.0, 1.0]])
    for method in ("linear", "nearest"):
        got = rlx.scipy.interpolate.RegularGridInterpolator(points, values, method)(at)
        wanted = scipy.interpolate.RegularGridInterpolator(points, values, method, False)(at)
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-6)
    codes = RNG.random((3, 2))
    nearest, distance = rlx.scipy.cluster.vq.vq(codes + 1e-3, codes)
    assert nearest.tolist() == [0, 1, 2] and float(distance.max()) < 2e-3
    image = RNG.random((6, 8)).astype(np.float32)
    one = np.ones(2, np.float32)
    close(rlx.image.scale_and_translate(image, (6, 8), (0, 1), one, one * 0, "cubic"), image)
    moved = rlx.image.scale_and_translate(image, (6, 8), (0, 1), one, one, "linear")
    close(moved[1:, 1:], image[:-1, :-1])
    close(
        rlx.image.scale_and_translate(image, (3, 4), (0, 1), one / 2, one * 0, "linear"),
        rlx.image.resize(image, (3, 4), "linear"),
    )


def test_batches_of_sylvester_equations():
    a, b, q = RNG.random((2, 3, 3)), RNG.random((4, 4)), RNG.random((2, 3, 4))
    x = np.asarray(rlx.scipy.linalg.solve_sylvester(a, b, q, method="eigen"))
    close(a @ x + x @ b, q)


def test_residuals_as_numpy_has_them():
    a, b = np.array([[1, 1], [1, 1], [1, 1]], np.float64), RNG.random((3, 2))
    assert rnp.linalg.lstsq(a, b, numpy_resid=True)[1].shape == np.linalg.lstsq(a, b)[1].shape == (0,)


# -- a second look --


@pytest.mark.parametrize("name", ["i0e", "i1", "i1e"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_second_derivatives_of_bessel_functions(name, dtype):
    """Reverse mode over reverse mode: powers of the series must not overflow where the series is not chosen."""
    f = getattr(rlx.scipy.special, name)
    x = np.array([-30, -20, -8.1, -1, -0.05, 0.05, 0.3, 3, 7.9, 8, 19.9, 20.1, 60], dtype)
    first = rlx.grad(lambda x: rnp.sum(f(x)))
    second = np.asarray(rlx.grad(lambda x: rnp.sum(first(x)))(x))
    v, e = np.asarray(x, "float64"), np.exp(-np.abs(x.astype("float64")))
    i0, i1, s = scipy.special.iv(0, v), scipy.special.iv(1, v), np.sign(v)
    d1 = i0 - i1 / v
    d2 = i1 - (i0 - 2 * i1 / v) / v  # of I1: its derivative by the equation of Bessel
    wanted = {"i1": d2, "i0e": e * (d1 - 2 * s * i1 + i0), "i1e": e * (d2 - 2 * s * d1 + i1)}[name]
    scale = np.abs(i1) * (e if name != "i1" else 1) + np.abs(wanted)
    assert np.max(np.abs(second - wanted) / scale) < (3e-6 if dtype == "float32" else 1e-11)


def test_detrend_stft_istft_and_welch_beside_scipy():
    for n in range(1, 8):  # lines through two points leave nothing
        for breaks in ([0], [0, 1], [0, 2]):
            if max(breaks) <= n:
                y = RNG.normal(size=(3, n))
                close(rlx.scipy.signal.detrend(y, bp=breaks), scipy.signal.detrend(y, bp=breaks), 1e-12)
    y = RNG.normal(size=(20, 21, 22))
    for axis in range(3):
        for boundary in ("odd", "even", "zeros", "constant", None):
            for trend in (False, "linear"):
                options = dict(nperseg=8, axis=axis, boundary=boundary, detrend=trend)
                close(rlx.scipy.signal.stft(y, **options)[2], scipy.signal.stft(y, **options)[2], 1e-12)
    z = RNG.normal(size=(8, 9, 8)) + 1j
    for time, freq in ((-1, -2), (0, 1), (1, 0), (0, 2), (2, 0), (1, 2)):
        for nfft, nperseg in ((None, None), (20, 8)):
            options = dict(time_axis=time, freq_axis=freq, nfft=nfft, nperseg=nperseg)
            close(rlx.scipy.signal.istft(z, **options)[1], scipy.signal.istft(z, **options)[1], 1e-12)
    for n in (7, 8):
        close(
            rlx.scipy.signal.welch(y, window="triang", nperseg=n)[1],
            scipy.signal.welch(y, window="triang", nperseg=n)[1],
        )
    close(rlx.scipy.signal.welch(y)[1], scipy.signal.welch(y, nperseg=22)[1], 1e-10)  # segments of the whole signal


def test_sets_and_orders():
    x, y = np.array([5, 3, 3, 1.0]), np.array([1, 5, 7.0])
    close(rnp.setxor1d(x, y, assume_unique=True), np.setxor1d(x, y, assume_unique=True))
    close(rnp.setxor1d([1, 2, 3], [3], size=4), [1, 2, 1, 1])
    close(rnp.intersect1d([5, 3], [3, 5, 7], size=4), [3, 5, 3, 3])
    close(rnp.setxor1d(np.zeros(0), np.zeros(0), size=2), [0, 0])
    parts = [-0.0, 0.0, 1.0, np.nan]
    z = np.array([complex(a, b) for a in parts for b in parts])
    np.testing.assert_array_equal(np.asarray(rnp.sort(z)), np.sort(z))
    assert rnp.unique(z).shape == np.unique(z).shape
    assert rnp.unravel_index(np.arange(3, dtype="uint16"), (2, 3))[0].dtype.name == "uint16"
    close(rnp.put(rnp.ones(4), [0, 1], np.zeros(0)), np.ones(4))
    close(rnp.put(rnp.zeros(4), [1, 9], [5, 6], mode=None), [0, 5, 0, 0])
    close(rnp.choose([0, 1], [[1, 2], [3, 4]]), [1, 4])
    with pytest.raises(ValueError, match="invalid entry in choose"):
        rnp.choose([0, 2], [[1, 2], [3, 4]])


def test_reductions_of_a_stated_dtype():
    a = np.array([[1, 2], [3, 5]])
    for dtype in ("int16", "int32", "float64"):
        got = rnp.mean(a, dtype=dtype, axis=0)
        assert got.dtype.name == dtype
        close(got, np.mean(a, dtype=dtype, axis=0))
    assert rnp.sum(np.array([True, True]), promote_integers=False) == 2
    with pytest.raises(TypeError, match="must be bool"):
        rnp.nanmean(np.ones(3), where=np.ones(3, int))


def test_special_functions_at_edges():
    special = rlx.scipy.special
    x = np.array([-np.inf, -50, -1, -0.1, 0, 0.1, 3, np.inf])
    for got, wanted in zip(special.sici(x), scipy.special.sici(x)):
        close(got, wanted, 1e-12)
    m, theta, phi = np.arange(-4, 5), np.linspace(-2, 1, 9), np.linspace(-4, 5, 9)
    close(special.sph_harm_y(np.full(9, 4), m, theta, phi, n_max=4), scipy.special.sph_harm_y(4, m, theta, phi), 1e-12)
    close(special.comb([0.0, 0, 3], [0.0, 4, 2], repetition=True), [1, 0, 6])
    n, x = np.array([0, 1, 2, 5]), np.array([0.5, 1.5, 2.5, 30.0])
    close(special.polygamma(n, x), scipy.special.polygamma(n, x), 1e-12)
    close(rlx.jit(special.polygamma)(n, x), scipy.special.polygamma(n, x), 1e-12)
    close(rnp.sinc(np.array([np.inf, -np.inf, 0, 0.5])), [0, 0, 1, 2 / np.pi])
    close(rnp.geomspace(1 + 1j, 3 - 2j, 4), np.geomspace(1 + 1j, 3 - 2j, 4))


def test_systems_and_forms_of_matrices():
    linalg = rlx.lax.linalg
    a = RNG.normal(size=(5, 5))
    a = a + a.T
    c, d, e, tau = linalg.tridiagonal(a, lower=False)
    wanted = scipy.linalg.lapack.dsytrd(a, lower=0)
    for got, w in zip((c, d, e, tau), wanted):
        close(got, w, 1e-12)
    z = np.zeros(3)
    assert np.all(np.abs(np.asarray(linalg.tridiagonal_solve(z, z, z, np.ones((3, 1)), perturb_singular=True))) > 1e6)
    assert not np.all(np.isfinite(np.asarray(linalg.tridiagonal_solve(z, z, z, np.ones((3, 1))))))
    close(rnp.poly(a), np.poly(a), 1e-9)
    for order in (1, 2, np.inf, "fro", "nuc"):
        assert rnp.linalg.norm(np.zeros((0, 3)), order) == rnp.linalg.norm(np.zeros((3, 0)), order) == 0
    assert rnp.linalg.norm(np.zeros(0), np.inf) == 0 and rlx.scipy.linalg.block_diag().shape == (1, 0)
    t, z = scipy.linalg.schur(RNG.normal(size=(4, 4)))
    got = rlx.scipy.linalg.rsf2csf(t, np.stack([z, z]))
    assert got[0].shape == got[1].shape == (2, 4, 4)
    stats = rlx.scipy.stats
    assert stats.poisson.entropy(np.ones(3), loc=np.ones((2, 1))).shape == (2, 3)
    assert stats.sem(np.ones((2, 2)), axis=None, keepdims=True).shape == (1, 1)


def test_vectorize_checks_shapes():
    f = rnp.vectorize(rnp.dot, signature="(n,m),(m,k)->(n,k)")
    assert f(np.ones((7, 2, 3)), np.ones((3, 5))).shape == (7, 2, 5)
    with pytest.raises(ValueError, match="core axis m"):
        f(np.ones((2, 3)), np.ones((4, 5)))
    with pytest.raises(ValueError, match="a result of shape"):
        rnp.vectorize(rnp.dot, signature="(n,m),(m,k)->(n)")(np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(TypeError, match="must return a tuple"):
        rnp.vectorize(rnp.dot, signature="(n),(n)->(),()")(np.ones(2), np.ones(2))
    close(rnp.vectorize(lambda x, y: x if y is None else x + y)(np.arange(3), None), np.arange(3))
    with pytest.raises(ValueError, match="positions count from 0"):
        rnp.vectorize(lambda x: x, excluded={-1})


def test_windows_of_several_arrays():
    x = np.arange(6.0).reshape(2, 3)
    pair = lambda a, b: (a[0] + b[0], rlx.lax.max(a[1], b[1]))  # noqa: E731
    sums, largest = rlx.lax.reduce_window((x, -x), (0.0, -np.inf), pair, (1, 2), (1, 1), "VALID")
    close(sums, x[:, 1:] + x[:, :-1])
    close(largest, -x[:, :-1])
    with pytest.raises(ValueError, match="one value for each"):
        rlx.lax.reduce_window((x, x), (0.0,), pair, (1, 2), (1, 1), "VALID")
    assert rlx.lax.padtype_to_pads((7, 7), (3, 2), (2, 2), "SAME") == [(1, 1), (0, 1)]


@pytest.mark.parametrize("mode", ["clip", "drop", "fill", None])
def test_negative_indices_that_do_not_wrap(mode):
    import jax.numpy as jnp

    ours, theirs, index = rnp.arange(5.0), jnp.arange(5.0), np.array([-1, 2])
    options = dict(mode=mode, wrap_negative_indices=False)
    close(ours.at[index].get(**options), np.asarray(theirs.at[index].get(**options)))
    close(ours.at[index].set(9, **options), np.asarray(theirs.at[index].set(9, **options)))
    close(ours.at[-1].add(9, **options), np.asarray(theirs.at[-1].add(9, **options)))


def test_complex_functions_and_transforms():
    z = np.array([0.5 + 1j, -1.5 + 0.1j, 3, -2.5, 4 - 3j, 0.1j])
    close(rlx.scipy.special.gamma(z), scipy.special.gamma(z), 1e-12)
    assert np.all(np.isnan(np.asarray(rlx.scipy.special.gamma(np.array([0, -2 + 0j])))))
    close(rlx.scipy.special.erfcx(z), scipy.special.erfcx(z), 1e-12)
    for name in ("dct", "idct", "dctn", "idctn"):
        close(getattr(rlx.scipy.fft, name)(z.reshape(2, 3)), getattr(scipy.fft, name)(z.reshape(2, 3)), 1e-12)
    n, x = np.array([[1], [2], [5]]), np.array([0.3, 1.0, 4.0])
    close(rlx.scipy.special.expn(n, x), scipy.special.expn(n, x), 1e-12)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32", "float64", "complex64"])
def test_bytes_in_the_other_order(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    assert np.asarray(rnp.asarray(x).byteswap()).tobytes() == x.byteswap().tobytes()


def test_top_k():
    x = np.array([[3, 1, 3, 2], [0, 5, 4, 4]], "uint8")
    values, places = rnp.top_k(x, 2)
    close(values, [[3, 3], [5, 4]])
    close(places, [[0, 2], [1, 2]])
    close(rnp.top_k(x, 1, axis=0, mode="smallest")[0], [[0, 1, 3, 2]])


def test_copies_and_checks_of_arguments():
    import copy

    f = rlx.jit(lambda x: copy.copy(copy.deepcopy(x)) + 1)
    assert f(1.0) == 2
    rule = rlx.custom_gradient(lambda x: ((x, rnp.round(x).astype("int32")), lambda ct: 2 * rnp.ones_like(x)))
    close(rlx.grad(lambda x: rnp.sum(rule(x)[0]))(rnp.ones(3)), [2, 2, 2])  # a result without a cotangent
    with pytest.raises(ValueError, match="tangents of shapes"):
        rlx.linearize(rnp.sum, rnp.ones(3))[1](rnp.ones((3, 2)))
    with pytest.raises(TypeError, match="in_axes"):
        rlx.vmap(lambda x: x, in_axes=False)
    with pytest.raises(ValueError, match="static and donated"):
        rlx.jit(lambda x: x, static_argnames="x", donate_argnames="x")
    with pytest.raises(TypeError, match="integer dtype"):
        rlx.lax.argmax(np.arange(3.0), 0, np.float32)
    x, step = rnp.linspace(0, 1, 3, retstep=True, device="cpu")
    close(x, [0, 0.5, 1])
    ids = np.array([0, 0, 2])
    close(rlx.ops.segment_sum(np.arange(3.0), ids), [1, 0, 2])
    close(rlx.jit(lambda x: rlx.ops.segment_sum(x, ids))(np.arange(3.0)), [1, 0, 2])


def test_mode_with_nan_and_orders_of_polygamma():
    x = np.array([[1, np.nan, 2, np.nan], [3, 3, 1, 1]])
    for axis in (0, 1, None):
        got, wanted = rlx.scipy.stats.mode(x, axis=axis), scipy.stats.mode(x, axis=axis)
        close(got.mode, wanted.mode)
        close(got.count, wanted.count)
    n = np.array([1, 5, 9], "int32")
    got = np.asarray(rlx.scipy.special.polygamma(n, np.full(3, 9, "float16")), "float32")  # 9! is no float16
    close(got, scipy.special.polygamma(n, 9.0), 2e-3)
