"""rlx.scipy.special beside jax.scipy.special, values and derivatives; ONNX's activations of rlx.nn; bits of floats."""

import functools

import jax
import jax.numpy as jnp
import jax.scipy.special
import ml_dtypes
import mpmath
import numpy as np
import pytest
import scipy.special
import rlx.numpy as rnp
import rlx.scipy.special
from oracle import Table, by_jax, normal, same, uniform

import rlx

X, HALF = normal(3, 4, seed=1), uniform(3, 4, low=0.05, high=0.95, seed=3)
OTHER = uniform(3, 4, low=0.1, high=4, seed=4)
ENDS = np.array([0, 1, 2, -1, np.nan], np.float32)
PAIRS = [v.ravel() for v in np.meshgrid(ENDS[:4], ENDS[:4])]  # of NaN JAX makes an infinity in rel_entr
TABLE = Table("scipy.special")


def on(name, *args):
    return lambda m, np_: getattr(m, name)(*(np_.asarray(a) if isinstance(a, np.ndarray) else a for a in args))


for name in ["erf", "erfc", "expit", "ndtr"]:
    TABLE.add(name, on(name, X * 3), tol=("rel", 1e-5))
for name in ["erfinv", "logit", "entr", "ndtri", "gammaln", "digamma", "gamma", "sinc", "i0"]:
    if hasattr(jax.scipy.special, name):
        TABLE.add(name, on(name, HALF), tol=("rel", 2e-5))
TABLE.add("sinc", lambda m, np_: m.sinc(X) if m is rlx.scipy.special else jnp.sinc(X), tol=("rel", 2e-5))
for name in ["logit", "entr"]:
    TABLE.add(name, on(name, ENDS), tol=("rel", 1e-5))
TAILS = np.array([0, 1, 2e-38, 1e-10, 1e-6, 0.07, 0.08, 0.999999], np.float32)
TABLE.add("ndtri", on("ndtri", TAILS), tol=("rel", 1e-5))
TABLE.add("gammaln", on("gammaln", np.array([0, -1, np.nan, np.inf, -0.5, 1e30], np.float32)), tol=("rel", 1e-5))
TABLE.add("gamma", on("gamma", X * 4), on("gamma", np.arange(1, 6)), tol=("rel", 3e-5))
TABLE.add(
    "log_ndtr", on("log_ndtr", np.array([-300, -30, -6, -4.9, -1, 0, 2, 8, np.nan], np.float32)), tol=("rel", 2e-5)
)
for name in ["xlogy", "xlog1py", "rel_entr", "kl_div", "betaln", "beta"]:
    TABLE.add(name, on(name, HALF, OTHER), on(name, np.float32(0.5), OTHER), tol=("rel", 3e-5))
for name in ["xlogy", "rel_entr"]:
    TABLE.add(name, on(name, *PAIRS), tol=("rel", 1e-5))
for name in ["gammainc", "gammaincc"]:
    TABLE.add(name, on(name, OTHER, HALF * 4), tol=("rel", 2e-5))
TABLE.add("betainc", on("betainc", OTHER, HALF * 4, HALF), tol=("rel", 2e-5))
TABLE.add("polygamma", lambda m, np_: m.polygamma(2, np_.asarray(OTHER)), tol=("rel", 1e-5))
TABLE.add("factorial", on("factorial", np.array([0, 1, 2.5, 6], np.float32)), tol=("rel", 1e-5))
TABLE.add("multigammaln", lambda m, np_: m.multigammaln(np_.asarray(OTHER + 2), 3), tol=("rel", 1e-5))
for name in ["logsumexp", "softmax", "log_softmax"]:
    TABLE.add(name, on(name, X), tol=("rel", 1e-5))


def test_betainc_of_large_parameters():
    """Against scipy where it has its digits, and around the change from the fraction to the expansion."""
    betainc = rlx.scipy.special.betainc
    a, b = np.meshgrid([5.0, 1e3, 9.9e5, 1.01e6, 3e7, 1e9], [1e4, 9.9e5, 1.01e6, 1e9])
    for k in (-8, -3, -0.5, 0, 1, 4):
        x = a / (a + b) * (1 + k * np.sqrt(b / a / (a + b)))
        a_, b_, x = a[x > 0], b[x > 0], x[x > 0]
        got, want = np.asarray(betainc(a_, b_, x)), scipy.special.betainc(a_, b_, x)
        few = a_ > 5  # scipy has 1e-8 of them
        np.testing.assert_allclose(got[few], want[few], rtol=3e-11, atol=1e-13)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    assert np.isnan(np.asarray(betainc(np.inf, 2.0, 0.5)))


@pytest.mark.parametrize("i", TABLE.params())
def test_values(i):
    TABLE.check(i)


# Tried in test_more_special.py.
ELSEWHERE = """bernoulli bessel_jn boxcox boxcox1p comb dawsn erfcx exp1 expi expn fresnel gammasgn hyp1f1 hyp2f1 i0e
i1 i1e loggamma owens_t poch sici spence sph_harm_y wofz zeta""".split()


def test_every_function_is_tried():
    assert TABLE.forgotten() == ELSEWHERE


SLOPES = {
    name: (x, call)
    for name, x, call in [
        ("erfc", X, lambda s, v: s.erfc(v)),
        ("gammaln", OTHER, lambda s, v: s.gammaln(v)),
        ("digamma", OTHER, lambda s, v: s.digamma(v)),
        ("gammainc by a", OTHER, lambda s, v: s.gammainc(v, HALF * 4)),
        ("gammainc by x", OTHER, lambda s, v: s.gammainc(HALF * 4, v)),
        ("gammaincc by x", OTHER, lambda s, v: s.gammaincc(HALF * 4, v)),
        ("betainc by x", HALF, lambda s, v: s.betainc(OTHER, OTHER + 1, v)),
        ("xlogy", HALF, lambda s, v: s.xlogy(v, OTHER)),
        ("entr", HALF, lambda s, v: s.entr(v)),
        ("kl_div", OTHER, lambda s, v: s.kl_div(HALF, v)),
        ("log_ndtr", X * 4, lambda s, v: s.log_ndtr(v)),
        ("ndtri", HALF, lambda s, v: s.ndtri(v)),
        ("logit", HALF, lambda s, v: s.logit(v)),
    ]
}


def slope(m, special, np_, x, call):
    return m.grad(lambda v: np_.sum(np_.sin(call(special, v))))(np_.asarray(x))


@functools.cache
def slopes_by_jax():
    return dict(zip(SLOPES, by_jax([lambda a=a: slope(jax, jax.scipy.special, jnp, *a) for a in SLOPES.values()])))


@pytest.mark.parametrize("what", SLOPES)
def test_derivatives(what):
    same(slope(rlx, rlx.scipy.special, rnp, *SLOPES[what]), slopes_by_jax()[what], ("rel", 1e-4), what)


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "logaddexp2", "fmod", "copysign"])
def test_derivatives_of_pairs(name):
    for place in (0, 1):

        def of(m, np_, place=place):
            return m.grad(lambda *v: np_.sum(np_.sin(getattr(np_, name)(*v))), place)(
                np_.asarray(X), np_.asarray(OTHER)
            )

        (want,) = by_jax([lambda: of(jax, jnp)])
        same(of(rlx, rnp), want, ("rel", 2e-5), name)


def test_second_derivatives():
    def of(m, np_, special, f):
        return m.grad(lambda v: m.grad(lambda u: f(np_, special, u))(v))(
            np_.float32(0.7) if m is jax else rlx.array(0.7)
        )

    for f in [
        lambda np_, s, v: np_.sinc(v),
        lambda np_, s, v: s.gammaln(v),
        lambda np_, s, v: np_.logaddexp(v, 0.2),
        lambda np_, s, v: np_.hypot(v, 0.2),
        lambda np_, s, v: s.gammainc(0.6, v),
    ]:
        (want,) = by_jax([lambda: of(jax, jnp, jax.scipy.special, f)])
        same(of(rlx, rnp, rlx.scipy.special, f), want, ("rel", 1e-4), "second derivative")
    at_zero = rlx.grad(rlx.grad(rnp.sinc))(rlx.array(0.0))
    assert float(at_zero) == pytest.approx(-np.pi**2 / 3, rel=1e-6)


def test_activations_of_onnx():
    x = np.array([-2, -0.5, -0.0, 0.25, 0.75, 3, np.inf, -np.inf, np.nan], np.float32)
    same(rlx.nn.prelu(x, np.float32(0.1)), np.where(x < 0, x * np.float32(0.1), x), None, "prelu")
    slopes = np.array([[0.5], [0.25]], np.float32)
    same(rlx.nn.prelu(x, slopes), np.where(x < 0, x * slopes, x), None, "prelu of channels")
    same(rlx.nn.thresholded_relu(x, 0.5), np.where(x <= 0.5, 0, x), None, "thresholded_relu")
    shrunk = np.where(x > 0.5, x - 0.25, np.where(x < -0.5, x + 0.25, np.where(np.isnan(x), x, 0)))
    same(rlx.nn.shrink(x, 0.5, 0.25), shrunk, None, "shrink")
    same(rlx.nn.tanh_shrink(x[:6]), x[:6] - np.tanh(x[:6]), ("rel", 1e-5), "tanh_shrink")
    assert rlx.grad(lambda s: rnp.sum(rlx.nn.prelu(x[:6], s)))(rlx.array(0.1)).item() == -2.5
    with pytest.raises(rlx.InvalidArgument, match="lambda must not be negative"):
        rlx.nn.shrink(x, -1.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_parts_of_floats(dtype):
    t = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    info = ml_dtypes.finfo(t)
    some = [
        0.0,
        -0.0,
        1,
        -1,
        1.5,
        info.max,
        info.min,
        info.smallest_subnormal,
        info.tiny,
        np.inf,
        -np.inf,
        np.nan,
        3.25,
    ]
    a, b = (v.ravel() for v in np.meshgrid(np.array(some).astype(t), np.array(some).astype(t)))
    with np.errstate(all="ignore"):
        for name in ["nextafter", "copysign"]:
            got, want = np.asarray(getattr(rnp, name)(a, b)), getattr(np, name)(a, b)
            plain = ~np.isnan(want)
            assert got.dtype == t and (got == want)[plain].all() and np.isnan(got[~plain]).all(), name
        assert (np.asarray(rnp.signbit(a)) == np.signbit(a)).all()
        assert bool(rnp.signbit(rlx.array(-np.nan).astype(dtype)))
        m, e = rnp.frexp(a)
        want = np.frexp(a)
        finite = np.isfinite(a)
        assert (np.asarray(m)[finite] == want[0][finite]).all() and (np.asarray(e)[finite] == want[1][finite]).all()
        for n in (-300, -20, -1, 0, 1, 30, 500, 5000, -5000):
            got, want = np.asarray(rnp.ldexp(a, n)), np.ldexp(a.astype(np.float64), np.full(a.shape, n)).astype(t)
            assert ((got == want) | (np.isnan(got) & np.isnan(want))).all(), n


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_at_their_ends(dtype):
    """What docs/numerics.md says of division, shifts and counts, beside NumPy and JAX where they have it."""
    info = np.iinfo(dtype)
    some = np.unique(np.array([info.min, info.min // 2, 0, 1, 2, 3, 7, info.max // 2, info.max]).astype(dtype))
    if info.min < 0:
        some = np.concatenate([some, np.array([-1, -2, -3, -7], dtype)])
    a, b = (v.ravel() for v in np.meshgrid(some, some))
    with np.errstate(all="ignore"):
        for name in ["add", "subtract", "multiply", "fmod", "remainder", "floor_divide"]:
            want = getattr(np, name)(a, b)
            if name == "fmod":  # where NumPy's own compiler may make something else of the lowest number by -1
                want = np.where((b == 0) | (b == np.array(-1).astype(dtype)) & (info.min < 0), 0, want)
            assert (np.asarray(getattr(rnp, name)(a, b)) == want).all(), name
        assert (np.asarray(rnp.bitwise_count(a)) == np.bitwise_count(a)).all()
    counts = np.array([-100, -1, 0, 1, info.bits - 1, info.bits, info.bits + 1, 100])
    counts = counts[(counts >= info.min) & (counts <= info.max)].astype(dtype)
    x, n = (v.ravel() for v in np.meshgrid(some, counts))
    with jax.enable_x64(True):
        for name in ["shift_left", "shift_right_arithmetic", "shift_right_logical"]:
            want = np.asarray(getattr(jax.lax, name)(x, n))
            assert (np.asarray(getattr(rlx.lax, name)(x, n)) == want).all(), name
        for name in ["population_count"]:
            assert (np.asarray(getattr(rlx.lax, name)(some)) == np.asarray(getattr(jax.lax, name)(some))).all(), name
        bits = [np.array([info.bits - int(v).bit_length() if v >= 0 else 0 for v in some])]
        assert (np.asarray(rlx.lax.clz(some)) == bits[0]).all()
        for source in ["float32", "float64", "float16", "int64", "uint32", "bool"]:
            values = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 300, -1.5, 0.99, 127.5, 255.5, -128.9])
            values = values.astype(source) if source[0] == "f" else np.array([0, 1, 255, 65535, 2**31]).astype(source)
            want = np.asarray(jnp.asarray(values).astype(dtype))
            assert (np.asarray(rnp.asarray(values).astype(dtype)) == want).all(), source


def units(got, exact):
    """The largest distance in units of the last place of float64."""
    return max(abs(mpmath.mpf(float(g)) - e) / np.spacing(abs(float(e))) for g, e in zip(got, exact))


def test_accuracy_in_float64():
    """The bounds that docs/numerics.md states, against mpmath."""
    r = np.random.default_rng(3)
    with mpmath.workdps(40):
        x = np.concatenate(
            [r.uniform(0.01, 30, 150), 10 ** r.uniform(1, 12, 50), 1.4616321449683622 + r.uniform(-1e-3, 1e-3, 20)]
        )
        mp = [mpmath.mpf(float(v)) for v in x]
        assert units(np.asarray(rlx.lax.digamma(x)), [mpmath.digamma(v) for v in mp]) <= 2.5
        assert units(np.asarray(rlx.lax.lgamma(x[:150])), [mpmath.loggamma(v) for v in mp[:150]]) <= 6
        assert units(np.asarray(rlx.lax.polygamma(2, x)), [mpmath.polygamma(2, v) for v in mp]) <= 8
        y = r.uniform(-9, 9, 200)
        mp = [mpmath.mpf(float(v)) for v in y]
        assert units(np.asarray(rnp.sinc(y)), [mpmath.sinc(mpmath.pi * v) for v in mp]) <= 2.5
        assert units(np.asarray(rlx.lax.erfc(y)), [mpmath.erfc(v) for v in mp]) <= 2
        z = r.uniform(-50, 50, 200)
        pairs = [(mpmath.mpf(float(p)), mpmath.mpf(float(q))) for p, q in zip(y, z)]
        assert (
            units(np.asarray(rnp.logaddexp(y, z)), [mpmath.log(mpmath.exp(p) + mpmath.exp(q)) for p, q in pairs]) <= 2.5
        )
        assert units(np.asarray(rnp.hypot(y, z)), [mpmath.sqrt(p * p + q * q) for p, q in pairs]) <= 1
        a = np.exp(r.uniform(-1, 5, 80))
        x = a * np.exp(r.uniform(-0.7, 0.7, 80))
        for name, f in [
            ("igamma", lambda p, q: mpmath.gammainc(p, 0, q, regularized=True)),
            ("igammac", lambda p, q: mpmath.gammainc(p, q, mpmath.inf, regularized=True)),
        ]:
            exact = [f(mpmath.mpf(float(p)), mpmath.mpf(float(q))) for p, q in zip(a, x)]
            got = np.asarray(getattr(rlx.lax, name)(a, x))
            assert max(abs(mpmath.mpf(float(g)) / e - 1) for g, e in zip(got, exact)) <= 1e-13, name
        b = r.uniform(0.2, 40, (3, 40))
        b[2] /= 41
        exact = [
            mpmath.betainc(*(mpmath.mpf(float(v)) for v in t[:2]), 0, mpmath.mpf(float(t[2])), regularized=True)
            for t in b.T
        ]
        got = np.asarray(rlx.lax.betainc(*b))
        assert max(abs(mpmath.mpf(float(g)) / e - 1) for g, e in zip(got, exact)) <= 1e-12


def test_bitcasts():
    assert rlx.lax.bitcast_convert_type(rlx.array([1.0, -2.0]), "int32").tolist() == [0x3F800000, -0x40000000]
    assert rlx.lax.bitcast_convert_type(rlx.array([[0, 0, 128, 63]], "uint8"), "float32").tolist() == [1.0]
    assert rlx.vmap(lambda v: rlx.lax.bitcast_convert_type(v, "uint8"))(rnp.ones((3, 2))).shape == (3, 2, 4)
    assert (
        rlx.grad(lambda v: rlx.lax.bitcast_convert_type(v, "int32").astype("float32") * v)(rlx.array(1.0)) == 0x3F800000
    )
    with pytest.raises(rlx.ShapeMismatch, match="made of 2 elements"):
        rlx.lax.bitcast_convert_type(rnp.ones((2, 3)), "float64")
    with pytest.raises(rlx.DTypeMismatch, match="use the real and imaginary parts"):
        rlx.lax.bitcast_convert_type(rlx.array([1j]), "float32")


def test_orders_are_whole_numbers():
    np.testing.assert_allclose(rlx.lax.polygamma(rlx.array(1.0), X), rlx.lax.polygamma(1, X), rtol=1e-5)
    with pytest.raises(rlx.Error, match="whole number from 0 to 170"):
        rlx.lax.polygamma(171, X)
    with pytest.raises(rlx.Error, match="no derivative with respect to a"):
        rlx.grad(lambda a: rlx.lax.igamma_grad_a(a, 1.0))(rlx.array(2.0))
