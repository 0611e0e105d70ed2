"""Gather and scatter of the evaluator, as XLA defines them (https://openxla.org/xla/operation_semantics)."""

import numpy as np

from . import dtypes
from .evaluator import rule


def _windows(shape, indices, sizes, start_map, operand_batching, indices_batching, clip):
    """For each place of the batch: (position in the batch, start of the window), None where it does not fit."""
    batch = indices.shape[:-1]
    out = []
    for place in np.ndindex(*batch):
        start = [0] * len(shape)
        for k, d in enumerate(start_map):
            start[d] = int(indices[place][k])
        for d, i in zip(operand_batching, indices_batching):
            start[d] = place[i]
        fits = all(0 <= s <= n - w for s, n, w in zip(start, shape, sizes))
        if not fits and clip:
            start = [min(max(s, 0), n - w) for s, n, w in zip(start, shape, sizes)]
            fits = True
        out.append((place, start if fits else None))
    return out


def _mode(params):
    return str(params["mode"]).upper()


@rule("gather")
def _gather(ev, eqn, ins):
    p = eqn.params
    x, indices = ins
    dn, sizes = p["dimension_numbers"], p["slice_sizes"]
    gone = set(dn.collapsed_slice_dims) | set(dn.operand_batching_dims)
    kept = [d for d in range(x.ndim) if d not in gone]
    aval = eqn.outvars[0].aval
    out = np.zeros(aval.shape, x.dtype)
    fill = "FILL" in _mode(p)
    value = p.get("fill_value")
    if value is None:
        value = {
            "f": np.nan,
            "c": np.nan,
            "i": np.iinfo(x.dtype).min if x.dtype.kind == "i" else 0,
            "u": np.iinfo(x.dtype).max if x.dtype.kind == "u" else 0,
            "b": True,
        }[x.dtype.kind]
    batch_dims = [d for d in range(out.ndim) if d not in dn.offset_dims]
    clip = not fill  # XLA clamps; the promise of indices in bounds is about no more than that
    for place, start in _windows(
        x.shape, indices, sizes, dn.start_index_map, dn.operand_batching_dims, dn.start_indices_batching_dims, clip
    ):
        where = [slice(None)] * out.ndim
        for d, i in zip(batch_dims, place):
            where[d] = i
        if start is None:
            out[tuple(where)] = value
            continue
        window = x[tuple(slice(s, s + w) for s, w in zip(start, sizes))]
        out[tuple(where)] = window.reshape([window.shape[d] for d in kept])
    return out


def _scatter(put, kind):
    def run(ev, eqn, ins):
        p = eqn.params
        x, indices, updates = ins
        dn, name = p["dimension_numbers"], eqn.outvars[0].aval.dtype.name
        gone = set(dn.inserted_window_dims) | set(dn.operand_batching_dims)
        kept = [d for d in range(x.ndim) if d not in gone]
        sizes = [1] * x.ndim
        for d, u in zip(kept, dn.update_window_dims):
            sizes[d] = updates.shape[u]
        scatter_dims = [d for d in range(updates.ndim) if d not in dn.update_window_dims]
        out, terms = np.array(x), np.abs(x) if x.dtype.kind in "fc" else None
        clip = "CLIP" in _mode(p)
        touched = np.zeros(x.shape, int)
        for place, start in _windows(
            x.shape,
            indices,
            sizes,
            dn.scatter_dims_to_operand_dims,
            dn.operand_batching_dims,
            dn.scatter_indices_batching_dims,
            clip,
        ):
            if start is None:
                continue
            where = [slice(None)] * updates.ndim
            for d, i in zip(scatter_dims, place):
                where[d] = i
            target = tuple(slice(s, s + w) for s, w in zip(start, sizes))
            u = updates[tuple(where)].reshape(sizes)
            with np.errstate(all="ignore"):
                out[target] = put(out[target], u)
                if kind == "add" and terms is not None:
                    terms[target] += np.abs(u)
            touched[target] += 1
        if not dtypes.is_inexact(name) or kind == "set":
            return out
        if kind == "add":
            moved = ev.summed(out, lambda: terms, name)
            return np.where(touched > 0, moved, out)
        return np.where(touched > 0, ev.moved(out, name, True), out) if kind == "mul" else out

    return run


rule("scatter")(_scatter(lambda a, b: b, "set"))
rule("scatter-add", "scatter_add")(_scatter(np.add, "add"))
rule("scatter-sub", "scatter_sub")(_scatter(np.subtract, "add"))
rule("scatter-mul", "scatter_mul")(_scatter(np.multiply, "mul"))
rule("scatter-min", "scatter_min")(_scatter(np.minimum, "min"))
rule("scatter-max", "scatter_max")(_scatter(np.maximum, "max"))
