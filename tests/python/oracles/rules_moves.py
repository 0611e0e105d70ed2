"""Primitives of the evaluator that move elements."""

import numpy as np

from . import dtypes
from .evaluator import rule


@rule("broadcast_in_dim")
def _broadcast_in_dim(ev, eqn, ins):
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    x = ins[0]
    own = [1] * len(shape)
    for k, d in enumerate(dims):
        own[d] = x.shape[k]
    return np.broadcast_to(x.reshape(own), shape)


@rule("reshape")
def _reshape(ev, eqn, ins):
    order = eqn.params.get("dimensions")
    x = ins[0] if order is None else np.transpose(ins[0], order)
    return x.reshape(eqn.params["new_sizes"])


@rule("transpose")
def _transpose(ev, eqn, ins):
    return np.transpose(ins[0], eqn.params["permutation"])


@rule("squeeze")
def _squeeze(ev, eqn, ins):
    return np.squeeze(ins[0], tuple(eqn.params["dimensions"]))


@rule("expand_dims")
def _expand_dims(ev, eqn, ins):
    return np.expand_dims(ins[0], tuple(eqn.params["dimensions"]))


@rule("slice")
def _slice(ev, eqn, ins):
    p = eqn.params
    strides = p["strides"] or [1] * ins[0].ndim
    return ins[0][tuple(slice(a, b, s) for a, b, s in zip(p["start_indices"], p["limit_indices"], strides))]


@rule("concatenate")
def _concatenate(ev, eqn, ins):
    return np.concatenate(ins, eqn.params["dimension"])


@rule("empty", "empty2")
def _empty(ev, eqn, ins):
    aval = eqn.outvars[0].aval
    kind = dtypes.kind(aval.dtype.name)
    return np.zeros(aval.shape, {"f": np.float64, "c": np.complex128}.get(kind, aval.dtype))


@rule("stack")
def _stack(ev, eqn, ins):
    return np.stack(ins, eqn.params.get("axis", 0))


@rule("unstack")
def _unstack(ev, eqn, ins):
    axis = eqn.params.get("axis", 0)
    return [np.take(ins[0], k, axis) for k in range(ins[0].shape[axis])]


@rule("split")
def _split(ev, eqn, ins):
    at = np.cumsum(eqn.params["sizes"])[:-1]
    return np.split(ins[0], at, eqn.params["axis"])


@rule("pad")
def _pad(ev, eqn, ins):
    x, value = ins
    for axis, (low, high, interior) in enumerate(eqn.params["padding_config"]):
        n = x.shape[axis]
        spread = n + max(n - 1, 0) * interior
        shape = list(x.shape)
        shape[axis] = max(low, 0) + spread + max(high, 0)
        out = np.full(shape, value, x.dtype)
        where = [slice(None)] * x.ndim
        where[axis] = slice(max(low, 0), max(low, 0) + spread, interior + 1)
        if n:
            out[tuple(where)] = x
        where[axis] = slice(max(-low, 0), shape[axis] - max(-high, 0))
        x = out[tuple(where)]
    return x


@rule("rev")
def _rev(ev, eqn, ins):
    return np.flip(ins[0], tuple(eqn.params["dimensions"]))


@rule("iota")
def _iota(ev, eqn, ins):
    p = eqn.params
    name = np.dtype(p["dtype"]).name
    d = p["dimension"]
    line = np.arange(p["shape"][d])
    line = line.astype(np.float64 if dtypes.kind(name) == "f" else dtypes.of(name))
    own = [1] * len(p["shape"])
    own[d] = -1
    return np.broadcast_to(line.reshape(own), p["shape"])


@rule("dynamic_slice")
def _dynamic_slice(ev, eqn, ins):
    x, *starts = ins
    sizes = eqn.params["slice_sizes"]
    at = [min(max(int(s), 0), n - k) for s, n, k in zip(starts, x.shape, sizes)]
    return x[tuple(slice(a, a + k) for a, k in zip(at, sizes))]


@rule("dynamic_update_slice")
def _dynamic_update_slice(ev, eqn, ins):
    x, update, *starts = ins
    at = [min(max(int(s), 0), n - k) for s, n, k in zip(starts, x.shape, update.shape)]
    out = np.array(x)
    out[tuple(slice(a, a + k) for a, k in zip(at, update.shape))] = update
    return out


def sort_order(keys, axis):
    """The stable order of keys, NaN last."""
    return np.argsort(keys, axis, kind="stable")


@rule("sort")
def _sort(ev, eqn, ins):
    axis = eqn.params["dimension"]
    order = None
    for k in reversed(range(eqn.params["num_keys"])):
        key = ins[k] if order is None else np.take_along_axis(ins[k], order, axis)
        key = np.where(key == 0, 0, key)
        step = np.argsort(key, axis, kind="stable")
        order = step if order is None else np.take_along_axis(order, step, axis)
    return [np.take_along_axis(x, order, axis) for x in ins]


@rule("top_k")
def _top_k(ev, eqn, ins):
    k, axis = eqn.params["k"], eqn.params.get("axis", -1)
    x = np.moveaxis(ins[0], axis, -1)
    # Descending and stable: the order of the flipped line, flipped. NaN is the largest.
    order = np.flip(x.shape[-1] - 1 - np.argsort(np.flip(x, -1), -1, kind="stable"), -1)[..., :k]
    return [np.moveaxis(v, -1, axis) for v in (np.take_along_axis(x, order, -1), order.astype(np.int32))]


@rule("bitcast_convert_type")
def _bitcast(ev, eqn, ins):
    to = np.dtype(eqn.params["new_dtype"])
    x = np.ascontiguousarray(ins[0].astype(eqn.invars[0].aval.dtype))
    y = x.view(to).reshape(eqn.outvars[0].aval.shape)
    return y.astype(np.float64) if dtypes.kind(to.name) == "f" else y
