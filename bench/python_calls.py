#!/usr/bin/env python3
"""The overhead of Python: calls of compiled functions, eager calls, `run_into` without Python, transformed functions
that are called outside of jit and read what they capture, and tracing and compiling a 12-layer encoder, beside JAX.

    bench/python_calls.py [--rounds 5] [--only calls|transforms|compiles] [--rlx-path DIR] [--venv DIR] [--json FILE]
    bench/python_calls.py --before BUILD [--pairs 15]        rlx alone, pair by pair with an older build

rlx is imported from build/python/python (--rlx-path). NumPy and JAX come from PyPI at pinned versions into an
environment that is removed afterwards. Rounds are interleaved, and figures are medians.
"""

import argparse
import itertools
import json
import pathlib
import statistics
import sys
import time

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "bench" / "peers"))
ADD = 8  # elements of the sum whose calls are timed


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
    import numpy as np

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


def calls(rounds, peers):
    """{figure: microseconds} of one sum of two arrays."""
    import numpy as np
    import rlx
    import rlx.numpy as rnp

    n = np.ones(ADD, np.float32)
    a, f = rlx.array(n), rlx.jit(lambda x, y: x + y)

    def sum_of(elements):
        graph = rlx.Graph()
        graph.set_outputs(graph.input("x", (elements,)) + graph.input("y", (elements,)))
        return rlx.Session().compile(graph)

    # A sum without elements makes no kernel call: its run is what a run costs beyond its kernels.
    from_cpp = {"rlx: run_into, from C++": sum_of(ADD), "rlx: run_into beyond its kernel, from C++": sum_of(0)}
    rows = {
        "rlx: compiled, arrays of its own": lambda: f(a, a),
        "rlx: compiled, NumPy arrays": lambda: f(n, n),
        "rlx: eager, a + a": lambda: a + a,
        "rlx: eager, numpy.add(a, a)": lambda: rnp.add(a, a),
    }
    if peers:
        import jax
        import jax.numpy as jnp

        j, g = jnp.asarray(n), jax.jit(lambda x, y: x + y)
        rows["JAX: compiled, arrays of its own"] = lambda: g(j, j)
        rows["JAX: compiled, NumPy arrays"] = lambda: g(n, n)
        rows["JAX: eager, a + a"] = lambda: j + j
        rows["JAX: eager, numpy.add(a, a)"] = lambda: jnp.add(j, j)
    times = {name: [] for name in rows}
    times.update({name: [] for name in from_cpp})
    for call in rows.values():
        timed(call, 100)
    for _ in range(rounds):
        for name, call in rows.items():
            times[name].append(timed(call, 5000))
        for name, program in from_cpp.items():
            times[name].append(program._time_run(50000))
    return {name: statistics.median(t) * 1e6 for name, t in times.items()}


class Batch:
    """What a loss reads from outside, new at each call."""


def transformed(rlx, np_, nn, lax, batch, params):
    """{case: function without arguments} of either library: each traces a function that reads `batch`."""

    def square(x):
        return np_.sum((x * batch.w) ** 2)

    def loss(p):
        h = np_.tanh(batch.x @ p["a"] + p["b"])
        return -np_.mean(np_.sum(batch.y * nn.log_softmax(h @ p["c"] + p["d"]), axis=-1))

    def steps(x):
        return lax.scan(lambda c, k: (c * batch.w + k, np_.sum(c)), x, batch.x)

    x = batch.w * 0.5
    return {
        "grad of sum((x w)**2)": lambda: rlx.grad(square)(x),
        "jvp of it": lambda: rlx.jvp(square, (x,), (x,))[1],
        "vjp of it, and its cotangent": lambda: rlx.vjp(square, x)[1](np_.ones(()))[0],
        "hessian of it": lambda: rlx.hessian(square)(x),
        "vmap of it": lambda: rlx.vmap(square)(batch.x),
        "value_and_grad of a network": lambda: rlx.value_and_grad(loss)(params)[0],
        "scan of 32 steps": lambda: steps(x)[0],
    }


def transforms(rounds, peers):
    """{figure: microseconds} of transformed functions outside of jit, and {case: ours over JAX's}."""
    import numpy as np
    import rlx
    import rlx.numpy as rnp

    libraries = {"rlx": (rlx, rnp, rlx.nn, rlx.lax, rlx.array)}
    if peers:
        import jax
        import jax.numpy as jnp

        libraries["JAX"] = jax, jnp, jax.nn, jax.lax, jnp.asarray
    sizes = {"a": (ADD, 32), "b": (32,), "c": (32, 4), "d": (4,)}
    rows, batches = {}, {}
    for name, (library, np_, nn, lax, array) in libraries.items():
        params = {k: array(np.full(s, 0.1, np.float32)) for k, s in sizes.items()}
        batches[name] = batch = Batch()
        batch.w, batch.x = array(np.ones(ADD, np.float32)), array(np.ones((32, ADD), np.float32))
        batch.y = array(np.eye(4, dtype=np.float32)[np.arange(32) % 4])
        rows[name] = transformed(library, np_, nn, lax, batch, params)
        fresh = [array(np.full(ADD, 1 + k / 8, np.float32)) for k in range(4)]
        batch.change = itertools.cycle(fresh)
    times = {(name, case): [] for name, cases in rows.items() for case in cases}

    def once(name, case):
        batches[name].w = next(batches[name].change)
        return rows[name][case]()

    for case in rows["rlx"]:
        for _ in range(8):  # both end at the same capture
            last = [np.asarray(once(name, case)) for name in rows]
        assert all(np.allclose(last[0], other, rtol=1e-4) for other in last), case
    for _ in range(rounds):
        for name, case in times:
            times[name, case].append(timed(lambda: once(name, case), 50))
    ratios = {
        case: statistics.median(a / b for a, b in zip(times["rlx", case], times["JAX", case]))
        for case in rows["rlx"]
        if peers
    }
    return {f"{name}: {case}": statistics.median(t) * 1e6 for (name, case), t in times.items()}, ratios


def compiles(rounds, peers):
    """{figure: milliseconds}, and the median of the ratios to JAX."""
    import numpy as np
    import rlx
    import rlx.numpy as rnp

    ours = encoder(rnp, lambda x, g, b: rlx.nn.layer_norm(x, g, b), rlx.nn.softmax, rlx.nn.gelu)
    params, x = weights(), np.random.default_rng(1).normal(size=(1, 128, 384)).astype(np.float32)
    name, other = "rlx: 12 layers traced, lowered, compiled", "JAX: 12 layers traced, lowered, compiled"
    times = {name: []}
    if peers:
        import jax
        import jax.numpy as jnp

        def jax_norm(x, g, b):
            m = jnp.mean(x, -1, keepdims=True)
            return (x - m) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * g + b

        theirs = encoder(jnp, jax_norm, jax.nn.softmax, jax.nn.gelu)
        times[other] = []
    for k in range(rounds):
        begin = time.perf_counter()
        f = rlx.jit(lambda p, v: ours(p, v)).lower(params, x).compile()
        times[name].append(time.perf_counter() - begin)
        if peers:
            begin = time.perf_counter()
            g = jax.jit(lambda p, v: theirs(p, v)).lower(params, x).compile()
            times[other].append(time.perf_counter() - begin)
            if k == 0:
                worst = float(np.max(np.abs(np.asarray(f(params, x)) - np.asarray(g(params, x)))))
                assert worst < 1e-4, worst
    ratio = statistics.median(a / b for a, b in zip(times[name], times[other])) if peers else None
    return {figure: statistics.median(t) * 1e3 for figure, t in times.items()}, ratio


def child_main(args):
    """The measurement, in a Python that has the packages; prints a line of JSON."""
    out = {}
    if args.only in (None, "calls"):
        out["calls_us"] = calls(args.rounds, not args.alone)
    if args.only in (None, "transforms"):
        out["transforms_us"], out["transform_ratios"] = transforms(args.rounds, not args.alone)
    if args.only in (None, "compiles"):
        out["compiles_ms"], out["ratio"] = compiles(args.rounds, not args.alone)
    print(json.dumps(out))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", choices=("calls", "transforms", "compiles"))
    p.add_argument("--rlx-path", type=pathlib.Path, default=root / "build/python/python", help="the folder with rlx/")
    p.add_argument("--venv", help="an existing environment with numpy and jax")
    p.add_argument("--json", type=pathlib.Path)
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    if "--child" in sys.argv:
        return child_main(p.parse_args())
    import before
    import timing
    from child import Failure
    from venv_peers import environment

    before.add_options(p)
    args = p.parse_args()
    if not (args.rlx_path / "rlx").is_dir():
        raise Failure(f"{args.rlx_path} has no rlx; build the Python package (docs/python.md) or say --rlx-path")
    packages = ["numpy"] if args.before else ["numpy", "jax", "jaxlib"]
    with environment(packages, args.venv) as venv:

        def ask(path, rounds, *more):
            command = [venv / "bin/python", __file__, "--child", "--rounds", rounds, *more]
            command += ["--only", args.only] if args.only else []
            return timing.run_json(command, 1, {"PYTHONPATH": str(path), "JAX_PLATFORMS": "cpu"})[0]

        def measure(path):
            reply = ask(path, 1, "--alone")
            both = reply.get("calls_us", {}) | reply.get("transforms_us", {})
            found = {f"{name}, us": v for name, v in both.items()}
            return found | {f"{name}, ms": v for name, v in reply.get("compiles_ms", {}).items()}

        print(timing.machine())
        if args.before:
            old = before.python_package(args.before)
            status, reply = before.compare("python_calls", measure, args.rlx_path.resolve(), old, args.pairs)
        else:
            with timing.alone():
                status, reply = 0, ask(args.rlx_path.resolve(), args.rounds)
            for name, us in reply.get("calls_us", {}).items():
                print(f"{name:44}{us:10.2f} us a call")
            for name, us in reply.get("transforms_us", {}).items():
                print(f"{name:44}{us:10.1f} us a call")
            for name, ratio in reply.get("transform_ratios", {}).items():
                print(f"{name + ', rlx over JAX':44}{ratio:10.3f}")
            for name, ms in reply.get("compiles_ms", {}).items():
                print(f"{name:44}{ms:10.1f} ms")
            if reply.get("ratio"):
                print(f"compile, rlx over JAX: {reply['ratio']:.3f}")
    if args.json:
        args.json.write_text(json.dumps({"machine": timing.machine(), "python_calls": reply}, indent=1) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
