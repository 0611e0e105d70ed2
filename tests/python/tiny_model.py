"""A small random Llama as a Hugging Face folder, written by hand, and what NumPy says of its logits."""

import json
import struct

import numpy as np

HIDDEN, HEADS, KV, DIM, FF, LAYERS, CONTEXT = 64, 2, 1, 32, 96, 2, 256
EOS, USER, ASSISTANT = 256, 257, 258
VOCAB = 262  # 256 bytes, three special tokens, three merges
EPS, THETA = 1e-5, 10000.0
TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'user' %}<user>{% else %}<{{ m['role'] }}>{% endif %}"
    "{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


def byte_names():
    """The character that stands for each byte in byte-level vocabularies."""
    shown = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    names = {b: chr(b) for b in shown}
    for n, b in enumerate(b for b in range(256) if b not in names):
        names[b] = chr(256 + n)
    return [names[b] for b in range(256)]


def tokenizer_json():
    names = byte_names()
    special = ["<eos>", "<user>", "<assistant>"]
    vocab = {name: i for i, name in enumerate(names + special)}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the")]
    for left, right in merges:
        vocab[left + right] = len(vocab)
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": EOS + i,
                "content": content,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for i, content in enumerate(special)
        ],
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocab,
            "merges": [" ".join(m) for m in merges],
        },
    }


def weights(seed=0):
    rng = np.random.default_rng(seed)
    normal = lambda *dims, size=0.12: (rng.standard_normal(dims) * size).astype(np.float32)  # noqa: E731
    w = {"model.embed_tokens.weight": normal(VOCAB, HIDDEN, size=1), "model.norm.weight": 1 + normal(HIDDEN, size=0.1)}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        w[at + "input_layernorm.weight"] = 1 + normal(HIDDEN, size=0.1)
        w[at + "post_attention_layernorm.weight"] = 1 + normal(HIDDEN, size=0.1)
        w[at + "self_attn.q_proj.weight"] = normal(HEADS * DIM, HIDDEN)
        w[at + "self_attn.k_proj.weight"] = normal(KV * DIM, HIDDEN)
        w[at + "self_attn.v_proj.weight"] = normal(KV * DIM, HIDDEN)
        w[at + "self_attn.o_proj.weight"] = normal(HIDDEN, HEADS * DIM)
        w[at + "mlp.gate_proj.weight"] = normal(FF, HIDDEN)
        w[at + "mlp.up_proj.weight"] = normal(FF, HIDDEN)
        w[at + "mlp.down_proj.weight"] = normal(HIDDEN, FF)
    w["lm_head.weight"] = normal(VOCAB, HIDDEN)
    return w


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, a in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(a.tobytes() for a in tensors.values()))


def config():
    return {
        "model_type": "llama",
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": FF,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV,
        "head_dim": DIM,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": EPS,
        "rope_theta": THETA,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "eos_token_id": EOS,
    }


def write(folder, seed=0, template=True):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config()))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    more = {"chat_template": TEMPLATE} if template else {}
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<eos>", **more}))
    w = weights(seed)
    write_safetensors(folder / "model.safetensors", w)
    return w


def numpy_logits(w, tokens):
    """Logits [T, V] in float64."""
    w = {k: v.astype(np.float64) for k, v in w.items()}
    norm = lambda x, g: x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * g  # noqa: E731
    n = len(tokens)
    angles = np.arange(n)[:, None] * THETA ** (-np.arange(0, DIM, 2) / DIM)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def rotate(x):  # [T, heads, DIM]
        a, b = x[..., : DIM // 2], x[..., DIM // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    x = w["model.embed_tokens.weight"][np.asarray(tokens)]
    for i in range(LAYERS):
        p = lambda name, at=f"model.layers.{i}.": w[at + name + ".weight"]  # noqa: E731
        h = norm(x, p("input_layernorm"))
        q = rotate((h @ p("self_attn.q_proj").T).reshape(n, HEADS, DIM))
        k = rotate((h @ p("self_attn.k_proj").T).reshape(n, KV, DIM)).repeat(HEADS // KV, 1)
        v = (h @ p("self_attn.v_proj").T).reshape(n, KV, DIM).repeat(HEADS // KV, 1)
        scores = np.einsum("thd,shd->hts", q, k) / DIM**0.5
        scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        x = x + np.einsum("hts,shd->thd", scores, v).reshape(n, -1) @ p("self_attn.o_proj").T
        h = norm(x, p("post_attention_layernorm"))
        gate = h @ p("mlp.gate_proj").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ p("mlp.up_proj").T)) @ p("mlp.down_proj").T
    return norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T


def greedy(weights, prompt, count):
    """The `count` likeliest tokens behind `prompt`, none of them a near thing."""
    tokens = list(prompt)
    for _ in range(count):
        logits = numpy_logits(weights, tokens)[-1]
        top = np.sort(logits)
        assert top[-1] - top[-2] > 1e-4 * np.abs(top).max()  # else the last bits decide
        tokens.append(int(np.argmax(logits)))
    return tokens[len(prompt) :]
