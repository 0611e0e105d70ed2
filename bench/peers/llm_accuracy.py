"""Logits of 128 positions of every engine of bench/llm against PyTorch in f32: llm_accuracy.py DIR RLX_WORKER CACHE."""

import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime
import openvino as ov
import torch
from transformers import AutoModelForCausalLM

folder, worker, cache = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
x, state = [], 1  # the prompt of bench/language_model
for _ in range(128):
    state = (state * 1664525 + 1013904223) % 2**32
    x.append(3 + (state >> 8) % 31990)
x = np.array([x])
model = AutoModelForCausalLM.from_pretrained(folder / "hf").eval().float()
config = model.config
with torch.no_grad():
    want = model(torch.tensor(x)).logits[0].double()


def report(name, logits):
    got = torch.tensor(np.array(logits)).double()
    cosine = torch.nn.functional.cosine_similarity(want, got, dim=1)
    p, q = torch.log_softmax(want, 1), torch.log_softmax(got, 1)
    kl = (p.exp() * (p - q)).sum(1)
    best = (want.argmax(1) == got.argmax(1)).double().mean()
    print(
        f"{name:24} cosine {cosine.mean():.4f} (least {cosine.min():.4f})  KL {kl.mean():.5f}  same best {best:.2f}",
        flush=True,
    )


for kind in ("Q4_0", "Q4_K", "Q8_0"):
    file = folder / f"{kind}.gguf"
    for name, command in {
        "rlx": [worker, file, "1", "int8", cache, "128", "1", "logits"],
        "rlx exact": [worker, file, "1", "exact", "f32", "128", "1", "logits"],
        "llama.cpp": [folder / "llama_worker", file, "1", "logits"],
    }.items():
        raw = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE).stdout
        report(f"{name} {kind}", np.frombuffer(raw, np.float32).reshape(128, -1))
core = ov.Core()
for kind, options in {"int8": {}, "int4_32": {}, "int4_128": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "128"}}.items():
    compiled = core.compile_model(
        folder / f"openvino_{kind}/openvino_model.xml", "CPU", {"KV_CACHE_PRECISION": "u8", **options}
    )
    feeds = {"input_ids": x, "attention_mask": np.ones_like(x), "position_ids": np.arange(128)[None]}
    report(f"OpenVINO {kind}", compiled.create_infer_request().infer(feeds | {"beam_idx": np.zeros(1, np.int32)})[0][0])
for kind in ("int4_32", "int4_128"):
    session = onnxruntime.InferenceSession(str(folder / f"onnxruntime_{kind}/model.onnx"))
    feeds = {"input_ids": x, "attention_mask": np.ones_like(x)}
    for i in session.get_inputs():
        if i.name.startswith("past"):
            feeds[i.name] = np.zeros([1, config.num_key_value_heads, 0, config.head_dim], np.float32)
    report(f"onnxruntime {kind}", session.run(["logits"], feeds)[0][0])
