"""jax._src.numpy.util: promotion for the NumPy oracles of tests."""

import numpy as np
from jax._src import dtypes


def _to(kind, args):
    return [np.asarray(a).astype(kind) if not hasattr(a, "alive") else a.astype(kind) for a in args]


def promote_dtypes(*args):
    return _to(dtypes.result_type(*args), args) if args else []


def promote_dtypes_inexact(*args):
    return _to(dtypes.to_inexact_dtype(dtypes.result_type(*args)), args) if args else []


def promote_dtypes_numeric(*args):
    return _to(dtypes.to_numeric_dtype(dtypes.result_type(*args)), args) if args else []


def promote_dtypes_complex(*args):
    return _to(dtypes.to_complex_dtype(dtypes.result_type(*args)), args) if args else []
