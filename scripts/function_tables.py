#!/usr/bin/env python3
"""Writes tests/unit/elementwise/tables/NAME.txt: exact values of functions and of their first and second derivatives.

usage: scripts/function_tables.py [NAME ...]    (needs mpmath)

A line is x, then f(x), f'(x) and f''(x), each as the bits of the nearest double and the rest in thousandths of its last
place. The first points of a table are floats; the others are doubles. mpmath computes every value with 60 digits or
more from the definition, so the tables share nothing with the formulas that they judge.
"""

import math
import pathlib
import random
import struct
import sys

import mpmath as mp

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests/unit/elementwise/tables"


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def to_f32(x):
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def exact(value):
    """The nearest double of `value` and the rest in thousandths of its last place."""
    if isinstance(value, float):
        return f"{bits(value):016x} 0"
    with mp.workprec(53):
        nearest = float(+value)
    if abs(value) < mp.mpf(2) ** -1022:  # float() of a denormal rounds twice
        nearest = float(mp.nint(value * mp.mpf(2) ** 1074)) * 5e-324
        if nearest == 0:
            nearest = math.copysign(0.0, value)
    if math.isinf(nearest):
        return f"{bits(nearest):016x} 0"
    rest = (value - mp.mpf(nearest)) / mp.mpf(math.ulp(nearest)) * 1000
    return f"{bits(nearest):016x} {int(mp.nint(rest))}"


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def gelu_approx(x):
    # the constants of the definition as doubles
    return x * sigmoid(mp.mpf(1.59576912160573071176) * (x + mp.mpf(0.044715) * x**3))


def gelu_approx_slopes(x):
    c, k = mp.mpf(1.59576912160573071176), mp.mpf(0.044715)
    s, u1, u2 = sigmoid(c * (x + k * x**3)), c * (1 + 3 * k * x**2), 6 * c * k * x
    d = s * (1 - s)
    return s + x * d * u1, 2 * d * u1 + x * (d * (1 - 2 * s) * u1**2 + d * u2)


def mish(x):
    return x * mp.tanh(mp.log1p(mp.exp(x)))


def mish_slopes(x):
    w, s = mp.tanh(mp.log1p(mp.exp(x))), sigmoid(x)
    w1 = (1 - w * w) * s
    w2 = -2 * w * w1 * s + (1 - w * w) * s * (1 - s)
    return w + x * w1, 2 * w1 + x * w2


def silu_slopes(x):
    s = sigmoid(x)
    d = s * (1 - s)
    return s + x * d, 2 * d + x * d * (1 - 2 * s)


def sigmoid_slopes(x):
    d = sigmoid(x) * sigmoid(-x)
    return d, d * (sigmoid(-x) - sigmoid(x))


def bell(x):
    return mp.exp(-x * x) * 2 / mp.sqrt(mp.pi)


def erfinv_slopes(x):
    y = mp.erfinv(x)
    s = 1 / bell(y)
    return s, 2 * y * s * s


def normal(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def normal_below(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


ln2 = lambda: mp.log(2)
NAN, INF = math.nan, math.inf
# name: f, (f', f''), special points {x: (f, f', f'')}, points around which branches are
FUNCTIONS = {
    "exp": (mp.exp, lambda x: (mp.exp(x), mp.exp(x)), {-INF: (0.0, 0.0, 0.0), INF: (INF, INF, INF)}, []),
    "expm1": (mp.expm1, lambda x: (mp.exp(x), mp.exp(x)), {-INF: (-1.0, 0.0, 0.0), INF: (INF, INF, INF)}, [1e-17]),
    "exp2": (
        lambda x: mp.mpf(2) ** x,
        lambda x: (mp.mpf(2) ** x * ln2(), mp.mpf(2) ** x * ln2() ** 2),
        {-INF: (0.0, 0.0, 0.0), INF: (INF, INF, INF)},
        [0.5, 1.5, -1022, -1074, 128, 1024],
    ),
    "log": (
        mp.log,
        lambda x: (1 / x, -1 / x**2),
        {0.0: (-INF, INF, -INF), INF: (INF, 0.0, -0.0)},
        [0.70710678118654752, 1, 1.4142135623730951],
    ),
    "log1p": (
        mp.log1p,
        lambda x: (1 / (1 + x), -1 / (1 + x) ** 2),
        {-1.0: (-INF, INF, -INF), INF: (INF, 0.0, -0.0)},
        [-0.2929, 0.4142, 1, -0.5],
    ),
    "log2": (
        lambda x: mp.log(x) / ln2(),
        lambda x: (1 / x / ln2(), -1 / x**2 / ln2()),
        {0.0: (-INF, INF, -INF), INF: (INF, 0.0, -0.0)},
        [0.70710678118654752, 1, 1.4142135623730951, 8],
    ),
    "log10": (
        lambda x: mp.log(x) / mp.log(10),
        lambda x: (1 / x / mp.log(10), -1 / x**2 / mp.log(10)),
        {0.0: (-INF, INF, -INF), INF: (INF, 0.0, -0.0)},
        [0.70710678118654752, 1, 1.4142135623730951, 1000],
    ),
    "asinh": (
        mp.asinh,
        lambda x: (1 / mp.sqrt(x * x + 1), -x / (x * x + 1) ** mp.mpf(1.5)),
        {-INF: (-INF, 0.0, 0.0), INF: (INF, 0.0, -0.0)},
        [1e-3, 0.5, 16384, 1e9],
    ),
    "acosh": (
        mp.acosh,
        lambda x: (1 / mp.sqrt(x * x - 1), -x / (x * x - 1) ** mp.mpf(1.5)),
        {1.0: (0.0, INF, -INF), INF: (INF, 0.0, -0.0)},
        [1, 1.5, 16384, 1e9],
    ),
    "atanh": (
        mp.atanh,
        lambda x: (1 / (1 - x * x), 2 * x / (1 - x * x) ** 2),
        {-1.0: (-INF, INF, -INF), 1.0: (INF, INF, INF)},
        [1e-3, 0.5, 1],
    ),
    "sinh": (
        mp.sinh,
        lambda x: (mp.cosh(x), mp.sinh(x)),
        {-INF: (-INF, INF, -INF), INF: (INF, INF, INF)},
        [0.1, 1, 22, 710.4],
    ),
    "cosh": (mp.cosh, lambda x: (mp.sinh(x), mp.cosh(x)), {-INF: (INF, -INF, INF), INF: (INF, INF, INF)}, [710.4]),
    "tanh": (
        mp.tanh,
        lambda x: (mp.sech(x) ** 2, -2 * mp.tanh(x) * mp.sech(x) ** 2),
        {-INF: (-1.0, 0.0, 0.0), INF: (1.0, 0.0, -0.0)},
        [0.625, 1, 22],
    ),
    "sigmoid": (sigmoid, sigmoid_slopes, {-INF: (0.0, 0.0, 0.0), INF: (1.0, 0.0, -0.0)}, []),
    "silu": (lambda x: x * sigmoid(x), silu_slopes, {-INF: (-0.0, NAN, NAN), INF: (INF, 1.0, NAN)}, []),
    "softplus": (
        lambda x: mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x)),
        lambda x: (sigmoid(x), sigmoid(x) * sigmoid(-x)),
        {-INF: (0.0, 0.0, 0.0), INF: (INF, 1.0, 0.0)},
        [],
    ),
    "log_sigmoid": (
        lambda x: -mp.log1p(mp.exp(-x)) if x > 0 else x - mp.log1p(mp.exp(x)),
        lambda x: (sigmoid(-x), -sigmoid(x) * sigmoid(-x)),
        {-INF: (-INF, 1.0, 0.0), INF: (-0.0, 0.0, -0.0)},
        [],
    ),
    "mish": (mish, mish_slopes, {-INF: (-0.0, NAN, NAN), INF: (INF, 1.0, NAN)}, [20]),
    "gelu_approx": (gelu_approx, gelu_approx_slopes, {-INF: (-0.0, NAN, NAN), INF: (INF, 1.0, NAN)}, [11, 30]),
    "elu": (
        lambda x: x if x > 0 else mp.expm1(x),
        lambda x: (mp.mpf(1), mp.mpf(0)) if x > 0 else (mp.exp(x), mp.exp(x)),
        {-INF: (-1.0, 0.0, 0.0), INF: (INF, 1.0, 0.0)},
        [],
    ),
    "erf": (
        mp.erf,
        lambda x: (bell(x), -2 * x * bell(x)),
        {-INF: (-1.0, 0.0, 0.0), INF: (1.0, 0.0, -0.0)},
        [0.5, 0.9, 1, 4, 5.95],
    ),
    "erfc": (
        mp.erfc,
        lambda x: (-bell(x), 2 * x * bell(x)),
        {-INF: (2.0, -0.0, -0.0), INF: (0.0, -0.0, 0.0)},
        [0.5, 3.88, 5.5, 9.2, 10.05, 26.5, 27.2],
    ),
    "erfinv": (
        mp.erfinv,
        erfinv_slopes,
        {-1.0: (-INF, INF, -INF), 1.0: (INF, INF, INF)},
        [0.5, 0.99663, 0.998, 0.99999994, 0.9999999, 0.99999999999],
    ),
    "gelu": (
        lambda x: x * normal_below(x),
        lambda x: (normal_below(x) + x * normal(x), normal(x) * (2 - x * x)),
        {-INF: (-0.0, NAN, NAN), INF: (INF, 1.0, NAN)},
        [0.8, 1, 5.5, 14.4, 38.4],
    ),
}
POSITIVE = {"log", "log2", "log10"}


def points(name, special, branches):
    rng = random.Random(name)
    floats = []
    for span in (0.01, 0.7, 2, 8, 30, 110):
        floats += [rng.uniform(-span, span) for _ in range(14)]
    floats += [math.ldexp(rng.uniform(1, 2), e) * rng.choice((-1, 1)) for e in range(-148, 128, 12)]
    for b in (0, *branches, -87.3365, -103.97, 88.7228, -104.3):
        for s in (1, -1):
            near = to_f32(b * s)
            unit = math.ldexp(1, max(math.frexp(near)[1] - 24, -149))
            floats += [near, near + unit, near - unit]
    floats = [to_f32(x) for x in floats]
    doubles = [rng.uniform(-span, span) for span in (0.3, 2, 20, 300, 745) for _ in range(14)]
    doubles += [math.ldexp(rng.uniform(1, 2), e) * rng.choice((-1, 1)) for e in range(-1074, 1024, 60)]
    for b in (*branches, 709.78, -745.1, -708.3):
        for s in (1, -1):
            doubles += [b * s, math.nextafter(b * s, INF), math.nextafter(b * s, -INF)]
    if name in ("erf", "erfc", "gelu"):  # most of what they do is near 0
        floats += [to_f32(rng.uniform(-5, 5)) for _ in range(40)]
        doubles += [rng.uniform(-span, span) for span in (6, 30) for _ in range(40)]
    if name in ("acosh", "atanh", "erfinv"):  # more within the domain
        inside = (lambda x: 1 + abs(x)) if name == "acosh" else (lambda x: x / (1 + abs(x)))
        floats += [to_f32(inside(x)) for x in floats if math.isfinite(x)]
        doubles += [inside(x) for x in doubles]
    keep = (lambda x: abs(x)) if name in POSITIVE else (lambda x: x)
    seen, out = set(), []
    for part in (floats, doubles):
        chosen = []
        for x in part:
            x = keep(x)
            if x in special or bits(x) in seen or not math.isfinite(x):
                continue
            seen.add(bits(x))
            chosen.append(x)
        out.append(chosen)
    return out


def defined(name, x):
    least = {"log1p": -1, "log": 0, "log2": 0, "log10": 0, "acosh": 1, "atanh": -1, "erfinv": -1}.get(name, -INF)
    return least <= x <= {"atanh": 1, "erfinv": 1}.get(name, INF)


def line(name, x, f, slopes):
    if math.isnan(x) or not defined(name, x):
        values = [NAN] * 3
    elif x == 0 and f(mp.mpf(0)) == 0:
        values = [x if name not in ("cosh",) else f(mp.mpf(x)), *slopes(mp.mpf(x))]
        if name == "log_sigmoid":
            values[0] = f(mp.mpf(x))
    else:
        # 60 digits of the result, wherever terms cancel
        mp.mp.dps = 60
        if 0 < abs(x) < 1e-3 or abs(x) > 40:
            mp.mp.dps = 800 if abs(x) < 2000 else 400
        values = [v + mp.mpf(0) for v in (f(mp.mpf(x)), *slopes(mp.mpf(x)))]
        values = [bounded(v) for v in values]
    return f"{bits(x):016x} " + " ".join(exact(v) for v in values)


def bounded(v):
    """v, or as a float where it is beyond all doubles."""
    if abs(v) >= mp.mpf(2) ** 1024:
        return INF if v > 0 else -INF
    return v


def write(name):
    f, slopes, special, branches = FUNCTIONS[name]
    floats, doubles = points(name, special, branches)
    if name in (
        "exp",
        "expm1",
        "exp2",
        "sinh",
        "cosh",
        "softplus",
        "mish",
        "silu",
        "gelu_approx",
        "sigmoid",
        "tanh",
        "log_sigmoid",
        "elu",
        "erf",
        "erfc",
        "gelu",
    ):
        floats = [x for x in floats if abs(x) < 2000]
        doubles = [x for x in doubles if abs(x) < 2000]
    rows = [line(name, x, f, slopes) for x in floats + [NAN]]
    rows += [f"{bits(x):016x} " + " ".join(exact(v) for v in values) for x, values in special.items()]
    rows += ["doubles"] + [line(name, x, f, slopes) for x in doubles]
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.txt").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    for function in sys.argv[1:] or FUNCTIONS:
        write(function)
