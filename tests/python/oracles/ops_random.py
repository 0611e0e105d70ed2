"""Random numbers in JAX."""

import jax
import jax.numpy as jnp
from jax import lax

from . import dtypes
from .catalogue import add

_MOST_FIRST = 9


def _make_bits(b):
    d = b.dice
    lead = d.pick(((), (), (2,)))
    key = b.new("uint32", (*lead, 2), "whole", 0, 2**32 - 1)
    t = {"dims": list(b.shape_of(0, 2)), "dtype": d.pick(("uint8", "uint16", "uint32", "uint64"))}
    named = {"first": b.new("uint64", (), "whole", 0, _MOST_FIRST)} if d.chance(30) else {}
    return [key], named, t


def _bits(a, n, t):
    key, dims = a[0], tuple(t["dims"])
    size = 1
    for e in dims:
        size *= e
    kind = dtypes.of(t["dtype"])

    def one(key):
        if n.get("first") is None:
            return jax.random.bits(key, dims, kind)
        line = jax.random.bits(key, (size + _MOST_FIRST,), kind)
        return lax.dynamic_slice(line, [n["first"].astype(jnp.int32)], [size]).reshape(dims)

    for _ in range(key.ndim - 1):
        one = jax.vmap(one)
    return one(key)


add("rng_bits", "rng_bits", _make_bits, _bits, smooth=False, weight=4, exact=True)


def _make_sample(b):
    d = b.dice
    kind = b.kind(("float32", "float64", "bfloat16", "float16"))
    batch, v = d.between(1, 3), d.pick((1, 2, 5, 8, 33))
    logits = b.pick((kind,), 0, 9, shape=(batch, v))
    lead = d.pick(((), (batch,)))
    temperature = b.new(kind, lead, "positive") if d.chance(80) else b.new(kind, lead, "whole", 0, 0)
    top_k = b.new("int32", lead, "whole", 0, v)
    top_p = b.new(kind, lead, "positive")
    key = b.new("uint32", (batch, 2), "whole", 0, 2**32 - 1)
    named = {}
    if d.chance(40):
        named["min_p"] = b.new(kind, lead, "small")
    if d.chance(40):
        named["mask_bits"] = b.new("uint32", (batch, -(-v // 32)), "whole", 0, 2**32 - 1)
    return [logits, temperature, top_k, top_p, key], named, {}


def _sample(a, n, t):
    logits, temperature, top_k, top_p, keys = a
    batch, v = logits.shape
    calc = jnp.float64 if logits.dtype == jnp.float64 else jnp.float32
    row = lambda s: jnp.broadcast_to(s, (batch,))[:, None]  # noqa: E731
    z = logits.astype(calc)
    if n.get("mask_bits") is not None:
        at = jnp.arange(v)
        word = n["mask_bits"][:, at // 32]
        z = jnp.where((word >> (at % 32).astype(jnp.uint32)) & 1 == 1, z, -jnp.inf)
    known = jnp.any(z > -jnp.inf, -1)
    temperature, top_p = row(temperature).astype(calc), row(top_p).astype(calc)
    hot = temperature > 0
    y = z / jnp.where(hot, temperature, 1)
    order = jnp.argsort(-y, -1, stable=True)
    place = jnp.argsort(order, -1, stable=True)
    k = row(top_k)
    kept = (k <= 0) | (place < k)
    y1 = jnp.where(kept, y, -jnp.inf)
    p = jax.nn.softmax(y1, -1)
    sorted_p = jnp.take_along_axis(p, order, -1)
    before = jnp.take_along_axis(jnp.cumsum(sorted_p, -1) - sorted_p, place, -1)
    y2 = jnp.where((top_p >= 1) | (before < top_p) | (place == 0), y1, -jnp.inf)
    if n.get("min_p") is not None:
        y2 = jnp.where((p >= row(n["min_p"]).astype(calc) * jnp.max(p, -1, keepdims=True)) | (place == 0), y2, -jnp.inf)
    noise = jax.vmap(lambda key: jax.random.gumbel(key, (v,), calc))(keys)
    token = jnp.where(hot[:, 0], jnp.argmax(y2 + noise, -1), jnp.argmax(z, -1))
    logprob = jnp.take_along_axis(jax.nn.log_softmax(z, -1), token[:, None], -1)[:, 0]
    return jnp.where(known, token, -1).astype(jnp.int32), jnp.where(known, logprob, -jnp.inf)


add("sample", "sample", _make_sample, _sample, smooth=False, weight=4, places=16)
