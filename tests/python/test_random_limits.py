"""Distributions of rlx.random at extreme parameters in every dtype: support and distribution function beside SciPy."""

import itertools
import math

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st
from exact import FORMATS, numpy_dtype
from rlx import random
from sampling import some

import rlx

COUNT = 20000
INF = math.inf
LARGEST = {name: float(largest) for name, (_, _, largest) in FORMATS.items()}
# How far apart the uniform numbers are that narrow results are functions of.
GRAIN = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 0, "float64": 0}


def truncated(low, high):
    """The distribution function of a truncated normal number, accurate in both tails."""
    if low > 0:
        mirrored = truncated(-high, -low)
        return lambda x: 1 - mirrored(-x)
    log_low, log_high = sp.log_ndtr(low), sp.log_ndtr(high)

    def cdf(x):
        x = np.clip(x, low, high)
        if high < -5:  # relative to the end of the tail
            return (np.exp(sp.log_ndtr(x) - log_high) - np.exp(log_low - log_high)) / -np.expm1(log_low - log_high)
        return (sp.ndtr(x) - sp.ndtr(low)) / (sp.ndtr(high) - sp.ndtr(low))

    return cdf


def log_gamma_cdf(x, a):
    """Of the logarithm of a gamma number, whose exponential may underflow."""
    return np.where(x < -50, np.exp(a * x - sp.gammaln(a + 1)), st.gamma.cdf(np.exp(np.maximum(x, -50)), a))


class Case:
    """A draw(key, shape, dtype), its distribution function, and its support [low, high], or [low, high) if `open`.

    coarse: narrow floats are functions of narrow uniform numbers, and keep their steps.
    """

    def __init__(self, name, draw, cdf, low=-INF, high=INF, open=False, dtypes=tuple(FORMATS), coarse=True):
        self.name, self.draw, self.cdf, self.low, self.high, self.open = name, draw, cdf, low, high, open
        self.dtypes, self.coarse = dtypes, coarse


WIDE = ("float32", "float64")
CASES = []


def case(name, draw, cdf, *args, **kwargs):
    CASES.append(Case(name, draw, cdf, *args, **kwargs))


def of(function, *parameters):
    """A draw of function(key, *parameters, shape, dtype)."""
    return lambda key, shape, dtype: getattr(random, function)(key, *parameters, shape, dtype)


for lo, hi in ((0.0, 1.0), (1000.0, 1001.0), (10.0, 11.0), (-1e4, 1e4), (0.0, 1e-4), (-11.0, -10.0), (2.0, 2.25)):
    cdf = lambda x, lo=lo, hi=hi: np.clip((x - lo) / (hi - lo), 0, 1)  # noqa: E731
    draw = lambda key, shape, dtype, lo=lo, hi=hi: random.uniform(key, shape, dtype, lo, hi)  # noqa: E731
    narrow = () if lo == 1000 else ("float16", "bfloat16")
    case(f"uniform {lo} {hi}", draw, cdf, lo, hi, True, WIDE + narrow)
case(
    "uniform of all numbers",
    lambda key, shape, dtype: random.uniform(key, shape, dtype, -LARGEST[dtype], LARGEST[dtype]),
    None,
)
for lo, hi in (
    (-2, 2), (-INF, INF), (0, INF), (2.9, 3.1), (3, INF), (3, 3.5), (6, 7), (5.4, 6), (6, INF), (12, 12.5), (25, INF),
    (100, INF), (-7, -6), (-INF, -6), (-INF, -100), (-5, 8), (37, 38), (1000, INF), (-9, INF), (11, 30),
):  # fmt: skip
    case(f"truncated_normal {lo} {hi}", of("truncated_normal", lo, hi), truncated(lo, hi), lo, hi, coarse=False)
case("normal", lambda k, s, t: random.normal(k, s, t), st.norm.cdf)
case("gumbel", lambda k, s, t: random.gumbel(k, s, t), st.gumbel_r.cdf)
case("exponential", lambda k, s, t: random.exponential(k, s, t), st.expon.cdf, 0)
case("laplace", lambda k, s, t: random.laplace(k, s, t), st.laplace.cdf)
case("logistic", lambda k, s, t: random.logistic(k, s, t), st.logistic.cdf)
case("cauchy", lambda k, s, t: random.cauchy(k, s, t), st.cauchy.cdf)
case("maxwell", lambda k, s, t: random.maxwell(k, s, t), st.maxwell.cdf, 0)
for p in (1e-3, 1.0, 100.0):
    case(f"rayleigh {p}", of("rayleigh", p), lambda x, p=p: st.rayleigh.cdf(x / p), 0)
for p in (0.3, 1.0, 50.0):
    case(f"weibull {p}", of("weibull_min", 1.0, p), lambda x, p=p: st.weibull_min.cdf(x, p), 0)
    case(f"pareto {p}", of("pareto", p), lambda x, p=p: st.pareto.cdf(x, p), 1, dtypes=WIDE)
for left, mode, right in ((0, 0, 1), (0, 1, 1), (-1, 0.5, 2), (100, 101, 104)):
    cdf = lambda x, a=left, c=mode, b=right: st.triang.cdf(x, (c - a) / (b - a), a, b - a)  # noqa: E731
    case(f"triangular {left} {mode} {right}", of("triangular", left, mode, right), cdf, left, right, dtypes=WIDE)
for p in (0.1, 1.0, 10.0):
    case(f"lognormal {p}", of("lognormal", p), lambda x, p=p: st.lognorm.cdf(x, p), 0, dtypes=WIDE)
for a in (1e-3, 0.1, 0.999, 1.0, 3.5, 100.0, 1e4):
    case(f"gamma {a}", of("gamma", a), lambda x, a=a: st.gamma.cdf(x, a), 0, coarse=False)
    case(f"loggamma {a}", of("loggamma", a), lambda x, a=a: log_gamma_cdf(x, a), dtypes=WIDE, coarse=False)
    df = lambda x, a=a: st.chi2.cdf(x, a)  # noqa: E731
    case(f"chisquare {a}", of("chisquare", a), df, 0, dtypes=WIDE, coarse=False)
for a, b in ((0.01, 0.01), (1e-3, 5), (1, 1), (200, 3), (1e4, 1e4), (0.5, 0.5)):
    case(f"beta {a} {b}", of("beta", a, b), lambda x, a=a, b=b: st.beta.cdf(x, a, b), 0, 1, coarse=False)
for df in (0.5, 1.0, 4.0, 1e5, INF):
    case(f"t {df}", of("t", df), lambda x, df=df: st.norm.cdf(x) if df == INF else st.t.cdf(x, df), dtypes=WIDE)
for a, b in ((1, 1), (5, 8), (1000, 3)):
    case(f"f {a} {b}", of("f", a, b), lambda x, a=a, b=b: st.f.cdf(x, a, b), 0, dtypes=WIDE)
for mean in (1e-3, 0.5, 2.0, 50.0, 1e4, 1e6):
    case(f"wald {mean}", of("wald", mean), lambda x, m=mean: st.invgauss.cdf(x, m), 0, dtypes=WIDE)
for p in (0.5, 1.0, 2.0, 20.0):
    case(f"generalized_normal {p}", of("generalized_normal", p), lambda x, p=p: st.gennorm.cdf(x, p), dtypes=WIDE)
folded = lambda x: (1 + np.sign(x) * st.maxwell.cdf(np.abs(x))) / 2  # noqa: E731
case("double_sided_maxwell", of("double_sided_maxwell", 0.0, 1.0), folded, dtypes=WIDE)

# -- whole numbers: the distribution function at whole numbers --

DISCRETE = []


def discrete(name, draw, cdf, low, high=INF):
    DISCRETE.append((name, draw, cdf, low, high))


for lam in (0.0, 1e-4, 0.5, 9.99, 10.0, 1e3, 1e6):
    draw = lambda key, shape, lam=lam: random.poisson(key, lam, shape)  # noqa: E731
    discrete(f"poisson {lam}", draw, lambda x, lam=lam: st.poisson.cdf(x, lam), 0, INF if lam else 0)
for n, p in ((0, 0.5), (1, 0.5), (10, 0.0), (10, 1.0), (10, 1e-4), (30, 0.7), (1000, 0.999), (1e6, 0.25), (1e6, 1e-6)):
    draw = lambda key, shape, n=n, p=p: random.binomial(key, n, p, shape)  # noqa: E731
    discrete(f"binomial {n} {p}", draw, lambda x, n=n, p=p: st.binom.cdf(x, n, p), 0, n)
for p in (1e-4, 0.05, 0.5, 0.999, 1.0):
    for dtype in ("float32", "bfloat16", "float16"):
        p_there = float(np.array(p).astype(numpy_dtype(dtype)))
        draw = lambda key, shape, p=p, t=dtype: random.geometric(key, rlx.array(p).astype(t), shape)  # noqa: E731
        discrete(f"geometric {p} {dtype}", draw, lambda x, p=p_there: st.geom.cdf(x, p), 1, 1 if p == 1 else INF)
        draw = lambda key, shape, p=p, t=dtype: random.bernoulli(key, rlx.array(p).astype(t), shape)  # noqa: E731
        discrete(f"bernoulli {p} {dtype}", draw, lambda x, p=p_there: st.bernoulli.cdf(x, p), 1 if p == 1 else 0, 1)
for dtype, low, high in (("int8", -128, 128), ("uint8", 0, 256), ("int32", -3, 4), ("uint32", 2**31, 2**32)):
    draw = lambda key, shape, t=dtype, a=low, b=high: random.randint(key, shape, a, b, t)  # noqa: E731
    cdf = lambda x, a=low, b=high: (np.floor(x) - a + 1) / (b - a)  # noqa: E731
    discrete(f"randint {dtype} {low} {high}", draw, cdf, low, high - 1)


def distance(x, cdf, below, above):
    """How far the share of draws up to x is from the distribution function, beyond what rounding of x explains."""
    x, counts = np.unique(x, return_counts=True)
    upto = np.cumsum(counts) / counts.sum()
    with np.errstate(all="ignore"):
        low, high = cdf(below(x)), cdf(above(x))
    before = np.concatenate([[0], upto[:-1]])
    return max(np.max(low - upto), np.max(before - high))


def neighbours(dtype):
    t = numpy_dtype(dtype)
    if dtype == "bfloat16":
        step = lambda x: np.maximum(np.abs(x) * 2.0**-7, 2.0**-133)  # noqa: E731
        return lambda x: x - step(x), lambda x: x + step(x)
    return (lambda x: np.nextafter(x.astype(t), t.type(-INF)).astype(float)), (
        lambda x: np.nextafter(x.astype(t), t.type(INF)).astype(float)
    )


EACH = some([(c, t) for c in CASES for t in c.dtypes], 9)


@pytest.mark.parametrize("c, dtype", EACH, ids=lambda v: getattr(v, "name", v))
def test_floating_distributions(c, dtype):
    draws = np.asarray(c.draw(random.key(7), (COUNT,), dtype))
    assert draws.dtype == numpy_dtype(dtype)
    x = draws.astype(np.float64)
    assert not np.isnan(x).any()
    low, high = (float(np.array(v).astype(numpy_dtype(dtype))) for v in (c.low, c.high))
    assert x.min() >= low and (x.max() < high if c.open else x.max() <= high), (x.min(), x.max())
    if c.cdf is None:
        assert np.isfinite(x).all() and abs(x / LARGEST[dtype]).mean() == pytest.approx(0.5, abs=0.02)
        return
    allowed = 1.7 / math.sqrt(COUNT) + (GRAIN[dtype] if c.coarse else 0)
    found = distance(x, c.cdf, *neighbours(dtype))
    assert found < allowed, f"{c.name} {dtype}: distance {found}, allowed {allowed}; mean {x.mean()}, max {x.max()}"


@pytest.mark.parametrize("name, draw, cdf, low, high", some(DISCRETE, 3), ids=lambda v: v if isinstance(v, str) else "")
def test_discrete_distributions(name, draw, cdf, low, high):
    x = np.asarray(draw(random.key(3), (COUNT,))).astype(np.float64)
    assert x.min() >= low and x.max() <= high
    values, counts = np.unique(x, return_counts=True)
    found = np.max(np.abs(np.cumsum(counts) / COUNT - cdf(values)))
    assert found < 1.7 / math.sqrt(COUNT), f"{name}: distance {found}, mean {x.mean()}"


def test_uniform_is_below_its_upper_bound():
    key = random.key(0)
    for dtype, lo, hi in (("float32", 1000.0, 1001.0), ("float16", 10.0, 11.0), ("bfloat16", 10.0, 11.0)):
        x = np.asarray(random.uniform(key, (300000,), dtype, lo, hi)).astype(float)
        assert x.min() == lo and x.max() < hi
        x = np.asarray(random.uniform(key, (3, 50000), dtype, np.array([[lo]] * 3), np.array([[hi]] * 3))).astype(float)
        assert x.min() >= lo and x.max() < hi
    one = np.float32(1)
    assert float(random.uniform(key, (), "float32", one, np.nextafter(one, np.float32(2)))) == 1
    assert float(random.uniform(key, (), "float32", 2.0, 2.0)) == 2.0


def test_truncated_normal_of_several_bounds():
    low, high = np.array([[-1.0], [6.0], [-INF], [30.0]]), np.array([[2.0], [7.0], [-6.0], [INF]])
    for dtype in WIDE:
        x = np.asarray(rlx.jit(lambda k: random.truncated_normal(k, low, high, (4, 5000), dtype))(random.key(1)))
        for row, a, b in zip(x.astype(float), low[:, 0], high[:, 0]):
            assert distance(row, truncated(a, b), *neighbours(dtype)) < 1.7 / math.sqrt(5000)
    f = rlx.vmap(lambda a, b: random.truncated_normal(random.key(2), a, b, (3,)))
    assert np.isfinite(np.asarray(f(low[:3, 0], high[:3, 0]))).all()


def test_seeds_are_64_bits():
    seeds = [0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, -(2**40), -(2**63)]
    assert len({tuple(np.asarray(random.key(s)).tolist()) for s in seeds}) == len(seeds) - 1  # -2^63 is 2^63
    for seed in (2**64, 2**64 + 1, -(2**63) - 1, 10**30):
        with pytest.raises(OverflowError, match="64 bits; use fold_in"):
            random.key(seed)
    for number in (2**32, -(2**31) - 1, 2**64):
        with pytest.raises(OverflowError, match="more than 32 bits"):
            random.fold_in(random.key(0), number)


def test_choices_without_probability():
    logits = np.array([[-INF, -INF, -INF], [-INF, 0.0, -INF]])
    drawn = np.asarray(random.categorical(random.key(0), logits, shape=(50, 2)))
    assert (drawn[:, 0] == 0).all() and (drawn[:, 1] == 1).all()
    p = np.zeros(1000)
    p[[3, 900]] = 1e-3, 3e-3
    for dtype in FORMATS:
        places = np.asarray(random.choice(random.key(1), 1000, (4000,), p=rlx.array(p).astype(dtype)))
        assert set(places.tolist()) == {3, 900} and (places == 900).mean() == pytest.approx(0.75, abs=0.03)
        both = np.asarray(random.choice(random.key(1), 1000, (2,), False, rlx.array(p).astype(dtype)))
        assert set(both.tolist()) == {3, 900}
    p = rlx.array(np.ones(1000) / 1000).astype("bfloat16")
    many = np.asarray(random.choice(random.key(2), 1000, (20000,), p=p))
    assert many.max() > 980 and many.mean() == pytest.approx(499.5, abs=10)


def test_multinomial_counts():
    for n, p in ((0, [0.5, 0.5]), (10, [1.0, 0.0, 0.0]), (1000, [1e-6, 0.5, 0.5]), (1e6, [0.2, 0.3, 0.5])):
        counts = np.asarray(random.multinomial(random.key(5), n, np.array(p, np.float32), shape=(200, len(p))))
        assert (counts.sum(-1) == n).all() and (counts >= 0).all() and not counts[:, np.array(p) == 0].any()
        assert np.allclose(counts.mean(0), n * np.array(p), atol=4 * math.sqrt(n / 4 / 200) + 1e-9)


@pytest.mark.parametrize("dtype", FORMATS)
def test_parameters_beyond_the_range_of_the_dtype(dtype):
    """Parameters that float16 rounds to 0 or infinity, and gamma numbers that any dtype rounds so."""
    key = random.key(1)
    for small, large in ((1e-9, 1e5), (1e-30, 1e30)):
        draws = {
            "beta": lambda a, b: random.beta(key, a, b, (300,), dtype),
            "f": lambda a, b: random.f(key, a, b, (300,), dtype),
            "dirichlet": lambda a, b: random.dirichlet(key, np.array([a, b, a]), (300,), dtype),
        }
        for name, draw in draws.items():
            for a, b in ((small, small), (small, large), (large, small), (large, large), (1.0, large), (small, 1.0)):
                x = np.asarray(draw(a, b)).astype(float)
                assert not np.isnan(x).any(), (name, a, b)
                if name == "dirichlet":
                    assert (np.abs(x.sum(-1) - 1) < 0.02).all(), (a, b)
        assert not np.isnan(np.asarray(random.t(key, small, (300,), dtype)).astype(float)).any()
    both = np.asarray(random.beta(key, 1e5, 1e5, (2000,), dtype)).astype(float)
    assert both.mean() == pytest.approx(0.5, abs=4e-3) and both.std() < 0.01
    ends = np.asarray(random.f(key, 1e-9, 1e-9, (2000,), "float64"))
    assert 0.4 < (ends == 0).mean() < 0.6 and np.isinf(ends[ends > 0]).all()


PARAMETERS = [0.0, 1e-20, 1e-6, 0.3, 1.0, 2.5, 50.0, 1e4, 1e8, 1e20, INF, math.nan, -1.0, -1e-30, -INF]
# name: draw(parameters, shape), number of parameters, whether the distribution is proper, the ends of its support.
OUT_OF_RANGE = {
    "gamma": (random.gamma, 1, lambda a: 0 <= a, lambda a: (0, INF)),
    "chisquare": (random.chisquare, 1, lambda a: 0 <= a, lambda a: (0, INF)),
    "pareto": (random.pareto, 1, lambda b: 0 <= b, lambda b: (1, INF)),
    "rayleigh": (random.rayleigh, 1, lambda s: 0 <= s, lambda s: (0, INF)),
    "wald": (random.wald, 1, lambda m: 0 <= m, lambda m: (0, INF)),
    "generalized_normal": (
        random.generalized_normal,
        1,
        lambda p: 0 < p,
        lambda p: (-1, 1) if p == INF else (-INF, INF),
    ),
    "t": (random.t, 1, lambda df: 0 < df, lambda df: (-INF, INF)),
    "beta": (random.beta, 2, lambda a, b: 0 <= a and 0 <= b, lambda a, b: (0, 1)),
    "weibull_min": (
        random.weibull_min,
        2,
        lambda s, c: 0 <= s and 0 <= c,
        lambda s, c: (0, INF),
    ),
    "triangular": (random.triangular, 3, lambda a, c, b: -INF < a <= c <= b < INF, lambda a, c, b: (a, b)),
    "binomial": (random.binomial, 2, lambda n, p: 0 <= n < INF and 0 <= p <= 1, lambda n, p: (0, n)),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_parameters_out_of_range(name):
    """NaN unless the distribution is proper (or a limit of such), numbers of its support if it is."""
    draw, count, proper, support = OUT_OF_RANGE[name]
    for p in itertools.product(PARAMETERS[:: 2 if count == 3 else 1], repeat=count):
        for dtype in WIDE:
            at = tuple(float(np.array(v).astype(dtype)) for v in p)
            x = np.asarray(draw(random.key(1), *p, shape=(200,), dtype=dtype)).astype(float)
            if not proper(*at):
                assert np.isnan(x).all(), (at, dtype, x[:3])
                continue
            limit = 0 in at[:2] or INF in at  # products of 0 and infinity
            assert limit or not np.isnan(x).any(), (at, dtype)
            low, high = support(*at)
            x = x[~np.isnan(x)]
            assert (x >= low).all() and (x <= high).all(), (at, dtype, x.min(), x.max())


def test_triangular_numbers_of_any_size():
    for left, mode, right in (
        (0, 0.3, 1e38),
        (-1e30, 1e30, 1e30),
        (1e-30, 2e-30, 5e-30),
        (-1.0, -1.0, 1e20),
        (2, 2, 2),
    ):
        x = np.asarray(random.triangular(random.key(4), left, mode, right, (COUNT,))).astype(float)
        mean, spread = (left + mode + right) / 3, right - left
        assert abs(x.mean() - mean) <= 6 * spread / math.sqrt(18 * COUNT) + 1e-6 * abs(mean)


def test_binomial_numbers_of_many_trials():
    """Their mean and spread, in float32 too, where whole numbers are not exact."""
    for dtype in WIDE:
        for n in (1e7, 1e9, 1e12):
            for mean in (100.0, 1e5, n / 4):
                x = np.asarray(random.binomial(random.key(5), n, mean / n, (COUNT,), dtype)).astype(float)
                sd = math.sqrt(mean * (1 - mean / n))
                assert abs(x.mean() - mean) < 6 * sd / math.sqrt(COUNT) + 1e-7 * mean, (dtype, n, mean)
                assert abs(x.std() / sd - 1) < 6 / math.sqrt(2 * COUNT), (dtype, n, mean, x.std() / sd)
    x = np.asarray(random.multinomial(random.key(5), 1e9, np.array([0.25, 0.75], "float32"), shape=(2000, 2)))
    assert abs(x[:, 0].astype(float).std() / math.sqrt(1e9 * 3 / 16) - 1) < 0.1


def test_probabilities_out_of_range():
    """What is known is an error that names the number; what is traced has the documented result."""
    key = random.key(0)
    for bad in (-1.0, math.nan, INF):
        p = [1.0, bad, 1.0]
        for given in (p, np.array(p), rlx.array(p)):
            with pytest.raises(ValueError, match=f"choice: the probability {bad}; none may be negative"):
                random.choice(key, 3, (5,), p=given)
            with pytest.raises(ValueError, match=f"multinomial: the probability {bad}; none may be negative"):
                random.multinomial(key, 5, given)
    for bad in (-1e-3, 1.5, math.nan, INF):
        with pytest.raises(ValueError, match=f"geometric: the probability {bad}; it must be in"):
            random.geometric(key, bad)
    with pytest.raises(ValueError, match="bernoulli: the probability is NaN"):
        random.bernoulli(key, np.array([0.5, math.nan]))
    at = np.array([-1.0, 0.0, 1.0, 2.0])
    assert np.asarray(random.bernoulli(key, at)).tolist() == [False, False, True, True]
    assert np.asarray(rlx.jit(lambda p: random.bernoulli(key, p))(np.array([math.nan]))).tolist() == [False]
    top = 2**31 - 1
    assert np.asarray(rlx.jit(lambda p: random.geometric(key, p))(at)).tolist() == [top, top, 1, 1]
