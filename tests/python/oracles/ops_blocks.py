"""Blocks of several ops, in JAX."""

import jax.numpy as jnp

from . import dtypes
from .catalogue import OPS, add
from .ops_attention import attention, draw_attention, rope
from .ops_norms import layer_norm, rms_norm

F = dtypes.FLOATS
ACTS = ("gelu", "silu", "relu", "tanh", "sigmoid")


def act(name, x):
    return OPS[name].jax([x], {}, {}) if name else x


def _weights(b, x, *shapes):
    return [b.like(x, "unit", s) for s in shapes]


def _make_linear(b):
    x = b.pick(F, 1, 3, least=1)
    k, n = b.shape(x)[-1], b.extent()
    args = [x, *_weights(b, x, (k, n))]
    t = {"activation": b.dice.pick((None, *ACTS))}
    if b.dice.chance(60):
        args += _weights(b, x, (n,))
        t["has_bias"] = True
    return args, {}, t


def linear(x, w, bias=None, activation=None):
    y = x @ w
    return act(activation, y if bias is None else y + bias)


add("linear", "linear", _make_linear, lambda a, n, t: linear(*a, activation=t["activation"]), weight=8, places=8)


def _make_linear_fused(b):
    x = b.pick(F, 1, 3, least=1)
    k, n = b.shape(x)[-1], b.extent()
    return [x, *_weights(b, x, (k, n), (n,))], {}, {"activation": b.dice.pick((None, *ACTS))}


add(
    "linear_fused",
    "linear_fused",
    _make_linear_fused,
    lambda a, n, t: linear(*a, activation=t["activation"]),
    weight=5,
    places=8,
)


def _make_pair(b):
    x = b.pick(F, 1, 3, least=1)
    k = b.shape(x)[-1]
    return [x, *_weights(b, x, (k, b.extent()), (k, b.extent()))], {}, {}


add("shared_linear_pair", "shared_linear_pair", _make_pair, lambda a, n, t: (a[0] @ a[1], a[0] @ a[2]), weight=4)


def _make_swiglu(b):
    x = b.pick(F, 2, 3, least=1)
    k, n = b.shape(x)[-1], b.extent()
    return [x, *_weights(b, x, (k, n), (k, n), (n, b.extent()))], {}, {}


def swiglu(x, up, gate, down):
    return (act("silu", x @ gate) * (x @ up)) @ down


add("swiglu", "swiglu", _make_swiglu, lambda a, n, t: swiglu(*a), weight=4, places=16)


def _make_fused_swiglu(b):
    x = b.pick(F, 1, 3)
    if b.shape(x)[-1] % 2:
        x = b.like(x, shape=(*b.shape(x)[:-1], 2 * b.dice.between(0, 3)))
    return [x], {}, {"gate_first": b.dice.chance(50)}


def _fused_swiglu(a, n, t):
    half = a[0].shape[-1] // 2
    first, second = a[0][..., :half], a[0][..., half:]
    gate, up = (first, second) if t["gate_first"] else (second, first)
    return up * act("silu", gate)


add("fused_swiglu", "fused_swiglu", _make_fused_swiglu, _fused_swiglu, weight=5, places=8)


def _make_fused_attention(b):
    t = draw_attention(b, ("none", "causal", "sliding_window", "custom", "bias"))
    d = b.dice
    kind = b.kind(F)
    batch, seq, e = d.between(1, 2), d.pick((1, 2, 4)), d.pick((2, 3, 4))
    h, kv, dim = t["num_heads"], t["kv_heads"], t["head_dim"]
    x = b.pick((kind,), 0, 9, shape=(batch, seq, e))
    width, out = (h + 2 * kv) * dim, d.pick((2, 3))
    args = [x, *_weights(b, x, (e, width), (h * dim, out))]
    if d.chance(50):
        args += _weights(b, x, (width,), (out,))
        t["has_bias"] = True
    if t["mask"] in ("custom", "bias"):
        args.append(b.new("bool" if t["mask"] == "custom" else kind, (seq, seq)))
    return args, {}, t


def _fused_attention(a, n, t):
    x, w_qkv, w_out, *rest = a
    h, kv, dim = t["num_heads"], t["kv_heads"], t["head_dim"]
    z = x @ w_qkv
    if t.get("has_bias"):
        z = z + rest[0]
    q, k, v = z[..., : h * dim], z[..., h * dim : (h + kv) * dim], z[..., (h + kv) * dim :]
    mask = rest[2:] if t.get("has_bias") else rest
    y = attention(q, k, v, dict(t, layout="merged"), *mask)[0] @ w_out
    return y + rest[1] if t.get("has_bias") else y


add("fused_attention_block", "fused_attention_block", _make_fused_attention, _fused_attention, weight=4, places=64)


def _make_encoder(b):
    d = b.dice
    kind = b.kind(F)
    h, dim = d.between(1, 2), d.pick((1, 2))
    e, inner = d.pick((2, 3, 4)), d.pick((2, 3))
    x = b.pick((kind,), 0, 9, shape=(d.between(1, 2), d.pick((1, 2, 4)), e))
    w = h * dim
    args = [
        x,
        *_weights(
            b,
            x,
            (e, w),
            (w,),
            (e, w),
            (w,),
            (e, w),
            (w,),
            (w, e),
            (e,),
            (e,),
            (e,),
            (e, inner),
            (inner,),
            (inner, e),
            (e,),
            (e,),
            (e,),
        ),
    ]
    t = {
        "num_heads": h,
        "head_dim": dim,
        "mask": d.pick(("none", "causal", "custom")),
        "eps": 1e-2,
        "activation": d.pick(ACTS),
    }
    if t["mask"] == "custom":
        seq = b.shape(x)[1]
        args.append(b.new("bool", (seq, seq)))
    return args, {}, t


def _encoder(a, n, t):
    x, wq, bq, wk, bk, wv, bv, wo, bo, g1, b1, w_up, b_up, w_down, b_down, g2, b2, *mask = a
    t2 = {"num_heads": t["num_heads"], "kv_heads": t["num_heads"], "head_dim": t["head_dim"], "mask": t["mask"]}
    y = attention(x @ wq + bq, x @ wk + bk, x @ wv + bv, t2, *mask)[0]
    norm = lambda z, g, b: layer_norm(z, (z.ndim - 1,), t["eps"], {"gamma": g, "beta": b})[0]  # noqa: E731
    h = norm(y @ wo + bo + x, g1, b1)
    return norm(act(t["activation"], h @ w_up + b_up) @ w_down + b_down + h, g2, b2)


add("encoder_block", "encoder_block", _make_encoder, _encoder, weight=3, places=256)


def _make_llama(b):
    d = b.dice
    kind = b.kind(F)
    kv, dim = d.between(1, 2), d.pick((2, 4))
    h = kv * d.between(1, 2)
    e, inner = d.pick((2, 3, 4)), d.pick((2, 3))
    seq = d.pick((1, 2, 4))
    x = b.pick((kind,), 0, 9, shape=(d.between(1, 2), seq, e))
    args = [
        x,
        *_weights(
            b,
            x,
            (e,),
            (e, h * dim),
            (e, kv * dim),
            (e, kv * dim),
            (h * dim, e),
            (e,),
            (e, inner),
            (e, inner),
            (inner, e),
            (seq, dim // 2),
            (seq, dim // 2),
        ),
    ]
    t = {"num_heads": h, "kv_heads": kv, "head_dim": dim, "mask": d.pick(("none", "causal", "custom")), "eps": 1e-2}
    if t["mask"] == "custom":
        args.append(b.new("bool", (seq, seq)))
    return args, {}, t


def _llama(a, n, t):
    x, g1, wq, wk, wv, wo, g2, w_gate, w_up, w_down, cos, sin, *mask = a
    turn = {"head_dim": t["head_dim"], "n_rot": t["head_dim"]}
    z = rms_norm(x, (2,), t["eps"], {"gamma": g1})[0]
    y = attention(rope(z @ wq, cos, sin, turn), rope(z @ wk, cos, sin, turn), z @ wv, t, *mask)[0]
    s = y @ wo + x
    return swiglu(rms_norm(s, (2,), t["eps"], {"gamma": g2})[0], w_up, w_gate, w_down) + s


add("llama_decoder_block", "llama_decoder_block", _make_llama, _llama, weight=3, places=256)
