"""Attention and rotary position, in JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from . import dtypes
from .catalogue import add
from .ops_norms import wide

F = dtypes.FLOATS


def _split(x, heads, layout):
    """[B, H, S, D] of a layout."""
    if layout == "heads_first":
        return x
    if layout == "merged":
        x = x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads)
    return jnp.transpose(x, (0, 2, 1, 3))


def _join(x, layout):
    if layout == "heads_first":
        return x
    x = jnp.transpose(x, (0, 2, 1, 3))
    return x.reshape(x.shape[0], x.shape[1], -1) if layout == "merged" else x


def visible(t, s_q, s_k, kv_len, q_len, batch):
    """[B, 1, S_q, S_k]: which keys a row may see by lengths and positions, and [B, S_q]: which rows there are."""
    kv = jnp.full((batch,), s_k) if kv_len is None else jnp.clip(kv_len, 0, s_k)
    q = jnp.full((batch,), s_q) if q_len is None else jnp.clip(q_len, 0, s_q)
    at = kv[:, None] - q[:, None] + jnp.arange(s_q)[None]
    j = jnp.arange(s_k)
    see = jnp.broadcast_to(j[None, None] < kv[:, None, None], (batch, s_q, s_k))
    if t["mask"] in ("causal", "sliding_window"):
        see = see & (j[None, None] <= at[..., None])
    if t["mask"] == "sliding_window":
        see = see & (j[None, None] >= at[..., None] - t["window"])
    return see[:, None], jnp.arange(s_q)[None] < q[:, None]


def attention(q, k, v, t, mask=None, kv_len=None, q_len=None, sinks=None):
    """(y, lse): see rlx/ir/ops/attention.h."""
    heads, kv_heads, layout = t["num_heads"], t["kv_heads"], t.get("layout", "merged")
    kind = q.dtype
    q4, k4, v4 = _split(wide(q), heads, layout), _split(wide(k), kv_heads, layout), _split(wide(v), kv_heads, layout)
    k4, v4 = (jnp.repeat(x, heads // kv_heads, 1) for x in (k4, v4))
    scale = t.get("scale")
    s = jnp.einsum("bhqd,bhkd->bhqk", q4, k4) * (t["head_dim"] ** -0.5 if scale is None else scale)
    if t.get("softcap"):
        s = t["softcap"] * jnp.tanh(s / t["softcap"])
    b, _, s_q, s_k = s.shape
    see, rows = visible(t, s_q, s_k, kv_len, q_len, b)
    see = jnp.broadcast_to(see, s.shape)
    if mask is not None:
        m = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        if t["mask"] == "custom":
            see = see & (m if m.dtype == bool else m >= 0.5)
        else:
            s = s + wide(m)
    see = see & rows[:, None, :, None]
    top = jnp.max(jnp.where(see, s, -jnp.inf), -1, keepdims=True, initial=-jnp.inf)
    if sinks is not None:
        sink = wide(sinks).reshape((-1, heads, 1, 1)) if sinks.ndim == 2 else wide(sinks).reshape((1, heads, 1, 1))
        sink = jnp.where(rows[:, None, :, None], sink, -jnp.inf)
        top = jnp.maximum(top, sink)
    top = jax.lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0))
    e = jnp.where(see, jnp.exp(jnp.where(see, s - top, 0)), 0)
    total = jnp.sum(e, -1, keepdims=True)
    if sinks is not None:
        total = total + jnp.where(rows[:, None, :, None], jnp.exp(sink - top), 0)
    safe = jnp.where(total > 0, total, 1)
    y = jnp.einsum("bhqk,bhkd->bhqd", e / safe, v4)
    lse = jnp.where(total[..., 0] > 0, jnp.log(safe[..., 0]) + top[..., 0], -jnp.inf)
    return _join(y, layout).astype(kind), lse


def _lay(batch, seq, heads, dim, layout):
    return {"merged": (batch, seq, heads * dim), "heads_first": (batch, heads, seq, dim)}.get(
        layout, (batch, seq, heads, dim)
    )


def draw_attention(b, kinds=("none", "causal", "sliding_window", "custom", "bias")):
    d = b.dice
    kv = d.between(1, 2)
    t = {"num_heads": kv * d.between(1, 2), "kv_heads": kv, "head_dim": d.pick((1, 2, 4)), "mask": d.pick(kinds)}
    if t["mask"] == "sliding_window":
        t["window"] = d.between(0, 3)
    if d.chance(30):
        t["scale"] = d.pick((0.25, 1.0))
    if d.chance(25):
        t["softcap"] = d.pick((1.5, 4.0))
    return t


def _make_attention(b):
    d, t = b.dice, draw_attention(b)
    t["layout"] = d.pick(("merged", "heads_first", "heads_inner"))
    if d.chance(25):
        t["v_head_dim"] = d.pick((1, 3))
    vd = t.get("v_head_dim", t["head_dim"])
    batch, s_q = d.between(1, 2), d.pick((1, 2, 3, 5))
    s_k = s_q if d.chance(50) else d.pick((1, 2, 4, 6))
    kind = b.kind(F)
    h, kv = t["num_heads"], t["kv_heads"]
    get = lambda shape: b.pick((kind,), 0, 9, shape=shape)  # noqa: E731
    q = get(_lay(batch, s_q, h, t["head_dim"], t["layout"]))
    k = get(_lay(batch, s_k, kv, t["head_dim"], t["layout"]))
    v = get(_lay(batch, s_k, kv, vd, t["layout"]))
    args, named = [q, k, v], {}
    if t["mask"] in ("custom", "bias"):
        shape = d.pick(((s_q, s_k), (batch, 1, 1, s_k), (batch, h, s_q, s_k), (1, s_q, s_k)))
        args.append(b.new("bool" if t["mask"] == "custom" else kind, shape))
    if d.chance(25):
        named["kv_len"] = b.new("int32", (batch,), "whole", 0, s_k)
    if d.chance(20):
        named["q_len"] = b.new("int32", (batch,), "whole", 0, s_q)
    if d.chance(25):
        named["sinks"] = b.new(kind, (h,))
    return args, named, t


def _attention(a, n, t):
    q, k, v, *mask = a
    return attention(q, k, v, t, *mask, kv_len=n.get("kv_len"), q_len=n.get("q_len"), sinks=n.get("sinks"))


add("attention", "attention", _make_attention, _attention, weight=8, places=16)


def _make_attention_backward(b):
    args, named, t = _make_attention(b)
    d = b.dice
    q, k, v = args[:3]
    vd = t.get("v_head_dim", t["head_dim"])
    s = b.shape(q)
    seq = s[2] if t["layout"] == "heads_first" else s[1]
    dy = b.new(b.dtype(q), _lay(s[0], seq, t["num_heads"], vd, t["layout"]))
    if d.chance(30) and b.dtype(q) in ("float32", "float64"):
        named["dlse"] = b.new(b.dtype(q), (s[0], t["num_heads"], seq))
    return [q, k, v, dy, *args[3:]], named, t


def _attention_backward(a, n, t):
    q, k, v, dy, *mask = a
    bias = mask and t["mask"] == "bias"
    sinks = n.get("sinks")

    def f(q, k, v, *more):
        it = iter(more)
        m = [next(it)] if bias else mask
        s = next(it) if sinks is not None else None
        return attention(q, k, v, t, *m, kv_len=n.get("kv_len"), q_len=n.get("q_len"), sinks=s)

    more = (mask if bias else []) + ([sinks] if sinks is not None else [])
    (y, lse), pull = jax.vjp(f, q, k, v, *more)
    dlse = n.get("dlse")
    dlse = jnp.zeros_like(lse) if dlse is None else jnp.where(jnp.isfinite(lse), dlse, 0)
    return pull((dy, dlse))


add("attention_backward", "attention_backward", _make_attention_backward, _attention_backward, weight=3, places=64)


# -- pages --


def _make_paged(b):
    d = b.dice
    t = draw_attention(b, ("none", "causal", "sliding_window"))
    kind, page, pages = b.kind(F), d.pick((1, 2, 4)), d.between(2, 5)
    requests, width = d.between(1, 3), d.between(1, 3)
    news = [d.below(3) for _ in range(requests)]
    starts = np.concatenate([[0], np.cumsum(news)])
    tokens = int(starts[-1]) + d.below(2)
    if tokens == 0:
        tokens = 1
    lens = [min(n + d.below(page * width + 1), page * width) for n in news]
    h, kv, dim = t["num_heads"], t["kv_heads"], t["head_dim"]
    q = b.pick((kind,), 0, 9, shape=(tokens, h, dim))
    k = b.pick((kind,), 0, 9, shape=(pages, page, kv, dim))
    v = b.pick((kind,), 0, 9, shape=(pages, page, kv, dim))
    table = b.new("int32", (requests, width), "whole", 0, pages - 1)
    kv_len, q_start = b.given("int32", lens), b.given("int32", starts)
    named = {"sinks": b.new(kind, (h,))} if d.chance(25) else {}
    return [q, k, v, table, kv_len, q_start], named, t


def _paged(a, n, t):
    q, k_pool, v_pool, table, kv_len, q_start = a
    tokens, heads, _ = q.shape
    pages, page = k_pool.shape[:2]
    requests, width = table.shape
    rows = jnp.arange(tokens)
    of = jnp.sum(rows[:, None] >= q_start[None, 1:], 1)  # the request of a token
    known = (of < requests) & (rows >= q_start[0])
    own = jnp.clip(of, 0, requests - 1)
    keys = jnp.arange(page * width)
    place = jnp.clip(table, 0, pages - 1)[:, keys // page]
    k = wide(k_pool)[place, (keys % page)[None]]  # [B, W, KV, D]
    v = wide(v_pool)[place, (keys % page)[None]]
    k, v = (jnp.repeat(x, heads // x.shape[2], 2)[own] for x in (k, v))
    scale = t.get("scale")
    s = jnp.einsum("thd,twhd->thw", wide(q), k) * (t["head_dim"] ** -0.5 if scale is None else scale)
    if t.get("softcap"):
        s = t["softcap"] * jnp.tanh(s / t["softcap"])
    length = jnp.clip(kv_len, 0, page * width)[own]
    q_len = (q_start[1:] - q_start[:-1])[own]
    at = length - q_len + rows - q_start[own]
    see = keys[None] < length[:, None]
    if t["mask"] in ("causal", "sliding_window"):
        see = see & (keys[None] <= at[:, None])
    if t["mask"] == "sliding_window":
        see = see & (keys[None] >= at[:, None] - t["window"])
    see = (see & known[:, None])[:, None]
    top = jnp.max(jnp.where(see, s, -jnp.inf), -1, keepdims=True, initial=-jnp.inf)
    sinks = n.get("sinks")
    if sinks is not None:
        sink = jnp.where(known[:, None, None], wide(sinks)[None, :, None], -jnp.inf)
        top = jnp.maximum(top, sink)
    top = jax.lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0))
    e = jnp.where(see, jnp.exp(jnp.where(see, s - top, 0)), 0)
    total = jnp.sum(e, -1)
    if sinks is not None:
        total = total + jnp.where(known[:, None], jnp.exp(sink - top)[..., 0], 0)
    safe = jnp.where(total > 0, total, 1)
    y = jnp.einsum("thw,twhd->thd", e / safe[..., None], v)
    return y.astype(q.dtype), jnp.where(total > 0, jnp.log(safe) + top[..., 0], -jnp.inf)


add("paged_attention", "paged_attention", _make_paged, _paged, weight=4, places=16)


# -- rope --


def rope(x, cos, sin, t, positions=None):
    """Pairs of elements of each head rotated by the angles of their row."""
    dim, n_rot, layout = t["head_dim"], t["n_rot"], t.get("layout", "merged")
    heads = x.shape[2] // dim if layout == "merged" else None
    x4 = _split(x, heads, layout)
    batch, _, seq, _ = x4.shape
    half = n_rot // 2
    if cos.ndim == 2:
        cos, sin = (jnp.broadcast_to(c, (batch, *c.shape)) for c in (cos, sin))
    rows = jnp.arange(seq) if positions is None else positions
    rows = jnp.broadcast_to(jnp.clip(rows, 0, cos.shape[1] - 1), (batch, seq))
    c, s = (jnp.take_along_axis(a[..., :half], rows[..., None], 1)[:, None] for a in (cos, sin))
    if t.get("inverse"):
        s = -s
    part = x4[..., :n_rot]
    if t.get("pairing", "half") == "half":
        a, b = part[..., :half], part[..., half:]
    else:
        a, b = part[..., 0::2], part[..., 1::2]
    first, second = a * c - b * s, b * c + a * s
    if t.get("pairing", "half") == "half":
        turned = jnp.concatenate([first, second], -1)
    else:
        turned = jnp.stack([first, second], -1).reshape(part.shape)
    return _join(jnp.concatenate([turned, x4[..., n_rot:]], -1), layout)


def _make_rope(b):
    d = b.dice
    t = {
        "head_dim": d.pick((2, 4, 6)),
        "pairing": d.pick(("half", "interleaved")),
        "inverse": d.chance(40),
        "layout": d.pick(("merged", "heads_first", "heads_inner")),
    }
    t["n_rot"] = 2 * d.between(1, t["head_dim"] // 2)
    kind = b.kind(F)
    batch, seq, heads = d.between(1, 2), d.pick((1, 2, 3, 5)), d.between(1, 2)
    x = b.pick((kind,), 0, 9, shape=_lay(batch, seq, heads, t["head_dim"], t["layout"]))
    own = (seq + d.below(2), t["n_rot"] // 2 + d.below(2))
    own = (batch, *own) if d.chance(30) else own
    named = {}
    if d.chance(40):
        named["positions"] = b.new("int32", d.pick(((seq,), (batch, seq))), "whole", 0, seq)
    return [x, b.new(kind, own, "unit"), b.new(kind, own, "unit")], named, t


def _rope(a, n, t):
    x = a[0]
    wide_a = [wide(v) for v in a]
    return rope(*wide_a, t, n.get("positions")).astype(x.dtype)


add("rope", "rope", _make_rope, _rope, weight=6, places=4)
