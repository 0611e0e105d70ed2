"""Matrix products."""

from .. import _rlx
from .. import numpy as rnp
from .._nodes import cast, node
from .._op import op


@op("lhs", "rhs")
def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None):
    """The product over contracting and batch axes: ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)).

    The result has the batch axes, then the other axes of lhs, then those of rhs.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    axes = {"lhs_contract": lhs_contract, "rhs_contract": rhs_contract, "lhs_batch": lhs_batch, "rhs_batch": rhs_batch}
    lhs, rhs = _rlx.value(lhs), _rlx.value(rhs)
    dtype = _rlx.result_type(lhs, rhs)[0]
    wanted = dtype if preferred_element_type is None else _rlx.dtype(preferred_element_type)
    if wanted.kind in "fc" and dtype.kind in "iu":
        dtype = wanted
    if dtype.kind == wanted.kind == "b":  # True where a pair of elements is
        counts = node("dot_general", cast(lhs, "int32"), cast(rhs, "int32"), out=_rlx.dtype("int32"), **axes)
        return node("ne", counts, 0)
    out = node("dot_general", cast(lhs, dtype), cast(rhs, dtype), out=wanted, **axes)
    return cast(out, wanted)


@op("lhs", "rhs")
def dot(lhs, rhs, *, precision=None, preferred_element_type=None):
    """The product of vectors and matrices, over the last axis of lhs and the first axis of rhs."""
    lhs, rhs = _rlx.value(lhs), _rlx.value(rhs)
    if not (1 <= lhs.ndim <= 2 and 1 <= rhs.ndim <= 2):
        raise TypeError(f"dot takes vectors and matrices, not shapes {lhs.shape} and {rhs.shape}; see dot_general")
    return dot_general(lhs, rhs, (((lhs.ndim - 1,), (0,)), ((), ())), None, preferred_element_type)


@op("lhs", "rhs")
def batch_matmul(lhs, rhs, precision=None):
    """Matrix products over the last two axes. The other axes are batch axes."""
    return rnp.matmul(lhs, rhs)
