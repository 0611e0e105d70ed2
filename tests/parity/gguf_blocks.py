#!/usr/bin/env python3
"""Compares block schemes with the Python package gguf (PyPI, tried with 0.19.0).

    gguf_blocks.py [--rlx build/dev/rlx] [--device NAME]... [--blocks N]
    gguf_blocks.py --sums

Random blocks, and blocks whose scales are every kind of F16 number (subnormal, largest, infinite, NaN), are decoded by
the reference rule (--oracle) and on each device named: every bit has to agree, NaN counting as NaN. Blocks that
`quantize` makes of random numbers have to leave no element further off than gguf's do. Exit status 0 when all of it
holds.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np

# Where each scheme keeps its F16 numbers (IQ1_M and Q8_K: see blocks_of).
SCALES = {
    "Q8_0": [0],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "Q8_K": [],
    "Q1_0": [0],
    "TQ1_0": [52],
    "TQ2_0": [64],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
    "MXFP4": [],
    "NVFP4": [],
    "IQ2_XXS": [0],
    "IQ2_XS": [0],
    "IQ2_S": [0],
    "IQ3_XXS": [0],
    "IQ3_S": [0],
    "IQ1_S": [0],
    "IQ1_M": [],
}
MADE = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]
EXTREMES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00]


def blocks_of(name, count, rng):
    size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    row = 0
    for first in EXTREMES:
        for second in EXTREMES:
            for at, bits in zip(SCALES[name], (first, second)):
                blocks[row, at] = bits & 255
                blocks[row, at + 1] = bits >> 8
            row += 1
    if name == "IQ1_M":  # its number lies in the upper four bits of four words
        for row, bits in enumerate(EXTREMES):
            for k in range(4):
                blocks[row, 49 + 2 * k] = blocks[row, 49 + 2 * k] & 15 | (bits >> 4 * k & 15) << 4
    return blocks


def decoded(blocks, name):
    """The numbers of the blocks by the package, or, of what it has no class for, by the format's definition."""
    if name == "Q8_K":
        d = np.ascontiguousarray(blocks[:, :4]).view(np.float32)
        return d * np.ascontiguousarray(blocks[:, 4:260]).view(np.int8).astype(np.float32)
    if name == "Q1_0":
        d = np.ascontiguousarray(blocks[:, :2]).view(np.float16).astype(np.float32)
        return d * (np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").astype(np.float32) * 2 - 1)
    return gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name])


def run(rlx, line, type_in, x, type_out, extra):
    """The one result of the op in `line` over input %0."""
    with tempfile.TemporaryDirectory() as folder:
        graph, given, out = (os.path.join(folder, f) for f in ("graph.rlx", "x.npy", "out.npz"))
        with open(graph, "w") as f:
            f.write(f"""graph @blocks {{
  %0 = input() {{name = "x"}} : {list(x.shape)} {type_in}
  %1 = {line} : {type_out}
  return %1
}}""")
        np.save(given, x)
        done = subprocess.run(
            [rlx, "run", graph, "--input", f"x={given}", "--output", out] + extra, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or f"exit status {done.returncode}")
        with np.load(out) as arrays:
            return arrays["out0"]


def check_decoding(rlx, name, count, rng, extra):
    """What differs, as text, or None."""
    scheme = gguf.GGMLQuantizationType[name]
    blocks = blocks_of(name, max(count, len(EXTREMES) ** 2), rng)
    dims = [len(blocks), gguf.GGML_QUANT_SIZES[scheme][0]]
    with np.errstate(all="ignore"):
        expected = decoded(blocks, name)
    line = f"dequantize(%0) {{scheme = {name.lower()}, dims = {dims}}}"
    actual = run(rlx, line, "u8", blocks, f"{dims} f32", extra)
    same = (actual.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(actual) & np.isnan(expected))
    if same.all():
        return None
    at = tuple(np.argwhere(~same)[0])
    return f"{np.count_nonzero(~same)} of {same.size} differ, {at} is {actual[at]!r}, gguf has {expected[at]!r}"


def check_making(rlx, name, count, rng, extra):
    """What is worse than gguf's blocks, as text, or None."""
    scheme = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[scheme]
    x = rng.standard_normal((count, elements)).astype(np.float32)
    x *= np.exp(rng.uniform(-6, 6, (count, 1))).astype(np.float32)
    x[::7] = np.abs(x[::7])
    made = run(rlx, f"quantize(%0) {{scheme = {name.lower()}}}", "f32", x, f"{[count, size]} u8", extra)

    def errors(blocks):
        return np.abs(gguf.quants.dequantize(blocks, scheme).astype(np.float64) - x.astype(np.float64))

    ours, theirs = errors(made), errors(gguf.quants.quantize(x, scheme))
    # Halves may go either way: the sum of an element and its shift is rounded.
    worse = ours > theirs + 1e-5 * np.abs(x).max(axis=1, keepdims=True)
    if worse.any():
        return f"{np.count_nonzero(worse)} of {x.size} elements are further off, by up to {np.max(ours - theirs)}"
    print(f"{name}: squared error {(ours**2).sum() / (theirs**2).sum():.4f} of gguf's")
    return None


def print_sums():
    """The table of tests/unit/tensor/block_schemes_test.cpp: sums of the bits of 64 drawn blocks of each scheme."""
    for name in SCALES:
        size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]
        state, drawn = 20, []
        for _ in range(64 * size):
            state = (state * 1664525 + 1013904223) % 2**32
            drawn.append(state >> 24)
        with np.errstate(all="ignore"):
            y = decoded(np.array(drawn, np.uint8).reshape(64, size), name).reshape(-1)
        total = 0
        for bits in np.where(np.isnan(y), np.uint32(0x7FC00000), y.view(np.uint32)):
            total = (total * 31 + int(bits)) % 2**64
        print(f"      {{QuantScheme::{name}, 0x{total:016x}ull}},")


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rlx", default=os.path.join(root, "build", "dev", "rlx"), help="the rlx command")
    parser.add_argument("--device", action="append", default=[], help="also decode on this device")
    parser.add_argument("--blocks", type=int, default=2000, help="random blocks of each scheme")
    parser.add_argument("--sums", action="store_true", help="print the table of the unit test and do nothing else")
    args = parser.parse_args()
    if args.sums:
        print_sums()
        return 0
    rng = np.random.default_rng(20)
    ways = [("oracle", ["--oracle"])] + [(device, ["--device", device]) for device in args.device]
    failures = 0
    cases = [(name, check_decoding) for name in SCALES] + [(name, check_making) for name in MADE]
    for name, check in cases:
        for way, extra in ways:
            try:
                problem = check(args.rlx, name, args.blocks, rng, extra)
            except RuntimeError as e:
                problem = str(e)
            if problem:
                failures += 1
                print(f"FAIL {check.__name__} {name}, {way}: {problem}")
    print(f"block schemes against gguf: {len(cases)} cases, {len(ways)} ways each, {failures} disagreements")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
