"""Linear algebra of the ops that rlx has: products, norms, and powers of matrices.

Factorisations (cholesky, qr, svd, eigh) and what is made of them (inv, solve, det, pinv, norms by singular values)
are not here: they come with ops of their own.
"""

import math as _math

from .._arrays import asarray
from ._base import axes_of, axis_of, inexact, node, op, value
from ._creation import eye
from ._products import cross as _cross
from ._products import matmul, outer as _outer, tensordot, vecdot
from ._reductions import max, min, sum
from ._shapes import broadcast_to, diagonal as _diagonal, matrix_transpose, reshape, trace as _trace
from ._ufuncs import abs, sqrt

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __getattr__(name):
    raise AttributeError(
        f"rlx.numpy.linalg has no {name!r}: it has {', '.join(__all__)}; factorisations are not there yet"
    )


def _squares(x):
    if x.dtype.kind != "c":
        return node("square", x)
    from ._complex import parts

    re, im = parts(x)
    return node("add", node("square", re), node("square", im))


def _vector(x, ord, axis, keepdims):
    if ord == 2:
        return sqrt(sum(_squares(x), axis, keepdims=keepdims))
    size = abs(x)
    if ord == _math.inf:
        return max(size, axis, keepdims=keepdims)
    if ord == -_math.inf:
        return min(size, axis, keepdims=keepdims)
    if ord == 0:
        return sum(node("ne", size, 0), axis, size.dtype, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"norm: ord {ord!r} of vectors")
    total = sum(node("pow", size, float(ord)), axis, keepdims=keepdims)
    return node("pow", total, 1.0 / ord)


def _matrix(x, ord, axes, keepdims):
    rows, columns = axes
    if rows == columns:
        raise ValueError("norm: the two axes are one")
    if ord in (None, "fro", "f"):
        return sqrt(sum(_squares(x), axes, keepdims=keepdims))
    if ord in (2, -2, "nuc"):
        raise NotImplementedError(
            f'norm: ord {ord!r} is made of singular values, and rlx has no op for them yet; "fro", 1 and inf are there'
        )
    if ord not in (1, -1, _math.inf, -_math.inf):
        raise ValueError(f"norm: ord {ord!r} of matrices")
    along, over = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = sum(abs(x), along, keepdims=True)
    out = (max if ord > 0 else min)(sums, over, keepdims=True)
    if keepdims:
        return out
    return reshape(out, tuple(d for a, d in enumerate(x.shape) if a not in axes))


@op("x")
def norm(x, ord=None, axis=None, keepdims=False):
    """The norm of vectors (one axis), matrices (two), or all elements. ord: None, a number, inf, -inf; of matrices
    "fro",
    1, -1, inf, -inf.
    """
    x = inexact(x)
    if axis is None:
        if ord is None:
            out = sqrt(sum(_squares(x)))
            return reshape(out, (1,) * x.ndim) if keepdims else out
        if x.ndim not in (1, 2):
            raise ValueError(f"norm: ord of an array with {x.ndim} axes: name one axis or two")
        axis = tuple(range(x.ndim))
    axes = tuple(axis_of(a, x.ndim, "norm") for a in (axis if isinstance(axis, tuple) else (axis,)))
    if len(axes) == 1:
        return _vector(x, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(f"norm: {len(axes)} axes; one or two")
    return _matrix(x, ord, axes, keepdims)


@op("x")
def vector_norm(x, *, axis=None, keepdims=False, ord=2):
    """The norm of vectors along an axis, several joined to one, or all."""
    x = inexact(x)
    if axis is None or isinstance(axis, tuple):
        axes = axes_of(axis, x.ndim, "vector_norm")
        rest = [a for a in range(x.ndim) if a not in axes]
        kept = tuple(1 if a in axes else d for a, d in enumerate(x.shape))
        x = node("transpose", x, perm=rest + axes)
        x = reshape(x, (*[x.shape[k] for k in range(len(rest))], _math.prod(x.shape[len(rest) :])))
        out = _vector(x, ord, x.ndim - 1, False)
        return reshape(out, kept) if keepdims else out
    return _vector(x, ord, axis_of(axis, x.ndim, "vector_norm"), keepdims)


@op("x")
def matrix_norm(x, *, keepdims=False, ord="fro"):
    """The norm of matrices in the last two axes."""
    x = inexact(x)
    return _matrix(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


@op("x")
def matrix_power(x, n):
    """Square matrices in the last two axes, multiplied n times; n is a Python integer from 0 on."""
    x = value(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power of shape {x.shape}: the last two axes are equal")
    if n < 0:
        raise NotImplementedError("matrix_power: negative powers need the inverse, for which rlx has no op yet")
    if n == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    from ._products import _power_of_matrix

    return _power_of_matrix(x, n)


@op("*arrays")
def multi_dot(arrays):
    """The product of several matrices, in the cheapest order; the first and the last may be vectors."""
    values = [value(a) for a in arrays]
    if len(values) < 2:
        raise ValueError("multi_dot: two matrices or more")
    first, last = values[0].ndim == 1, values[-1].ndim == 1
    values[0] = reshape(values[0], (1, -1)) if first else values[0]
    values[-1] = reshape(values[-1], (-1, 1)) if last else values[-1]
    if any(v.ndim != 2 for v in values):
        raise ValueError("multi_dot: matrices, and vectors at the ends")
    sizes = [values[0].shape[0]] + [v.shape[1] for v in values]
    for a, b in zip(values, values[1:]):
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"multi_dot: shapes {a.shape} and {b.shape} side by side")
    best = {}

    def cheapest(i, j):
        if i == j:
            return 0, None
        if (i, j) not in best:
            best[i, j] = sorted(
                (cheapest(i, k)[0] + cheapest(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )[0]
        return best[i, j]

    def product(i, j):
        if i == j:
            return values[i]
        k = cheapest(i, j)[1]
        return matmul(product(i, k), product(k + 1, j))

    out = product(0, len(values) - 1)
    return reshape(out, (() if first else out.shape[:1]) + (() if last else out.shape[1:]))


def cross(x, y, *, axis=-1):
    """The cross product of vectors with three entries along an axis."""
    x, y = asarray(x), asarray(y)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ValueError(f"linalg.cross: vectors of {x.shape[axis]} and {y.shape[axis]} entries; they have three")
    return _cross(x, y, axis=axis)


@op("x", "y")
def outer(x, y):
    """x[i] * y[j] of two vectors."""
    x, y = value(x), value(y)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"linalg.outer: {x.ndim} and {y.ndim} axes; both are vectors")
    return _outer(x, y)


@op("x")
def diagonal(x, *, offset=0):
    """The diagonals of matrices in the last two axes."""
    return _diagonal(x, offset, -2, -1)


@op("x")
def trace(x, *, offset=0, dtype=None):
    """The sums of diagonals of matrices in the last two axes."""
    return _trace(x, offset, -2, -1, dtype)
