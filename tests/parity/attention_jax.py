#!/usr/bin/env python3
"""Compares attention with lengths, sinks, log-sum-exp and values of another size, and rope with positions, with JAX.

    attention_jax.py [--rlx build/dev/rlx] [--device NAME]...

Needs jax (0.10.2 was used) beside NumPy. Every graph runs by the reference rules in F32 and F64 and on each device
named; keys behind kv_len hold NaN. Exit status 0 when everything agrees.
"""

import argparse
import os
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

from run_numpy import compare, run

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(7)


class Case:
    def __init__(self, name, text, inputs, expected):
        self.name, self.text, self.inputs, self.expected, self.params = name, text, inputs, expected, {}


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def lengths(*values):
    return np.array(values, np.int32)


B, SQ, SK, H, KV, D = 3, 4, 7, 4, 2, 8


def attention_case(name, attrs, mask_kind="none", window=None, kv_len=None, q_len=None, sinks=None, dv=D):
    """Queries [B, SQ, H, D] over keys [B, SK, KV, D] and values [B, SK, KV, dv], by JAX with the mask of positions."""
    ins = {"q": normal(B, SQ, H, D), "k": normal(B, SK, KV, D), "v": normal(B, SK, KV, dv)}
    types = {"q": f"[{B}, {SQ}, {H}, {D}] f32", "k": f"[{B}, {SK}, {KV}, {D}] f32", "v": f"[{B}, {SK}, {KV}, {dv}] f32"}
    for key, value, kind in (("kv_len", kv_len, "i32"), ("q_len", q_len, "i32"), ("sinks", sinks, "f32")):
        if value is not None:
            ins[key], types[key] = value, f"{list(value.shape)} {kind}"
    lines, operands = [], []
    for i, key in enumerate(ins):
        lines.append(f'  %{i} = input() {{name = "{key}"}} : {types[key]}')
        operands.append(f"%{i}" if key in "qkv" else f"{key}=%{i}")
    n = len(ins)
    extra = f", window = {window}" if window is not None else ""
    vd = f", v_head_dim = {dv}" if dv != D else ""
    lines.append(
        f"  %{n}:2 = attention({', '.join(operands)}) {{num_heads = {H}, kv_heads = {KV}, head_dim = {D}, "
        f"mask = {mask_kind}{extra}, layout = heads_inner{vd}{attrs}}} : "
        f"[{B}, {SQ}, {H}, {dv}] f32, [{B}, {H}, {SQ}] f32"
    )
    text = "graph @attention {\n" + "\n".join(lines) + f"\n  return %{n}, %{n}#1\n}}"
    kl = np.full(B, SK) if kv_len is None else np.clip(kv_len, 0, SK)
    ql = np.full(B, SQ) if q_len is None else np.clip(q_len, 0, SQ)
    for b in range(B):
        ins["k"][b, kl[b] :] = np.nan
        ins["v"][b, kl[b] :] = np.nan

    def expected(q, k, v, **rest):
        k, v = np.nan_to_num(k), np.nan_to_num(v)
        i, j = np.arange(SQ)[None, :, None], np.arange(SK)[None, None, :]
        at = i + (kl - ql)[:, None, None]
        seen = (j < kl[:, None, None]) & (i < ql[:, None, None])
        if mask_kind != "none":
            seen = seen & (j <= at)
        if mask_kind == "sliding_window":
            seen = seen & (at - j <= window)
        seen = np.broadcast_to(seen, (B, SQ, SK))
        s = jnp.einsum("bihd,bjhd->bhij", q, jnp.repeat(k, H // KV, 2)) / np.sqrt(D)
        s = jnp.where(seen[:, None], s, -jnp.inf)
        sinks = rest.get("sinks", np.full(H, -np.inf)).reshape(-1, H, 1, 1)
        s = jnp.concatenate([s, jnp.broadcast_to(sinks, (B, H, SQ, 1))], -1)
        weights = jnp.where(jnp.isneginf(s).all(-1, keepdims=True), 0, jax.nn.softmax(s, -1))
        y = jnp.einsum("bhij,bjhd->bihd", weights[..., :-1], jnp.repeat(v, H // KV, 2))
        lse = jax.nn.logsumexp(s, -1)
        if "sinks" not in rest:  # JAX's own attention agrees; its softmax is in F32
            full = np.pad(v, ((0, 0),) * 3 + ((0, D - dv),))  # it takes values as deep as keys
            own = jax.nn.dot_product_attention(q, k, full, mask=jnp.asarray(seen)[:, None])[..., :dv]
            some = seen.any(-1)[:, :, None, None]
            assert np.allclose(np.where(some, own, 0), np.where(some, y, 0), atol=2e-6), name
        rows = np.arange(SQ)[None, :] < ql[:, None]
        y = np.where(rows[:, :, None, None], y, 0)
        lse = np.where(rows[:, None, :], lse, -np.inf)
        return [y, lse]

    return Case(name, text, ins, expected)


def rope_case(name, positions):
    x, cos, sin = normal(2, 3, 2, 4), normal(6, 2), normal(6, 2)
    text = f"""graph @rope {{
  %0 = input() {{name = "x"}} : [2, 3, 2, 4] f32
  %1 = input() {{name = "cos"}} : [6, 2] f32
  %2 = input() {{name = "sin"}} : [6, 2] f32
  %3 = input() {{name = "positions"}} : {list(positions.shape)} i32
  %4 = rope(%0, %1, %2, positions=%3) {{head_dim = 4, n_rot = 4, layout = heads_inner}} : [2, 3, 2, 4] f32
  return %4
}}"""

    def expected(x, cos, sin, positions):
        at = jnp.broadcast_to(positions, (2, 3))
        c, s = jnp.take(cos, at, 0, mode="clip")[:, :, None], jnp.take(sin, at, 0, mode="clip")[:, :, None]
        a, b = x[..., :2], x[..., 2:]
        return [np.asarray(jnp.concatenate([a * c - b * s, b * c + a * s], -1))]

    return Case(name, text, {"x": x, "cos": cos, "sin": sin, "positions": positions}, expected)


CASES = [
    attention_case("no lengths", ""),
    attention_case("causal", "", "causal"),
    attention_case("kv_len", "", kv_len=lengths(7, 3, 0)),
    attention_case("kv_len beyond the cache", "", "causal", kv_len=lengths(9, 4, -2)),
    attention_case("decoding", "", "causal", kv_len=lengths(7, 5, 1), q_len=lengths(1, 1, 1)),
    attention_case("lengths, causal", "", "causal", kv_len=lengths(7, 3, 4), q_len=lengths(4, 2, 0)),
    attention_case("lengths, window", "", "sliding_window", 2, lengths(6, 7, 3), lengths(3, 4, 4)),
    attention_case("values of another size", "", "causal", kv_len=lengths(5, 7, 2), dv=5),
    attention_case("sinks", "", sinks=normal(H)),
    attention_case("sinks and lengths", "", "causal", None, lengths(7, 0, 4), lengths(2, 4, 3), normal(B, H)),
    rope_case("positions", lengths(4, 0, 9)),
    rope_case("positions of each entry", lengths(4, 0, 1, 2, 2, 5).reshape(2, 3)),
]


def finite(arrays):
    """Infinities as a number that stands for them, so that differences can be taken."""
    return [np.where(np.isneginf(a), -1e30, a) for a in arrays]


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rlx", default=os.path.join(root, "build", "dev", "rlx"), help="the rlx command")
    parser.add_argument("--device", action="append", default=[], help="also run on this device")
    args = parser.parse_args()
    ways = [("oracle", ["--oracle"], 2e-6), ("oracle in f64", ["--oracle", "--f64"], 1e-12)]
    ways += [(device, ["--device", device], 2e-6) for device in args.device]
    failures = 0
    for case in CASES:
        wide = {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in case.inputs.items()}
        expected = finite(case.expected(**wide))
        for way, extra, tolerance in ways:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    problem = compare(finite(run(args.rlx, case, folder, extra)), expected, tolerance)
                except RuntimeError as e:
                    problem = str(e)
            if problem:
                failures += 1
                print(f"FAIL {case.name}, {way}: {problem}")
    print(f"rlx run against JAX {jax.__version__}: {len(CASES)} graphs, {len(ways)} ways, {failures} disagreements")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
