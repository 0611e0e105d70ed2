#!/usr/bin/env python3
"""Logits of small quantised Gemma 2 models with a window of 2, judged by an evaluation in F64.

    PYTHONPATH=build/python/python quantised_logits.py [--type Q3_K] [--models 24] [--llama LLAMA_WORKER]

The weights are the numbers that PyPI gguf decodes from the blocks of the file, the model is that of transformers, in
F64. rlx with exact products has to be within 2e-5 of the largest logit. --llama names the program that `bench/llm
prepare` builds of llama.cpp: its logits of the same file are shown, and those of a file that holds the same numbers as
F32, which tell what rounding the activations costs. Needs gguf, numpy, torch, transformers (tried with 0.19.0, 5.5.4).
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import rlx.models
import tiny_model

LIMIT = 2e-5
NAMES = {"token_embd": "embed_tokens", "output_norm": "norm"}
OF_LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def drawn_model(r, seed):
    heads = r.choice([1, 2, 3])
    config = transformers.Gemma2Config(
        vocab_size=262, hidden_size=256 * heads, intermediate_size=512, num_hidden_layers=r.choice([2, 3, 4]),
        num_attention_heads=heads, num_key_value_heads=1, head_dim=256, query_pre_attn_scalar=256, sliding_window=2,
        attn_logit_softcapping=r.choice([5.0, 50.0]), final_logit_softcapping=r.choice([5.0, 30.0]),
        max_position_embeddings=512, pad_token_id=None, bos_token_id=None, eos_token_id=None,
        attn_implementation="eager",
    )  # fmt: skip
    model = transformers.Gemma2ForCausalLM(config).eval().float()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            sharp = any(part in name for part in ("q_proj", "k_proj"))
            spread = (
                0.3 if p.ndim == 1 else 0.05 if "embed" in name else (2 if sharp else 1.2) * (3 / p.shape[1]) ** 0.5
            )
            p.copy_(spread * (2 * torch.rand(p.shape, generator=generator) - 1))
    return model


def with_numbers_of(model, path):
    """`model` in F64 with the numbers of a file; norms there have Gemma's 1 added."""
    model = model.double()
    left = dict(model.model.named_parameters())
    for t in gguf.GGUFReader(path).tensors:
        parts = t.name.removesuffix(".weight").split(".")
        name = f"layers.{parts[1]}.{OF_LAYER[parts[2]]}" if parts[0] == "blk" else NAMES[parts[0]]
        numbers = torch.from_numpy(gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64))
        with torch.no_grad():
            left.pop(name + ".weight").copy_(numbers - 1 if name.endswith("norm") else numbers)
    assert not left, left.keys()
    return model


def write_plain(path, target):
    """The same file with its blocks as F32."""
    source = gguf.GGUFReader(path)
    out = gguf.GGUFWriter(target, "gemma2")
    for key, field in source.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        of = {"sub_type": field.types[-1]} if field.types[0] == gguf.GGUFValueType.ARRAY else {}
        out.add_key_value(key, field.contents(), field.types[0], **of)
    for t in source.tensors:
        out.add_tensor(t.name, gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def llama_logits(program, path, tokens, scratch):
    ids = scratch / "tokens"
    ids.write_bytes(np.array(tokens, np.int32).tobytes())
    done = subprocess.run([program, path, "1", "logits", "f16", ids], check=True, stdout=subprocess.PIPE)
    return np.frombuffer(done.stdout, np.float32).reshape(len(tokens), -1)


def off(got, truth):
    assert got.shape == truth.shape and np.isfinite(got).all()
    return float(np.abs(got - truth).max() / np.abs(truth).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--type", default="Q3_K")
    parser.add_argument("--models", type=int, default=24)
    parser.add_argument("--llama", help="llama_worker of bench/llm prepare")
    args = parser.parse_args()
    torch.set_num_threads(1)
    worst = {}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for seed in range(args.models):
            r = random.Random(seed)
            model = drawn_model(r, seed)
            folder, path = scratch / "hf", scratch / f"{seed}.gguf"
            model.save_pretrained(folder)
            (folder / "tokenizer.json").write_text(json.dumps(tiny_model.tokenizer_json()))
            (folder / "tokenizer_config.json").write_text("{}")
            rlx.models.convert(folder, path, type=args.type)
            tokens = [r.randrange(262) for _ in range(r.choice([5, 17, 40]))]
            with torch.no_grad():
                truth = with_numbers_of(model, path)(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
            exact = rlx.models.load(path, context=len(tokens), matmul_precision="exact", threads=1)
            found = {"rlx, exact products": off(np.array(exact.logits(tokens)), truth)}
            if args.llama:
                write_plain(path, scratch / "plain.gguf")
                found["llama.cpp"] = off(llama_logits(args.llama, path, tokens, scratch), truth)
                found["llama.cpp, the numbers as F32"] = off(
                    llama_logits(args.llama, scratch / "plain.gguf", tokens, scratch), truth
                )
            path.unlink()
            worst = {name: max(value, worst.get(name, 0)) for name, value in found.items()}
    for name, value in worst.items():
        print(f"{name}: within {value:.2g} of the largest logit, of {args.models} models in {args.type}")
    return 0 if worst["rlx, exact products"] <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
