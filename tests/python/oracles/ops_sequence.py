"""Recurrences and scans of state spaces, step by step in JAX."""

import jax
import jax.numpy as jnp

from . import dtypes
from .catalogue import add

F = dtypes.FLOATS


def _drawn(b, gates, extra):
    """An ONNX recurrence: operands by name, attributes."""
    d = b.dice
    t = {"direction": d.pick(("forward", "reverse", "bidirectional")), "batch_first": d.chance(30)}
    directions = 2 if t["direction"] == "bidirectional" else 1
    steps, batch, width, hidden = d.pick((0, 1, 2, 3)), d.pick((1, 2)), d.pick((1, 2, 3)), d.pick((1, 2, 4))
    rows = gates * hidden
    kind = b.kind(F)
    new = lambda *shape: b.new(kind, shape, "unit")  # noqa: E731
    named = {"x": new(*((batch, steps) if t["batch_first"] else (steps, batch)), width)}
    named["w"], named["r"] = new(directions, rows, width), new(directions, rows, hidden)
    if d.chance(60):
        named["bias"] = new(directions, 2 * rows)
    if d.chance(40):
        named["lengths"] = b.new("int32", (batch,), "whole", 0, steps)
    for name in extra:
        if d.chance(50):
            named[name] = new(directions, 3 * hidden) if name == "peepholes" else new(directions, batch, hidden)
    return [named.pop("x"), named.pop("w"), named.pop("r")], named, t


def _recurrence(a, n, t, states, cell):
    x, w, r = a
    if t["batch_first"]:
        x = jnp.swapaxes(x, 0, 1)
    steps, batch, _ = x.shape
    directions, rows, hidden = r.shape
    lengths = n.get("lengths")
    ys, last = [], [[] for _ in range(states)]
    for d in range(directions):
        both = n["bias"][d] if "bias" in n else jnp.zeros(2 * rows, x.dtype)
        s = [n[k][d] if k in n else jnp.zeros((batch, hidden), x.dtype) for k in ("h0", "c0")[:states]]
        out = [jnp.zeros((batch, hidden), x.dtype)] * steps
        backwards = d == 1 or t["direction"] == "reverse"
        for at in reversed(range(steps)) if backwards else range(steps):
            new = cell(x[at] @ w[d].T, r[d], both[:rows], both[rows:], s, d)
            runs = None if lengths is None else (at < lengths)[:, None]
            out[at] = new[0] if runs is None else jnp.where(runs, new[0], 0)
            s = new if runs is None else [jnp.where(runs, p, q) for p, q in zip(new, s)]
        ys.append(jnp.stack(out) if steps else jnp.zeros((0, batch, hidden), x.dtype))
        for k in range(states):
            last[k].append(s[k])
    y = jnp.stack(ys, 1)
    if t["batch_first"]:
        y = jnp.transpose(y, (2, 0, 1, 3))
    return (y, *(jnp.stack(k) for k in last))


def _rnn(a, n, t):
    return _recurrence(a, n, t, 1, lambda x, r, bw, br, s, d: [jnp.tanh(x + bw + s[0] @ r.T + br)])


def _gru(a, n, t):
    def cell(x, r, bw, br, s, d):
        (h,) = s
        (xz, xr, xn), (bz, b_r, bn) = jnp.split(x + bw, 3, -1), jnp.split(br, 3)
        rz, rr, rn = jnp.split(r, 3)
        z, reset = jax.nn.sigmoid(xz + h @ rz.T + bz), jax.nn.sigmoid(xr + h @ rr.T + b_r)
        inner = reset * (h @ rn.T + bn) if t.get("linear_before_reset") else (reset * h) @ rn.T + bn
        return [(1 - z) * jnp.tanh(xn + inner) + z * h]

    return _recurrence(a, n, t, 1, cell)


def _lstm(a, n, t):
    def cell(x, r, bw, br, s, d):
        h, c = s
        p = n["peepholes"][d] if "peepholes" in n else jnp.zeros(3 * h.shape[-1], x.dtype)
        (pi, po, pf), (i, o, f, g) = jnp.split(p, 3), jnp.split(x + bw + h @ r.T + br, 4, -1)
        i = jax.nn.sigmoid(i + pi * c)
        f = 1 - i if t.get("input_forget") else jax.nn.sigmoid(f + pf * c)
        c = f * c + i * jnp.tanh(g)
        return [jax.nn.sigmoid(o + po * c) * jnp.tanh(c), c]

    return _recurrence(a, n, t, 2, cell)


def _make_gru(b):
    args, named, t = _drawn(b, 3, ("h0",))
    return args, named, dict(t, linear_before_reset=b.dice.chance(50))


def _make_lstm(b):
    args, named, t = _drawn(b, 4, ("h0", "c0", "peepholes"))
    return args, named, dict(t, input_forget=b.dice.chance(25))


add("rnn", "rnn", lambda b: _drawn(b, 1, ("h0",)), _rnn, weight=3, places=64)
add("gru", "gru", _make_gru, _gru, weight=3, places=64)
add("lstm", "lstm", _make_lstm, _lstm, weight=3, places=64)


# -- scans: the state is wider than narrow floats --


def _wide(x):
    return x.astype(jnp.promote_types(x.dtype, jnp.float32)) if x.dtype in (jnp.bfloat16, jnp.float16) else x


def _state(b, kind, shape):
    return b.new("float32" if kind in ("bfloat16", "float16") else kind, shape, "unit")


def _make_selective(b):
    d = b.dice
    kind = b.kind(F)
    batch, steps, width, n = d.pick((1, 2)), d.pick((0, 1, 2, 4)), d.pick((1, 2, 3)), d.pick((1, 2, 3))
    new = lambda *shape: b.new(kind, shape, "unit")  # noqa: E731
    args = [new(batch, steps, width), new(batch, steps, width), new(width, n)]
    args += [new(batch, steps, n), new(batch, steps, n)]
    named = {}
    for name, shape in (("d", (width,)), ("z", (batch, steps, width)), ("delta_bias", (width,))):
        if d.chance(40):
            named[name] = new(*shape)
    if d.chance(40):
        named["state"] = _state(b, kind, (batch, width, n))
    return args, named, {"delta_softplus": d.chance(50)}


def _selective(a, n, t):
    own = a[0].dtype
    x, delta, decay, b, c = map(_wide, a)
    delta = delta + _wide(n["delta_bias"]) if "delta_bias" in n else delta
    delta = jax.nn.softplus(delta) if t["delta_softplus"] else delta
    state = n["state"] if "state" in n else jnp.zeros((x.shape[0], *decay.shape), x.dtype)
    ys = []
    for i in range(x.shape[1]):
        state = jnp.exp(delta[:, i, :, None] * decay) * state + (delta * x)[:, i, :, None] * b[:, i, None, :]
        ys.append((state * c[:, i, None, :]).sum(-1))
    y = jnp.stack(ys, 1) if ys else jnp.zeros_like(x)
    y = y + _wide(n["d"]) * x if "d" in n else y
    y = y * jax.nn.silu(_wide(n["z"])) if "z" in n else y
    return y.astype(own), state


add("selective_scan", "selective_scan", _make_selective, _selective, weight=3, places=64)


def _make_mamba2(b):
    d = b.dice
    kind = b.kind(F)
    batch, steps, groups = d.pick((1, 2)), d.pick((0, 1, 3, 5)), d.pick((1, 2))
    width, n = d.pick((1, 2)), d.pick((1, 2))
    heads = groups * d.pick((1, 2))
    new = lambda *shape: b.new(kind, shape, "unit")  # noqa: E731
    args = [new(batch, steps, heads, width), new(batch, steps, heads), new(heads)]
    args += [new(batch, steps, groups, n), new(batch, steps, groups, n)]
    named = {}
    for name, shape in (("d", (heads,)), ("z", (batch, steps, heads, width)), ("dt_bias", (heads,))):
        if d.chance(40):
            named[name] = new(*shape)
    if d.chance(40):
        named["state"] = _state(b, kind, (batch, heads, width, n))
    return args, named, {"dt_softplus": d.chance(50), "chunk": d.pick((1, 2, 64))}


def _mamba2(a, n, t):
    own = a[0].dtype
    x, dt, decay, b, c = map(_wide, a)
    dt = dt + _wide(n["dt_bias"]) if "dt_bias" in n else dt
    dt = jax.nn.softplus(dt) if t["dt_softplus"] else dt
    each = x.shape[2] // b.shape[2]
    b, c = jnp.repeat(b, each, 2), jnp.repeat(c, each, 2)
    state = n["state"] if "state" in n else jnp.zeros((x.shape[0], *x.shape[2:], b.shape[3]), x.dtype)
    ys = []
    for i in range(x.shape[1]):
        more = (x[:, i] * dt[:, i, :, None])[..., None] * b[:, i, :, None, :]
        state = jnp.exp(dt[:, i] * decay)[..., None, None] * state + more
        ys.append((state * c[:, i, :, None, :]).sum(-1))
    y = jnp.stack(ys, 1) if ys else jnp.zeros_like(x)
    y = y + _wide(n["d"])[:, None] * x if "d" in n else y
    y = y * jax.nn.silu(_wide(n["z"])) if "z" in n else y
    return y.astype(own), state


add("mamba2", "mamba2", _make_mamba2, _mamba2, weight=3, places=64)


def _make_delta(b):
    d = b.dice
    kind = b.kind(F)
    batch, steps, groups = d.pick((1, 2)), d.pick((0, 1, 3, 5)), d.pick((1, 2))
    n, width = d.pick((1, 2)), d.pick((1, 3))
    heads = groups * d.pick((1, 2))
    new = lambda *shape: b.new(kind, shape, "unit")  # noqa: E731
    args = [new(batch, steps, groups, n), new(batch, steps, groups, n), new(batch, steps, heads, width)]
    args += [new(batch, steps, heads), new(batch, steps, heads)]
    named = {"state": _state(b, kind, (batch, heads, n, width))} if d.chance(50) else {}
    return args, named, {"chunk": d.pick((1, 2, 32)), "scale": d.pick((None, 0.7))}


def _delta(a, n, t):
    own = a[2].dtype
    q, k, v, g, beta = map(_wide, a)
    scale = q.shape[-1] ** -0.5 if t["scale"] is None else t["scale"]
    each = v.shape[2] // q.shape[2]
    q, k = jnp.repeat(q, each, 2), jnp.repeat(k, each, 2)
    state = n["state"] if "state" in n else jnp.zeros((v.shape[0], v.shape[2], q.shape[3], v.shape[3]), v.dtype)
    ys = []
    for i in range(q.shape[1]):
        state = state * jnp.exp(g[:, i])[..., None, None]
        u = (v[:, i] - jnp.einsum("bhk,bhkv->bhv", k[:, i], state)) * beta[:, i][..., None]
        state = state + k[:, i][..., None] * u[:, :, None, :]
        ys.append(scale * jnp.einsum("bhk,bhkv->bhv", q[:, i], state))
    return (jnp.stack(ys, 1) if ys else jnp.zeros_like(v)).astype(own), state


add("gated_delta_net", "gated_delta_net", _make_delta, _delta, weight=3, places=64)
