"""Elementwise functions in units of the last place, against mpmath and float64, and at special values."""

import jax
import jax.extend  # noqa: F401
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from oracles import catalogue, dtypes
from oracles.evaluator import Evaluator, wide

import rlx

OPS = catalogue.load()
OF_BITS = ("not_", "popcount", "clz")
ACTIVATIONS = sorted(n for n, op in OPS.items() if op.table == "activation" and n not in OF_BITS)
BINARIES = ("add", "sub", "mul", "div", "max", "min", "pow", "mod", "atan2", "rem", "hypot", "logaddexp")
GAMMA = ("lgamma", "digamma", "polygamma")  # special values: tests/unit/ops/elementwise/special_functions_test.cpp

# docs/numerics.md, "Accuracy of f32 functions"; what is not named there has OTHERS.
F32 = {
    "sqrt": 0.5,
    "square": 0.5,
    "recip": 0.5,
    "sin": 0.6,
    "cos": 0.6,
    "pow": 0.6,
    "log": 0.8,
    "elu": 0.9,
    "exp": 1.0,
    "tan": 1.3,
    "tanh": 1.3,
    "erf": 1.3,
    "hard_sigmoid": 1.4,
    "log1p": 1.5,
    "rsqrt": 1.5,
    "softsign": 1.5,
    "expm1": 1.6,
    "softplus": 1.9,
    "log_sigmoid": 1.9,
    "atan": 2.1,
    "gelu": 2.2,
    "sigmoid": 2.3,
    "hard_swish": 2.5,
    "gelu_approx": 2.8,
    "silu": 3.2,
    "mish": 3.5,
    "add": 0.5,
    "sub": 0.5,
    "mul": 0.5,
    "div": 0.5,
    "max": 0,
    "min": 0,
    "relu": 0,
    "neg": 0,
    "abs": 0,
    "round": 0,
    "floor": 0,
    "ceil": 0,
    "sign": 0,
    "trunc": 0,
    "mod": 0.5,
    "rem": 0.5,
}
OTHERS = 4.0
DOMAIN = {
    "log": (1e-6, 50),
    "sqrt": (0, 50),
    "rsqrt": (1e-6, 50),
    "log2": (1e-6, 50),
    "log10": (1e-6, 50),
    "log1p": (-0.99, 50),
    "asin": (-1, 1),
    "acos": (-1, 1),
    "acosh": (1, 50),
    "atanh": (-0.999, 0.999),
    "erfinv": (-0.999, 0.999),
    "exp": (-20, 10),
    "exp2": (-20, 10),
    "expm1": (-20, 10),
    "sinh": (-10, 10),
    "cosh": (-10, 10),
    "tan": (-1.5, 1.5),
    "cbrt": (-50, 50),
    "lgamma": (0.05, 50),
    "digamma": (0.05, 50),
    "polygamma": (0.05, 50),
    "sinc": (-3, 3),
    "erfc": (-6, 6),
}
# Of which the f64 kernels are exact to units of x, not of the result: their tail below 0 cancels.
UNITS_OF_X = ("gelu", "gelu_approx")


def _points(name, dtype, n=400):
    low, high = DOMAIN.get(name, (-12, 12))
    r = np.random.default_rng(len(name) * 7 + n)
    x = np.concatenate(
        [r.uniform(low, high, n), r.uniform(max(low, -1), min(high, 2), n), np.array([low, high, 1.0, max(low, 0.5)])]
    )
    small = 2.0 ** r.uniform(-20, 0, n // 4)
    if low <= 0:
        x = np.concatenate([x, small, -small if low < 0 and name != "log1p" else small])
    return x.astype(dtypes.of(dtype))


def _exact(f, types, xs):
    """f of JAX in float64 on the given numbers, without rounding."""
    specs = [jax.ShapeDtypeStruct(x.shape, jnp.float64) for x in xs]
    del types
    closed = jax.make_jaxpr(f)(*specs)
    return np.asarray(Evaluator().run(closed, *[wide(x) for x in xs])[0])


_MP = {
    "gelu": lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "erf": mpmath.erf,
    "erfinv": mpmath.erfinv,
    "tan": mpmath.tan,
    "log1p": lambda x: mpmath.log1p(x),
    "expm1": mpmath.expm1,
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tanh": mpmath.tanh,
    "atan": mpmath.atan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "log10": mpmath.log10,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "log_sigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "mish": lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "elu": lambda x: x if x > 0 else mpmath.expm1(x),
    "erfc": mpmath.erfc,
    "sinc": lambda x: mpmath.sinc(mpmath.pi * x),
    "lgamma": mpmath.loggamma,
    "digamma": mpmath.digamma,
    "polygamma": lambda x: mpmath.polygamma(1, x),
}


def _by_mpmath(name, x):
    with mpmath.workprec(160):
        return np.array([float(_MP[name](mpmath.mpf(float(v)))) for v in x])


def worst(got, want, dtype, scale=None):
    """The largest distance in units of the last place (of `scale`, where given), and where; NaN of one side alone is
    infinite."""
    g = wide(got)
    most = dtypes.format_of(dtype).most
    with np.errstate(all="ignore"):
        want = np.where(np.abs(want) > most * (1 + dtypes.format_of(dtype).eps / 4), np.sign(want) * np.inf, want)
    unit = dtypes.last_place(want if scale is None else scale, dtype)
    with np.errstate(all="ignore"):
        d = np.abs(g - want) / unit
    same = (g == want) | ((g != g) & (want != want))
    d = np.where(same, 0, np.where(np.isfinite(g) & np.isfinite(want), d, np.inf))
    k = int(np.argmax(d)) if d.size else 0
    return (float(d.max()) if d.size else 0.0), k


def _run(name, xs, device):
    f = rlx.jit(lambda *v: getattr(rlx.ops, name)(*v), device=device)
    return np.asarray(f(*xs))


def _limit(name, dtype):
    if dtype in ("bfloat16", "float16"):
        # computed in f32 and rounded once; functions of f32 may cross the middle between two numbers
        return 0.5 if F32.get(name, OTHERS) == 0 else 0.51 + F32.get(name, OTHERS) * 2.0**-8
    # f64 functions have no table: the units that every test of ours allows
    return F32.get(name, OTHERS) + 0.1 if dtype == "float32" else max(F32.get(name, OTHERS), 1.0) + 3.0


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_units_of_the_last_place(name, dtype, device):
    x = _points(name, dtype, 60 if name in GAMMA or dtype == "float64" and name in _MP else 400)
    if name in GAMMA or dtype == "float64" and name in _MP:
        want = _by_mpmath(name, x)
    else:
        want = _exact(lambda v: OPS[name].jax([v], {}, {}), (dtype,), [x])
    scale = x if dtype == "float64" and name in UNITS_OF_X else None
    if name == "sinc":  # 0 at integers, where pi has none
        scale = 1 / np.maximum(1, np.abs(x.astype(np.float64)) * np.pi)
    u, k = worst(_run(name, [x], device), want, dtype, scale)
    assert u <= _limit(name, dtype), f"{name} of {x[k]!r}: {u} units of {dtype} off, wanted {want[k]!r}"


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", BINARIES)
def test_units_of_the_last_place_of_two(name, dtype, device):
    r = np.random.default_rng(5)
    low = 0.01 if name == "pow" else -20
    x = r.uniform(low, 20, 500).astype(dtypes.of(dtype))
    y = r.uniform(-3 if name == "pow" else -20, 3 if name == "pow" else 20, 500).astype(dtypes.of(dtype))
    if name == "pow" and dtype == "float64":
        with mpmath.workprec(160):
            want = np.array([float(mpmath.mpf(float(a)) ** mpmath.mpf(float(b))) for a, b in zip(x, y)])
    else:
        want = _exact(lambda a, b: OPS[name].jax([a, b], {}, {}), (dtype,) * 2, [x, y])
    u, k = worst(_run(name, [x, y], device), want, dtype)
    assert u <= _limit(name, dtype), f"{name} of {x[k]!r}, {y[k]!r}: {u} units off, wanted {want[k]!r}"


# -- special values --

INF, NAN = np.inf, np.nan
SPECIALS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0**-140, -(2.0**-140), 3e38, -3e38, 0.5, -0.5, 2.5, -2.5]
# docs/numerics.md: limits at infinities where JAX gives NaN, and others.
LIMITS = {
    ("gelu", -INF): 0.0,
    ("gelu_approx", -INF): 0.0,
    ("silu", -INF): 0.0,
    ("hard_swish", -INF): 0.0,
    ("mish", -INF): 0.0,
    ("softsign", INF): 1.0,
    ("softsign", -INF): -1.0,
    ("elu", -INF): -1.0,
    ("gelu", INF): INF,
    ("mish", INF): INF,
    ("log_sigmoid", -INF): -INF,
    **{("sinc", x): 0.0 for x in (1.0, -1.0, 3e38, -3e38)},
}


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n not in GAMMA])
def test_special_values(name, device):
    x = np.array(SPECIALS, np.float32)
    with np.errstate(all="ignore"):
        want = _exact(lambda v: OPS[name].jax([v], {}, {}), ("float32",), [x])
        want = want.astype(np.float32).astype(np.float64)
    got = wide(_run(name, [x], device))
    for v, g, w in zip(SPECIALS, got, want):
        w = LIMITS.get((name, v), w)
        near = (
            (g == w)
            or (g != g and w != w)
            or (np.isfinite(g) and np.isfinite(w) and abs(g - w) <= 4 * dtypes.last_place(np.float64(w), "float32"))
        )
        assert near, f"{name}({v}) is {g}, wanted {w}"


@pytest.mark.parametrize("name", BINARIES)
def test_special_values_of_two(name, device):
    x, y = (v.ravel() for v in np.meshgrid(np.array(SPECIALS, np.float32), np.array(SPECIALS, np.float32)))
    with np.errstate(all="ignore"):
        want = _exact(lambda a, b: OPS[name].jax([a, b], {}, {}), ("float32",) * 2, [x, y])
        want = want.astype(np.float32).astype(np.float64)
    got = wide(_run(name, [x, y], device))
    for a, b, g, w in zip(x, y, got, want):
        if name in ("mod", "rem") and (np.isinf(a) or np.isinf(b) or abs(a) > 1e30):
            continue  # JAX's remainder by an infinity differs between its versions
        near = (
            (g == w)
            or (g != g and w != w)
            or (np.isfinite(g) and np.isfinite(w) and abs(g - w) <= 4 * dtypes.last_place(np.float64(w), "float32"))
        )
        assert near, f"{name}({a}, {b}) is {g}, wanted {w}"


@pytest.mark.parametrize("to", [t for t in dtypes.ALL if t != "bfloat16" and t != "float16"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "uint8", "bool"])
def test_casts_of_special_values(dtype, to, device):
    x = np.array(SPECIALS + [300.7, -300.7, 1e10, -1e10]) if dtypes.kind(dtype) == "f" else np.array([0, 1, 200, 77])
    with np.errstate(all="ignore"):
        x = x.astype(dtypes.of(dtype))
        from oracles.rules_elementwise import convert

        want = convert(Evaluator(), wide(x), to)
        want = want.astype(dtypes.of(to))
    got = np.asarray(rlx.jit(lambda v: rlx.ops.cast(v, to=to), device=device)(x))
    assert got.dtype == want.dtype
    assert np.array_equal(got, want, equal_nan=dtypes.is_inexact(to)), (x, got, want)
