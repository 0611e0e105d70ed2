"""Ops that read or write at indices known at run time, in JAX."""

import jax.numpy as jnp
from jax import lax

from . import dtypes
from .catalogue import add

ANY = dtypes.ALL


def _in_range(indices, extents):
    good = True
    for i, e in zip(indices, extents):
        good = good & (i >= 0) & (i < e)
    return good


def _moved_front(x, axes):
    rest = [k for k in range(x.ndim) if k not in axes]
    return jnp.transpose(x, [*axes, *rest]), rest


def _gather(a, n, t):
    x, *indices = a
    axes = t["axes"]
    extents = [x.shape[k] for k in axes]
    front, rest = _moved_front(x, axes)
    clamped = tuple(jnp.clip(i, 0, e - 1) for i, e in zip(indices, extents))
    y = front[clamped]  # [indices.., rest..]
    if t["mode"] == "fill":
        good = _in_range(indices, extents)
        good = good.reshape(good.shape + (1,) * len(rest))
        y = jnp.where(good, y, jnp.asarray(t["fill"], x.dtype))
    r, lead = indices[0].ndim, axes[0]
    order = [r + k for k in range(lead)] + list(range(r)) + [r + k for k in range(lead, len(rest))]
    return jnp.transpose(y, order)


def _make_gather(b):
    x = b.pick(ANY, 1, 3, least=1)
    axes = b.axes(x, 1)
    shape = b.shape_of(0, 2)
    indices = [b.index(shape, b.shape(x)[k]) for k in axes]
    t = b.dtype(indices[0])
    indices = [i if b.dtype(i) == t else b.new(t, shape, "whole", 0, b.shape(x)[k] - 1) for i, k in zip(indices, axes)]
    attrs = {"axes": axes, "mode": b.dice.pick(("clamp", "fill"))}
    attrs["fill"] = 1 if attrs["mode"] == "fill" and b.dtype(x) != "bool" else 0
    return [x, *indices], {}, attrs


add("gather", "gather", _make_gather, _gather, weight=14, places=0)


def _scatter(kind):
    def run(a, n, t):
        x, *indices, updates = a
        if x.dtype == bool and kind != "set":  # JAX has no greatest of truth values
            return run([x.astype(jnp.int8), *indices, updates.astype(jnp.int8)], n, t).astype(bool)
        axes = t["axes"]
        extents = [x.shape[k] for k in axes]
        front, rest = _moved_front(x, axes)
        r, lead = indices[0].ndim, axes[0]
        # updates have the dims of a gather: indices where the first axis was
        order = list(range(lead, lead + r)) + list(range(lead)) + list(range(lead + r, updates.ndim))
        u = jnp.transpose(updates, order)
        if t["mode"] == "clamp":
            where = tuple(jnp.clip(i, 0, e - 1) for i, e in zip(indices, extents))
        else:
            good = _in_range(indices, extents)
            where = tuple(jnp.where(good, i, e) for i, e in zip(indices, extents))
        ref = front.at[where]
        put = {"set": ref.set, "add": ref.add, "mul": ref.multiply, "min": ref.min, "max": ref.max}[kind]
        y = put(u, mode="drop")
        back = [0] * x.ndim
        for k, axis in enumerate([*axes, *rest]):
            back[axis] = k
        return jnp.transpose(y, back)

    return run


def _make_scatter(kind):
    if kind in ("min", "max"):
        types = dtypes.BOOL + dtypes.NUMBERS
    else:
        types = ANY if kind == "set" else dtypes.NUMBERS + (dtypes.COMPLEX if kind in ("add", "mul") else ())

    def make(b):
        x = b.pick(types, 1, 3, least=1)
        axes = b.axes(x, 1)
        shape = b.shape_of(0, 2)
        wide = b.dice.pick(("int32", "int64"))
        indices = []
        for k in axes:
            e = b.shape(x)[k]
            low, high = (0, e - 1) if b.dice.chance(75) else (-1, e)
            indices.append(b.new(wide, shape, "whole", low, high))
        rest = [e for k, e in enumerate(b.shape(x)) if k not in axes]
        lead = axes[0]
        updates = b.like(x, "above_one" if kind == "mul" else "normal", (*rest[:lead], *shape, *rest[lead:]), 1, 3)
        return [x, *indices, updates], {}, {"axes": axes, "mode": b.dice.pick(("drop", "clamp"))}

    return make


for _kind in ("set", "add", "mul", "min", "max"):
    add(
        f"scatter_{_kind}",
        "scatter",
        _make_scatter(_kind),
        _scatter(_kind),
        weight=5,
        places=0 if _kind in ("set", "min", "max") else 8,
    )


def _starts(b, x, sizes):
    e = max([n - s for n, s in zip(b.shape(x), sizes)], default=0)
    return b.new(b.dice.pick(("int32", "int64")), (b.rank(x),), "whole", -1 if b.dice.chance(25) else 0, e + 1)


def _make_dynamic_slice(b):
    x = b.pick(ANY, 1, 3)
    sizes = [b.dice.between(min(1, e), e) for e in b.shape(x)]
    return [x, _starts(b, x, sizes)], {}, {"sizes": sizes}


def _list(starts, rank):
    return [starts[k] for k in range(rank)]


def _clamped(starts, shape, sizes):
    # XLA clamps too, but counts negative starts from the end in jax.numpy's wrappers
    return [jnp.clip(s, 0, n - k) for s, n, k in zip(starts, shape, sizes)]


def _dynamic_slice(a, n, t):
    x, starts = a
    return lax.dynamic_slice(x, _clamped(_list(starts, x.ndim), x.shape, t["sizes"]), t["sizes"])


add("dynamic_slice", "dynamic_slice", _make_dynamic_slice, _dynamic_slice, places=0)


def _make_dynamic_update_slice(b):
    x = b.pick(ANY, 1, 3)
    sizes = [b.dice.between(min(1, e), e) for e in b.shape(x)]
    return [x, b.like(x, shape=sizes), _starts(b, x, sizes)], {}, {}


def _dynamic_update_slice(a, n, t):
    x, update, starts = a
    return lax.dynamic_update_slice(x, update, _clamped(_list(starts, x.ndim), x.shape, update.shape))


add("dynamic_update_slice", "dynamic_update_slice", _make_dynamic_update_slice, _dynamic_update_slice, places=0)


def _make_top_k(b):
    x = b.pick(dtypes.NUMBERS, 1, 3, least=1)
    return [x], {}, {"k": b.dice.between(1, b.shape(x)[-1])}


add("top_k", "top_k", _make_top_k, lambda a, n, t: tuple(lax.top_k(a[0], t["k"])), places=0)


def _make_sort(b):
    x = b.pick(dtypes.BOOL + dtypes.NUMBERS, 1, 3)
    more = [b.pick(dtypes.NUMBERS, 0, 9, shape=b.shape(x)) for _ in range(b.dice.below(3))]
    return [x, *more], {}, {"axis": b.axis(x), "descending": b.dice.chance(40)}


def _sort(a, n, t):
    axis = t["axis"]
    if not t["descending"]:
        out = lax.sort(a, dimension=axis, is_stable=True, num_keys=1)
    else:  # stable too: the ascending order of the flipped operands, flipped
        out = [jnp.flip(x, axis) for x in lax.sort([jnp.flip(x, axis) for x in a], dimension=axis, num_keys=1)]
    return tuple(out) if len(out) > 1 else out[0]


add("sort", "sort", _make_sort, _sort, places=0)
