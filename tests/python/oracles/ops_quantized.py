"""Quantised values in JAX: affine codes, and GGUF's blocks of 32."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import dtypes
from .catalogue import add
from .ops_norms import wide

CODES = ("int8", "uint8", "int16", "uint16")


def _spread(s, t, shape):
    """A scale or zero point as an array that broadcasts with the numbers."""
    if s is None or s.ndim == 0:
        return s
    axis = t["axis"]
    if not t.get("block"):
        return s.reshape([shape[k] if k == axis else 1 for k in range(len(shape))])
    return lax.slice_in_dim(jnp.repeat(s, t["block"], axis), 0, shape[axis], axis=axis)


def _scale_shape(b, shape, t):
    if t.get("axis") is None:
        return ()
    if not t.get("block"):
        return (shape[t["axis"]],)
    return tuple(-(-e // t["block"]) if k == t["axis"] else e for k, e in enumerate(shape))


def _place(b, x):
    d = b.dice
    if d.chance(35) or b.rank(x) == 0:
        return {}
    t = {"axis": b.axis(x)}
    if d.chance(40):
        t["block"] = d.between(1, 4)
    return t


def _make_dequantize(b):
    d = b.dice
    codes = b.pick(CODES + ("int32",), 1, 3, low=-9, high=9)
    t = _place(b, codes)
    t["dtype"] = d.pick(("float32", "float64", "bfloat16", "float16"))
    shape = _scale_shape(b, b.shape(codes), t)
    named = {}
    if t.get("axis") is not None or d.chance(80):
        named["scale"] = b.pick(
            (t["dtype"],) if t["dtype"] == "float64" else ("float32",), 0, 9, "positive", shape=shape
        )
    if named and b.dtype(codes) != "int32" and d.chance(50):
        named["zero_point"] = b.new(b.dtype(codes), shape, "whole", -3, 3)
    if named and d.chance(20):
        named["global_scale"] = b.pick(
            ("float64" if t["dtype"] == "float64" else "float32",), 0, 9, "positive", shape=()
        )
    return [codes], named, t


def _dequantize(a, n, t):
    x = a[0]
    to = dtypes.of(t["dtype"])
    calc = jnp.float64 if to == np.float64 else jnp.float32
    z = x.astype(jnp.int32)
    if n.get("zero_point") is not None:
        z = z - _spread(n["zero_point"], t, x.shape).astype(jnp.int32)
    z = z.astype(calc)
    s = n.get("scale")
    if s is not None:
        s = s.astype(calc)
        if n.get("global_scale") is not None:
            s = s * n["global_scale"].astype(calc)
        z = z * _spread(s, t, x.shape)
    return z.astype(to)


add("dequantize", "dequantize", _make_dequantize, _dequantize, weight=6, places=2)


def _saturated(q, to):
    info = np.iinfo(dtypes.of(to))
    q = jnp.where(jnp.isnan(q), 0, q)
    return jnp.clip(q, float(info.min), float(info.max)).astype(dtypes.of(to))


def _make_quantize(b):
    x = b.pick(dtypes.FLOATS, 1, 3)
    t = _place(b, x)
    t["dtype"] = b.dice.pick(CODES)
    shape = _scale_shape(b, b.shape(x), t)
    kind = "float64" if b.dtype(x) == "float64" else "float32"
    named = {"scale": b.pick((kind,), 0, 9, "positive", shape=shape)}
    if b.dice.chance(50):
        named["zero_point"] = b.new(t["dtype"], shape, "whole", -3, 3)
    return [x], named, t


def _quantize(a, n, t):
    x = wide(a[0])
    q = jnp.round(x / _spread(n["scale"].astype(x.dtype), t, x.shape))
    if n.get("zero_point") is not None:
        q = q + _spread(n["zero_point"], t, x.shape).astype(x.dtype)
    return _saturated(q, t["dtype"])


add("quantize", "quantize", _make_quantize, _quantize, weight=6, smooth=False, exact=True)


def _make_dynamic(b):
    x = b.pick(dtypes.FLOATS, 1, 3, least=1)
    t = dict(_place(b, x), symmetric=b.dice.chance(60))
    t["dtype"] = b.dice.pick(("int8", "int16") if t["symmetric"] else ("int8", "uint8", "int16"))
    return [x], {}, t


def _blocks(f, x, t, empty):
    """f over the elements that share a scale."""
    if t.get("axis") is None:
        return f(x, None)
    axis = t["axis"]
    if not t.get("block"):
        return f(x, tuple(k for k in range(x.ndim) if k != axis))
    n, block = x.shape[axis], t["block"]
    more = -n % block
    x = jnp.pad(x, [(0, more if k == axis else 0) for k in range(x.ndim)], constant_values=empty)
    x = x.reshape(*x.shape[:axis], (n + more) // block, block, *x.shape[axis + 1 :])
    return f(x, axis + 1)


def _dynamic(a, n, t):
    x = wide(a[0])
    info = np.iinfo(dtypes.of(t["dtype"]))
    if t["symmetric"]:
        top = _blocks(lambda v, ax: jnp.max(jnp.abs(v), ax), x, t, 0)
        scale = jnp.where(top == 0, 1, top) / float(info.max)
        scale = jnp.where(top == 0, 1 / float(info.max), scale)
        zero = jnp.zeros(scale.shape, dtypes.of(t["dtype"]))
    else:
        low = jnp.minimum(_blocks(lambda v, ax: jnp.min(v, ax), x, t, 0), 0)
        high = jnp.maximum(_blocks(lambda v, ax: jnp.max(v, ax), x, t, 0), 0)
        span = high - low
        scale = jnp.where(span == 0, 1, span) / float(info.max - info.min)
        zero = _saturated(jnp.round(float(info.min) - low / scale), t["dtype"])
    q = jnp.round(x / _spread(scale, t, x.shape)) + _spread(zero, t, x.shape).astype(x.dtype)
    return _saturated(q, t["dtype"]), scale, zero


add("dynamic_quantize", "dynamic_quantize", _make_dynamic, _dynamic, weight=5, smooth=False, places=2)


def _make_fake(b):
    d = b.dice
    x = b.pick(dtypes.FLOATS, 1, 3, least=1)
    t = {
        "bits": d.pick((2, 4, 8)),
        "ste": d.pick(("identity", "clipped_identity", "tanh", "hard_tanh")),
        "mode": d.pick(("per_batch", "ema", "fixed", "learned")),
    }
    if d.chance(40):
        t["axis"] = b.axis(x)
    named = {}
    if t["mode"] != "per_batch":
        kind = "float64" if b.dtype(x) == "float64" else "float32"
        named["scale"] = b.pick((kind,), 0, 9, "positive", shape=_scale_shape(b, b.shape(x), t))
    if t["mode"] == "ema":
        t["decay"] = 0.75
    return [x], named, t


def _fake(a, n, t):
    x = wide(a[0])
    most = float(2 ** (t["bits"] - 1) - 1)
    given = n.get("scale")
    if t["mode"] in ("fixed", "learned"):
        s = wide(given)
    else:
        s = _blocks(lambda v, ax: jnp.max(jnp.abs(v), ax), x, t, 0) / most
        if t["mode"] == "ema":
            old = wide(given)
            s = jnp.where(old > 0, t["decay"] * old + (1 - t["decay"]) * s, s)
        s = jnp.maximum(s, 1e-12)
    if t["mode"] != "learned":
        s = lax.stop_gradient(s)
    y = _rounded(x, jnp.broadcast_to(_spread(s, t, x.shape), x.shape), t["ste"], most, t["mode"] == "learned")
    return y.astype(a[0].dtype), s


def _rounded(x, s, ste, most, learned):
    @jax.custom_jvp
    def f(x, s):
        return jnp.clip(jnp.round(x / s), -most, most) * s

    @f.defjvp
    def rule(primals, tangents):
        x, s = primals
        dx, ds = tangents
        z = x / s
        inside = jnp.abs(z) <= most
        through = {
            "identity": lambda: jnp.ones_like(z),
            "clipped_identity": lambda: inside.astype(z.dtype),
            "tanh": lambda: 1 - jnp.square(jnp.tanh(z)),
            "hard_tanh": lambda: jnp.maximum(0, 1 - jnp.abs(z) / most),
        }[ste]()
        out = dx * through
        if learned:
            out = out + ds * jnp.where(inside, jnp.round(z) - z, jnp.sign(z) * most)
        return f(x, s), out

    return f(x, s)


add("fake_quantize", "fake_quantize", _make_fake, _fake, weight=6, places=8)
