"""Norms, in JAX."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from . import dtypes
from .catalogue import add

F = dtypes.FLOATS


def wide(x):
    """x as sums of it are computed: bf16 and f16 as f32."""
    return x.astype(jnp.float32) if x.dtype.name in ("bfloat16", "float16") else x


def _affine(y, x, named, axes):
    own = [e if k in axes else 1 for k, e in enumerate(x.shape)]
    if named.get("gamma") is not None:
        y = y * wide(named["gamma"]).reshape(own)
    if named.get("beta") is not None:
        y = y + wide(named["beta"]).reshape(own)
    return y


def layer_norm(x, axes, eps, named):
    """(y, mean, rstd)."""
    z = wide(x)
    mean = jnp.mean(z, axes, keepdims=True)
    rstd = lax.rsqrt(jnp.mean(jnp.square(z - mean), axes, keepdims=True) + eps)
    return _affine((z - mean) * rstd, x, named, axes).astype(x.dtype), mean, rstd


def rms_norm(x, axes, eps, named):
    """(y, rstd)."""
    z = wide(x)
    rstd = lax.rsqrt(jnp.mean(jnp.square(z), axes, keepdims=True) + eps)
    return _affine(z * rstd, x, named, axes).astype(x.dtype), rstd


def _make_norm(b):
    x = b.pick(F, 1, 4, least=1)
    axes = b.axes(x, 1) if b.dice.chance(40) else [b.rank(x) - 1]
    own = tuple(b.shape(x)[k] for k in axes)
    named = {}
    if b.dice.chance(60):
        named["gamma"] = b.like(x, shape=own)
    if b.dice.chance(60):
        named["beta"] = b.like(x, shape=own)
    eps = b.dice.pick((1e-5, 1e-2))
    # Of one element all cancels, and derivatives multiply what rounding leaves by 1 / sqrt(eps) to the third or fifth.
    return [x], named, {"axes": axes, "eps": 1.0 if math.prod(own) == 1 else eps}


add("layer_norm", "layer_norm", _make_norm, lambda a, n, t: layer_norm(a[0], tuple(t["axes"]), t["eps"], n), places=8)
add("rms_norm", "rms_norm", _make_norm, lambda a, n, t: rms_norm(a[0], tuple(t["axes"]), t["eps"], n), places=8)


def _backward(norm):
    def run(a, n, t):
        x, dy = a
        axes = tuple(t["axes"])
        own = [x.shape[k] for k in axes]
        gamma = n["gamma"] if n.get("gamma") is not None else jnp.ones(own, x.dtype)
        beta = jnp.zeros(own, x.dtype)
        f = lambda x, g, b: norm(x, axes, t["eps"], {"gamma": g, "beta": b})[0]  # noqa: E731
        return jax.vjp(f, x, gamma, beta)[1](dy)

    return run


def _make_backward(b):
    args, named, attrs = _make_norm(b)
    named.pop("beta", None)
    return [args[0], b.like(args[0])], named, attrs


add("layer_norm_backward", "layer_norm_backward", _make_backward, _backward(layer_norm), weight=6, places=16)
add("rms_norm_backward", "rms_norm_backward", _make_backward, _backward(rms_norm), weight=6, places=16)


def _make_residual(names, least=0):
    def make(b):
        x = b.pick(F, 1, 3, least=1)
        last = (b.shape(x)[-1],)
        named = {n: b.like(x, shape=last) for n in names if b.dice.chance(65)}
        return [x, b.like(x)], named, {"eps": b.dice.pick((1e-5, 1e-2))}

    return make


def _residual(norm):
    def run(a, n, t):
        z = a[0] + a[1]
        if n.get("bias") is not None:
            z = z + n["bias"]
        y, *stats = norm(z, (z.ndim - 1,), t["eps"], n)
        return (y, z, *stats)

    return run


_ALL = ("bias", "gamma", "beta")
add("fused_residual_ln", "fused_residual_ln", _make_residual(_ALL), _residual(layer_norm), weight=6, places=8)
add("fused_residual_rms_norm", "fused_residual_rms_norm", _make_residual(_ALL), _residual(rms_norm), weight=6, places=8)


def _make_block(b):
    x = b.pick(F, 1, 3, least=1)
    last = (b.shape(x)[-1],)
    return [x, b.like(x), b.like(x, shape=last), b.like(x, shape=last)], {}, {"eps": b.dice.pick((1e-5, 1e-2))}


def _block(norm):
    def run(a, n, t):
        z = a[0] + a[1]
        return norm(z, (z.ndim - 1,), t["eps"], {"gamma": a[2], "beta": a[3]})[0]

    return run


add("residual_layer_norm", "residual_layer_norm", _make_block, _block(layer_norm), weight=5, places=8)
add("residual_rms_norm", "residual_rms_norm", _make_block, _block(rms_norm), weight=5, places=8)
