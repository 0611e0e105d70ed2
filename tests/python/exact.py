"""Exact results of elementwise functions: numbers as fractions, rounded once to a dtype, and integers that wrap."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np

# dtype: bits of the significand, exponent of the smallest number, largest number
FORMATS = {
    "float16": (11, -24, Fraction(65504)),
    "bfloat16": (8, -133, Fraction(2) ** 128 - Fraction(2) ** 120),
    "float32": (24, -149, Fraction(2) ** 128 - Fraction(2) ** 104),
    "float64": (53, -1074, Fraction(2) ** 1024 - Fraction(2) ** 971),
}


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def rounded(x, name):
    """The number of the dtype nearest to the fraction x, halves to even, as a Python float."""
    digits, least, largest = FORMATS[name]
    if x == 0:
        return 0.0
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    near = round(size / unit) * unit  # Python's round of a fraction: halves to even
    out = math.inf if near > largest else float(near)
    return -out if x < 0 else out


def wrapped(x, dtype):
    """The integer x modulo 2^bits, in the range of the dtype."""
    bits = np.iinfo(dtype).bits
    x &= (1 << bits) - 1
    return x - (1 << bits) if np.iinfo(dtype).min < 0 and x >> (bits - 1) else x


def edges(dtype):
    """Integers at the ends of a dtype, around 0 and around its width and its half."""
    info = np.iinfo(dtype)
    some = {info.min, info.min + 1, info.min // 2, info.max // 3, info.max - 1, info.max}
    some |= {-9, -2, -1, 0, 1, 2, 3, 7, info.bits - 1, info.bits, info.bits + 1, info.bits // 2, 1 << (info.bits // 2)}
    return sorted(v for v in some if info.min <= v <= info.max)


def pairs(values):
    """All pairs of values, as two lists."""
    return [a for a in values for _ in values], [b for _ in values for b in values]


def modes(f, *arrays, device="cpu"):
    """Name and result of f in each mode: at once, compiled, as folded constants, by the reference rules."""
    import rlx

    yield "eager", f(*map(rlx.array, arrays))
    yield "jit", rlx.jit(f, device=None if device == "cpu" else device)(*arrays)
    yield "folded", rlx.jit(lambda: f(*map(rlx.array, arrays)))()
    yield "reference", rlx.jit(f, device="reference")(*arrays)
