#!/usr/bin/env python3
"""What Python costs: calls of compiled functions, and tracing and compiling a 12-layer encoder, beside JAX.

Interleaved rounds; medians. Needs the rlx package, NumPy and jax in one Python.
"""

import argparse
import statistics
import time

import numpy as np


def timed(f, n):
    begin = time.perf_counter()
    for _ in range(n):
        f()
    return (time.perf_counter() - begin) / n


def encoder(np_, nn_layer_norm, softmax, gelu):
    def layer(p, x):
        b, s, h = x.shape
        heads, d = 12, h // 12

        def split(t):
            return t.reshape(b, s, heads, d).transpose(0, 2, 1, 3)

        q, k, v = (split(x @ p[n] + p["b" + n]) for n in ("q", "k", "v"))
        a = softmax(q @ k.transpose(0, 1, 3, 2) / d**0.5) @ v
        a = a.transpose(0, 2, 1, 3).reshape(b, s, h)
        x = nn_layer_norm(x + a @ p["o"] + p["bo"], p["g1"], p["n1"])
        m = gelu(x @ p["up"] + p["bup"]) @ p["down"] + p["bdown"]
        return nn_layer_norm(x + m, p["g2"], p["n2"])

    def run(params, x):
        for p in params:
            x = layer(p, x)
        return np_.mean(x, axis=1)

    return run


def weights(layers=12, h=384, seed=0):
    r = np.random.default_rng(seed)

    def mat(a, b):
        return (r.normal(size=(a, b)) * 0.02).astype(np.float32)

    def vec(n, value=0.0):
        return np.full(n, value, np.float32)

    return [
        {
            "q": mat(h, h),
            "k": mat(h, h),
            "v": mat(h, h),
            "o": mat(h, h),
            "bq": vec(h),
            "bk": vec(h),
            "bv": vec(h),
            "bo": vec(h),
            "g1": vec(h, 1),
            "n1": vec(h),
            "g2": vec(h, 1),
            "n2": vec(h),
            "up": mat(h, 4 * h),
            "bup": vec(4 * h),
            "down": mat(4 * h, h),
            "bdown": vec(h),
        }
        for _ in range(layers)
    ]


def calls(rounds):
    import jax
    import jax.numpy as jnp
    import rlx

    f = rlx.jit(lambda x, y: x + y)
    g = jax.jit(lambda x, y: x + y)
    n = np.ones(8, np.float32)
    a, j = rlx.array(n), jnp.asarray(n)
    f(a, a), f(n, n), g(j, j).block_until_ready()
    graph = rlx.Graph()
    graph.set_outputs(graph.input("x", (8,)) + graph.input("y", (8,)))
    program = rlx.Session().compile(graph)
    rows = {
        "rlx, arrays of its own": lambda: f(a, a),
        "rlx, NumPy arrays": lambda: f(n, n),
        "jax, arrays of its own": lambda: g(j, j),
        "jax, NumPy arrays": lambda: g(n, n),
    }
    times = {k: [] for k in rows}
    for _ in range(rounds):
        for name, call in rows.items():
            times[name].append(timed(call, 20000))
    plain = program._time_run(200000)
    print(f"the run itself, from C++: {plain * 1e6:.2f} us")
    for name, t in times.items():
        print(
            f"{name}: {statistics.median(t) * 1e6:.2f} us a call, "
            f"{(statistics.median(t) - plain) * 1e6:.2f} beyond the run"
        )


def compiles(rounds):
    import jax
    import jax.numpy as jnp
    import rlx
    import rlx.numpy as rnp

    def jax_norm(x, g, b):
        m = jnp.mean(x, -1, keepdims=True)
        return (x - m) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * g + b

    ours = encoder(rnp, lambda x, g, b: rlx.nn.layer_norm(x, g, b), rlx.nn.softmax, rlx.nn.gelu)
    theirs = encoder(jnp, jax_norm, jax.nn.softmax, jax.nn.gelu)
    params, x = weights(), np.random.default_rng(1).normal(size=(1, 128, 384)).astype(np.float32)
    ratios, a, b = [], [], []
    for k in range(rounds):
        begin = time.perf_counter()
        f = rlx.jit(lambda p, v: ours(p, v)).lower(params, x).compile()
        a.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        g = jax.jit(lambda p, v: theirs(p, v)).lower(params, x).compile()
        b.append(time.perf_counter() - begin)
        ratios.append(a[-1] / b[-1])
        if k == 0:
            worst = float(np.max(np.abs(np.asarray(f(params, x)) - np.asarray(g(params, x)))))
            assert worst < 1e-4, worst
    print(
        f"12 layers traced, lowered, compiled: rlx {statistics.median(a) * 1e3:.1f} ms, "
        f"jax {statistics.median(b) * 1e3:.0f} ms, "
        f"ratio {statistics.median(ratios):.3f}"
    )


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", choices=("calls", "compiles"))
    args = p.parse_args()
    if args.only != "compiles":
        calls(args.rounds)
    if args.only != "calls":
        compiles(args.rounds)


if __name__ == "__main__":
    main()
