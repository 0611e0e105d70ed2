"""The dtypes of rlx as NumPy's, and what each of them can hold."""

import ml_dtypes
import numpy as np

STORAGE = {
    "int4": ml_dtypes.int4,
    "uint4": ml_dtypes.uint4,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
}
_OTHER = dict(STORAGE, bfloat16=ml_dtypes.bfloat16)

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64", "float32", "bfloat16", "float16")  # twice what is drawn twice as often
COMPLEX = ("complex64", "complex128")
NUMBERS = FLOATS + INTS
ALL = BOOL + INTS + FLOATS + COMPLEX


def of(name):
    """The NumPy dtype of a name."""
    return np.dtype(_OTHER.get(name, name))


def name_of(dtype):
    return np.dtype(dtype).name


def kind(name):
    """b, i, u, f or c; the small floats of ml_dtypes among f."""
    if name == "bool":
        return "b"
    for prefix, letter in (("uint", "u"), ("int", "i"), ("complex", "c")):
        if name.startswith(prefix):
            return letter
    return "f" if "float" in name else "?"


def is_inexact(name):
    return kind(name) in "fc"


class Format:
    """Of a float dtype, or of the parts of a complex one."""

    def __init__(self, name):
        part = {"complex64": "float32", "complex128": "float64"}.get(name, name)
        info = ml_dtypes.finfo(of(part))
        self.eps = float(info.eps)
        self.least = float(info.smallest_subnormal)
        self.tiny = float(info.smallest_normal)
        self.most = float(info.max)
        self.dtype = of(part)


_formats = {}


def format_of(name):
    found = _formats.get(name)
    if found is None:
        found = _formats[name] = Format(name)
    return found


def accumulator(name):
    """The dtype in which sums of this dtype are added up."""
    return "float32" if name in ("bfloat16", "float16") or name in STORAGE else name


# Fractions (as a power of 2) and sizes up to which sums and products of a few numbers are exact in any order.
_FEW_BITS = {"float64": (16, 40), "float32": (8, 18), "float16": (3, 7), "bfloat16": (2, 5)}


def few_bits(x, name):
    """Where x is a number of so few bits that it comes out of sums and products exactly, in whatever order."""
    part = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    fraction, limit = _FEW_BITS[part]
    with np.errstate(all="ignore"):
        scaled = x * 2.0**fraction
        return (scaled == np.round(scaled)) & (np.abs(scaled) < 2.0**limit) | (x != x)


def last_place(x, name):
    """The distance of neighbours of the dtype at |x|."""
    f = format_of(name)
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.abs(np.asarray(x, np.float64)))[1] - 1
    unit = np.ldexp(f.eps, np.where(np.isfinite(x), exponent, 0))
    return np.maximum(np.where(np.isfinite(x) & (np.asarray(x) != 0), unit, f.least), f.least)
