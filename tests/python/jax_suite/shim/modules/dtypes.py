"""jax._src.dtypes and jax.dtypes: dtypes are those of NumPy and ml_dtypes; promotion is that of rlx."""

import builtins

import ml_dtypes
import numpy as np
import rlx
import rlx.numpy as rnp
from jax._src import config
from ml_dtypes import (  # noqa: F401
    bfloat16,
    float4_e2m1fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    int1,
    int2,
    int4,
    uint1,
    uint2,
    uint4,
)

float0 = np.dtype([("float0", np.void, 0)])
_float8 = (
    float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz,
    float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu,
)  # fmt: skip
custom_floats = [bfloat16, *_float8, float4_e2m1fn]
_custom_float_scalar_types = set(custom_floats)
_custom_float_dtypes = [np.dtype(t) for t in custom_floats]
_float8_dtypes = [np.dtype(t) for t in _float8]
_intn_dtypes = [np.dtype(t) for t in (int2, uint2, int4, uint4)]
_complex_types = [np.dtype(np.complex64), np.dtype(np.complex128)]
python_scalar_types = (bool, int, float, complex)
python_scalar_types_to_dtypes = {
    builtins.bool: np.dtype(np.bool_),
    builtins.int: np.dtype(np.int64),
    builtins.float: np.dtype(np.float64),
    builtins.complex: np.dtype(np.complex128),
}
_SMALLER = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


class extended(np.generic):
    pass


class prng_key(extended):
    pass


class ExtendedDType:
    pass


class TypePromotionError(ValueError):
    pass


def default_int_dtype():
    return np.dtype(np.int64 if config.enable_x64.value else np.int32)


def default_uint_dtype():
    return np.dtype(np.uint64 if config.enable_x64.value else np.uint32)


def default_float_dtype():
    return np.dtype(np.float64 if config.enable_x64.value else np.float32)


def default_complex_dtype():
    return np.dtype(np.complex128 if config.enable_x64.value else np.complex64)


int_, uint, float_, complex_ = np.int64, np.uint64, np.float64, np.complex128
default_types = {
    "b": lambda: np.dtype(np.bool_),
    "i": default_int_dtype,
    "u": default_uint_dtype,
    "f": default_float_dtype,
    "c": default_complex_dtype,
}


def canonicalize_dtype(dtype, allow_extended_dtype=False):
    if isinstance(dtype, type) and dtype in python_scalar_types_to_dtypes:
        dtype = python_scalar_types_to_dtypes[dtype]
    dtype = np.dtype(dtype)
    if not config.enable_x64.value and dtype.name in _SMALLER:
        return np.dtype(_SMALLER[dtype.name])
    return dtype


def canonicalize_value(x):
    return x


def dtype(x, *, canonicalize=False):
    if isinstance(x, type) and x in python_scalar_types_to_dtypes:
        found = python_scalar_types_to_dtypes[x]
    elif type(x) in python_scalar_types_to_dtypes:
        found = python_scalar_types_to_dtypes[type(x)]
    elif isinstance(x, (str, type, np.dtype, rlx.dtype)):
        found = np.dtype(x)
    elif hasattr(x, "dtype"):
        found = np.dtype(x.dtype)
    else:
        found = np.asarray(x).dtype
    return canonicalize_dtype(found) if canonicalize else found


def scalar_type_of(x):
    kind = dtype(x)
    if np.issubdtype(kind, np.bool_):
        return bool
    for group, scalar in ((np.integer, int), (np.floating, float), (np.complexfloating, complex)):
        if issubdtype(kind, group):
            return scalar
    raise TypeError(x)


def issubdtype(a, b):
    a = a if isinstance(a, type) and issubclass(a, np.generic) and a in (np.generic, np.number) else a
    if b in (extended, prng_key) or a in (extended, prng_key):
        return a is b
    try:
        name = np.dtype(a).name
    except TypeError:
        return np.issubdtype(a, b)
    if name in {t.name for t in _custom_float_dtypes}:
        if b in (np.floating, np.inexact, np.number, np.generic, rnp.floating, rnp.inexact, rnp.number):
            return True
        return (
            not isinstance(b, type)
            and np.dtype(b).name == name
            or isinstance(b, type)
            and (not issubclass(b, np.generic) or b in _custom_float_scalar_types)
            and _same(b, name)
        )
    if name in ("int2", "int4", "uint2", "uint4"):
        groups = {np.integer, np.number, np.generic, rnp.integer, rnp.number}
        groups |= {np.unsignedinteger, rnp.unsignedinteger} if name[0] == "u" else {np.signedinteger, rnp.signedinteger}
        return b in groups or _same(b, name)
    if getattr(b, "__module__", "") == "rlx.numpy":
        b = getattr(np, b.__name__)
    if isinstance(b, rlx.dtype):
        b = np.dtype(b)
    if b in (float8_e4m3fn, bfloat16):
        return False
    return bool(np.issubdtype(np.dtype(a), b))


def _same(b, name):
    try:
        return np.dtype(b).name == name
    except TypeError:
        return False


def isdtype(a, kind):
    return rnp.isdtype(a, kind)


def finfo(x):
    return ml_dtypes.finfo(dtype(x))


def iinfo(x):
    return ml_dtypes.iinfo(dtype(x))


def itemsize_bits(x):
    name = np.dtype(x).name
    return {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}.get(name, np.dtype(x).itemsize * 8)


bit_width = itemsize_bits


def _reduced(found):
    return canonicalize_dtype(np.dtype(found))


def result_type(*args, return_weak_type_flag=False):
    found = _reduced(rnp.result_type(*args))
    return (found, all(is_weakly_typed(a) for a in args)) if return_weak_type_flag else found


def promote_types(a, b):
    return np.dtype(rnp.promote_types(a, b))


def to_inexact_dtype(x):
    kind = np.dtype(x)
    if issubdtype(kind, np.inexact):
        return kind
    return (
        np.dtype(np.float64) if kind.name in ("int64", "uint64") and config.enable_x64.value else np.dtype(np.float32)
    )


def to_floating_dtype(x):
    kind = to_inexact_dtype(x)
    return {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}.get(kind, kind)


def to_complex_dtype(x):
    return np.dtype(np.complex128 if to_inexact_dtype(x) in (np.float64, np.complex128) else np.complex64)


def to_numeric_dtype(x):
    kind = np.dtype(x)
    return np.dtype(np.int32) if kind == np.bool_ else kind


def is_weakly_typed(x):
    return type(x) in python_scalar_types_to_dtypes or bool(getattr(x, "weak_type", False))


def is_python_scalar(x):
    return type(x) in python_scalar_types_to_dtypes


def check_user_dtype_supported(dtype, fun_name=None):
    return np.dtype(dtype)


def check_and_canonicalize_user_dtype(dtype, fun_name=None):
    return canonicalize_dtype(dtype)


def coerce_to_array(x, dtype=None):
    return np.asarray(x, dtype)


def safe_to_cast(a, b):
    return promote_types(a, b) == np.dtype(b)


def is_string_dtype(dtype):
    return False


bfloat16_dtype = np.dtype(bfloat16)
