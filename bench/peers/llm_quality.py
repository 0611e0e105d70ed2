"""The loss of rounded matmuls and 8-bit caches: mean KL(F64 with the weights of a GGUF file || an engine) over a text.

llm_quality.py FOLDER RLX_WORKER HF FILE.gguf.. [--text FILE]: logits of rlx and of llama.cpp (FOLDER/llama_worker) on
the same file, against PyTorch in F64 with the dequantized weights of the file in the model of the Hugging Face folder
HF. Without a text: 128 tokens of bench/language_model's prompt.
"""

import argparse
import pathlib
import re
import subprocess
import tempfile

import gguf
import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("worker")
parser.add_argument("hf", type=pathlib.Path)
parser.add_argument("files", type=pathlib.Path, nargs="+")
parser.add_argument("--text", type=pathlib.Path)
args = parser.parse_args()

NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def reference(model, file, ids):
    """Logits in F64 with the weights of `file`, quantized or not."""
    weights = dict(model.named_parameters())
    left = set(weights)
    for t in gguf.GGUFReader(file).tensors:
        name = t.name.removesuffix(".weight")
        if found := re.fullmatch(r"blk\.(\d+)\.(.*)", name):
            key = f"model.layers.{found[1]}.{NAMES[found[2]]}.weight"
        else:
            key = OUTER[name] + ".weight"
        x = torch.tensor(gguf.quants.dequantize(t.data, t.tensor_type)).double()
        if model.config.model_type == "llama" and key.endswith(("q_proj.weight", "k_proj.weight")):
            heads = x.shape[0] // (model.config.hidden_size // model.config.num_attention_heads)
            x = x.reshape(heads, -1, 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape)  # GGUF rotates adjacent pairs
        with torch.no_grad():
            weights[key].copy_(x)
        left.discard(key)
    assert not left, f"{file} lacks {left}"
    with torch.no_grad():
        return model(torch.tensor(ids)[None]).logits[0]


if args.text:
    ids = AutoTokenizer.from_pretrained(args.hf)(args.text.read_text(), add_special_tokens=False)["input_ids"][:512]
else:
    ids, state = [], 1
    for _ in range(128):
        state = (state * 1664525 + 1013904223) % 2**32
        ids.append(3 + (state >> 8) % 31990)
model = AutoModelForCausalLM.from_pretrained(args.hf).eval().double()
with tempfile.NamedTemporaryFile() as tokens:
    tokens.write(np.array(ids, np.int32).tobytes())
    tokens.flush()
    for file in args.files:
        want = reference(model, file, ids)
        p = torch.log_softmax(want, 1)
        for cache in ("f16", "q8_0"):
            mean = {}
            for name, command in {
                "rlx": [args.worker, file, "1", "auto", cache, "512", "1", "logits", tokens.name],
                "llama.cpp": [args.folder / "llama_worker", file, "1", "logits", cache, tokens.name],
            }.items():
                raw = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE).stdout
                got = torch.tensor(
                    np.frombuffer(raw, np.float32).reshape(len(ids), -1)[:, : want.shape[1]].copy()
                ).double()
                q = torch.log_softmax(got, 1)
                mean[name] = (p.exp() * (p - q)).sum(1).mean().item()
                best = (want.argmax(1) == got.argmax(1)).double().mean()
                print(f"{file.stem:16} cache {cache:5} {name:10} KL {mean[name]:.3e}  same best {best:.3f}", flush=True)
            print(f"{file.stem:16} cache {cache:5} rlx / llama.cpp {mean['rlx'] / mean['llama.cpp']:.2f}", flush=True)
