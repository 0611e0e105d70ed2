"""Ops that move elements, in JAX."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import dtypes
from .catalogue import NoFit, add

ANY = dtypes.ALL


def _factors(b, n, most=4):
    """A shape of n elements."""
    d = b.dice
    if n == 0:
        shape = [0] + [b.extent() for _ in range(d.below(3))]
        return d.shuffled(shape)
    shape = []
    while n > 1 and len(shape) < most - 1:
        options = [k for k in range(1, n + 1) if n % k == 0]
        k = d.pick(options)
        shape.append(k)
        n //= k
    if n > 1 or d.chance(20):
        shape.append(n)
    return d.shuffled(shape)


def _make_reshape(b):
    x = b.pick(ANY, 0, 4)
    return [x], {}, {"dims": _factors(b, int(np.prod(b.shape(x), dtype=int)))}


add("reshape", "reshape", _make_reshape, lambda a, n, t: jnp.reshape(a[0], tuple(t["dims"])), places=0)


def _make_transpose(b):
    x = b.pick(ANY, 1, 4)
    return [x], {}, {"perm": b.dice.shuffled(list(range(b.rank(x))))}


add("transpose", "transpose", _make_transpose, lambda a, n, t: jnp.transpose(a[0], t["perm"]), places=0)


def _make_expand(b):
    x = b.pick(ANY, 0, 3)
    dims = [b.dice.between(1, 4) if e == 1 and b.dice.chance(70) else e for e in b.shape(x)]
    if len(dims) < 4 and b.dice.chance(60):
        dims = [b.dice.between(1, 3)] + dims
    if int(np.prod(dims, dtype=int)) > 400:
        raise NoFit()
    return [x], {}, {"dims": dims}


add("expand", "expand", _make_expand, lambda a, n, t: jnp.broadcast_to(a[0], tuple(t["dims"])), places=0)


def _make_slice(b):
    x = b.pick(ANY, 1, 4)
    starts, limits, strides = [], [], []
    for e in b.shape(x):
        s = b.dice.between(0, e)
        starts.append(s if b.dice.chance(50) else 0)
        limits.append(b.dice.between(starts[-1], e) if b.dice.chance(60) else e)
        strides.append(b.dice.pick((1, 1, 1, 2, 3)))
    return [x], {}, {"starts": starts, "limits": limits, "strides": strides}


add("slice", "slice", _make_slice, lambda a, n, t: lax.slice(a[0], t["starts"], t["limits"], t["strides"]), places=0)


def _make_concat(b):
    x = b.pick(ANY, 1, 3)
    axis = b.axis(x)
    xs = [x]
    for _ in range(b.dice.below(3)):
        shape = list(b.shape(x))
        if b.dice.chance(40):
            shape[axis] = b.dice.between(0, 3)
        xs.append(b.like(x, shape=shape))
    return xs, {}, {"axis": axis}


add("concat", "concat", _make_concat, lambda a, n, t: lax.concatenate(a, t["axis"]), places=0)


def _make_pad(b):
    x = b.pick(ANY, 1, 3)
    value = b.like(x, shape=())
    low, high, interior = [], [], []
    for e in b.shape(x):
        low.append(b.dice.between(-1 if e > 1 else 0, 2))
        high.append(b.dice.between(-1 if e > 2 else 0, 2))
        interior.append(b.dice.pick((0, 0, 0, 1, 2)))
    return [x, value], {}, {"low": low, "high": high, "interior": interior}


def _pad(a, n, t):
    # Not lax.pad of both: JAX fails at second derivatives by the value.
    x, value = a
    config = list(zip(t["low"], t["high"], t["interior"]))
    inside = lax.pad(np.ones(x.shape, bool), np.False_, config)
    return jnp.where(inside, lax.pad(x, jnp.zeros((), x.dtype), config), value)


add("pad", "pad", _make_pad, _pad, places=0)


def _make_reverse(b):
    x = b.pick(ANY, 1, 4)
    return [x], {}, {"axes": b.axes(x, 1)}


add("reverse", "reverse", _make_reverse, lambda a, n, t: lax.rev(a[0], t["axes"]), places=0)


def _make_iota(b):
    dims = b.shape_of(1, 3)
    types = dtypes.INTS + dtypes.FLOATS
    return [], {}, {"dims": list(dims), "dtype": b.dice.pick(types), "axis": b.dice.below(len(dims))}


add(
    "iota",
    "iota",
    _make_iota,
    lambda a, n, t: lax.broadcasted_iota(dtypes.of(t["dtype"]), tuple(t["dims"]), t["axis"]),
    smooth=False,
    weight=3,
)


def _make_dim_size(b):
    x = b.pick(ANY, 1, 3)
    return [x], {}, {"axis": b.axis(x)}


add(
    "dim_size",
    "dim_size",
    _make_dim_size,
    lambda a, n, t: jnp.asarray(a[0].shape[t["axis"]], jnp.int64),
    smooth=False,
    weight=2,
)


def _make_barrier(b):
    xs = [b.pick(ANY, 0, 3) for _ in range(b.dice.between(1, 3))]
    return xs, {}, {}


add(
    "optimization_barrier",
    "optimization_barrier",
    _make_barrier,
    lambda a, n, t: tuple(lax.optimization_barrier(a)),
    places=0,
    weight=3,
)


# -- collectives of one rank: what they give where nobody else takes part --


def _same(a, n, t):
    return a[0]


_SUMS = dtypes.NUMBERS + dtypes.COMPLEX


def _collective(name, rlx_attrs, make=None):
    def run(args, named, attrs):
        import rlx

        return getattr(rlx.ops, name)(*args, mesh_axes="x", ranks=1, **attrs)

    add(
        name,
        name,
        make or (lambda b: ([b.pick(_SUMS, 1, 3, least=1)], {}, rlx_attrs(b))),
        _same,
        rlx=run,
        places=0,
        weight=2,
    )


def _with_axis(*names, types=dtypes.ALL):
    def make(b):
        x = b.pick(types, 1, 3, least=1)
        return [x], {}, {n: b.axis(x) for n in names}

    return make


def _make_all_reduce(b):
    x = b.pick(_SUMS, 1, 3, least=1)
    kind = dtypes.kind(b.dtype(x))
    return [x], {}, {"fn": b.dice.pick({"f": ("sum", "mean", "max"), "c": ("sum", "mean")}.get(kind, ("sum", "min")))}


_collective("all_reduce", None, _make_all_reduce)
_collective("permute", None, lambda b: ([b.pick(dtypes.ALL, 1, 3, least=1)], {}, {"pairs": [0, 0]}))
_collective("all_gather", None, _with_axis("axis"))
_collective("reduce_scatter", None, _with_axis("axis", types=_SUMS))
_collective("all_to_all", None, _with_axis("split", "concat"))


def _axis_index_rlx(args, named, attrs):
    import rlx

    return rlx.ops.axis_index(mesh_axes="x", ranks=1)


add(
    "axis_index",
    "axis_index",
    lambda b: ([], {}, {}),
    lambda a, n, t: jnp.asarray(0, jnp.int64),
    rlx=_axis_index_rlx,
    smooth=False,
    weight=1,
)
