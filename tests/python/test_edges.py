"""Values and derivatives of functions at the points where formulas break, beside their definitions by mpmath."""

import functools
import zlib

import edge_distributions  # noqa: F401  it adds to the table
import edge_special  # noqa: F401
import ml_dtypes
import mpmath
import numpy as np
import pytest
from edge_coverage import LEFT_OUT, functions, in_table, is_elementwise
from edge_functions import TABLE, Function
from mpmath import mpf
from oracles import truth

import rlx

DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@functools.cache
def limits(dtype):
    """(the smallest number, the smallest normal one, the largest, the distance of 1 to the next)."""
    i = ml_dtypes.finfo(DTYPES[dtype])
    return float(i.smallest_subnormal), float(i.tiny), float(i.max), float(i.eps)


@functools.cache
def points(dtype, few=False):
    low, tiny, top, eps = limits(dtype)
    size = [
        0.0,
        low,
        3 * low,
        tiny,
        1.5 * tiny,
        tiny**0.5,
        eps * eps,
        eps,
        eps**0.5,
        1e-3,
        0.1,
        0.3,
        0.5,
        0.75,
        1 - eps / 2,
        1.0,
        1 + eps,
        1.5,
        2.0,
        2.5,
        3.0,
        4.0,
        5.5,
        6.0,
        7.0,
        10.0,
        17.0,
        20.5,
        40.0,
        88.0,
        100.0,
        300.0,
        710.0,
        1e4,
        1 / eps,
        top**0.5,
        top / 4,
        top,
        np.inf,
    ]
    if few:
        size = [0.0, low, tiny, eps, 0.3, 1.0, 1 + eps, 3.0, 20.5, 300.0, top**0.5 * 4, top]
    x = np.array(size + [-v for v in size], np.float64)
    with np.errstate(all="ignore"):
        x = np.unique(x.astype(DTYPES[dtype]).astype(np.float64))
    return np.concatenate([x, [-0.0]])


def grid(function, dtype):
    x = points(dtype, function.arity > 1)
    if function.arity == 1:
        return [x]
    return [v.ravel() for v in np.meshgrid(x, x)]


def ulp(y, dtype):
    low, tiny, top, eps = limits(dtype)
    if y == 0 or abs(y) <= tiny:
        return mpf(low)
    return max(mpf(2) ** (mpmath.floor(mpmath.log(abs(y), 2))) * eps, mpf(low))


def error(got, want, dtype, scale=None):
    """The distance in ulps of the true value (or of `scale`); infinite where it is infinite or NaN."""
    low, tiny, top, eps = limits(dtype)
    if np.isnan(got):
        return np.inf
    if abs(want) > top * (1 + eps / 4):
        if np.isinf(got):
            return 0.0 if (got > 0) == (want > 0) else np.inf
        return np.inf if mpmath.isinf(want) else float(abs(want - got) / ulp(mpf(top), dtype))
    if np.isinf(got):
        return 1.0 if abs(want) > top * (1 - 8 * eps) else np.inf
    return float(min(abs(want - mpf(float(got))) / ulp(max(abs(want), scale or 0), dtype), mpf(1e300)))


def kinds(function):
    """The derivatives of the sweep: the orders by each argument."""
    n = function.arity
    out = [tuple(int(i == k) for k in range(n)) for i in range(n)]
    out += [tuple(a + b for a, b in zip(out[i], out[k])) for i in range(n) for k in range(i, n)]
    return [orders for orders in out if sum(orders) <= function.highest and orders not in function.without]


def transform(function, orders):
    """{mode: function of arrays} of elementwise derivatives of these orders."""
    f = function.call
    places = [i for i, k in enumerate(orders) for _ in range(k)]

    def forward(f, i):
        def d(*xs):
            one = lambda x: rlx.numpy.ones_like(x)  # noqa: E731
            return rlx.jvp(lambda x: f(*xs[:i], x, *xs[i + 1 :]), (xs[i],), (one(xs[i]),))[1]

        return d

    def reverse(f, i):
        return rlx.grad(lambda *xs: rlx.numpy.sum(f(*xs)), i)

    first, rest = places[0], places[1:]
    if not rest:
        return {"reverse": reverse(f, first), "forward": forward(f, first)}
    return {
        "forward over reverse": forward(reverse(f, first), rest[0]),
        "reverse over reverse": reverse(reverse(f, first), rest[0]),
        "forward over forward": forward(forward(f, first), rest[0]),
    }


def true_values(function, orders, at):
    if function.only is not None and not function.only(*at) or function.periodic and not np.isfinite(at).all():
        return None
    slope = function.slope(orders)
    return _truth_at(slope or function.truth, (0,) if slope else orders, function.periodic, at)


@functools.cache
def _truth_at(f, orders, periodic, at):
    """By the definition, so that the names of one function and the dtypes share it."""
    return truth.at_point(truth.derivative(f, orders, periodic) if any(orders) else f, *at)


def sweep(function, dtype, every=1, at=None):
    """The failures among every n-th point, or among these: (mode, orders, point, result, truth, error in ulps)."""
    if at is None:
        xs = [x[::every] for x in grid(function, dtype)]
    else:
        with np.errstate(over="ignore"):
            xs = [np.array(x).astype(DTYPES[dtype]).astype(np.float64) for x in at]
    arrays = [rlx.array(x, dtype) for x in xs]
    fails = []
    checks = [((0,) * function.arity, {"value": function.call, "vmap": rlx.vmap(function.call)})]
    checks += [(orders, transform(function, orders)) for orders in kinds(function)]
    for orders, modes in checks:
        allowed = function.ulps[sum(orders)]
        for mode, f in modes.items():
            try:
                got = np.asarray(rlx.jit(f)(*arrays)).astype(np.float64)
            except Exception as e:
                fails.append((mode, orders, (), type(e).__name__ + str(e)[:200], 0, np.inf))
                continue
            for i, at in enumerate(zip(*xs)):
                at = tuple(map(float, at))
                want = true_values(function, orders, at)
                if want is None:
                    continue
                if function.normal and any(0 < abs(x) < limits(dtype)[1] for x in at):
                    continue
                if np.isinf(got[i]) and mpmath.isinf(want) and 0.0 in at:  # a pole: its sign is that of the zero
                    continue
                if sum(orders) == 2 and max(map(abs, at)) > limits(dtype)[2] ** 0.5 / 4:  # squares that overflow
                    continue
                if sum(orders) == 2 and abs(want) > limits(dtype)[2]:  # a sum of infinities
                    continue
                if any(orders) and np.isfinite(at).all():
                    value = true_values(function, (0,) * function.arity, at)
                    if value is not None and abs(value) > limits(dtype)[2]:  # what overflows has no derivatives
                        continue
                off = error(got[i], want, dtype, function.scale_at(orders, at))
                if off > allowed:
                    fails.append((mode, orders, at, got[i], float(want), off))
    return fails


def described(fails):
    """The worst failure of each derivative and mode."""
    worst = {}
    for mode, orders, at, got, want, off in fails:
        if off > worst.get((mode, orders), (0,))[0]:
            worst[mode, orders] = off, at, got, want
    return "\n".join(f"{mode} {o}: at {w[1]} {w[2]}, true {w[3]}, {w[0]:.3g} ulps" for (mode, o), w in worst.items())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [f.name for f in TABLE])
def test_values_and_derivatives(name, dtype, full):
    """Every function in the full run; else some, at every fourth point."""
    function = next(f for f in TABLE if f.name == name)
    if not full and (function.slow or zlib.crc32(f"{name} {dtype}".encode()) % (40 if function.arity == 1 else 120)):
        pytest.skip("in the full run")
    if dtype == "float16" and not function.f16:
        pytest.skip("its parameters are no numbers of f16")
    fails = sweep(function, dtype, 1 if full else 4 if function.arity == 1 else 29)
    assert not fails, f"{name} {dtype}\n{described(fails)}"


# Row: points at which a value or a derivative was wrong, by each argument.
BROKE = {
    "sp.i0e": [[-17.0, 40.0, 1e4]],
    "sp.i1": [[0.0, 3e-5, -10.0, 17.0]],
    "sp.i1e": [[0.0, 3e-5, -10.0, 17.0]],
    "sp.bessel_jn(x, v=5)[1]": [[3e-4, 1e-3, 0.1]],
    "sp.dawsn": [[6.0, 10.0, 40.0]],
    "sp.fresnel(x)[1]": [[1 - 2**-11, 1 - 2**-24, 1.0]],
    "sp.expn(3, x)": [[0.5, 2.0, 3.0]],
    "sp.expn(8, x)": [[0.0, 2.0, 3.0]],
    "sp.expi": [[-3.0, 0.5, 710.0]],
    "sp.zeta(1.5, q)": [[1e4, 1e37]],
    "sp.poch(x, 3)": [[1e-7, 0.1, 1e8]],
    "sp.hyp1f1(0.5, 1.5, x)": [[0.0, -1.0, 2.0]],
    "sp.hyp2f1(0.5, 1, 1.5, x)": [[0.0, -1.0, 0.5]],
    "sp.ndtri": [[0.25]],
    "sp.xlogy": [[300.0, -300.0], [2.0**-126, 2.0**-126]],
    "sp.kl_div": [[20.5, 20.5], [2.0**-1022, 2.0**-126]],
    "nn.l2_loss": [[-20.5], [-300.0]],
    "nn.huber_loss": [[-300.0, 0.3, 0.25], [-300.0, 0.3, 0.5]],
    "nn.smooth_l1_loss": [[-300.0, 0.3, 0.25], [-300.0, 0.3, 0.5]],
    "nn.kl_div": [[-20.5, -3.0], [2.0**-14, 2.0**-126]],
    "nn.kl_div(log_target)": [[6e4, -3.0, -7.0], [-6e4, -20.5, -3.0]],
    "st.beta.cdf(x, 2.5, 0.7)": [[1.0842021724855044e-19]],
    "np.power": [[2.0**-10, 2.0**-14], [-(2.0**-10), -(2.0**-10)]],
    "st.norm.ppf(q)": [[1e-37, 1e-5, 0.5]],
    "st.laplace.isf(q)": [[1e-37, 1e-5, 0.3, 0.9]],
    "st.laplace.logcdf(x)": [[-1e3, -100.0, 2.0]],
    "st.laplace.logsf(x)": [[1e3, 100.0, -2.0]],
    "st.laplace.cdf(x)": [[-1.0, 1.0, 30.0]],
    "st.logistic.logpdf(x)": [[0.0, 1.0, 100.0]],
    "st.cauchy.logpdf(x)": [[1e30, 3.0]],
    "st.cauchy.ppf(q)": [[1e-17, 0.25, 0.5, 0.999]],
    "st.cauchy.isf(q)": [[1e-17, 0.25, 0.5, 0.999]],
    "st.gumbel_r.logsf(x)": [[300.0, 710.0, 5.0, 1.0]],
    "st.gumbel_l.logcdf(x)": [[-300.0, -710.0, -5.0, -1.0]],
    "st.beta.sf(x, 2.5, 0.7)": [[1e-5, 0.3, 0.9]],
    "st.gamma.logpdf(x, x)": [[11.0, 300.0, 1e4]],
    "st.poisson.logpmf(k, k)": [[11.0, 300.0, 1e4]],
    "st.binom.logpmf(k, 2k, 0.5)": [[11.0, 300.0, 1e4]],
}


@pytest.mark.rotates(3)
@pytest.mark.parametrize("name", BROKE)
def test_points_where_formulas_broke(name):
    function = next(f for f in TABLE if f.name == name)
    for dtype in DTYPES:
        fails = sweep(function, dtype, at=BROKE[name])
        assert not fails, f"{name} {dtype}\n{described(fails)}"


@pytest.mark.filterwarnings("ignore")
def test_every_elementwise_function_is_in_the_table():
    """Each public one of numpy, lax, nn, scipy.special and scipy.stats has a row, or a reason to have none."""
    public, rows = functions(), in_table()
    unknown = sorted(name for name in rows if name not in public)
    assert not unknown, f"rows about functions that are not public: {unknown}"
    same = {id(public[name]) for name in rows}
    left_out = [name for names in LEFT_OUT.values() for name in names.split()]
    assert len(set(left_out)) == len(left_out)
    for name in left_out:
        assert name in public and name not in rows and id(public[name]) not in same, f"{name} is left out, why?"
    stale = [name for name in left_out if not is_elementwise(public[name])]
    assert not stale, f"left out, but not elementwise: {stale}"
    missing = [n for n, f in public.items() if id(f) not in same and n not in left_out and is_elementwise(f)]
    assert not missing, f"not in the table of edge_functions.py: {missing}"


# -- the pages' rules: corners, and points where a formula broke --

INF, NAN = np.inf, np.nan
nn, rnp, special = rlx.nn, rlx.numpy, rlx.scipy.special
# What, the function, its arguments, their dtype, the derivatives by each; `tol` relative.
CORNERS = [
    ("abs", rnp.abs, [0.0], [0]),
    ("relu", nn.relu, [0.0], [0]),
    ("relu6", nn.relu6, [6.0], [0]),
    ("hard_sigmoid", nn.hard_sigmoid, [-3.0], [0]),
    ("hard_swish", nn.hard_swish, [-3.0], [0]),
    ("hard_swish above", nn.hard_swish, [3.0], [1]),
    ("hard_tanh", nn.hard_tanh, [1.0], [1]),
    ("leaky_relu", nn.leaky_relu, [0.0], [1]),
    ("prelu", lambda x: nn.prelu(x, 0.25), [0.0], [1]),
    ("elu", lambda x: nn.elu(x, 0.5), [0.0], [0.5]),
    ("celu", lambda x: nn.celu(x, 0.5), [0.0], [1]),
    ("selu", nn.selu, [0.0], [1.0507009873554805 * 1.6732632423543772]),
    ("max", rnp.maximum, [2.0, 2.0], [0.5, 0.5]),
    ("clip", lambda x: rnp.clip(x, -1, 1), [1.0], [0.5]),
    ("xlogy", special.xlogy, [0.0, 3.0], [np.log(3), 0]),
    ("xlogy of zeros", special.xlogy, [0.0, 0.0], [-INF, 0]),
    ("xlogy of infinity", special.xlogy, [0.0, INF], [INF, 0]),
    ("xlog1py", special.xlog1py, [0.0, 2.0], [np.log(3), 0]),
    ("xlog1py at -1", special.xlog1py, [0.0, -1.0], [-INF, 0]),
    ("entr", special.entr, [0.0], [INF]),
    ("rel_entr", special.rel_entr, [0.0, 2.0], [-INF, 0]),
    ("rel_entr of zeros", special.rel_entr, [0.0, 0.0], [0, 0]),
    ("kl_div", special.kl_div, [0.0, 2.0], [-INF, 1]),
    ("kl_div of zeros", lambda t: nn.kl_div(-1.5, t, reduction="none"), [0.0], [0]),
    ("x**0.0", lambda x: x**0.0, [0.0], [0]),
    ("0**y", rnp.power, [0.0, 2.0], [0, 0]),
    ("atan2", rnp.arctan2, [0.0, 0.0], [NAN, NAN]),
    ("atan2 of infinity", rnp.arctan2, [1.0, INF], [0, 0]),
    ("hypot", rnp.hypot, [0.0, 0.0], [0, 0]),
    ("hypot of infinity", rnp.hypot, [-INF, 2.0], [-1, 0]),
    ("logaddexp", rnp.logaddexp, [-INF, -INF], [0.5, 0.5]),
    ("cbrt", rnp.cbrt, [0.0], [INF]),
    ("silu above", nn.silu, [INF], [1]),
    ("silu below", nn.silu, [-INF], [0]),
    ("mish above", nn.mish, [INF], [1]),
    ("mish below", nn.mish, [-INF], [0]),
    ("gelu above", nn.gelu, [INF], [1]),
    ("gelu below", nn.gelu, [-INF], [0]),
    ("gelu by erf above", lambda x: nn.gelu(x, False), [INF], [1]),
    ("gelu by erf below", lambda x: nn.gelu(x, False), [-INF], [0]),
    ("softsign", nn.soft_sign, [-INF], [0]),
    ("squareplus above", nn.squareplus, [INF], [1]),
    ("squareplus below", nn.squareplus, [-INF], [0]),
    ("entropy of label 0", nn.sigmoid_binary_cross_entropy, [-INF, 0.0], [0, None]),
    ("entropy of label 1", nn.sigmoid_binary_cross_entropy, [INF, 1.0], [0, None]),
    ("entropy at 0", nn.sigmoid_binary_cross_entropy, [0.0, 0.25], [0.25, 0]),
    ("clamped entropy", lambda p: nn.binary_cross_entropy(p, 1.0, reduction="none"), [0.0], [0]),
    ("i0", rnp.i0, [0.0], [0]),
]


@pytest.mark.parametrize("name, f, at, want", CORNERS, ids=[c[0] for c in CORNERS])
def test_derivatives_at_corners(name, f, at, want):
    for dtype in DTYPES:
        xs = [rlx.array(x, dtype) for x in at]
        for i, w in enumerate(want):
            if w is None:
                continue
            modes = transform(Function(name, f, None, len(at)), tuple(int(k == i) for k in range(len(at))))
            for mode, d in modes.items():
                if mode == "forward" and np.isinf(w) and len(at) > 1:  # the tangent 0 of the others meets an infinity
                    continue
                got = float(d(*xs))
                assert got == pytest.approx(w, rel=4 * limits(dtype)[3], abs=limits(dtype)[1], nan_ok=True), (
                    dtype,
                    mode,
                    i,
                    got,
                )


def slope(f, *at, dtype="float64", by=0):
    """The derivatives in reverse and forward mode."""
    xs = [rlx.array(x, dtype) for x in at]
    orders = tuple(int(k == by) for k in range(len(at)))
    return [float(d(*xs)) for d in transform(Function("", f, None, len(at)), orders).values()]


@pytest.mark.parametrize("dtype", DTYPES)
def test_angles_of_any_size(dtype):
    low, tiny, top, eps = limits(dtype)
    for scale in (tiny, 16 * tiny, top**-0.5 / 8, 1.0, top**0.5 * 8, top / 16):
        y, x = (float(np.asarray(rlx.array(v * scale, dtype)).astype(float)) for v in (3.0, 4.0))
        for by, n in enumerate((x, -y)):
            want = float(mpf(n) / (mpf(x) ** 2 + mpf(y) ** 2))
            if abs(want) > top:
                continue
            for got in slope(rnp.arctan2, y, x, dtype=dtype, by=by):
                assert got == pytest.approx(want, rel=8 * eps, abs=4 * low), (scale, by)


@pytest.mark.parametrize("dtype", DTYPES)
def test_negative_powers(dtype):
    low, tiny, top, eps = limits(dtype)
    for n in (-2, -3, -4, -7):
        for x in (top ** (0.8 / (n - 1)), -0.3, 1.5, top ** (-0.6 / (n - 1))):
            x = float(np.asarray(rlx.array(x, dtype)).astype(float))
            want = n * mpf(x) ** (n - 1)
            if abs(want) > top:
                continue
            for got in slope(lambda v, n=n: v**n, x, dtype=dtype):
                assert got == pytest.approx(float(want), rel=-n * 8 * eps, abs=4 * low), (n, x)
    assert float(rlx.array(10.0, "float64") ** -2) == 0.01  # values are those of the reciprocal of products
    assert float(rlx.array(300, "float16") ** -2) == float(np.float16(1 / 90000))


def test_entropies_of_small_halves():
    """Shares of the losses of typical negatives that are wrong: none (once 69 % in bf16)."""
    x = np.random.default_rng(0).normal(-4, 1.5, 2000)
    for dtype in ("bfloat16", "float16"):
        logits = rlx.array(x, dtype)
        exact = np.log1p(np.exp(np.asarray(logits).astype(np.float64)))
        for f in (
            nn.sigmoid_binary_cross_entropy,
            lambda *v: nn.binary_cross_entropy_with_logits(*v, reduction="none"),
        ):
            for loss in (f(logits, rlx.array(np.zeros(2000), dtype)), f(-logits, rlx.array(np.ones(2000), dtype))):
                np.testing.assert_allclose(np.asarray(loss).astype(np.float64), exact, rtol=4 * limits(dtype)[3])


def test_slopes_of_gates_in_halves():
    x = np.linspace(-12, 12, 49)
    for dtype in ("bfloat16", "float16"):
        v = rlx.array(x, dtype)
        for f, d in ((nn.sigmoid, lambda x: 1 / (2 + 2 * np.cosh(x))), (nn.tanh, lambda x: np.cosh(x) ** -2.0)):
            got = np.asarray(rlx.grad(lambda t, f=f: rnp.sum(rnp.astype(f(t), "float32")))(v)).astype(np.float64)
            np.testing.assert_allclose(got, d(x), rtol=2 * limits(dtype)[3], atol=2 * limits(dtype)[0])


def test_cosines_of_vectors_of_any_size():
    for dtype, sizes in (
        ("float64", (1e-300, 1e-160, 1, 1e160, 1e300)),
        ("float32", (1e-37, 1e-25, 1, 1e25, 3e37)),
        ("bfloat16", (1e-37, 1, 1e37)),
        ("float16", (6e-5, 1, 300, 2e4)),
    ):
        for s in sizes:
            a = rlx.array(np.array([[1.0, -0.5, 2.0]]) * s, dtype)
            for t in sizes:
                b = rlx.array(np.array([[1.0, 2.0, 3.0]]) * t, dtype)
                p, q = (np.asarray(v).astype(np.float64)[0] / size for v, size in ((a, s), (b, t)))
                want = p @ q / np.sqrt((p @ p) * (q @ q))
                assert float(nn.cosine_similarity(a, b)[0]) == pytest.approx(want, rel=4 * limits(dtype)[3])
    one = np.array([1.0])
    for n in (1e-2, 1e-3, 1e-4, 1e-7, 1e-30):
        v = np.array([[n, 0.0]])
        want = 1 - n * n / (n * n + 1e-12)  # PyTorch
        assert float(nn.cosine_embedding_loss(v, v, one)) == pytest.approx(want, rel=1e-9, abs=1e-15)


def test_a_row_of_minus_infinity_has_no_slope():
    for f in (nn.logsumexp, nn.logmeanexp, lambda z: rnp.sum(nn.softmax(z))):
        for n in (1, 2, 5):
            z = np.full(n, -INF, np.float32)
            assert np.asarray(rlx.grad(f)(z)).tolist() == [0] * n
            assert float(rlx.jvp(f, (z,), (np.ones_like(z),))[1]) == 0
    z = np.array([[-INF, -INF], [0.0, -INF]])
    d = np.asarray(rlx.grad(lambda z: rnp.sum(nn.logsumexp(z, axis=1)))(z))
    assert d.tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_beta_of_large_arguments(dtype):
    for x, y in (
        (1e5, 1.0),
        (1e8, 1.0),
        (1e20, 2.5),
        (1e17, 1e-3),
        (12.0, 11.0),
        (1e6, 1e6),
        (9.9, 10.1),
        (1e30, 1e10),
    ):
        x, y = (float(np.asarray(rlx.array(v, dtype))) for v in (x, y))
        with mpmath.workdps(80):
            a, b = mpf(x), mpf(y)
            want = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
            slopes = [mpmath.psi(0, a) - mpmath.psi(0, a + b), mpmath.psi(0, b) - mpmath.psi(0, a + b)]
        assert float(special.betaln(rlx.array(x, dtype), rlx.array(y, dtype))) == pytest.approx(
            float(want), rel=16 * limits(dtype)[3]
        )
        for by, d in enumerate(slopes):
            for got in slope(special.betaln, x, y, dtype=dtype, by=by):
                assert got == pytest.approx(float(d), rel=64 * limits(dtype)[3]), (x, y, by)
    assert float(special.betaln(INF, 2.0)) == -INF


def test_standard_deviation_of_equal_elements():
    for f in (rnp.std, rnp.nanstd, lambda x: rnp.sum(rnp.std(rnp.reshape(x, (2, 2)), axis=0))):
        assert np.asarray(rlx.grad(f)(np.ones(4))).tolist() == [0] * 4
        assert float(rlx.jvp(f, (np.ones(4),), (np.arange(4.0),))[1]) == 0
    assert np.asarray(rlx.grad(rnp.std)(np.array([1.0, 3.0]))).tolist() == [-0.5, 0.5]


def test_log_cosh_of_small_and_large_errors():
    for d in (1e-10, 1e-4, 0.5, 1.0, 5.0, 1000.0, -0.3, -3.0):
        with mpmath.workdps(40):
            want, slope_ = mpmath.log(mpmath.cosh(mpf(d))), mpmath.tanh(mpf(d))
        assert float(nn.log_cosh(np.float64(d))) == pytest.approx(float(want), rel=1e-14)
        assert float(rlx.grad(nn.log_cosh)(np.float64(d))) == pytest.approx(float(slope_), rel=1e-14)
    assert float(rlx.grad(rlx.grad(nn.log_cosh))(0.0)) == 1


def test_second_derivatives_at_0():
    """Where a formula has |x|, whose slope at 0 is that of neither side."""
    for f, want in ((nn.squareplus, 0.25), (nn.log_cosh, 1), (rnp.i0, 0.5), (nn.softplus, 0.25)):
        assert float(rlx.grad(rlx.grad(f))(np.float64(0))) == pytest.approx(want)
    f = lambda x: nn.sigmoid_binary_cross_entropy(x, 0.3)  # noqa: E731
    assert float(rlx.grad(rlx.grad(f))(np.float64(0))) == pytest.approx(0.25)


def test_largest_argument_of_i0():
    for dtype in DTYPES:
        assert float(rnp.i0(rlx.array(limits(dtype)[2], dtype))) == INF
    assert float(rlx.grad(rlx.grad(rnp.i0))(0.0)) == 0.5


def test_mixed_derivatives_of_x_log_y():
    d = rlx.grad(rlx.grad(special.xlogy, 0), 1)
    assert float(d(np.float64(0), np.float64(3))) == pytest.approx(1 / 3)
    assert float(rlx.vmap(d)(np.zeros(2), np.full(2, 3.0))[1]) == pytest.approx(1 / 3)


def test_values_in_forward_mode_of_forward_mode():
    """The derivative of the value that forward mode returns, where the function has a value of its own."""
    for f, y in ((special.xlogy, 3.0), (special.xlog1py, 2.0)):
        value = lambda x, f=f, y=y: rlx.jvp(f, (x, rnp.array(y)), (rnp.array(0.7), rnp.array(-1.3)))[0]  # noqa: E731
        got = rlx.jvp(value, (rnp.array(0.0),), (rnp.array(1.0),))[1]
        np.testing.assert_allclose(float(got), np.log(3.0), rtol=1e-6)
