"""Integer functions at the edges of their dtypes, and integer-valued functions of floats, beside exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
import rlx.lax as lax
import rlx.numpy as rnp
from exact import FORMATS, edges, modes, numpy_dtype, pairs, rounded, wrapped

import rlx

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflows that are meant
INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()


def check(f, arrays, want, what, device="cpu"):
    for mode, got in modes(f, *arrays, device=device):
        got = np.asarray(got)
        bad = got != want if want.dtype.kind not in "fV" else ~same_floats(got, want)
        assert got.dtype == want.dtype, f"{what} {mode}: {got.dtype}, expected {want.dtype}"
        at = np.flatnonzero(bad)[:4]
        shown = [([a[i] for a in arrays], got[i], want[i]) for i in at]
        assert not at.size, f"{what} {mode}: {bad.sum()} of {bad.size} wrong, (operands, got, expected): {shown}"


def same_floats(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a == b) | (np.isnan(a) & np.isnan(b))


# -- integers --


def truncated(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def power(a, b):
    if b >= 0:
        return a**b
    return a if a == 1 else (1 if b % 2 == 0 else -1) if a == -1 else 0


def shift_left(a, b, bits):
    return a << b if 0 <= b < bits else 0


def shift_right(a, b, bits):
    return a >> b if 0 <= b < bits else -1 if a < 0 else 0


def shift_right_logical(a, b, bits):
    return (a & ((1 << bits) - 1)) >> b if 0 <= b < bits else 0


def bits_of(a, bits):
    return a & ((1 << bits) - 1)


# name: function of rlx, its documented rule on Python integers (and the width of the dtype), wrapped to the dtype
BINARY = {
    "add": (rnp.add, lambda a, b, n: a + b),
    "subtract": (rnp.subtract, lambda a, b, n: a - b),
    "multiply": (rnp.multiply, lambda a, b, n: a * b),
    "floor_divide": (rnp.floor_divide, lambda a, b, n: a // b if b else 0),
    "remainder": (rnp.remainder, lambda a, b, n: a % b if b else 0),
    "divmod 0": (lambda a, b: rnp.divmod(a, b)[0], lambda a, b, n: a // b if b else 0),
    "divmod 1": (lambda a, b: rnp.divmod(a, b)[1], lambda a, b, n: a % b if b else 0),
    "fmod": (rnp.fmod, lambda a, b, n: a - b * truncated(a, b) if b else 0),
    "lax.div": (lax.div, lambda a, b, n: truncated(a, b) if b else 0),
    "lax.rem": (lax.rem, lambda a, b, n: a - b * truncated(a, b) if b else 0),
    "maximum": (rnp.maximum, lambda a, b, n: max(a, b)),
    "minimum": (rnp.minimum, lambda a, b, n: min(a, b)),
    "bitwise_and": (rnp.bitwise_and, lambda a, b, n: a & b),
    "bitwise_or": (rnp.bitwise_or, lambda a, b, n: a | b),
    "bitwise_xor": (rnp.bitwise_xor, lambda a, b, n: a ^ b),
    "left_shift": (rnp.left_shift, shift_left),
    "right_shift": (rnp.right_shift, shift_right),
    "lax.shift_left": (lax.shift_left, shift_left),
    "lax.shift_right_arithmetic": (
        lax.shift_right_arithmetic,
        lambda a, b, n: shift_right(a - (1 << n) if a >> (n - 1) == 1 else a, b, n),
    ),
    "lax.shift_right_logical": (lax.shift_right_logical, shift_right_logical),
    "gcd": (rnp.gcd, lambda a, b, n: math.gcd(a, b)),
    "lcm": (rnp.lcm, lambda a, b, n: math.lcm(a, b)),
    "lax.pow": (lax.pow, lambda a, b, n: power(a, b) if abs(b) < 70 else pow_wrapped(a, b, n)),
    "fmax": (rnp.fmax, lambda a, b, n: max(a, b)),
    "fmin": (rnp.fmin, lambda a, b, n: min(a, b)),
}
COMPARISONS = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}
UNARY = {
    "negative": (rnp.negative, lambda a, n: -a),
    "abs": (rnp.abs, lambda a, n: abs(a)),
    "sign": (rnp.sign, lambda a, n: (a > 0) - (a < 0)),
    "square": (rnp.square, lambda a, n: a * a),
    "invert": (rnp.invert, lambda a, n: ~a),
    "positive": (rnp.positive, lambda a, n: a),
    "lax.integer_pow 3": (lambda a: lax.integer_pow(a, 3), lambda a, n: a**3),
    "lax.population_count": (lax.population_count, lambda a, n: bits_of(a, n).bit_count()),
    "lax.clz": (lax.clz, lambda a, n: n - bits_of(a, n).bit_length()),
}


def pow_wrapped(a, b, n):
    return pow(a, b, 1 << n) if b >= 0 else power(a, b)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_functions_at_the_edges(dtype, device):
    n, values = np.iinfo(dtype).bits, edges(dtype)
    a, b = pairs(values)
    x, y = np.array(a, dtype), np.array(b, dtype)

    def all_of(x, y):
        outs = [f(x, y) for f, _ in BINARY.values()] + [f(x) for f, _ in UNARY.values()]
        return outs + [getattr(rnp, name)(x, y) for name in COMPARISONS]

    want = [np.array([wrapped(rule(p, q, n), dtype) for p, q in zip(a, b)], dtype) for _, rule in BINARY.values()]
    want += [np.array([wrapped(rule(p, n), dtype) for p in a], dtype) for _, rule in UNARY.values()]
    want += [np.array([rule(p, q) for p, q in zip(a, b)]) for rule in COMPARISONS.values()]
    names = [*BINARY, *UNARY, *COMPARISONS]
    for mode, outs in modes(all_of, x, y, device=device):
        for name, got, expected in zip(names, outs, want, strict=True):
            got = np.asarray(got)
            assert got.dtype == expected.dtype, f"{name} {mode}: {got.dtype}, expected {expected.dtype}"
            at = np.flatnonzero(got != expected)[:4]
            shown = [(a[i], b[i], got[i], expected[i]) for i in at]
            assert not at.size, f"{name} of {dtype} {mode}, (x, y, got, expected): {shown}"


@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float16", "bfloat16"])
def test_clamp_and_clip(dtype, device):
    """min(max(x, low), high), also where low is above high."""
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        values = sorted({info.min, info.max, 0, 1, 5, max(info.min, -3)})
    else:
        values = [-math.inf, -5.0, -0.5, 0.0, 0.5, 3.0, math.inf, math.nan]
    of = [(x, low, high) for x in values for low in values for high in values]
    x, low, high = (np.array([t[i] for t in of], numpy_dtype(dtype)) for i in range(3))

    def rule(x, low, high):
        return math.nan if x != x or low != low or high != high else min(max(x, low), high)

    want = np.array([rule(*t) for t in of], numpy_dtype(dtype))
    check(lambda x, low, high: lax.clamp(low, x, high), (x, low, high), want, f"lax.clamp {dtype}", device)
    check(rnp.clip, (x, low, high), want, f"clip {dtype}", device)
    assert float(lax.clamp(3.0, -5.0, -2.0)) == -2.0


# -- division of floats --


def operands(dtype, count, seed):
    """Pairs whose quotients are near integers, ordinary, far apart, subnormal, and of either sign."""
    g = np.random.default_rng(seed)
    t, (digits, least, _) = numpy_dtype(dtype), FORMATS[dtype]
    wide = np.float64 if dtype != "float64" else np.longdouble
    exponents = {"float16": 10, "bfloat16": 40, "float32": 60, "float64": 500}[dtype]
    y = (g.standard_normal(count) * 2.0 ** g.integers(-exponents // 3, exponents // 3, count)).astype(t)
    whole = np.floor(2.0 ** g.uniform(0, digits + 2, count))
    near = (y.astype(wide) * whole.astype(wide)).astype(t)
    x = np.nextafter(near, np.array(g.choice([-np.inf, np.inf], count)).astype(t)) if dtype != "bfloat16" else near
    x = np.where(g.random(count) < 0.5, near, x)
    other = (g.standard_normal(count) * 2.0 ** g.integers(-exponents // 2, exponents // 2, count)).astype(t)
    x = np.where(g.random(count) < 0.3, other, x).astype(t)
    tiny = np.array([2.0**least, 3 * 2.0**least, 2.0 ** (least + digits), 1.0, 3.0, 7.0, 10.0, 0.1], np.float64)
    tiny = np.concatenate([tiny, -tiny]).astype(t)
    a, b = pairs(tiny)
    x, y = np.concatenate([x, np.array(a, t)]), np.concatenate([y, np.array(b, t)])
    good = np.isfinite(x.astype(np.float64)) & np.isfinite(y.astype(np.float64)) & (y != 0)
    return x[good], y[good]


@pytest.mark.parametrize("dtype", FORMATS)
def test_division_of_floats(dtype, device, full):
    x, y = operands(dtype, 200000 if full else 2500, 1)
    exact = [(Fraction(float(p)), Fraction(float(q))) for p, q in zip(x, y)]
    floors = [math.floor(p / q) for p, q in exact]
    t = numpy_dtype(dtype)
    quotient = np.array([rounded(Fraction(f), dtype) for f in floors]).astype(t)
    known = np.array([f == (Fraction(v) if math.isfinite(v) else None) for f, v in zip(floors, quotient.tolist())])
    if dtype in ("float16", "bfloat16"):
        known |= True  # then also what must be rounded is rounded once
    rest = np.array([rounded(p - q * f, dtype) for (p, q), f in zip(exact, floors)]).astype(t)
    left = [p - q * math.trunc(p / q) for p, q in exact]
    remainder = np.array([rounded(r, dtype) for r in left]).astype(t)
    assert known.mean() > 0.5 and all(Fraction(float(r)) == e for r, e in zip(remainder, left))
    exactly = lambda f: lambda x, y: rnp.where(known, f(x, y), quotient)  # noqa: E731
    check(exactly(rnp.floor_divide), (x, y), quotient, f"floor_divide {dtype}", device)
    check(exactly(lambda x, y: rnp.divmod(x, y)[0]), (x, y), quotient, f"divmod {dtype}", device)
    check(rnp.remainder, (x, y), rest, f"remainder {dtype}", device)
    check(rnp.fmod, (x, y), remainder, f"fmod {dtype}", device)
    check(lax.rem, (x, y), remainder, f"lax.rem {dtype}", device)
    # q y + r is x where all three are exact.
    q, r = (np.asarray(v).tolist() for v in rnp.divmod(x, y))
    whole = [i for i, (p, d) in enumerate(exact) if Fraction(rest[i].item()) == p - d * floors[i] and known[i]]
    whole = [i for i in whole if math.isfinite(q[i]) and Fraction(q[i]) == floors[i]]
    assert len(whole) > len(x) / 4
    assert all(Fraction(q[i]) * exact[i][1] + Fraction(r[i]) == exact[i][0] for i in whole)


@pytest.mark.parametrize("dtype", FORMATS)
def test_division_by_zero_and_of_infinities(dtype, device):
    a, b = pairs([0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan])
    x, y = np.array(a).astype(numpy_dtype(dtype)), np.array(b).astype(numpy_dtype(dtype))
    with np.errstate(all="ignore"):
        rest, left = (f(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype) for f in (np.remainder, np.fmod))
        want = np.floor_divide(x.astype(np.float64), y.astype(np.float64))
        endless = np.isinf(x) & np.isfinite(y)  # NaN in NumPy; the array API standard has the quotient
        want = np.where(endless, np.divide(x.astype(np.float64), y.astype(np.float64)), want).astype(x.dtype)
    check(rnp.floor_divide, (x, y), want, f"floor_divide {dtype}", device)
    check(rnp.remainder, (x, y), rest, f"remainder {dtype}", device)
    check(rnp.fmod, (x, y), left, f"fmod {dtype}", device)


# -- integer-valued functions of floats, and casts --


def away_from_zero(v):
    whole = np.trunc(v)
    return whole + np.where(np.abs(v - whole) >= 0.5, np.sign(v), 0)


ROUNDINGS = {
    "floor": (rnp.floor, np.floor),
    "ceil": (rnp.ceil, np.ceil),
    "trunc": (rnp.trunc, np.trunc),
    "fix": (rnp.fix, np.trunc),
    "rint": (rnp.rint, np.rint),
    "round": (rnp.round, np.rint),
    "lax.round": (lax.round, away_from_zero),
    "lax.round even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.rint),
    "sign": (rnp.sign, np.sign),
}


def all_halves(dtype):
    return np.arange(65536, dtype=np.uint32).astype(np.uint16).view(numpy_dtype(dtype))


def some_floats(dtype):
    g = np.random.default_rng(2)
    whole = np.floor(2.0 ** g.uniform(0, FORMATS[dtype][0] + 1, 3000))
    x = np.concatenate([whole, whole + 0.5, whole + 0.25, g.standard_normal(3000) * 100, [0.5, 1.5, 2.5, 0.0]])
    x = np.concatenate([x, -x]).astype(dtype)
    return np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf), np.array([np.inf, np.nan], dtype)])


@pytest.mark.parametrize("dtype", FORMATS)
def test_integer_valued_functions(dtype, device):
    x = all_halves(dtype) if dtype in ("float16", "bfloat16") else some_floats(dtype)
    with np.errstate(all="ignore"):
        for name, (f, rule) in ROUNDINGS.items():
            check(f, (x,), rule(x.astype(np.float64)).astype(x.dtype), f"{name} {dtype}", device)


def far_integers(dtype):
    """Integers around the ties of every float format, and the ends of the dtype."""
    info, out = np.iinfo(dtype), set(edges(dtype))
    for digits in (8, 11, 24, 53):
        for exponent in range(digits, info.bits):
            for odd in (1, 3):
                tie = (1 << exponent) + odd * (1 << (exponent - digits))  # halfway between two numbers of the format
                out |= {tie - 1, tie, tie + 1, -tie, 1 - tie, -1 - tie}
                for first in (24, 53):  # what a wider format would round to the tie first
                    if exponent > max(first, digits) + 1:
                        out |= {tie + (1 << (exponent - first - 2)), tie - (1 << (exponent - first - 2))}
    return np.array(sorted(v for v in out if info.min <= v <= info.max), dtype)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_casts_of_integers_round_once(dtype, to, device):
    x = far_integers(dtype)
    want = np.array([rounded(Fraction(v), to) for v in x.tolist()]).astype(numpy_dtype(to))
    check(lambda x: x.astype(to), (x,), want, f"{dtype} to {to}", device)


@pytest.mark.rotates(2)
@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("dtype", FORMATS)
def test_casts_of_floats_round_once(dtype, to, device):
    digits, least, largest = FORMATS[to]
    if dtype in ("float16", "bfloat16"):
        x = all_halves(dtype)
    else:
        g = np.random.default_rng(3)
        near = 2.0 ** g.integers(max(least, -300) - 2, min(128, 1000), 2000).astype(float)
        ties = near * (1 + g.integers(0, 2**digits, 2000).astype(float) * 2.0**-digits)
        more = ties * (1 + g.choice([-1.0, 0.0, 1.0], 2000) * 2.0 ** g.integers(-52, -20, 2000).astype(float))
        x = np.concatenate([ties, more, [float(largest), 2.0**least, 2.0 ** (least - 1), 1.5 * 2.0 ** (least - 1)]])
        x = np.concatenate([x, -x])
        with np.errstate(all="ignore"):
            x = np.concatenate([x.astype(dtype), np.array([np.inf, -np.inf, np.nan, 0.0], dtype)])
    floats = x.astype(np.float64).tolist()
    want = [rounded(Fraction(v), to) if math.isfinite(v) else v for v in floats]
    check(lambda x: x.astype(to), (x,), np.array(want).astype(numpy_dtype(to)), f"{dtype} to {to}", device)


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("dtype", FORMATS)
def test_casts_to_integers_saturate(dtype, to, device):
    info = np.iinfo(to)
    ends = [info.min, info.max, info.max + 1, info.min - 1, 0, 1, -1]
    values = [v + d for v in ends for d in (0.0, 0.5, -0.5, 1.5)] + [math.inf, -math.inf, math.nan, 1e30, -1e30, 0.99]
    with np.errstate(all="ignore"):
        x = np.array(values).astype(numpy_dtype(dtype))
        x = np.concatenate([x, np.nextafter(x, x * 0)]) if dtype != "bfloat16" else x
    floats = x.astype(np.float64).tolist()
    rule = lambda v: 0 if v != v else min(max(math.trunc(v) if math.isfinite(v) else v, info.min), info.max)  # noqa
    check(lambda x: x.astype(to), (x,), np.array([rule(v) for v in floats], to), f"{dtype} to {to}", device)
