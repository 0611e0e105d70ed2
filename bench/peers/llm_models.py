"""Seeded random weights as every engine of bench/llm reads them: llm_models.py SHAPE DIR."""

import pathlib
import shutil
import subprocess
import sys

import gguf
import nncf
import openvino as ov
import torch
from openvino_tokenizers import convert_tokenizer
from optimum.intel import OVModelForCausalLM
from safetensors import safe_open
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers import Qwen3Config, Qwen3ForCausalLM

shape, folder = sys.argv[1], pathlib.Path(sys.argv[2])
VOCAB = 32000
COMMON = dict(vocab_size=VOCAB, max_position_embeddings=8192, bos_token_id=1, eos_token_id=2, pad_token_id=0)
SIZES = {
    "qwen3-0.6b": dict(
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        tie_word_embeddings=True,
        rope_theta=1e6,
    ),
    "llama-1b": dict(
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        tie_word_embeddings=True,
        rope_theta=5e5,
    ),
}


def write_hf(to):
    torch.manual_seed(0)
    qwen = shape.startswith("qwen3")
    config = (Qwen3Config if qwen else LlamaConfig)(**COMMON, **SIZES[shape])
    (Qwen3ForCausalLM if qwen else LlamaForCausalLM)(config).eval().float().save_pretrained(to)
    words = {"<pad>": 0, "<s>": 1, "</s>": 2} | {f"w{i}": i for i in range(3, VOCAB)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    ).save_pretrained(to)


def scaled(tensors):
    """The same function with 8 channels behind every norm 50 times as large: what 8-bit activations find hard."""
    channels = torch.randperm(SIZES[shape]["hidden_size"], generator=torch.Generator().manual_seed(1))[:8].numpy()
    readers = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
    for key, t in tensors:
        part = key.removesuffix(".weight").split(".", 3)[-1]
        if part in ("input_layernorm", "post_attention_layernorm"):
            t[channels] *= 50
        elif part in readers:
            t[:, channels] /= 50
        yield key, t


def write_gguf(hf, to, change=lambda tensors: tensors):
    s = SIZES[shape]
    family = "qwen3" if shape.startswith("qwen3") else "llama"
    w = gguf.GGUFWriter(str(to), family)
    w.add_name(f"{shape}-random")
    w.add_block_count(s["num_hidden_layers"])
    w.add_context_length(COMMON["max_position_embeddings"])
    w.add_embedding_length(s["hidden_size"])
    w.add_feed_forward_length(s["intermediate_size"])
    w.add_head_count(s["num_attention_heads"])
    w.add_head_count_kv(s["num_key_value_heads"])
    w.add_key_length(s["head_dim"])
    w.add_value_length(s["head_dim"])
    w.add_rope_dimension_count(s["head_dim"])
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(s["rope_theta"])
    w.add_vocab_size(VOCAB)
    w.add_file_type(0)
    words = [b"<pad>", b"<s>", b"</s>"] + [bytes([33 + i]) for i in range(94)]
    words += [b"w%d" % i for i in range(len(words), VOCAB)]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(words)
    w.add_token_types([3, 3, 3] + [1] * (VOCAB - 3))
    w.add_token_merges(["w 1"])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_add_bos_token(False)
    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "self_attn.q_norm": "attn_q_norm",
        "self_attn.k_norm": "attn_k_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    file = safe_open(hf / "model.safetensors", "np")
    for key, t in change((key, file.get_tensor(key).astype("float32")) for key in file.keys()):
        if key == "model.embed_tokens.weight":
            w.add_tensor("token_embd.weight", t)
        elif key == "model.norm.weight":
            w.add_tensor("output_norm.weight", t)
        elif key.startswith("model.layers."):
            _, _, layer, rest = key.split(".", 3)
            part = rest.removesuffix(".weight")
            if family == "llama" and part in ("self_attn.q_proj", "self_attn.k_proj"):  # its rope turns neighbours
                heads = t.shape[0] // s["head_dim"]
                t = t.reshape(heads, 2, s["head_dim"] // 2, -1).swapaxes(1, 2).reshape(t.shape)
            w.add_tensor(f"blk.{layer}.{names[part]}.weight", t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_openvino(hf):
    plain = folder / "openvino_f"
    if not plain.exists():
        OVModelForCausalLM.from_pretrained(hf, export=True, compile=False, load_in_8bit=False).save_pretrained(plain)
    mode = nncf.CompressWeightsMode
    for name, options in {
        "int8": dict(mode=mode.INT8_ASYM),
        "int4_32": dict(mode=mode.INT4_SYM, group_size=32, ratio=1.0),
        "int4_128": dict(mode=mode.INT4_SYM, group_size=128, ratio=1.0),
    }.items():
        to = folder / f"openvino_{name}"
        if to.exists():
            continue
        compressed = nncf.compress_weights(ov.Core().read_model(plain / "openvino_model.xml"), **options)
        to.mkdir()
        ov.save_model(compressed, to / "openvino_model.xml")
        for f in plain.iterdir():
            if not f.name.startswith("openvino_model."):
                shutil.copy(f, to)
        tokenizer, detokenizer = convert_tokenizer(AutoTokenizer.from_pretrained(hf), with_detokenizer=True)
        ov.save_model(tokenizer, to / "openvino_tokenizer.xml")
        ov.save_model(detokenizer, to / "openvino_detokenizer.xml")


def write_onnxruntime(hf):
    for name, precision, block in [("int4_32", "int4", 32), ("int4_128", "int4", 128)]:
        to = folder / f"onnxruntime_{name}"
        if not to.exists():
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "onnxruntime_genai.models.builder",
                    "-i",
                    str(hf),
                    "-o",
                    str(to),
                    "-p",
                    precision,
                    "-e",
                    "cpu",
                    "-c",
                    str(folder / "cache"),
                    "--extra_options",
                    "accuracy_level=4",
                    f"block_size={block}",
                ],
                check=True,
            )


hf = folder / "hf"
if not (hf / "model.safetensors").exists():
    write_hf(hf)
for name, change in {"f32": lambda tensors: tensors, "f32_scaled": scaled}.items():
    if not (folder / f"{name}.gguf").exists():
        write_gguf(hf, folder / f"{name}.gguf", change)
write_openvino(hf)
write_onnxruntime(hf)
