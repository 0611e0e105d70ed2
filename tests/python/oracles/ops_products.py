"""Products, in JAX."""

import jax.numpy as jnp
from jax import lax

from . import dtypes
from .catalogue import add

F = dtypes.FLOATS
TYPES = F + dtypes.INTS + dtypes.COMPLEX


def _make_matmul(b):
    x = b.pick(TYPES, 2, 4, low=-2, high=2)
    s = b.shape(x)
    batch = list(s[:-2])
    for k in range(len(batch)):
        if b.dice.chance(25):
            batch[k] = 1
    batch = batch[b.dice.below(len(batch) + 1) :]
    y = b.like(x, "unit", (*batch, s[-1], b.extent()), -2, 2)
    return [x, y], {}, {}


add("matmul", "matmul", _make_matmul, lambda a, n, t: jnp.matmul(a[0], a[1]), weight=25, places=4)


def _make_dot_general(b):
    x = b.pick(TYPES, 0, 4, low=-2, high=2)
    s, d = b.shape(x), b.dice
    order = d.shuffled(list(range(len(s))))
    batch = order[: d.below(min(len(s), 2) + 1)]
    contract = order[len(batch) : len(batch) + d.below(3)]
    free = [b.extent() for _ in range(d.below(3 - min(len(batch), 2)) + (not batch and not contract))]
    axes = [("b", k) for k in batch] + [("c", k) for k in contract] + [("f", k) for k in range(len(free))]
    axes = d.shuffled(axes)
    shape = [free[k] if what == "f" else s[k] for what, k in axes]
    y = b.like(x, "unit", shape, -2, 2)
    attrs = {
        "lhs_contract": contract,
        "rhs_contract": [axes.index(("c", k)) for k in contract],
        "lhs_batch": batch,
        "rhs_batch": [axes.index(("b", k)) for k in batch],
    }
    if d.chance(20) and b.dtype(x) in ("bfloat16", "float16"):
        attrs["out"] = "float32"
    if d.chance(60) and b.dtype(x) in ("int8", "uint8"):
        attrs["out"] = "int32"
    return [x, y], {}, attrs


def _dot_general(a, n, t):
    dims = ((tuple(t["lhs_contract"]), tuple(t["rhs_contract"])), (tuple(t["lhs_batch"]), tuple(t["rhs_batch"])))
    out = dtypes.of(t["out"]) if t.get("out") else a[0].dtype
    return lax.dot_general(a[0], a[1], dims, preferred_element_type=out)


add("dot_general", "dot_general", _make_dot_general, _dot_general, weight=25, places=4)


def _make_rows(b):
    d = b.dice
    x = b.pick(TYPES, 2, 2)
    m, k = b.shape(x)
    e = d.between(1, 4)
    w = b.like(x, "unit", (e, k, b.extent()))
    ids = b.new(d.pick(("int32", "int64")), (m,), "whole", 0 if d.chance(70) else -1, e - 1 if d.chance(70) else e)
    return [x, w, ids], {}, {}


def _rows(a, n, t):
    x, w, ids = a
    e = w.shape[0]
    own = (ids[:, None] == jnp.arange(e, dtype=ids.dtype)).astype(x.dtype)
    return jnp.einsum("me,mk,ekn->mn", own, x, w).astype(x.dtype)


add("grouped_dot_rows", "grouped_dot", _make_rows, _rows, weight=6, places=4)


def _make_contract(b):
    d = b.dice
    x = b.pick(TYPES, 2, 2)
    m, _ = b.shape(x)
    y = b.like(x, "unit", (m, b.extent()))
    e = d.between(1, 4)
    ids = b.new(d.pick(("int32", "int64")), (m,), "whole", 0 if d.chance(70) else -1, e - 1 if d.chance(70) else e)
    return [x, y, ids], {}, {"groups": e}


def _contract(a, n, t):
    x, y, ids = a
    own = (ids[:, None] == jnp.arange(t["groups"], dtype=ids.dtype)).astype(x.dtype)
    return jnp.einsum("me,mk,mn->ekn", own, x, y).astype(x.dtype)


add("grouped_dot_contract", "grouped_dot", _make_contract, _contract, weight=6, places=4)


# -- what passes make of products: as ops of their own --


def _graph_of(fun, values):
    """fun as a graph, for operands like these."""
    import rlx

    return rlx.trace(fun, *[rlx.ShapeDtype(shape, dtype) for shape, dtype in values])


def _make_fused_dot(b):
    x = b.pick(("float32", "float64"), 2, 2)
    y = b.like(x, "unit", (b.shape(x)[1], b.extent()))
    args = [x, y]
    if b.dice.chance(60):
        args.append(b.like(x, shape=(b.shape(y)[1],)))
    return args, {}, {"kind": b.dice.pick(("tanh", "gelu", "relu"))}


def _fused_dot_rlx(args, named, attrs):
    import rlx

    x, y, *rest = args
    shapes = [((x.shape[0], y.shape[1]), x.dtype), *[(r.shape, r.dtype) for r in rest]]
    act = getattr(rlx.ops, attrs["kind"])
    body = _graph_of(lambda acc, *bias: act(rlx.ops.add(acc, bias[0]) if bias else acc), shapes)
    return rlx.ops.fused_dot(*args, lhs_contract=[1], rhs_contract=[0], epilogue=body)


def _act(kind):
    from .catalogue import OPS

    return lambda x: OPS[kind].jax([x], {}, {})


def _fused_dot(a, n, t):
    z = a[0] @ a[1]
    return _act(t["kind"])(z + a[2] if len(a) > 2 else z)


add("fused_dot", "fused_dot", _make_fused_dot, _fused_dot, rlx=_fused_dot_rlx, weight=6, places=8)


def _make_region(b):
    x = b.pick(("float32", "float64", "bfloat16"), 0, 3)
    return [x, b.partner(x)], {}, {"kind": b.dice.pick(("tanh", "sigmoid", "neg"))}


def _region_rlx(args, named, attrs):
    import rlx

    act = getattr(rlx.ops, attrs["kind"])
    body = _graph_of(lambda x, y: act(rlx.ops.mul(x, y)), [(v.shape, v.dtype) for v in args])
    return rlx.ops.elementwise_region(*args, body=body)


add(
    "elementwise_region",
    "elementwise_region",
    _make_region,
    lambda a, n, t: _act(t["kind"])(a[0] * a[1]),
    rlx=_region_rlx,
    weight=6,
    places=8,
)


def _make_fused_conv(b):
    d = b.dice
    x = b.pick(("float32", "float64"), 4, 4)
    last = d.chance(50)
    depth, out = b.shape(x)[3 if last else 1], b.extent()
    taps = [d.between(1, 3), d.between(1, 3)]
    w = b.like(x, "unit", [*taps, depth, out] if last else [out, depth, *taps])
    args = [x, w]
    if d.chance(60):
        args.append(b.like(x, shape=(out,) if last else (out, 1, 1)))
    pads = [d.below(3) for _ in range(4)]
    attrs = {"last": last, "strides": [d.between(1, 2), d.between(1, 2)], "low": pads[:2], "high": pads[2:]}
    return args, {}, attrs | {"kind": d.pick(("tanh", "gelu", "relu"))}


def _conv_axes(last):
    return {"lhs_spec": [0, 3, 1, 2], "rhs_spec": [3, 2, 0, 1], "out_spec": [0, 3, 1, 2]} if last else {}


def _fused_conv_rlx(args, named, attrs):
    import rlx

    x, w, *rest = args
    conv = {k: attrs[k] for k in ("strides", "low", "high")} | _conv_axes(attrs["last"])
    acc = _graph_of(lambda a, b: rlx.ops.conv(a, b, **conv), [(v.shape, v.dtype) for v in (x, w)])
    shapes = [(acc.outputs[0].shape, x.dtype), *[(r.shape, r.dtype) for r in rest]]
    act = getattr(rlx.ops, attrs["kind"])
    body = _graph_of(lambda acc, *bias: act(rlx.ops.add(acc, bias[0]) if bias else acc), shapes)
    return rlx.ops.fused_conv(*args, **conv, epilogue=body)


def _fused_conv(a, n, t):  # tap by tap: a product of what the tap meets
    x, w = (a[0], a[1]) if t["last"] else (a[0].transpose(0, 2, 3, 1), a[1].transpose(2, 3, 1, 0))
    x = jnp.pad(x, ((0, 0), (t["low"][0], t["high"][0]), (t["low"][1], t["high"][1]), (0, 0)))
    (rows, cols), (down, right) = w.shape[:2], t["strides"]
    tall = max((x.shape[1] - rows) // down + 1, 0)
    wide = max((x.shape[2] - cols) // right + 1, 0)
    z = jnp.zeros((x.shape[0], tall, wide, w.shape[3]), x.dtype)
    for i in range(rows):
        for k in range(cols):
            z = z + x[:, i : i + tall * down : down, k : k + wide * right : right][:, :tall, :wide] @ w[i, k]
    z = z if t["last"] else z.transpose(0, 3, 1, 2)
    return _act(t["kind"])(z + a[2] if len(a) > 2 else z)


add("fused_conv", "fused_conv", _make_fused_conv, _fused_conv, rlx=_fused_conv_rlx, weight=6, places=8)
