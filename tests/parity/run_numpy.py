#!/usr/bin/env python3
"""Compares `rlx run` with NumPy on a handful of graphs.

    run_numpy.py [--rlx build/dev/rlx] [--device NAME]...

Every graph runs by the reference rules in F32 and F64 (--oracle, --oracle --f64) and on each device named. Inputs
are made here from a fixed seed. Exit status 0 when everything agrees.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

RNG = np.random.default_rng(20)
erf = np.vectorize(math.erf, otypes=[np.float64])


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def layer_norm(x, gamma, beta, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def ints(low, high, *shape, dtype=np.int32):
    return RNG.integers(low, high, shape).astype(dtype)


class Case:
    """A graph in text form, its inputs and params by name, and what NumPy makes of them (given F64 copies of floats).
    """

    def __init__(self, name, text, inputs, expected, params=None):
        self.name, self.text, self.inputs, self.expected, self.params = name, text, inputs, expected, params or {}


CASES = [
    Case(
        "dense layer",
        """graph @dense {
  %0 = input() {name = "x"} : [5, 7] f32
  %1 = param() {name = "w"} : [7, 4] f32
  %2 = param() {name = "b"} : [4] f32
  %3 = matmul(%0, %1) : [5, 4] f32
  %4 = add(%3, %2) : [5, 4] f32
  %5 = gelu(%4) : [5, 4] f32
  %6 = softmax(%5) {axis = 1} : [5, 4] f32
  return %6, %3
}""",
        {"x": normal(5, 7)},
        lambda x, w, b: [softmax(gelu(x @ w + b)), x @ w],
        {"w": normal(7, 4), "b": normal(4)},
    ),
    Case(
        "residual layer norm",
        """graph @norm {
  %0 = input() {name = "x"} : [2, 3, 8] f32
  %1 = input() {name = "r"} : [2, 3, 8] f32
  %2 = input() {name = "gamma"} : [8] f32
  %3 = input() {name = "beta"} : [8] f32
  %4 = add(%0, %1) : [2, 3, 8] f32
  %5:3 = layer_norm(%4, gamma=%2, beta=%3) {axes = [2], eps = 1e-12}
  return %5
}""",
        {"x": normal(2, 3, 8), "r": normal(2, 3, 8), "gamma": normal(8), "beta": normal(8)},
        lambda x, r, gamma, beta: [layer_norm(x + r, gamma, beta, 1e-12)],
    ),
    Case(
        "masked attention from parts",
        """graph @attention {
  %0 = input() {name = "q"} : [2, 3, 4, 5] f32
  %1 = input() {name = "k"} : [2, 3, 6, 5] f32
  %2 = input() {name = "v"} : [2, 3, 6, 5] f32
  %3 = input() {name = "visible"} : [2, 1, 1, 6] bool
  %4 = transpose(%1) {perm = [0, 1, 3, 2]} : [2, 3, 5, 6] f32
  %5 = matmul(%0, %4) : [2, 3, 4, 6] f32
  %6 = constant() {value = [] f32 {-30000}} : [] f32
  %7 = where(%3, %5, %6) : [2, 3, 4, 6] f32
  %8 = softmax(%7) {axis = 3} : [2, 3, 4, 6] f32
  %9 = matmul(%8, %2) : [2, 3, 4, 5] f32
  return %9
}""",
        {
            "q": normal(2, 3, 4, 5),
            "k": normal(2, 3, 6, 5),
            "v": normal(2, 3, 6, 5),
            "visible": np.array([[1, 1, 0, 1, 1, 0], [0, 1, 1, 1, 1, 1]], bool).reshape(2, 1, 1, 6),
        },
        lambda q, k, v, visible: [softmax(np.where(visible, q @ k.swapaxes(-1, -2), -30000)) @ v],
    ),
    Case(
        "moves",
        """graph @moves {
  %0 = input() {name = "x"} : [3, 4] f32
  %1 = input() {name = "ids"} : [2, 3] i64
  %2 = gather(%0, %1) {axis = 1} : [3, 2, 3] f32
  %3 = slice(%0) {starts = [0, 1], limits = [3, 4], strides = [2, 2]} : [2, 2] f32
  %4 = constant() {value = [] f32 {7}} : [] f32
  %5 = pad(%3, %4) {low = [1, 0], high = [0, 2], interior = [0, 0]} : [3, 4] f32
  %6 = concat(%0, %5) {axis = 1} : [3, 8] f32
  %7 = transpose(%6) {perm = [1, 0]} : [8, 3] f32
  %8 = reverse(%7) {axes = [0]} : [8, 3] f32
  %9 = reshape(%8) : [4, 6] f32
  return %2, %9
}""",
        {"x": normal(3, 4), "ids": ints(0, 4, 2, 3, dtype=np.int64)},
        lambda x, ids: [
            np.take(x, ids, axis=1),
            np.concatenate([x, np.pad(x[0:3:2, 1:4:2], ((1, 0), (0, 2)), constant_values=7)], 1).T[::-1].reshape(4, 6),
        ],
    ),
    Case(
        "reductions",
        """graph @reductions {
  %0 = input() {name = "x"} : [3, 4, 5] f32
  %1 = reduce_sum(%0) {axes = [0, 2]} : [4] f32
  %2 = reduce_mean(%0) {axes = [1], keep_dims = true} : [3, 1, 5] f32
  %3 = reduce_max(%0) {axes = [2]} : [3, 4] f32
  %4 = reduce_min(%0) {axes = [0, 1, 2]} : [] f32
  %5 = reduce_prod(%0) {axes = [1]} : [3, 5] f32
  %6 = arg_reduce_max(%0) {axis = 1} : [3, 5] i32
  %7 = arg_reduce_min(%0) {axis = 2, keep_dims = true} : [3, 4, 1] i32
  %8 = cumulative_sum(%0) {axis = 1} : [3, 4, 5] f32
  %9 = cumulative_prod(%0) {axis = 2, reverse = true} : [3, 4, 5] f32
  return %1, %2, %3, %4, %5, %6, %7, %8, %9
}""",
        {"x": normal(3, 4, 5)},
        lambda x: [
            x.sum((0, 2)),
            x.mean(1, keepdims=True),
            x.max(2),
            x.min(),
            x.prod(1),
            x.argmax(1),
            x.argmin(2)[..., None],
            x.cumsum(1),
            x[..., ::-1].cumprod(2)[..., ::-1],
        ],
    ),
    Case(
        "top k",
        """graph @top {
  %0 = input() {name = "x"} : [4, 9] f32
  %1:2 = top_k(%0) {k = 3} : [4, 3] f32, [4, 3] i32
  return %1, %1#1
}""",
        {"x": normal(4, 9)},
        lambda x: [-np.sort(-x, 1)[:, :3], np.argsort(-x, 1, kind="stable")[:, :3]],
    ),
    Case(
        "broadcast arithmetic",
        """graph @broadcast {
  %0 = input() {name = "a"} : [3, 1, 4] f32
  %1 = input() {name = "b"} : [5, 1] f32
  %2 = sub(%0, %1) : [3, 5, 4] f32
  %3 = max(%2, %0) : [3, 5, 4] f32
  %4 = tanh(%3) : [3, 5, 4] f32
  %5 = atan2(%4, %1) : [3, 5, 4] f32
  %6 = lt(%5, %0) : [3, 5, 4] bool
  return %5, %6
}""",
        {"a": normal(3, 1, 4), "b": normal(5, 1)},
        lambda a, b: [np.arctan2(np.tanh(np.maximum(a - b, a)), b), np.arctan2(np.tanh(np.maximum(a - b, a)), b) < a],
    ),
    Case(
        "integers",
        """graph @integers {
  %0 = input() {name = "a"} : [40] i32
  %1 = input() {name = "b"} : [40] i32
  %2 = mod(%0, %1) : [40] i32
  %3 = div(%0, %1) : [40] i32
  %4 = bit_xor(%0, %1) : [40] i32
  %5 = mul(%0, %0) : [40] i32
  return %2, %3, %4, %5
}""",
        {
            "a": ints(-(2**31), 2**31 - 1, 40),
            "b": np.where(ints(0, 2, 40) == 1, 1, -1).astype(np.int32) * ints(1, 90, 40),
        },
        lambda a, b: [a % b, np.trunc(a.astype(np.float64) / b).astype(np.int32), a ^ b, a * a],
    ),
    Case(
        "scatter and windows",
        """graph @scatter {
  %0 = input() {name = "x"} : [6, 3] f32
  %1 = input() {name = "ids"} : [4] i32
  %2 = input() {name = "u"} : [4, 3] f32
  %3 = scatter_add(%0, %1, %2) : [6, 3] f32
  %4 = input() {name = "at"} : [2] i32
  %5 = dynamic_slice(%3, %4) : [2, 2] f32
  %6 = dynamic_update_slice(%0, %5, %4) : [6, 3] f32
  return %3, %5, %6
}""",
        {
            "x": normal(6, 3),
            "ids": np.array([1, 5, 1, 0], np.int32),
            "u": normal(4, 3),
            "at": np.array([3, 1], np.int32),
        },
        lambda x, ids, u, at: scatter_case(x, ids, u, at),
    ),
]


def scatter_case(x, ids, u, at):
    added = x.copy()
    np.add.at(added, ids, u)
    window = added[at[0] : at[0] + 2, at[1] : at[1] + 2]
    updated = x.copy()
    updated[at[0] : at[0] + 2, at[1] : at[1] + 2] = window
    return [added, window, updated]


# One graph for every batch size: dimensions bound by the inputs.
SYMBOLIC = """graph @pooled {{
  symbol batch [1, 64]
  symbol seq [1, 512]
  %0 = input() {{name = "x"}} : [batch, seq, 4] f32
  %1 = input() {{name = "mask"}} : [batch, seq, 1] f32
  %2 = mul(%0, %1) : [batch, seq, 4] f32
  %3 = reduce_sum(%2) {{axes = [1]}} : [batch, 4] f32
  %4 = reduce_sum(%1) {{axes = [1]}} : [batch, 1] f32
  %5 = div(%3, %4) : [batch, 4] f32
  %6 = reshape(%2) : [batch*seq, 4] f32
  return %5, %6
}}""".format()
for b, s in ((1, 1), (3, 5)):
    mask = np.ones((b, s, 1), np.float32)
    mask[:, s // 2 + 1 :] = 0
    CASES.append(
        Case(
            f"symbolic {b} x {s}",
            SYMBOLIC,
            {"x": normal(b, s, 4), "mask": mask},
            lambda x, mask: [(x * mask).sum(1) / mask.sum(1), (x * mask).reshape(-1, 4)],
        )
    )


def run(rlx, case, folder, extra):
    graph = os.path.join(folder, "graph.rlx")
    with open(graph, "w") as f:
        f.write(case.text)
    command = [rlx, "run", graph]
    for option, values in (("--input", case.inputs), ("--param", case.params)):
        for name, value in values.items():
            path = os.path.join(folder, name + ".npy")
            np.save(path, value)
            command += [option, f"{name}={path}"]
    out = os.path.join(folder, "out.npz")
    done = subprocess.run(command + ["--output", out] + extra, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"exit status {done.returncode}")
    with np.load(out) as arrays:
        return [arrays[f"out{i}"] for i in range(len(arrays.files))]


def compare(actual, expected, tolerance):
    """The first disagreement as text, or None."""
    if len(actual) != len(expected):
        return f"{len(actual)} outputs, expected {len(expected)}"
    for i, (a, e) in enumerate(zip(actual, expected)):
        e = np.asarray(e)
        if a.shape != e.shape:
            return f"out{i} is {a.shape}, expected {e.shape}"
        if a.dtype.kind in "biu":
            if not np.array_equal(a, e):
                return f"out{i} differs"
            continue
        error = np.max(np.abs(a - e) / np.maximum(1, np.abs(e)), initial=0)
        if not error <= tolerance:
            return f"out{i} is off by {error:.2e}, allowed {tolerance:.0e}"
    return None


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rlx", default=os.path.join(root, "build", "dev", "rlx"), help="the rlx command")
    parser.add_argument("--device", action="append", default=[], help="also run on this device")
    args = parser.parse_args()
    ways = [("oracle", ["--oracle"], 1e-6), ("oracle in f64", ["--oracle", "--f64"], 1e-13)]
    ways += [(device, ["--device", device], 2e-6) for device in args.device]
    failures = 0
    for case in CASES:
        floats = {
            n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in {**case.inputs, **case.params}.items()
        }
        with np.errstate(over="ignore"):
            expected = case.expected(**floats)
        for way, extra, tolerance in ways:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    problem = compare(run(args.rlx, case, folder, extra), expected, tolerance)
                except RuntimeError as e:
                    problem = str(e)
            if problem:
                failures += 1
                print(f"FAIL {case.name}, {way}: {problem}")
    print(
        f"rlx run against NumPy {np.__version__}: {len(CASES)} graphs, {len(ways)} ways each, {failures} disagreements"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
