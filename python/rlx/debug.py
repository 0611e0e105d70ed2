"""Printing and calling Python from compiled functions, as in jax.debug."""

import builtins as _builtins

from . import _rlx, tree as _tree
from ._custom import debug_callback as _debug_callback
from ._names import getattr_of as _getattr_of


def callback(fun, *args, **kwargs):
    """Calls fun with the arrays at run time, as NumPy arrays, and drops its result. Under rlx.vmap it is called for
    each row.
    """
    if not callable(fun):
        raise TypeError(f"debug.callback: fun must be a function, got {fun!r} ({type(fun).__name__})")
    leaves, treedef = _tree.flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, (_rlx.Value, _rlx.Array)) or _rlx.is_array_leaf(x)]

    def call(*arrays):
        full = list(leaves)
        for i, a in zip(places, arrays):
            full[i] = a
        positional, named = treedef.unflatten(full)
        fun(*positional, **named)

    if not _rlx.tracing() and not any(isinstance(leaves[i], _rlx.Value) for i in places):
        import numpy as np

        call(*[np.asarray(leaves[i]) for i in places])
    else:
        _debug_callback(call, [leaves[i] for i in places])


def print(fmt, *args, **kwargs):
    """Prints fmt.format(*args, **kwargs) at run time: rlx.debug.print("loss {x}", x=loss). Under rlx.vmap it prints for
    each row.
    """
    if not isinstance(fmt, str):
        raise TypeError(f'debug.print: fmt must be a text such as "x = {{}}", got {type(fmt).__name__}')
    for name in ("ordered", "partitioned"):  # options of JAX; prints are always in order
        kwargs.pop(name, None)

    def show(*args, **kwargs):
        _builtins.print(fmt.format(*args, **kwargs), flush=True)

    callback(show, *args, **kwargs)


__getattr__ = _getattr_of(
    "rlx.debug", {"breakpoint": "breakpoint() inside rlx.disable_jit(), or in rlx.debug.callback"}
)
