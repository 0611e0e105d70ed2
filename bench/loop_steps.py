#!/usr/bin/env python3
"""The time of a step of loops, beside JAX: loops of scalars, and those of bench/control_flow.cpp.

    bench/loop_steps.py [--rounds 9] [--rlx-path DIR] [--venv DIR] [--json FILE]
    bench/loop_steps.py --before BUILD [--pairs 15]        rlx alone, pair by pair with an older build

One thread. rlx is imported from build/python/python (--rlx-path). NumPy and JAX come from PyPI at pinned versions into
an environment that is removed afterwards. Rounds are interleaved, and figures are medians. Results are compared.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "bench" / "peers"))
STEPS, ROWS, WIDTH, LAYERS = 100_000, 512, 64, 12


def programs(lax, xp, jit, grad):
    """{figure: (function, arguments, steps)} in the functions of one library."""
    import numpy as np

    r = np.random.default_rng(0)

    def array(*shape, scale=0.05):
        return xp.asarray((r.normal(size=shape) * scale).astype(np.float32))

    def layer(y, weights):
        up, down = weights
        return y + xp.maximum(y @ up, 0) @ down, None

    def cell(w):
        def step(h, x):
            h = xp.tanh(h @ w + x)
            return h, h

        return step

    def recurrence(c, x):
        c = xp.tanh(c * 0.9 + x)
        return c, c

    def counted(x):
        return lax.while_loop(
            lambda c: c[0] < STEPS, lambda c: (c[0] + 1, c[1] * np.float32(0.999) + np.float32(0.1)), (np.int32(0), x)
        )[1]

    def newton(a):
        return lax.fori_loop(0, STEPS, lambda i, x: xp.where(x > 1, (x + a / x) * np.float32(0.5), x + 1), a)

    def filled(a):
        return lax.fori_loop(1, 4096, lambda i, a: a.at[i].set(a[i - 1] * np.float32(0.5) + a[i]), a)

    rows = array(STEPS)
    one, table = array(scale=1.0), array(4096)
    cases = {
        "fori_loop, x * 0.999 + 0.1": (
            lambda x: lax.fori_loop(0, STEPS, lambda i, x: x * np.float32(0.999) + np.float32(0.1), x),
            (one,),
            STEPS,
        ),
        "while_loop, the same with a counter": (counted, (one,), STEPS),
        "fori_loop, a Newton step with a select": (newton, (xp.abs(one) + 1,), STEPS),
        "scan, a tanh cell of one number": (lambda x: lax.scan(recurrence, x[0], x)[1], (rows,), STEPS),
        "its gradient": (grad(lambda x: xp.sum(lax.scan(recurrence, x[0], x)[1])), (rows,), STEPS),
        "fori_loop, a[i] from a[i - 1]": (filled, (table,), 4095),
        "scan, a tanh cell of 64 x 64": (
            lambda h, w, x: lax.scan(cell(w), h, x)[1],
            (array(1, WIDTH), array(WIDTH, WIDTH), array(ROWS, 1, WIDTH)),
            ROWS,
        ),
        "scan over 12 stacked layers": (
            lambda x, u, d: lax.scan(layer, x, (u, d))[0],
            (array(8, 256), array(LAYERS, 256, 1024), array(LAYERS, 1024, 256)),
            LAYERS,
        ),
    }
    return {name: (jit(f), arguments, steps) for name, (f, arguments, steps) in cases.items()}


def child_main(args):
    """The measurement, in a Python that has the packages; prints a line of JSON."""
    import numpy as np

    import rlx

    engines = {"rlx": programs(rlx.lax, rlx.numpy, rlx.jit, rlx.grad)}
    if not args.alone:
        import jax
        import jax.numpy as jnp

        engines["JAX"] = programs(jax.lax, jnp, jax.jit, jax.grad)
    out = {}
    for name, (f, a, steps) in engines["rlx"].items():
        calls = {engine: (cases[name][0], cases[name][1]) for engine, cases in engines.items()}
        results = [np.asarray(g(*b)) for g, b in calls.values()]
        for other in results[1:]:
            np.testing.assert_allclose(results[0], other, rtol=1e-3, atol=1e-5, err_msg=name)
        times = {engine: [] for engine in calls}
        for _ in range(args.rounds):
            for engine, (call, operands) in calls.items():
                begin = time.perf_counter()
                call(*operands).block_until_ready()
                times[engine].append(time.perf_counter() - begin)
        out[name] = {engine: statistics.median(t) / steps * 1e9 for engine, t in times.items()}
    print(json.dumps(out))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=9)
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
    status = 0
    with environment(["numpy"] if args.before else ["numpy", "jax", "jaxlib"], args.venv) as venv:

        def ask(path, *more):
            command = [venv / "bin/python", __file__, "--child", "--rounds", args.rounds, *more]
            flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
            variables = {"PYTHONPATH": str(path), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "RLX_THREADS": "1"}
            reply = timing.run_json(command, 1, variables)[0]
            return {name: row for name, row in reply.items() if isinstance(row, dict)}  # without what the run used

        print(timing.machine())
        if args.before:
            old = before.python_package(args.before)

            def measure(path):
                return {f"{name}, ns a step": row["rlx"] for name, row in ask(path, "--alone").items()}

            status, rows = before.compare("loop_steps", measure, args.rlx_path.resolve(), old, args.pairs)
        else:
            rows = ask(args.rlx_path.resolve())
            print(f"{'ns a step, medians of ' + str(args.rounds) + ' rounds':44}{'rlx':>10}{'JAX':>10}{'ratio':>8}")
            for name, row in rows.items():
                print(f"{name:44}{row['rlx']:10.1f}{row['JAX']:10.1f}{row['rlx'] / row['JAX']:8.2f}")
    if args.json:
        args.json.write_text(json.dumps({"machine": timing.machine(), "loop_steps": rows}, indent=1) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
