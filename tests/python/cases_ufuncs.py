"""Cases of elementwise functions."""

import numpy as np
from oracle import SPECIAL, Case, complexes, integers, normal, uniform

PAIRS = tuple(v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL))
# Without infinities over numbers, whose floors are NaN in NumPy and infinite in the array API standard.
QUOTIENTS = tuple(v[~(np.isinf(PAIRS[0]) & np.isfinite(PAIRS[1]))] for v in PAIRS)
SMALL = normal(3, 5, seed=3)
INTS = np.array([0, 1, -1, 2, -2, 3, -3, 7, -8, 10, 2**31 - 1, -(2**31)], np.int32)
INT_PAIRS = tuple(v.ravel() for v in np.meshgrid(INTS, INTS))
BYTES = np.arange(-128, 128).astype(np.int8)
UNSIGNED = np.array([0, 1, 2, 3, 7, 255, 2**31, 2**32 - 1], np.uint32)
UNSIGNED_PAIRS = tuple(v.ravel() for v in np.meshgrid(UNSIGNED, UNSIGNED))
BOOLS = (np.array([True, False, True, False]), np.array([True, True, False, False]))

CASES = []


def add(*args, **kwargs):
    CASES.append(Case(*args, **kwargs))


def unary(name, low, high, tol=4, special=True, grad=True, ints=True):
    """Random numbers from the domain with derivatives, special values without."""
    call = lambda m, x: getattr(m, name)(x)  # noqa: E731
    t = ("ulp", tol) if tol is not None else None
    add(name, call, uniform(3, 7, low=low, high=high), tol=t, grad=grad)
    add(
        name,
        call,
        uniform(4, low=low, high=high, dtype=np.float64),
        oracle="np32",
        tol=t and ("ulp", tol + 2),
        grad=False,
    )
    add(name, call, np.zeros((0, 3), np.float32), tol=t, grad=False)
    add(name, call, uniform(low=low, high=high), tol=t, grad=grad)
    if special:
        add(name, call, SPECIAL, tol=t, grad=False, id="special")
    if ints:
        add(
            name,
            call,
            np.clip(INTS, max(-(2.0**31), low), min(2.0**31 - 1, high)).astype(np.int32),
            tol=t and ("ulp", tol),
            grad=False,
            oracle=lambda x: getattr(np, name)(x.astype(np.float32).astype(np.float64)).astype(np.float32),
        )


for name, low, high, tol in [
    ("exp", -80, 80, 2),
    ("exp2", -100, 100, 2),
    ("expm1", -5, 5, 3),
    ("log", 1e-3, 100, 2),
    ("log2", 1e-3, 100, 3),
    ("log10", 1e-3, 100, 3),
    ("log1p", -0.9, 10, 3),
    ("sqrt", 0, 100, 1),
    ("cbrt", -50, 50, 2),
    ("sin", -20, 20, 2),
    ("cos", -20, 20, 2),
    ("tan", -1.4, 1.4, 3),
    ("arcsin", -1, 1, 4),
    ("arccos", -1, 1, 4),
    ("arctan", -9, 9, 3),
    ("sinh", -8, 8, 4),
    ("cosh", -8, 8, 4),
    ("tanh", -4, 4, 3),
    ("arcsinh", -9, 9, 4),
    ("arccosh", 1.01, 90, 4),
    ("arctanh", -0.99, 0.99, 4),
    ("reciprocal", 0.1, 9, 1),
    ("fabs", -9, 9, 0),
    ("degrees", -7, 7, 2),
    ("radians", -500, 500, 2),
    ("i0", -30, 30, 24),
]:
    unary(name, low, high, tol, ints=name not in ("reciprocal", "i0"), special=name != "i0")
for alias in ("asin", "acos", "atan", "asinh", "acosh", "atanh"):
    add(
        alias,
        lambda m, x, alias=alias: getattr(m, alias)(x),
        uniform(5, low=1.1 if alias == "acosh" else -0.9, high=9 if alias == "acosh" else 0.9),
    )
for alias in ("rad2deg", "deg2rad", "sinc", "positive", "absolute"):
    add(alias, lambda m, x, alias=alias: getattr(m, alias)(x), normal(3, 5), tol=("ulp", 8))
add("sinc", lambda m, x: m.sinc(x), np.array([0.0, 1e-4, -0.02, 0.04, 0.5, 1.5], np.float32), tol=("ulp", 8))
add(
    "sinc",
    lambda m, x: m.sinc(x),
    np.array([0.0, np.inf, -np.inf, np.nan, 1e30], np.float32),
    grad=False,
    oracle=lambda x: np.array([1, 0, 0, np.nan, 0.0], np.float32),  # the limits, where NumPy has NaN
    tol=("rel", 1e-6),
)

for name in ("square", "negative", "abs", "sign", "floor", "ceil", "trunc", "rint"):
    for x in (SMALL * 9, np.zeros((0,), np.float32), np.float32(2.5)):
        add(
            name,
            lambda m, x, name=name: getattr(m, name)(x),
            np.asarray(x),
            tol=None if name != "square" else ("ulp", 1),
        )
    add(
        name,
        lambda m, x, name=name: getattr(m, name)(x),
        SPECIAL,
        tol=None if name != "square" else ("ulp", 1),
        id="special",
    )
    if name != "rint":
        add(name, lambda m, x, name=name: getattr(m, name)(x), INTS, tol=None)
        add(name, lambda m, x, name=name: getattr(m, name)(x), BYTES, tol=None)
        add(name, lambda m, x, name=name: getattr(m, name)(x), UNSIGNED, tol=None)
add("rint", lambda m, x: m.rint(x), INTS, oracle=lambda x: x.astype(np.float32), tol=None)
for decimals in (0, 2, -1):
    for name in ("round", "around"):
        add(
            name,
            lambda m, x, d=decimals, n=name: getattr(m, n)(x, d),
            SMALL * 100,
            tol=("ulp", 2),
            grad=decimals == 0,
            oracle="np32",
        )
add("round", lambda m, x: m.round(x, -1), np.array([-25, -15, -5, 0, 5, 14, 15, 16, 25, 2**31 - 9], np.int32), tol=None)
add(
    "round",
    lambda m, x: m.round(x, -2),
    np.array([0, 49, 50, 51, 150, 250], np.uint8),
    tol=None,
    oracle=lambda x: np.array([0, 0, 0, 100, 200, 200], np.uint8),
)

for name in ("isnan", "isinf", "isfinite", "signbit", "isposinf", "isneginf", "logical_not"):
    for x in (SPECIAL, SPECIAL.astype(np.float64), np.zeros((0, 2), np.float32), np.float32(np.inf)):
        add(name, lambda m, x, name=name: getattr(m, name)(x), np.asarray(x), grad=False, tol=None)
    if name not in ("isposinf", "isneginf"):
        add(name, lambda m, x, name=name: getattr(m, name)(x), INTS, tol=None)
for name in ("isnan", "isinf", "isfinite"):
    z = np.array([1 + 2j, np.inf + 1j, 1 + 1j * np.inf, np.nan, 1j * np.nan, -np.inf - 1j * np.inf], np.complex64)
    add(name, lambda m, x, name=name: getattr(m, name)(x), z, tol=None)
add("nan_to_num", lambda m, x: m.nan_to_num(x), SPECIAL, oracle="np32", tol=None, grad=False)
add("nan_to_num", lambda m, x: m.nan_to_num(x, nan=3, posinf=4.0, neginf=-9), SPECIAL, tol=None, grad=False, id="given")
add("nan_to_num", lambda m, x: m.nan_to_num(x), SMALL)

for name in ("invert", "bitwise_not", "bitwise_invert", "bitwise_count"):
    for x in (INTS, UNSIGNED, BYTES, integers(3, 4, low=-(2**62), high=2**62, dtype=np.int64)) + (
        (BOOLS[0],) if name != "bitwise_count" else ()
    ):
        add(name, lambda m, x, name=name: getattr(m, name)(x), x, tol=None)

for name, op_tol in [
    ("add", 0),
    ("subtract", 0),
    ("multiply", 0),
    ("divide", 1),
    ("true_divide", 1),
    ("maximum", None),
    ("minimum", None),
    ("fmax", None),
    ("fmin", None),
    ("arctan2", 3),
    ("atan2", 3),
    ("hypot", 3),
    ("copysign", None),
    ("nextafter", None),
    ("logaddexp", 3),
    ("logaddexp2", 4),
    ("heaviside", None),
]:
    call = lambda m, x, y, name=name: getattr(m, name)(x, y)  # noqa: E731
    tol = None if op_tol is None else ("ulp", op_tol)
    add(
        name,
        call,
        *PAIRS,
        oracle="np" if name in ("hypot", "logaddexp", "logaddexp2", "arctan2", "atan2") else "np32",
        tol=tol,
        grad=False,
        id="special",
    )
    add(
        name,
        call,
        normal(3, 1, 4),
        normal(2, 1, seed=1),
        oracle="np32" if op_tol in (None, 0) else "np",
        tol=tol if op_tol in (None, 0) else ("ulp", 16),
        vmap=False,
        grad=name != "nextafter",
    )
    add(
        name,
        call,
        normal(4, dtype=np.float64),
        normal(4, dtype=np.float64, seed=1),
        oracle="np32",
        tol=tol and ("ulp", op_tol + 4),
        grad=False,
    )
    add(name, call, np.zeros((0, 1), np.float32), np.ones((1, 3), np.float32), tol=tol, grad=False)
add(
    "maximum",
    lambda m, x, y: m.maximum(x, y),
    np.ones(3, np.float32),
    np.array([1, 2, 0], np.float32),
    tol=None,
    id="tie",
)
for name in (
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "floor_divide",
    "remainder",
    "mod",
    "fmod",
):
    for pair in (INT_PAIRS, UNSIGNED_PAIRS, (BYTES, BYTES[::-1].copy())):
        add(name, lambda m, x, y, name=name: getattr(m, name)(x, y), *pair, oracle="np32", tol=None)
for name in (
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "add",
    "multiply",
):
    add(name, lambda m, x, y, name=name: getattr(m, name)(x, y), *BOOLS, tol=None)
for name in (
    "logical_and",
    "logical_or",
    "logical_xor",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
):
    add(name, lambda m, x, y, name=name: getattr(m, name)(x, y), *PAIRS, tol=None, grad=False)
    add(name, lambda m, x, y, name=name: getattr(m, name)(x, y), *INT_PAIRS, tol=None)
for name in ("left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift"):
    add(
        name,
        lambda m, x, y, name=name: getattr(m, name)(x, y),
        INTS,
        np.arange(12, dtype=np.int32),
        oracle="np32",
        tol=None,
    )

for name in ("floor_divide", "remainder", "mod", "fmod", "copysign", "nextafter"):
    call = lambda m, x, y, name=name: getattr(m, name)(x, y)  # noqa: E731
    pairs = QUOTIENTS if name == "floor_divide" else PAIRS
    add(name, call, *pairs, oracle="np32", tol="zeros", grad=False, id="special")
    add(name, call, normal(50, scale=30), normal(50, seed=1), oracle="np32", tol="zeros", grad=name != "nextafter")
    add(
        name,
        call,
        normal(50, scale=1e6, dtype=np.float64),
        normal(50, seed=1, dtype=np.float64),
        oracle="np32",
        tol=None,
        grad=False,
    )
add("divmod", lambda m, x, y: m.divmod(x, y), *QUOTIENTS, oracle="np32", tol=None, grad=False)
add("divmod", lambda m, x, y: m.divmod(x, y), *INT_PAIRS, oracle="np32", tol=None)

POW_X = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, np.inf, -np.inf, np.nan, 1e-3, -1e20], np.float32)
POW = tuple(
    v.ravel()
    for v in np.meshgrid(POW_X, np.array([0, 1, -1, 2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 2.5], np.float32))
)
for name in ("power", "pow", "float_power"):
    add(
        name,
        lambda m, x, y, name=name: getattr(m, name)(x, y),
        *POW,
        tol=("ulp", 2),
        grad=False,
        id="special",
        oracle=lambda x, y: np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32),
    )
    add(
        name,
        lambda m, x, y, name=name: getattr(m, name)(x, y),
        uniform(20, low=0.1, high=4),
        normal(20, scale=3),
        tol=("ulp", 2),
        oracle="np",
        grad=name != "float_power",
    )
for n in (0, 1, 2, 3, 7, -1, -2):
    add(
        "power",
        lambda m, x, n=n: m.power(x, n),
        np.array([0.5, -1.5, 2.0, 3.0, -0.25], np.float32),
        tol=("ulp", 4),
        id=f"int{n}",
    )
    add("power", lambda m, x, n=n: x**n, SPECIAL, tol=("ulp", 8), id=f"special{n}", grad=False, oracle="np32")
for n in (0, 1, 2, 3):
    add("power", lambda m, x, n=n: m.power(x, n), np.array([0.0, -1.0, 2.0], np.float32), id=f"zero{n}")
    add("power", lambda m, x, n=n: m.power(x, n), INTS, oracle="np32", tol=None, id=f"ints{n}")
add(
    "power",
    lambda m, x, y: m.power(x, y),
    np.array([-2, -1, 0, 1, 2, 3, 10], np.int32),
    np.array([3, 4, 0, 9, 30, 5, 2], np.int32),
    oracle="np32",
    tol=None,
)
add("power", lambda m, x: m.power(x, 2.0), np.array([0.0, -1.5, 3.0], np.float32), id="float2")
add("power", lambda m, x: m.power(x, 0.5), np.array([0.25, 4.0], np.float32), id="half")
add("power", lambda m, x: 2.0**x, normal(5), id="base")

add(
    "ldexp",
    lambda m, x, y: m.ldexp(x, y),
    *[
        v.ravel()
        for v in np.meshgrid(
            SPECIAL, np.array([0, 1, -1, 30, -30, 126, -126, 149, -149, 200, -280, 2**31 - 1, -(2**31)], np.int32)
        )
    ],
    oracle="np32",
    tol=None,
    grad=False,
)
add("ldexp", lambda m, x, y: m.ldexp(x, y), normal(5), np.arange(-2, 3, dtype=np.int32))
add(
    "ldexp",
    lambda m, x, y: m.ldexp(x, y),
    normal(7, dtype=np.float64),
    np.array([0, -1070, 1023, -1022, 3, 2000, -2000], np.int32),
    oracle="np32",
    tol=None,
    grad=False,
)
for x in (SPECIAL, np.array([5e-324, 1e-310, 1.0, 0.5, 2**1023.0, -3.0, 0.0, np.inf, np.nan]), np.float32(3.0)):
    for name in ("frexp", "modf", "spacing", "trunc", "rint", "floor", "ceil", "negative", "abs", "positive", "fabs"):
        add(name, lambda m, x, name=name: getattr(m, name)(x), np.asarray(x), oracle="np32", tol="zeros", grad=False)
add(
    "nextafter",
    lambda m, x, y: m.nextafter(x, y),
    np.array([5e-324, 0.0, 1.0, 1.0, 2.2250738585072014e-308, np.inf, 1.7976931348623157e308]),
    np.array([0.0, -1.0, 2.0, 0.0, 0.0, 0.0, np.inf]),
    oracle="np32",
    tol=None,
    grad=False,
    id="edges",
)
POSITIVE = tuple(v.ravel() for v in np.meshgrid(*[np.array([0, 1, 2, 6, 9, -4, -12, 35, 2**30], np.int32)] * 2))
LEAST = tuple(v.ravel() for v in np.meshgrid(*[np.array([-128, -127, -96, 0, 3, 127], np.int8)] * 2))
for name in ("gcd", "lcm"):
    add(name, lambda m, x, y, name=name: getattr(m, name)(x, y), *LEAST, oracle="np32", tol=None, id="least")
    add(name, lambda m, x, y, name=name: getattr(m, name)(x, y), *POSITIVE, oracle="np32", tol=None)
    add(
        name,
        lambda m, x, y, name=name: getattr(m, name)(x, y),
        np.array(12, np.int32),
        np.array(18, np.int32),
        tol=None,
    )
    add(
        name,
        lambda m, x, y, name=name: getattr(m, name)(x, y),
        np.zeros((0, 2), np.int32),
        np.ones((1, 2), np.int32),
        tol=None,
    )

add("clip", lambda m, x: m.clip(x, -0.5, 0.5), SMALL, oracle="np32", tol=None)
add("clip", lambda m, x: m.clip(x, None, 0.5), SPECIAL, oracle="np32", tol=None, grad=False)
add("clip", lambda m, x: m.clip(x, min=0), INTS, tol=None, id="kw")
add("clip", lambda m, x, a, b: m.clip(x, a, b), SMALL, normal(5), normal(5, seed=1) + 2, oracle="np32", tol=None)
add("isclose", lambda m, x, y: m.isclose(x, y), *PAIRS, grad=False, tol=None, oracle="jax")
add("isclose", lambda m, x, y: m.isclose(x, y, equal_nan=True), *PAIRS, grad=False, tol=None, oracle="jax", id="nan")
for name in ("allclose", "array_equal", "array_equiv"):
    add(name, lambda m, x, y, name=name: m.asarray(getattr(m, name)(x, y)), SMALL, SMALL.copy(), tol=None, grad=False)
    add(name, lambda m, x, y, name=name: m.asarray(getattr(m, name)(x, y)), SMALL, SMALL + 1, tol=None, grad=False)
    add(
        name,
        lambda m, x, y, name=name: m.asarray(getattr(m, name)(x, y)),
        np.zeros((0,), np.float32),
        np.zeros((0,), np.float32),
        tol=None,
        grad=False,
    )
add("array_equal", lambda m, x, y: m.asarray(m.array_equal(x, y)), SMALL, SMALL[0], tol=None, grad=False)
add(
    "array_equiv",
    lambda m, x, y: m.asarray(m.array_equiv(x, y)),
    np.stack([SMALL[0]] * 2),
    SMALL[0],
    tol=None,
    grad=False,
    vmap=False,
)

Z = complexes(3, 4)
for name in (
    "real",
    "imag",
    "conj",
    "conjugate",
    "angle",
    "abs",
    "sign",
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "tanh",
    "sinh",
    "cosh",
    "square",
    "negative",
    "exp2",
    "log2",
    "log10",
    "reciprocal",
    "isreal",
    "iscomplex",
    "round",
):
    add(
        name,
        lambda m, x, name=name: getattr(m, name)(x),
        Z,
        oracle="np",
        tol=("rel", 1e-5),
        grad=name not in ("isreal", "iscomplex", "round", "sign"),
        id="complex",
    )
for name in ("real", "imag", "conj", "angle"):
    add(name, lambda m, x, name=name: getattr(m, name)(x), SMALL, oracle="np", id="real", grad=name != "angle")
add("angle", lambda m, x: m.angle(x, deg=True), Z, tol=("ulp", 8))
add(
    "real",
    lambda m, x: m.real(x),
    np.array([np.inf + 1j, 1 + 1j * np.inf, np.nan + 2j, 2 + 1j * np.nan], np.complex64),
    tol=None,
    grad=False,
)
for name in ("add", "subtract", "multiply", "divide", "power", "equal", "not_equal"):
    add(
        name,
        lambda m, x, y, name=name: getattr(m, name)(x, y),
        Z,
        complexes(3, 4, seed=5),
        tol=("rel", 1e-5),
        grad=name not in ("equal", "not_equal"),
        id="complex",
    )
