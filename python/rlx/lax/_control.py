"""Loops, branches and scans with jax.lax's arguments."""

from .. import _control, _rlx, tree
from .. import numpy as rnp
from .._jit import cached_jit
from .._control import cond, map, switch  # noqa: F401
from .._transforms import stop_gradient  # noqa: F401


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    """Runs f(carry, x) -> (carry, y) for every row x of xs: (last carry, ys stacked)."""
    return _control.scan(f, init, xs, length, reverse)


def while_loop(cond_fun, body_fun, init_val, *, max_trips=None):
    """body_fun again and again on the carry as long as cond_fun(carry) is true; see rlx.while_loop for max_trips."""
    return _control.while_loop(cond_fun, body_fun, init_val, max_trips)


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """carry = body_fun(i, carry) for i from lower to upper - 1."""
    return _control.fori_loop(lower, upper, body_fun, init_val)


def optimization_barrier(operand):
    """A tree's arrays as they are; nothing is merged or moved across here."""
    leaves, form = tree.flatten(operand)
    if not _rlx.tracing():
        return operand
    return form.unflatten(_rlx.barrier([_rlx.value(x) for x in leaves]))


def associative_scan(fn, elems, reverse=False, axis=0):
    """fn of all rows up to each one, in a number of steps that grows as the logarithm of the rows.

    fn(a, b) joins two trees of rows elementwise, along `axis`, and must not care how they are grouped.
    """
    if not callable(fn):
        raise TypeError("associative_scan(fn, elems): fn is a function of two trees")
    if not _rlx.tracing():
        run = lambda: lambda xs: associative_scan(fn, xs, reverse, axis)  # noqa: E731
        return cached_jit(("associative_scan", fn, reverse, axis), run)(elems)
    leaves, form = tree.flatten(elems)
    rows = [rnp.moveaxis(rnp.asarray(x), axis, 0) for x in leaves]
    if len({x.shape[0] for x in rows}) != 1:
        raise ValueError(f"associative_scan: arrays with {[x.shape[0] for x in rows]} rows; all have as many")
    if reverse:
        rows = [rnp.flip(x, 0) for x in rows]

    def back(x):
        return rnp.moveaxis(rnp.asarray(x), 0, axis)

    def join(a, b):
        joined = fn(form.unflatten([back(x) for x in a]), form.unflatten([back(x) for x in b]))
        return [rnp.moveaxis(x, axis, 0) for x in tree.leaves(joined)]

    rows = _prefixes(join, rows)
    if reverse:
        rows = [rnp.flip(x, 0) for x in rows]
    return form.unflatten([back(x) for x in rows])


def _prefixes(join, rows):
    """The scan of rows: that of the pairs gives every second result, one more step those between."""
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
