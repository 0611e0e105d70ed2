"""MiniLM in JAX, for bench/tpu: on the PJRT plug-in RLX_TPU_PLUGIN, or on jaxlib's own CPU client when --own is given.

Prints the times of its start. Then each input line holds a number of timed runs, as in bench/tpu_worker.cpp.
"""

import json
import math
import os
import pathlib
import struct
import sys
import time

import numpy as np

own = "--own" in sys.argv
folder, batch, sequence = [a for a in sys.argv[1:] if not a.startswith("--")]
batch, sequence = int(batch), int(sequence)

start = time.perf_counter()
if own:
    os.environ["JAX_PLATFORMS"] = "cpu"
else:
    os.environ["JAX_PLATFORMS"] = "plugged"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

if not own:
    from jax._src import xla_bridge

    xla_bridge.register_plugin("plugged", library_path=os.environ["RLX_TPU_PLUGIN"])
device = jax.devices()[0]
open_ms = (time.perf_counter() - start) * 1e3


def checkpoint(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)

    def values(h):
        return np.frombuffer(data, np.float32, math.prod(h["shape"]), 8 + size + h["data_offsets"][0])

    return {name: values(h).reshape(h["shape"]) for name, h in header.items() if h["dtype"] == "F32"}


config = json.loads((pathlib.Path(folder) / "config.json").read_text())
heads, layers, eps = config["num_attention_heads"], config["num_hidden_layers"], config["layer_norm_eps"]


def norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    var = (centred * centred).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(var + eps) * p[name + ".weight"] + p[name + ".bias"]


def dense(p, name, x):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def encode(p, ids, mask):
    x = p["embeddings.word_embeddings.weight"][ids]
    x = x + p["embeddings.position_embeddings.weight"][: ids.shape[1]] + p["embeddings.token_type_embeddings.weight"][0]
    x = norm(p, "embeddings.LayerNorm", x)
    b, s, width = x.shape
    keep = jnp.where(mask[:, None, None, :] > 0, 0.0, -1e30)
    for i in range(layers):
        at = f"encoder.layer.{i}."
        q, k, v = (
            dense(p, at + "attention.self." + n, x).reshape(b, s, heads, width // heads)
            for n in ("query", "key", "value")
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(width // heads) + keep
        y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v).reshape(b, s, width)
        x = norm(p, at + "attention.output.LayerNorm", x + dense(p, at + "attention.output.dense", y))
        y = jax.nn.gelu(dense(p, at + "intermediate.dense", x), approximate=False)
        x = norm(p, at + "output.LayerNorm", x + dense(p, at + "output.dense", y))
    pooled = (x * mask[:, :, None]).sum(1) / jnp.maximum(mask.sum(1, keepdims=True), 1e-9)
    return pooled / jnp.maximum(jnp.linalg.norm(pooled, axis=-1, keepdims=True), 1e-12)


params = checkpoint(pathlib.Path(folder) / "model.safetensors")
count = batch * sequence
ids = ((np.arange(count, dtype=np.int64) * 7919 + 1000) % 30000).astype(np.int32).reshape(batch, sequence)
mask = np.ones((batch, sequence), np.float32)
start = time.perf_counter()
resident = jax.device_put(params, device)
jax.block_until_ready(resident)
weights_ms = (time.perf_counter() - start) * 1e3
start = time.perf_counter()
program = jax.jit(encode).lower(resident, ids, mask).compile()
compile_ms = (time.perf_counter() - start) * 1e3
start = time.perf_counter()
out = np.asarray(program(resident, ids, mask))
first_ms = (time.perf_counter() - start) * 1e3
hello = {"open_ms": open_ms, "compile_ms": compile_ms, "weights_ms": weights_ms, "first_ms": first_ms}
print(json.dumps(dict(hello, target=f"jax {jax.__version__}, {device}", check=float(out[0, 0]))), flush=True)
for line in sys.stdin:
    us = []
    for _ in range(int(line)):
        start = time.perf_counter()
        np.asarray(program(resident, ids, mask))
        us.append((time.perf_counter() - start) * 1e6)
    print(json.dumps({"us": us}), flush=True)
