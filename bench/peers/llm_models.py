"""Seeded random weights in the file formats of the engines of bench/llm: llm_models.py SHAPE DIR WHAT ..

WHAT: gguf:f32 and gguf:f32_scaled (which rlx converts), openvino:NAME and onnxruntime:NAME (int8, int4_32, int4_128).
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers import Qwen3Config, Qwen3ForCausalLM

shape, folder, wanted = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
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
    """The same function with 8 channels after every norm 50 times as large, which is hard for 8-bit activations."""
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
    import gguf

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
            if family == "llama" and part in ("self_attn.q_proj", "self_attn.k_proj"):  # GGUF: rotates adjacent pairs
                heads = t.shape[0] // s["head_dim"]
                t = t.reshape(heads, 2, s["head_dim"] // 2, -1).swapaxes(1, 2).reshape(t.shape)
            w.add_tensor(f"blk.{layer}.{names[part]}.weight", t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_openvino(hf, name):
    import nncf
    import openvino as ov
    from openvino_tokenizers import convert_tokenizer
    from optimum.intel import OVModelForCausalLM

    plain, to = folder / "openvino_f", folder / f"openvino_{name}"
    if to.exists():
        return
    if not plain.exists():
        OVModelForCausalLM.from_pretrained(hf, export=True, compile=False, load_in_8bit=False).save_pretrained(plain)
    mode = nncf.CompressWeightsMode
    options = {
        "int8": dict(mode=mode.INT8_ASYM),
        "int4_32": dict(mode=mode.INT4_SYM, group_size=32, ratio=1.0),
        "int4_128": dict(mode=mode.INT4_SYM, group_size=128, ratio=1.0),
    }[name]
    compressed = nncf.compress_weights(ov.Core().read_model(plain / "openvino_model.xml"), **options)
    with tempfile.TemporaryDirectory(dir=folder) as made:  # moved into place when it is complete
        made = pathlib.Path(made) / "model"
        made.mkdir()
        ov.save_model(compressed, made / "openvino_model.xml")
        for f in plain.iterdir():
            if not f.name.startswith("openvino_model."):
                shutil.copy(f, made)
        tokenizer, detokenizer = convert_tokenizer(AutoTokenizer.from_pretrained(hf), with_detokenizer=True)
        ov.save_model(tokenizer, made / "openvino_tokenizer.xml")
        ov.save_model(detokenizer, made / "openvino_detokenizer.xml")
        made.rename(to)


def write_onnxruntime(hf, name):
    to = folder / f"onnxruntime_{name}"
    if to.exists():
        return
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", hf, "-o", to, "-p", "int4", "-e", "cpu"]
    command += ["-c", folder / "cache", "--extra_options", "accuracy_level=4"]
    subprocess.run([str(word) for word in [*command, f"block_size={name.removeprefix('int4_')}"]], check=True)


hf = folder / "hf"
if not (hf / "model.safetensors").exists():
    write_hf(hf)
for what in wanted:
    engine, _, name = what.partition(":")
    if engine == "gguf":
        to = folder / f"{name}.gguf"
        if not to.exists():
            write_gguf(hf, to, scaled if name.endswith("scaled") else lambda tensors: tensors)
    else:
        {"openvino": write_openvino, "onnxruntime": write_onnxruntime}[engine](hf, name)
