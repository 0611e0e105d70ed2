"""Products of vectors and matrices."""

import builtins as _b

from .. import _rlx
from .._einsum import from_lists, path, sums
from ._base import axis_of, cast, node, op, typed, value
from ._complex import conj
from ._shapes import astype, broadcast_shapes, broadcast_to, expand_dims, moveaxis, ravel, reshape, shape
from ._ufuncs import multiply


def _preferred(x, y, preferred):
    x, y = typed(x, y)
    return (x, y) if preferred is None else (cast(x, preferred), cast(y, preferred))


@op("x", "y")
def matmul(x, y, *, precision=None, preferred_element_type=None):
    """The matrix product over the last two axes; leading axes broadcast."""
    x, y = _preferred(x, y, preferred_element_type)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError("matmul: an operand is a scalar; use *")
    if x.dtype.kind == "b":  # True where a pair of elements is
        return node("ne", _rlx.matmul([cast(x, "int32"), cast(y, "int32")]), 0)
    return _rlx.matmul([x, y])


@op("x", "y")
def dot(x, y, *, precision=None, preferred_element_type=None):
    """The inner product over the last axis of x and the second last (or only) axis of y; the product if one is a
    scalar.
    """
    x, y = _preferred(x, y, preferred_element_type)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (_b.max(y.ndim - 2, 0),)))


@op("x", "y")
def vdot(x, y, *, precision=None, preferred_element_type=None):
    """The inner product of all elements, with the conjugate of x."""
    x, y = _preferred(x, y, preferred_element_type)
    return tensordot(conj(ravel(x)), ravel(y), 1)


@op("x", "y")
def inner(x, y, *, precision=None, preferred_element_type=None):
    """Inner products over the last axes."""
    x, y = _preferred(x, y, preferred_element_type)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


@op("x", "y")
def outer(x, y):
    """x[i] * y[j]."""
    return multiply(expand_dims(ravel(x), 1), expand_dims(ravel(y), 0))


@op("x", "y")
def vecdot(x, y, *, axis=-1, precision=None, preferred_element_type=None):
    """Inner products along an axis, with the conjugate of x. Other axes broadcast."""
    x, y = _preferred(x, y, preferred_element_type)
    x, y = moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"vecdot: axes with {x.shape[-1]} and {y.shape[-1]} entries")
    out = matmul(expand_dims(conj(x), -2), expand_dims(y, -1))
    return out[..., 0, 0]


@op("x", "y")
def matvec(x, y):
    """Matrix-vector products. Leading axes broadcast."""
    x, y = typed(x, y)
    if x.ndim < 2 or y.ndim < 1:
        raise ValueError(f"matvec: {x.ndim} and {y.ndim} axes; they must be matrices and vectors")
    return matmul(x, expand_dims(y, -1))[..., 0]


@op("x", "y")
def vecmat(x, y):
    """Vector-matrix products with conjugated vectors. Leading axes broadcast."""
    x, y = typed(x, y)
    if x.ndim < 1 or y.ndim < 2:
        raise ValueError(f"vecmat: {x.ndim} and {y.ndim} axes; they must be vectors and matrices")
    return matmul(expand_dims(conj(x), -2), y)[..., 0, :]


@op("x", "y")
def tensordot(x, y, axes=2, *, precision=None, preferred_element_type=None):
    """The product summed over pairs of axes: the last `axes` axes of x and the first of y, or (axes of x, axes of
    y).
    """
    x, y = _preferred(x, y, preferred_element_type)
    if isinstance(axes, int):
        if axes < 0 or axes > _b.min(x.ndim, y.ndim):
            raise ValueError(f"tensordot: {axes} axes for arrays with {x.ndim} and {y.ndim} axes")
        left, right = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        left, right = (list(a) if isinstance(a, (tuple, list)) else [a] for a in axes)
    left = [axis_of(a, x.ndim, "tensordot") for a in left]
    right = [axis_of(a, y.ndim, "tensordot") for a in right]
    if len(left) != len(right):
        raise ValueError(f"tensordot: {len(left)} axes of the first array and {len(right)} of the second")
    for a, b in zip(left, right):
        if x.shape[a] != y.shape[b]:
            raise ValueError(
                f"tensordot: axis {a} of the first array has {x.shape[a]} entries, axis {b} of the second {y.shape[b]}"
            )
    return _dot(x, y, left, right)


def _dot(x, y, left, right):
    if x.dtype.kind == "b":  # a sum of bools is True if one of them is
        x, y = cast(x, "int32"), cast(y, "int32")
        return node("ne", _dot(x, y, left, right), 0)
    return node("dot_general", x, y, lhs_contract=left, rhs_contract=right, lhs_batch=[], rhs_batch=[])


@op("x", "y")
def kron(x, y):
    """The Kronecker product: x with each element replaced by its multiple of y."""
    x, y = value(x), value(y)
    rank = _b.max(x.ndim, y.ndim)
    a, b = ((1,) * (rank - v.ndim) + tuple(v.shape) for v in (x, y))
    wide_x = reshape(x, tuple(d for k in range(rank) for d in (a[k], 1)))
    wide_y = reshape(y, tuple(d for k in range(rank) for d in (1, b[k])))
    return reshape(multiply(wide_x, wide_y), tuple(m * n for m, n in zip(a, b)))


@op("x", "y")
def cross(x, y, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The cross product of vectors with two or three entries. Two vectors with two entries give the third entry of the
    product alone.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = typed(x, y)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    n, m = x.shape[-1], y.shape[-1]
    if n not in (2, 3) or m not in (2, 3):
        raise ValueError(f"cross: vectors with {n} and {m} entries; they must have two or three")
    shape = broadcast_shapes(x.shape[:-1], y.shape[:-1])
    x, y = broadcast_to(x, (*shape, n)), broadcast_to(y, (*shape, m))
    a, b = [x[..., k] for k in range(n)], [y[..., k] for k in range(m)]

    def minor(i, j):
        parts = [node("mul", a[p], b[q]) if p < n and q < m else None for p, q in ((i, j), (j, i))]
        if parts[0] is None:
            return node("neg", parts[1]) if parts[1] is not None else None
        return parts[0] if parts[1] is None else node("sub", *parts)

    last = minor(0, 1)
    if n == m == 2:
        return last
    entries = [expand_dims(e, -1) for e in (minor(1, 2), minor(2, 0), last)]
    return moveaxis(node("concat", *entries, axis=len(shape)), -1, axisc)


def einsum(subscripts, *operands, optimize=True, precision=None, preferred_element_type=None):
    """Einstein summation: "bik,bkj->bij", with ... for any axes; or each operand followed by a list with the numbers of
    its axes, and last the list of the result. The cheapest pairs are multiplied first; optimize=False multiplies from
    left to right.
    """
    if not isinstance(subscripts, str):
        subscripts, operands = from_lists((subscripts, *operands))
    if preferred_element_type is not None:
        operands = [astype(o, preferred_element_type) for o in operands]
    return _einsum(subscripts, *operands, optimize=_b.bool(optimize))


@op("operands")
def _einsum(subscripts, *operands, optimize=True):
    return sums(subscripts, operands, optimize)


def einsum_path(subscripts, *operands, optimize="greedy"):
    """(the order in which einsum multiplies pairs, as in NumPy; a sentence about it)."""
    if not isinstance(subscripts, str):
        subscripts, operands = from_lists((subscripts, *operands))
    pairs = path(subscripts, [shape(o) for o in operands])
    return ["einsum_path", *pairs], "pairs in the order in which they are multiplied"


@op("x")
def _power_of_matrix(x, n):
    out = None
    while n:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return out
