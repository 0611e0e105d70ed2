#!/usr/bin/env python3
"""Compares random bits, sorting, gather, scatter and grouped products with JAX (PyPI jax 0.10.2) and NumPy.

    jax_vocabulary.py [--rlx build/dev/rlx] [--device NAME]...

Every graph runs by the reference rules and on each device named. Exit status 0 when integers are equal and floats agree
to 2e-5.
"""

import argparse
import os
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import run_numpy

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(7)
BITS = {"u8": jnp.uint8, "u16": jnp.uint16, "u32": jnp.uint32, "u64": jnp.uint64}
SCATTER = {"set": "set", "add": "add", "mul": "multiply", "min": "min", "max": "max"}


def leaf(i, name, x):
    dtype = {"float32": "f32", "int32": "i32", "uint32": "u32"}[str(x.dtype)]
    return f'  %{i} = input() {{name = "{name}"}} : {list(x.shape)} {dtype}\n'


def case(name, inputs, body, outputs, expected):
    leaves = "".join(leaf(i, n, x) for i, (n, x) in enumerate(inputs.items()))
    text = "graph @g {\n" + leaves + "".join(f"  {line}\n" for line in body) + f"  return {outputs}\n}}"
    return run_numpy.Case(name, text, inputs, lambda **_: [np.asarray(e) for e in expected])


def cases():
    key = jax.random.fold_in(jax.random.key(42), 3)
    words = np.asarray(jax.random.key_data(key))
    for name, dtype in BITS.items():
        want = jax.random.bits(key, (3, 70), dtype)
        text = f"%1 = rng_bits(%0) {{dims = [3, 70], dtype = {name}}} : [3, 70] {name}"
        yield case(f"bits {name}", {"key": words}, [text], "%1", [want])
    x = RNG.standard_normal((4, 50)).astype(np.float32)
    x[:, ::7] = np.nan
    x[:, 1::5] = 0
    x[:, 2::10] = -0.0
    for descending in (False, True):
        order = jnp.argsort(x, axis=1, stable=True, descending=descending)
        text = ["%1 = iota() {axis = 1} : [4, 50] i32",
                f"%2:2 = sort(%0, %1) {{axis = 1, descending = {str(descending).lower()}}} : [4, 50] f32, [4, 50] i32"]
        yield case(f"sort, descending {descending}", {"x": x}, text, "%2#1", [order.astype(jnp.int32)])
    table, updates = RNG.standard_normal((2, 6, 5)).astype(np.float32), RNG.standard_normal((40, 2)).astype(np.float32)
    table = np.moveaxis(table, 0, 2).copy()  # [6, 5, 2]
    rows, columns = (RNG.integers(0, n + 2, 40).astype(np.int32) for n in (6, 5))
    for fn, call in SCATTER.items():
        keep = np.arange(40)
        if fn == "set":  # JAX leaves the order of a set open: only the last of each place, which is ours
            last = {place: i for i, place in enumerate(zip(rows.tolist(), columns.tolist()))}
            keep = np.array(sorted(last.values()))
        want = getattr(jnp.asarray(table).at[rows[keep], columns[keep]], call)(updates[keep], mode="drop")
        yield case(f"scatter {fn}", {"x": table, "i": rows, "j": columns, "u": updates},
                   [f"%4 = scatter_{fn}(%0, %1, %2, %3) {{axes = [0, 1]}} : [6, 5, 2] f32"], "%4", [want])
    for mode, attribute in (("clip", "clamp"), ("fill", "fill")):
        want = jnp.asarray(table).at[rows, columns].get(mode=mode, fill_value=0)
        yield case(f"gather {attribute}", {"x": table, "i": rows, "j": columns},
                   [f"%3 = gather(%0, %1, %2) {{axes = [0, 1], mode = {attribute}}} : [40, 2] f32"], "%3", [want])
    a, w = RNG.standard_normal((90, 16)).astype(np.float32), RNG.standard_normal((4, 16, 24)).astype(np.float32)
    ids = np.sort(RNG.integers(0, 4, 90)).astype(np.int32)
    want = jax.lax.ragged_dot(a, w, jnp.bincount(ids, length=4).astype(jnp.int32), precision="highest")
    mixed = RNG.permutation(90)
    yield case("grouped product", {"x": a[mixed], "w": w, "ids": ids[mixed]},
               ["%3 = grouped_dot_rows(%0, %1, %2) : [90, 24] f32"], "%3", [np.asarray(want)[mixed]])
    u = np.linspace(-0.9999999, 0.9999999, 2001).astype(np.float32)
    yield case("erfinv", {"x": u}, ["%1 = erfinv(%0) : [2001] f32"], "%1",
               [jax.scipy.special.erfinv(u.astype(np.float64))])


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rlx", default=os.path.join(root, "build", "dev", "rlx"), help="the rlx command")
    parser.add_argument("--device", action="append", default=[], help="also run on this device")
    args = parser.parse_args()
    failures = count = 0
    for c in cases():
        for device in [None] + args.device:
            count += 1
            with tempfile.TemporaryDirectory() as folder:
                try:
                    got = run_numpy.run(args.rlx, c, folder, ["--device", device] if device else ["--oracle"])
                    problem = run_numpy.compare(got, c.expected(), 2e-5)
                except RuntimeError as e:
                    problem = str(e)
            if problem:
                failures += 1
                print(f"FAIL {c.name}, {device or 'reference rules'}: {problem}")
    print(f"rlx run against JAX {jax.__version__}: {count} runs, {failures} disagreements")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
