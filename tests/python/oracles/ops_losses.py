"""Losses, and products of codes as codes, in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import dtypes
from .catalogue import add
from .ops_norms import wide
from .ops_quantized import _fake


def _make_entropy(b):
    x = b.pick(dtypes.FLOATS, 1, 3, least=1)
    shape = b.shape(x)
    if b.dice.chance(30):
        return [x, b.like(x, "positive")], {}, {}
    return [x, b.index(shape[:-1], shape[-1])], {}, {}


def _entropy(a, n, t):
    x, labels = wide(a[0]), a[1]
    logs, lse = jax.nn.log_softmax(x), jax.nn.logsumexp(x, -1)
    if labels.dtype.name in dtypes.FLOATS:
        own = wide(labels)
        loss = -jnp.sum(jnp.where(own == 0, 0, own * logs), -1)
    else:
        classes = jnp.arange(x.shape[-1])
        picked = jnp.sum(jnp.where(labels[..., None] == classes, logs, 0), -1)
        loss = jnp.where((labels >= 0) & (labels < x.shape[-1]), -picked, jnp.nan)
    return loss.astype(a[0].dtype), lse


add("softmax_cross_entropy", "softmax_cross_entropy", _make_entropy, _entropy, weight=6, places=16)


def _make_ctc(b):
    d = b.dice
    steps, count, classes, longest = d.between(1, 5), d.between(1, 3), d.between(2, 4), d.between(0, 3)
    x = b.pick(dtypes.FLOATS, 3, 3, shape=(steps, count, classes))
    blank = d.below(classes)
    others = [c for c in range(classes) if c != blank]
    whole = lambda low, high, shape: b.given(
        "int32", np.array([d.between(low, high) for _ in range(count)]).reshape(shape)
    )  # noqa: E731
    targets = b.given("int32", np.array([d.pick(others) for _ in range(count * longest)]).reshape(count, longest))
    return [x, targets, whole(0, steps, (count,)), whole(0, longest, (count,))], {}, {"blank": blank}


def _add_logs(terms):
    """log of the sum of exponentials of terms, -inf with derivative 0 where all are."""
    top = lax.stop_gradient(terms[0])
    for v in terms[1:]:
        top = jnp.maximum(top, lax.stop_gradient(v))
    none = jnp.isneginf(top)
    base = jnp.where(none, 0, top)
    total = sum(jnp.exp(v - base) for v in terms)
    return jnp.where(none, -jnp.inf, jnp.log(jnp.where(none, 1, total)) + base)


def _ctc(a, n, t):
    x, (targets, lengths, spelled) = wide(a[0]), a[1:]
    steps, count, longest = x.shape[0], x.shape[1], targets.shape[1]
    blanks = jnp.full((count, longest), t["blank"], targets.dtype)
    labels = jnp.stack([blanks, targets], 2).reshape(count, 2 * longest)
    labels = jnp.concatenate([labels, jnp.full((count, 1), t["blank"], targets.dtype)], 1)
    nothing = lambda k: jnp.full((count, k), -jnp.inf, x.dtype)  # noqa: E731
    states = labels.shape[1]
    alpha = jnp.concatenate([jnp.zeros((count, 1), x.dtype), nothing(states - 1)], 1)
    before = jnp.concatenate([jnp.full((count, 2), t["blank"], targets.dtype), labels], 1)[:, :states]
    skips = (labels != t["blank"]) & (labels != before)
    for step in range(steps):
        once = jnp.concatenate([nothing(1), alpha], 1)[:, :states]
        twice = jnp.where(skips, jnp.concatenate([nothing(2), alpha], 1)[:, :states], -jnp.inf)
        new = _add_logs([alpha, once, twice]) + jnp.take_along_axis(x[step], labels, 1)
        alpha = jnp.where(step < lengths[:, None], new, alpha)
    place = jnp.arange(states)
    end = lambda at: jnp.max(jnp.where(place == at[:, None], alpha, -jnp.inf), 1)  # noqa: E731
    return -_add_logs([end(2 * spelled), end(2 * spelled - 1)]).astype(a[0].dtype)


add("ctc_loss", "ctc_loss", _make_ctc, _ctc, weight=2, places=64)


# -- products of codes --

BYTES = ("int8", "uint8")


def _byte(b, shape):
    t = b.dice.pick(BYTES)
    low = -128 if t == "int8" else 0
    return b.new(t, shape, "whole", low, low + 255)


def _zero(b, dtype):
    return 0 if b.dice.chance(40) else b.dice.between(*((-128, 127) if dtype == "int8" else (0, 255)))


def _settings(b, x, w, channels):
    d, out = b.dice, b.dice.pick(BYTES)
    mult = [0.001 * (1 + d.below(20)) for _ in range(channels if d.chance(40) else 1)]
    return {
        "x_zp": _zero(b, b.dtype(x)),
        "w_zp": _zero(b, b.dtype(w)),
        "out_zp": _zero(b, out),
        "mult": mult,
        "dtype": out,
    }


def _bias(b, channels):
    return {"bias": b.new("int32", (channels,), "whole", -5000, 5000)} if b.dice.chance(50) else {}


def _codes(sums, t, axis):
    mult = jnp.asarray(np.array(t["mult"], np.float32))
    if len(t["mult"]) > 1:
        mult = mult.reshape([-1 if k == axis else 1 for k in range(sums.ndim)])
    q = jnp.round(sums.astype(jnp.float32) * (mult[0] if len(t["mult"]) == 1 else mult)) + t["out_zp"]
    low, high = (-128, 127) if t["dtype"] == "int8" else (0, 255)
    return jnp.clip(q, low, high).astype(t["dtype"])


def _make_q_matmul(b):
    m, k, n = b.extent(), b.extent(), b.dice.between(1, 4)
    lead = b.shape_of(0, 1)
    x, w = _byte(b, (*lead, m, k)), _byte(b, (*(lead if b.dice.chance(40) else ()), k, n))
    return [x, w], _bias(b, n), _settings(b, x, w, n)


def _q_matmul(a, n, t):
    x, w = a[0].astype(jnp.int32) - t["x_zp"], a[1].astype(jnp.int32) - t["w_zp"]
    sums = x @ w
    if n.get("bias") is not None:
        sums = sums + n["bias"]
    return _codes(sums, t, sums.ndim - 1)


add("q_matmul", "q_matmul", _make_q_matmul, _q_matmul, weight=4, smooth=False, exact=True)


def _make_q_conv(b):
    d = b.dice
    groups, space = d.pick((1, 1, 2)), d.between(1, 2)
    channels, out = groups * d.between(1, 2), groups * d.between(1, 2)
    taps = tuple(d.between(1, 3) for _ in range(space))
    t = {
        "strides": [d.between(1, 2) for _ in range(space)],
        "dilations": [d.between(1, 2) for _ in range(space)],
        "low": [d.between(0, 2) for _ in range(space)],
        "high": [d.between(0, 2) for _ in range(space)],
        "groups": groups,
    }
    extents = tuple((k - 1) * r + d.between(1, 4) for k, r in zip(taps, t["dilations"]))
    x, w = _byte(b, (d.between(0, 2), channels, *extents)), _byte(b, (out, channels // groups, *taps))
    return [x, w], _bias(b, out), {**t, **_settings(b, x, w, out)}


def _q_conv(a, n, t):
    x, w = a[0].astype(jnp.int32) - t["x_zp"], a[1].astype(jnp.int32) - t["w_zp"]
    sums = lax.conv_general_dilated(
        x,
        w,
        t["strides"],
        list(zip(t["low"], t["high"])),
        rhs_dilation=t["dilations"],
        feature_group_count=t["groups"],
    )
    if n.get("bias") is not None:
        sums = sums + n["bias"].reshape([-1 if k == 1 else 1 for k in range(sums.ndim)])
    return _codes(sums, t, 1)


add("q_conv", "q_conv", _make_q_conv, _q_conv, weight=3, smooth=False, exact=True)


def _make_lsq(b):
    x = b.pick(dtypes.FLOATS, 1, 3, least=1)
    t = {"bits": b.dice.pick((2, 4, 8))}
    if b.dice.chance(40):
        t["axis"] = b.axis(x)
    shape = () if t.get("axis") is None else (b.shape(x)[t["axis"]],)
    kind = "float64" if b.dtype(x) == "float64" else "float32"
    return [x, b.pick((kind,), 0, 9, "positive", shape=shape)], {}, t


def _lsq(a, n, t):
    return _fake([a[0]], {"scale": a[1]}, {**t, "ste": "clipped_identity", "mode": "learned"})[0]


add("fake_quantize_lsq", "fake_quantize_lsq", _make_lsq, _lsq, weight=4, places=8)
