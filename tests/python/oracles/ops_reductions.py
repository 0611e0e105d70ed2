"""Reductions, running results, softmax, in JAX."""

import jax
import jax.numpy as jnp
from jax import lax

from . import dtypes
from .catalogue import add

F = dtypes.FLOATS
I = dtypes.INTS  # noqa: E741


def _back(f):
    """The op in the accumulator's dtype, as the results of bf16 and f16 are rounded once."""

    def run(x, *more):
        wide = {"bfloat16": jnp.float32, "float16": jnp.float32}.get(x.dtype.name)
        return f(x.astype(wide), *more).astype(x.dtype) if wide else f(x, *more)

    return run


def _reduce(name, f, types, fill="normal", low=-3, high=3, least=0, places=4):
    def make(b):
        x = b.pick(types, 0, 4, fill, low, high, least=least)
        return [x], {}, {"axes": b.axes(x), "keep_dims": b.dice.chance(40)}

    def run(a, n, t):
        return f(a[0], tuple(t["axes"]), t["keep_dims"])

    add(name, "reduce", make, run, places=places)


def _mean(x, axes, keep):
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        raise TypeError(x.dtype)
    count = 1
    for a in axes:
        count *= x.shape[a]
    return _back(lambda x: jnp.sum(x, axes, keepdims=keep) / count)(x)


_reduce("reduce_sum", lambda x, a, k: jnp.sum(x, a, dtype=x.dtype, keepdims=k), F + I + dtypes.COMPLEX)
_reduce("reduce_mean", _mean, F + dtypes.COMPLEX, least=1)
_reduce("reduce_max", lambda x, a, k: jnp.max(x, a, keepdims=k), dtypes.BOOL + F + I, least=1, places=0)
_reduce("reduce_min", lambda x, a, k: jnp.min(x, a, keepdims=k), dtypes.BOOL + F + I, least=1, places=0)
_reduce(
    "reduce_prod",
    lambda x, a, k: _back(lambda x: jnp.prod(x, a, dtype=x.dtype, keepdims=k))(x),
    F + I + dtypes.COMPLEX,
    fill="above_one",
    low=-2,
    high=2,
    places=16,
)


def _make_arg(b):
    x = b.pick(dtypes.BOOL + F + I, 1, 3, least=1)
    return [x], {}, {"axis": b.axis(x), "keep_dims": b.dice.chance(40)}


for _name, _f in (("arg_reduce_max", lax.argmax), ("arg_reduce_min", lax.argmin)):

    def _run(a, n, t, f=_f):
        x = a[0].astype(jnp.int32) if a[0].dtype == bool else a[0]
        y = f(x, t["axis"], jnp.int32)
        return jnp.expand_dims(y, t["axis"]) if t["keep_dims"] else y

    add(_name, "arg_reduce", _make_arg, _run, smooth=False, exact=True)


def _cumulative(name, f, identity, types, fill="normal", low=-3, high=3, places=4):
    def make(b):
        x = b.pick(types, 1, 3, fill, low, high)
        return [x], {}, {"axis": b.axis(x), "exclusive": b.dice.chance(30), "reverse": b.dice.chance(30)}

    def run(a, n, t):
        x, axis = a[0], t["axis"]
        y = _back(lambda x: f(x, axis, t["reverse"]))(x)
        if not t["exclusive"]:
            return y
        length = x.shape[axis]
        first = jnp.full([1 if k == axis else e for k, e in enumerate(x.shape)], identity(x.dtype), x.dtype)
        if length == 0:
            return y
        if t["reverse"]:
            return jnp.concatenate([lax.slice_in_dim(y, 1, length, axis=axis), first], axis)
        return jnp.concatenate([first, lax.slice_in_dim(y, 0, length - 1, axis=axis)], axis)

    add(name, "cumulative", make, run, places=places)


def _most(d, sign):
    if d == bool:
        return sign > 0
    if jnp.issubdtype(d, jnp.floating):
        return sign * jnp.inf
    return jnp.iinfo(d).max if sign > 0 else jnp.iinfo(d).min


_ORDERED = dtypes.BOOL + F + I


def _of_bools(f, x, axis, reverse):
    """JAX has no running maximum of truth values."""
    return f(x.astype(jnp.int8), axis, reverse=reverse).astype(bool) if x.dtype == bool else f(x, axis, reverse=reverse)


_cumulative("cumulative_sum", lambda x, a, r: lax.cumsum(x, a, reverse=r), lambda d: 0, F + I + dtypes.COMPLEX)
_cumulative(
    "cumulative_prod",
    lambda x, a, r: lax.cumprod(x, a, reverse=r),
    lambda d: 1,
    F + I + dtypes.COMPLEX,
    "above_one",
    -2,
    2,
    places=16,
)
for _name, _f, _sign in (("cumulative_max", lax.cummax, -1), ("cumulative_min", lax.cummin, 1)):
    _cumulative(_name, lambda x, a, r, f=_f: _of_bools(f, x, a, r), lambda d, s=_sign: _most(d, s), _ORDERED, places=0)


def _make_softmax(b):
    x = b.pick(F, 1, 4)
    return [x], {}, {"axis": b.axis(x)}


for _name, _f in (("softmax", jax.nn.softmax), ("log_softmax", jax.nn.log_softmax)):
    add(_name, _name, _make_softmax, lambda a, n, t, f=_f: _back(lambda x: f(x, t["axis"]))(a[0]), places=8)
