#!/usr/bin/env python3
"""Compares the sentence encoder with NumPy in F64.

    minilm_numpy.py --model DIR [--rlx build/dev/rlx]

For several shapes with padding, on random token ids: `rlx run --oracle --f64` against the model written in NumPy in
F64 (so that the oracle is known to be right), and `rlx run` on the CPU in F32 against both. Exit status 0 when the
former agree to 1e-12 and every F32 component is within 2e-6.
"""

import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

erf = np.vectorize(math.erf, otypes=[np.float64])


def read_weights(path):
    """Tensors of a safetensors file as F64."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        data = f.read()
    types = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I64": np.int64}
    out = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            out[name.removeprefix("bert.")] = (
                np.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"]).astype(np.float64)
            )
    return out


def encode(config, w, ids, mask):
    """[B, S] ids and mask -> [B, H]: mean of the last layer over the tokens, divided by its length."""
    heads, eps = config["num_attention_heads"], config["layer_norm_eps"]
    batch, sequence = ids.shape

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * w[name + ".weight"] + w[name + ".bias"]

    def linear(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    def split(x):
        return x.reshape(batch, sequence, heads, -1).transpose(0, 2, 1, 3)

    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:sequence]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for i in range(config["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        q, k, v = (split(linear(x, f"{p}attention.self.{part}")) for part in ("query", "key", "value"))
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        scores = np.where(mask[:, None, None, :] != 0, scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        context = (scores / scores.sum(-1, keepdims=True)) @ v
        context = context.transpose(0, 2, 1, 3).reshape(batch, sequence, -1)
        x = norm(x + linear(context, p + "attention.output.dense"), p + "attention.output.LayerNorm")
        h = linear(x, p + "intermediate.dense")
        h = 0.5 * h * (1 + erf(h / math.sqrt(2)))
        x = norm(x + linear(h, p + "output.dense"), p + "output.LayerNorm")
    pooled = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


def rlx(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr.strip()}")


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rlx", default=os.path.join(root, "build", "dev", "rlx"), help="the rlx command")
    parser.add_argument("--model", required=True, help="folder of all-MiniLM-L6-v2")
    args = parser.parse_args()
    with open(os.path.join(args.model, "config.json")) as f:
        config = json.load(f)
    weights_path = os.path.join(args.model, "model.safetensors")
    weights = read_weights(weights_path)
    rng = np.random.default_rng(6)
    failed = False
    for batch, sequence in ((1, 1), (1, 16), (3, 33), (2, 50)):
        ids = rng.integers(0, config["vocab_size"], (batch, sequence)).astype(np.int32)
        lengths = rng.integers(1, sequence + 1, batch)
        lengths[0] = sequence
        mask = (np.arange(sequence) < lengths[:, None]).astype(np.float32)
        expected = encode(config, weights, ids, mask.astype(np.float64))
        with tempfile.TemporaryDirectory() as folder:
            path = lambda name: os.path.join(folder, name)
            np.save(path("ids.npy"), ids)
            np.save(path("mask.npy"), mask)
            rlx(
                args.rlx,
                "inspect",
                "--model",
                args.model,
                "--batch",
                str(batch),
                "--seq",
                str(sequence),
                "--save",
                path("encoder.rlx"),
            )
            run = [
                args.rlx,
                "run",
                path("encoder.rlx"),
                "--input",
                "ids=" + path("ids.npy"),
                "--input",
                "mask=" + path("mask.npy"),
                "--weights",
                weights_path,
            ]
            rlx(*run, "--oracle", "--f64", "--output", path("oracle.npy"))
            rlx(*run, "--output", path("cpu.npy"))
            oracle, cpu = np.load(path("oracle.npy")), np.load(path("cpu.npy"))
        wrong_oracle, wrong_cpu = abs(oracle - expected).max(), abs(cpu - oracle).max()
        ok = wrong_oracle <= 1e-12 and wrong_cpu <= 2e-6
        failed |= not ok
        print(
            f"{batch} x {sequence}: oracle in F64 off NumPy by {wrong_oracle:.1e}, "
            f"cpu in F32 off the oracle by {wrong_cpu:.1e}{'' if ok else '  FAIL'}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
