"""Recurrent layers, scans of state spaces and causal convolution of rlx.nn beside plain loops in JAX: values and
derivatives, jitted and batched."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import normal
from sampling import some

import rlx
import rlx.numpy as rnp

S, B, I, H = 5, 3, 4, 6


def close(got, want, tol=2e-5):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def weights(gates, layers=1, directions=1, seed=0, width=I, biased=True):
    out = []
    for layer in range(layers):
        for d in range(directions):
            n = width if layer == 0 else directions * H
            at = seed + 10 * layer + d
            w = [normal(gates * H, n, seed=at, scale=0.4), normal(gates * H, H, seed=at + 100, scale=0.4)]
            if biased:
                w += [normal(gates * H, seed=at + 200), normal(gates * H, seed=at + 300)]
            out.append(tuple(w))
    return out


def step(kind, w, x, h, c):
    w_ih, w_hh, *bias = w
    b_ih, b_hh = bias or (0, 0)
    a, b = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if kind == "rnn":
        return jnp.tanh(a + b), c
    if kind == "gru":
        (ar, az, an), (br, bz, bn) = jnp.split(a, 3, -1), jnp.split(b, 3, -1)
        z = jax.nn.sigmoid(az + bz)
        return (1 - z) * jnp.tanh(an + jax.nn.sigmoid(ar + br) * bn) + z * h, c
    i, f, g, o = jnp.split(a + b, 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def by_loop(kind, x, layers, directions, h0, c0, lengths):
    """Layers step by step, x [S, B, I]."""
    hs, cs = [], []
    for first in range(0, len(layers), directions):
        ys = []
        for d in range(directions):
            h, c = h0[first + d], c0[first + d]
            rows = [None] * len(x)
            for t in reversed(range(len(x))) if d else range(len(x)):
                runs = (t < lengths)[:, None]
                next_h, next_c = step(kind, layers[first + d], x[t], h, c)
                h, c = jnp.where(runs, next_h, h), jnp.where(runs, next_c, c)
                rows[t] = jnp.where(runs, next_h, 0)
            ys.append(jnp.stack(rows))
            hs.append(h)
            cs.append(c)
        x = jnp.concatenate(ys, -1)
    return (x, jnp.stack(hs), jnp.stack(cs)) if kind == "lstm" else (x, jnp.stack(hs))


KINDS = {"lstm": 4, "gru": 3, "rnn": 1}


def layer(kind, x, w, h0, c0, lengths, **more):
    start = (h0, c0) if kind == "lstm" else (h0,)
    return getattr(rlx.nn, kind)(x, w, *start, lengths=lengths, **more)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers,directions", [(1, 1), (2, 2)])
@pytest.mark.parametrize("batch_first", [False, True])
def test_layers(kind, layers, directions, batch_first):
    w = weights(KINDS[kind], layers, directions)
    x = normal(S, B, I)
    h0, c0 = normal(layers * directions, B, H, seed=1), normal(layers * directions, B, H, seed=2)
    lengths = np.array([5, 0, 3], np.int32)
    want = by_loop(kind, x, w, directions, h0, c0, lengths)
    given = np.swapaxes(x, 0, 1) if batch_first else x
    more = dict(bidirectional=directions == 2, batch_first=batch_first)
    for call in (layer, rlx.jit(layer, static_argnames=("kind", "bidirectional", "batch_first"))):
        y, *states = call(kind, given, w, h0, c0, lengths, **more)
        close(np.swapaxes(np.asarray(y), 0, 1) if batch_first else y, want[0])
        for got, state in zip(states, want[1:], strict=True):
            close(got, state)


@pytest.mark.rotates(2)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_layers(kind):
    w = weights(KINDS[kind], 1, 2)
    x, h0, c0 = normal(S, B, I), normal(2, B, H, seed=1), normal(2, B, H, seed=2)
    lengths = np.array([5, 2, 3], np.int32)

    def loss(m, results):
        return sum(m.sum(m.sin(r)) for r in results)

    def ours(x, w, h0, c0):
        return loss(rnp, layer(kind, x, w, h0, c0, lengths, bidirectional=True))

    want = jax.grad(lambda *a: loss(jnp, by_loop(kind, a[0], a[1], 2, *a[2:], lengths)), (0, 1, 2, 3))(x, w, h0, c0)
    got = rlx.grad(ours, (0, 1, 2, 3))(x, w, h0, c0)
    for a, b in zip(rlx.tree.leaves(got), jax.tree.leaves(want), strict=True):
        close(a, b, 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_and_vmap(kind):
    w = weights(KINDS[kind])[0]
    x, h, c = normal(B, I), normal(B, H, seed=1), normal(B, H, seed=2)
    want = step(kind, w, x, h, c)
    states = (h, c) if kind == "lstm" else (h,)
    got = getattr(rlx.nn, kind + "_cell")(x, *states, w)
    for a, b in zip(got if kind == "lstm" else (got,), want):
        close(a, b)
    many = normal(7, S, B, I, seed=5)
    y = rlx.vmap(lambda x: getattr(rlx.nn, kind)(x, w)[0])(many)
    for n in range(7):
        close(y[n], by_loop(kind, many[n], [w], 1, np.zeros((1, B, H)), np.zeros((1, B, H)), np.full(B, S))[0])


def test_lstm_says_what_is_wrong():
    x, w = normal(S, B, I), weights(4)[0]
    with pytest.raises(rlx.ShapeMismatch, match="w must be"):
        rlx.nn.lstm(normal(S, B, I + 1), w)
    with pytest.raises(rlx.Error, match="not a multiple of 2 directions"):
        rlx.nn.lstm(x, w, bidirectional=True)
    with pytest.raises(rlx.Error, match="weights of a layer are"):
        rlx.nn.lstm(x, w[:3])
    with pytest.raises(TypeError, match="weights must be"):
        rlx.nn.lstm(x, 3)
    with pytest.raises(rlx.Error, match="there is no activation"):
        rlx.nn.rnn(x, weights(1)[0], nonlinearity="tahn")


# -- scans --


def scan_loop(x, delta, a, b, c, d, z, bias, state):
    delta = jax.nn.softplus(delta + bias)
    ys = []
    for t in range(x.shape[1]):
        state = jnp.exp(delta[:, t, :, None] * a) * state + (delta * x)[:, t, :, None] * b[:, t, None, :]
        ys.append((state * c[:, t, None, :]).sum(-1))
    return (jnp.stack(ys, 1) + d * x) * jax.nn.silu(z), state


def mamba_loop(x, dt, a, b, c, d, z, bias, state):
    dt = jax.nn.softplus(dt + bias)
    each = x.shape[2] // b.shape[2]
    b, c = (jnp.repeat(v, each, 2) for v in (b, c))
    ys = []
    for t in range(x.shape[1]):
        add = (x[:, t] * dt[:, t, :, None])[..., None] * b[:, t, :, None, :]
        state = jnp.exp(dt[:, t] * a)[..., None, None] * state + add
        ys.append((state * c[:, t, :, None, :]).sum(-1))
    return (jnp.stack(ys, 1) + d[:, None] * x) * jax.nn.silu(z), state


def delta_loop(q, k, v, g, beta, state):
    each = v.shape[2] // q.shape[2]
    q, k = (jnp.repeat(e, each, 2) for e in (q, k))
    ys = []
    for t in range(q.shape[1]):
        state = state * jnp.exp(g[:, t])[..., None, None]
        u = (v[:, t] - jnp.einsum("bhk,bhkv->bhv", k[:, t], state)) * beta[:, t][..., None]
        state = state + k[:, t][..., None] * u[:, :, None, :]
        ys.append(jnp.einsum("bhk,bhkv->bhv", q[:, t], state) / np.sqrt(q.shape[-1]))
    return jnp.stack(ys, 1), state


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


SCANS = {
    "selective_scan": (
        [normal(2, 9, 5), normal(2, 9, 5, seed=1), -np.exp(normal(5, 3, seed=2)), normal(2, 9, 3, seed=3)]
        + [normal(2, 9, 3, seed=4), normal(5, seed=5), normal(2, 9, 5, seed=6), normal(5, seed=7)]
        + [normal(2, 5, 3, seed=8)],
        scan_loop,
        [{"delta_softplus": True}],
    ),
    "mamba2": (
        [normal(2, 9, 4, 5), normal(2, 9, 4, seed=1), -np.exp(normal(4, seed=2)), normal(2, 9, 2, 3, seed=3)]
        + [normal(2, 9, 2, 3, seed=4), normal(4, seed=5), normal(2, 9, 4, 5, seed=6), normal(4, seed=7)]
        + [normal(2, 4, 5, 3, seed=8)],
        mamba_loop,
        [{"dt_softplus": True, "chunk": chunk} for chunk in (1, 4, 64)],
    ),
    "gated_delta_net": (
        [unit(normal(2, 9, 2, 4)), unit(normal(2, 9, 2, 4, seed=1)), normal(2, 9, 4, 5, seed=2)]
        + [-np.abs(normal(2, 9, 4, seed=3)), 1 / (1 + np.exp(normal(2, 9, 4, seed=4))), normal(2, 4, 4, 5, seed=5)],
        delta_loop,
        [{"chunk": chunk} for chunk in (1, 4, 32)],
    ),
}


@pytest.mark.rotates(3)
@pytest.mark.parametrize("name", SCANS)
def test_scans(name):
    args, loop, options = SCANS[name]
    args = [np.asarray(a, np.float32) for a in args]
    places = tuple(range(len(args)))
    want = loop(*args)
    slopes = jax.grad(lambda *a: sum(jnp.sum(jnp.sin(r)) for r in loop(*a)), places)(*args)
    for more in some(options, 2):
        call = lambda *a, more=more: getattr(rlx.nn, name)(*a, **more)  # noqa: E731
        for got in (call(*args), rlx.jit(call)(*args)):
            for a, b in zip(got, want, strict=True):
                close(a, b)
        got = rlx.grad(lambda *a, call=call: sum(rnp.sum(rnp.sin(r)) for r in call(*a)), places)(*args)
        for a, b in zip(got, slopes, strict=True):
            close(a, b, 2e-4)


@pytest.mark.parametrize("name", SCANS)
def test_scans_go_on_where_they_ended(name):
    args, _, options = SCANS[name]
    args = [rnp.asarray(np.asarray(a, np.float32)) for a in args]
    steps = [a.ndim > 1 and a.shape[1] == 9 for a in args]
    call = lambda a: getattr(rlx.nn, name)(*a, **options[-1])  # noqa: E731
    whole, last = call(args)
    first, between = call([a[:, :4] if s else a for a, s in zip(args, steps, strict=True)])
    rest, end = call([a[:, 4:] if s else a for a, s in zip(args[:-1], steps, strict=False)] + [between])
    close(rnp.concatenate([first, rest], 1), whole)
    close(end, last)


@pytest.mark.parametrize("name", SCANS)
def test_scans_of_narrow_floats_keep_their_state_wide(name):
    args, _, options = SCANS[name]
    call = lambda a: getattr(rlx.nn, name)(*a, **options[0])  # noqa: E731
    narrow = [rnp.asarray(np.asarray(a, np.float32)).astype(rnp.bfloat16) for a in args[:-1]]
    state = rnp.asarray(np.asarray(args[-1], np.float32))
    y, last = call([*narrow, state])
    assert y.dtype == rnp.bfloat16 and last.dtype == rnp.float32
    wide, last_wide = call([a.astype(rnp.float32) for a in narrow] + [state])
    close(last, last_wide, 1e-5)
    close(y.astype(rnp.float32), wide, 2e-2)


def test_causal_conv1d():
    x, w, bias = normal(2, 7, 3), normal(3, 4, seed=1), normal(3, seed=2)
    padded = np.concatenate([np.zeros((2, 3, 3), np.float32), x], 1)
    want = sum(padded[:, j : j + 7] * w[:, j] for j in range(4)) + bias
    y, context = rlx.nn.causal_conv1d(x, w, bias=bias)
    close(y, want)
    close(context, x[:, -3:], 0)
    first, between = rlx.nn.causal_conv1d(x[:, :2], w, bias=bias)
    rest, _ = rlx.nn.causal_conv1d(x[:, 2:], w, between, bias)
    close(rnp.concatenate([first, rest], 1), want)
    with pytest.raises(rlx.ShapeMismatch, match="context .* does not match w"):
        rlx.nn.causal_conv1d(x, w, x)
