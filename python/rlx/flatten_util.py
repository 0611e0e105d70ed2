"""jax.flatten_util: a tree of arrays as one vector."""

import math as _math

from . import numpy as _rnp
from . import tree as _tree
from ._names import accept_names as _accept_names


def ravel_pytree(pytree):
    """(all elements of a tree of arrays as one vector [n] of their common dtype, the function that makes trees from
    such vectors).
    """
    leaves, treedef = _tree.flatten(pytree)
    leaves = [_rnp.asarray(x) for x in leaves]
    kinds = [(x.shape, x.dtype, _math.prod(x.shape)) for x in leaves]

    def unravel(flat):
        flat, parts, at = _rnp.asarray(flat), [], 0
        total = sum(size for _, _, size in kinds)
        if flat.shape != (total,):
            raise ValueError(f"unravel: an array of shape {flat.shape}, the tree has {total} elements")
        for shape, dtype, size in kinds:
            parts.append(_rnp.astype(_rnp.reshape(flat[at : at + size], shape), dtype))
            at += size
        return treedef.unflatten(parts)

    if not leaves:
        return _rnp.zeros((0,)), unravel
    return _rnp.concatenate([_rnp.ravel(x) for x in leaves]), unravel


_accept_names(globals())
