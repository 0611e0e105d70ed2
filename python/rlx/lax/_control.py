"""Loops, branches and scans with the arguments of jax.lax."""

from .. import _control, _rlx, tree
from .. import numpy as rnp
from .._jit import cached_live
from .._control import cond, map, switch  # noqa: F401
from .._names import renamed_arguments
from .._transforms import stop_gradient  # noqa: F401


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    """Runs f(carry, x) -> (carry, y) for every row x of xs. Returns (the last carry, the stacked ys)."""
    return _control.scan(f, init, xs, length, reverse)


@renamed_arguments(max_trips="max_iterations")
def while_loop(cond_fun, body_fun, init_val, *, max_iterations=None):
    """Runs carry = body_fun(carry) while cond_fun(carry) is true; max_iterations is that of rlx.while_loop."""
    return _control.while_loop(cond_fun, body_fun, init_val, max_iterations)


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """Runs carry = body_fun(i, carry) for i from lower to upper - 1."""
    return _control.fori_loop(lower, upper, body_fun, init_val)


def optimization_barrier(operand):
    """Returns the tree unchanged. The compiler does not merge or move operations across it."""
    leaves, treedef = tree.flatten(operand)
    if not _rlx.tracing():
        return operand
    return treedef.unflatten(_rlx.barrier([_rlx.value(x) for x in leaves]))


def associative_scan(fn, elems, reverse=False, axis=0):
    """The scan of rows with an associative function, in a number of steps that is logarithmic in the number of rows.

    fn(a, b) joins two trees of rows elementwise, along `axis`. The grouping of its calls is not specified.
    """
    if not callable(fn):
        raise TypeError("associative_scan(fn, elems): fn must be a function of two trees")
    if not _rlx.tracing():
        run = lambda: lambda xs: associative_scan(fn, xs, reverse, axis)  # noqa: E731
        return cached_live(("associative_scan", bool(reverse), axis), (fn,), run)(elems)
    leaves, treedef = tree.flatten(elems)
    rows = [rnp.moveaxis(rnp.asarray(x), axis, 0) for x in leaves]
    if len({x.shape[0] for x in rows}) != 1:
        raise ValueError(f"associative_scan: arrays with {[x.shape[0] for x in rows]} rows; the numbers must be equal")
    if reverse:
        rows = [rnp.flip(x, 0) for x in rows]

    def back(x):
        return rnp.moveaxis(rnp.asarray(x), 0, axis)

    def join(a, b):
        joined = fn(treedef.unflatten([back(x) for x in a]), treedef.unflatten([back(x) for x in b]))
        return [rnp.moveaxis(x, axis, 0) for x in tree.leaves(joined)]

    rows = _prefixes(join, rows)
    if reverse:
        rows = [rnp.flip(x, 0) for x in rows]
    return treedef.unflatten([back(x) for x in rows])


def _prefixes(join, rows):
    """The scan of rows. The scan of pairs gives every second result; one more step gives the others."""
    count = rows[0].shape[0]
    if count < 2:
        return rows
    pairs = _prefixes(join, join([x[: count // 2 * 2 : 2] for x in rows], [x[1::2] for x in rows]))
    if count == 2:
        return [rnp.concatenate([x[:1], p]) for x, p in zip(rows, pairs)]
    between = join([p[: (count - 1) // 2] for p in pairs], [x[2::2] for x in rows])
    out = []
    for x, p, b in zip(rows, pairs, between):
        even = rnp.concatenate([x[:1], b])
        n = p.shape[0]
        woven = rnp.reshape(rnp.stack([even[:n], p], 1), (2 * n, *p.shape[1:]))
        out.append(woven if count % 2 == 0 else rnp.concatenate([woven, even[n:]]))
    return out
