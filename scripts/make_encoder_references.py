#!/usr/bin/env python3
"""Writes the references that tests/unit compares encoders of texts, rerankers and pairs of texts with.

Needs an environment like that of make_references.py, with sentence-transformers 5.1.2 and what it takes:
    /tmp/references/bin/pip install transformers==4.57.6 sentence-transformers==5.1.2
    /tmp/references/bin/python scripts/make_encoder_references.py [case ...]

* tests/unit/models/encoder_references/NAME.safetensors: vectors of the last layer and what the classifier says, of a
  small model of a family (CASES), by transformers; nomic_bert, which that version lacks, by the formula below.
* tests/unit/models/encoder_references/folder_NAME.safetensors: whole model folders (FOLDERS), their texts, and the
  vectors or scores that sentence-transformers gives.
* tests/unit/models/encoder_references/folder_asked.safetensors: a Qwen3 that is asked whether passages answer a query,
  as the pages of Qwen3-Reranker say (make_asked), by transformers.
* tests/unit/text/pair_cases.jsonl: pairs of texts as tokenizers encodes and cuts them.

Weights are drawn as make_references.py draws them, and files hold no more of them than a mean and a spread.
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
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import make_references
from make_references import drawn, rounded

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests/unit/models/encoder_references"
PAIRS = ROOT / "tests/unit/text/pair_cases.jsonl"
SENTENCE_TRANSFORMERS = "5.1.2"
VERSIONS = {**make_references.VERSIONS, "transformers": "4.57.6"}  # the latest that sentence-transformers 5.1.2 takes

BERT = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            max_position_embeddings=24, num_labels=1, pad_token_id=0)  # fmt: skip
ROBERTA = {**BERT, "max_position_embeddings": 26, "pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
NOMIC = dict(vocab_size=60, pad_vocab_size_multiple=16, n_embd=32, n_layer=2, n_head=4, n_inner=40, n_positions=64,
             type_vocab_size=2, layer_norm_epsilon=1e-12, activation_function="swiglu", qkv_proj_bias=False,
             mlp_fc1_bias=False, mlp_fc2_bias=False, rotary_emb_fraction=1.0, rotary_emb_base=1000, prenorm=False,
             rotary_emb_interleaved=False, rotary_scaling_factor=None, rotary_emb_scale_base=None,
             use_rms_norm=False, parallel_block=False, causal=False)  # fmt: skip
MODERN = dict(vocab_size=64, hidden_size=32, num_hidden_layers=5, num_attention_heads=2, intermediate_size=40,
              max_position_embeddings=64, local_attention=8, global_attn_every_n_layers=3, pad_token_id=0,
              bos_token_id=None, eos_token_id=None, cls_token_id=None, sep_token_id=None, num_labels=1,
              global_rope_theta=160000.0, local_rope_theta=10000.0)  # fmt: skip
QWEN = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            head_dim=16, intermediate_size=40, max_position_embeddings=64, rope_theta=1e6, pad_token_id=0,
            tie_word_embeddings=True, num_labels=1)  # fmt: skip

# name: (family, lengths of rows, configuration)
CASES = {
    "bert": ("bert", [24, 1, 7, 13], BERT),
    "bert_labels": ("bert", [9, 3], {**BERT, "num_labels": 3, "hidden_act": "gelu_new", "type_vocab_size": 3}),
    "roberta": ("roberta", [24, 5, 1, 11], ROBERTA),
    "xlm_roberta": ("xlm-roberta", [17, 2, 8], {**ROBERTA, "num_labels": 2, "hidden_act": "relu"}),
    "camembert": ("camembert", [6, 10], {**ROBERTA, "num_hidden_layers": 1}),
    "distilbert": ("distilbert", [24, 3, 1], dict(vocab_size=64, dim=32, n_layers=3, n_heads=4, hidden_dim=48,
                    max_position_embeddings=24, num_labels=1, pad_token_id=0)),
    "mpnet": ("mpnet", [140, 33, 1], {**ROBERTA, "max_position_embeddings": 142}),
    "nomic_bert": ("nomic_bert", [64, 5, 1, 22], NOMIC),
    "nomic_bert_plain": ("nomic_bert", [15, 4], {**NOMIC, "activation_function": "gelu", "qkv_proj_bias": True,
                          "mlp_fc1_bias": True, "mlp_fc2_bias": True, "rotary_emb_fraction": 0.5,
                          "rotary_emb_interleaved": True, "type_vocab_size": 0}),
    "modernbert": ("modernbert", [64, 9, 1, 30], {**MODERN, "classifier_pooling": "mean"}),
    "modernbert_cls": ("modernbert", [21, 6], {**MODERN, "num_hidden_layers": 3, "norm_bias": True,
                        "attention_bias": True, "mlp_bias": True, "classifier_bias": True, "num_labels": 2,
                        "classifier_pooling": "cls", "hidden_activation": "gelu_pytorch_tanh"}),
    "qwen3": ("qwen3", [40, 1, 9], QWEN),
    "qwen2_window": ("qwen2", [30, 12], {**{k: v for k, v in QWEN.items() if k != "head_dim"},
                      "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}),
    "gemma3_text": ("gemma3_text", [40, 1, 13], {**{k: v for k, v in QWEN.items() if k != "num_labels"},
                     "num_hidden_layers": 4, "num_key_value_heads": 1, "sliding_window": 8,
                     "use_bidirectional_attention": True, "sliding_window_pattern": 3, "query_pre_attn_scalar": 16,
                     "rope_local_base_freq": 1e4}),
}  # fmt: skip
HALF = {"xlm_roberta": torch.bfloat16, "nomic_bert": torch.float16}  # cases whose files hold such weights
HEADLESS = ("nomic_bert", "gemma3_text")


def mean_and_spread(name, shape, family):
    if len(shape) == 1:
        if name.endswith("weight"):
            return (0.0 if family.startswith("gemma") else 1.0), 0.3
        return 0.0, 0.3
    if "embed" in name or "relative_attention_bias" in name:
        return 0.0, 0.3 if family.startswith("gemma") else 1.0
    projections = ("query", "key", "q_lin", "k_lin", "attn.q", "attn.k", "qkv", "q_proj", "k_proj")
    sharp = any(part in name for part in projections)
    return 0.0, (2.0 if sharp else 1.2) * math.sqrt(3 / shape[-1])


def draw_weights(named_shapes, family, dtype):
    """Tensors by name, and the list that says how they are drawn."""
    tensors, listed = {}, []
    for name, shape in named_shapes:
        mean, spread = mean_and_spread(name, shape, family)
        x = np.float32(mean) + np.float32(spread) * drawn(name, math.prod(shape))
        tensors[name] = rounded(x, dtype).reshape(shape)
        listed.append({"name": name, "shape": list(shape), "mean": mean, "spread": spread})
    return tensors, listed


def nomic_shapes(c):
    rows = -(-c["vocab_size"] // c["pad_vocab_size_multiple"]) * c["pad_vocab_size_multiple"]
    h, f = c["n_embd"], c["n_inner"]
    yield "embeddings.word_embeddings.weight", (rows, h)
    if c["type_vocab_size"]:
        yield "embeddings.token_type_embeddings.weight", (c["type_vocab_size"], h)
    norms = ["emb_ln"]
    for i in range(c["n_layer"]):
        at = f"encoder.layers.{i}."
        gated = c["activation_function"] == "swiglu"
        linears = [("attn.Wqkv", 3 * h, h, c["qkv_proj_bias"]), ("attn.out_proj", h, h, c["qkv_proj_bias"]),
                   ("mlp.fc2", h, f, c["mlp_fc2_bias"])]  # fmt: skip
        linears += [(n, f, h, c["mlp_fc1_bias"]) for n in (("mlp.fc11", "mlp.fc12") if gated else ("mlp.fc1",))]
        for name, out, inner, bias in linears:
            yield at + name + ".weight", (out, inner)
            if bias:
                yield at + name + ".bias", (out,)
        norms += [at + "norm1", at + "norm2"]
    for norm in norms:
        yield norm + ".weight", (h,)
        yield norm + ".bias", (h,)


def nomic_forward(c, w, ids, mask, types):
    """Nomic-BERT: BERT with rotary positions and a gated feed-forward layer, norms behind the sums."""
    import torch.nn.functional as F

    h, heads = c["n_embd"], c["n_head"]
    d = h // heads
    rotated = int(d * c["rotary_emb_fraction"])

    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))

    def norm(x, name):
        return F.layer_norm(x, (h,), w[name + ".weight"], w[name + ".bias"], c["layer_norm_epsilon"])

    def rotate(x):  # [B, heads, S, d]
        f = 1.0 / (c["rotary_emb_base"] ** (torch.arange(0, rotated, 2, dtype=torch.float32) / rotated))
        angle = torch.outer(torch.arange(x.shape[2], dtype=torch.float32), f)
        part, rest = x[..., :rotated], x[..., rotated:]
        if c["rotary_emb_interleaved"]:
            a, b = part[..., 0::2], part[..., 1::2]
        else:
            a, b = part.chunk(2, -1)
        cos, sin = angle.cos(), angle.sin()
        turned = a * cos - b * sin, b * cos + a * sin
        if c["rotary_emb_interleaved"]:
            return torch.cat([torch.stack(turned, -1).flatten(-2), rest], -1)
        return torch.cat([*turned, rest], -1)

    x = w["embeddings.word_embeddings.weight"][ids]
    if c["type_vocab_size"]:
        x = x + w["embeddings.token_type_embeddings.weight"][types]
    x = norm(x, "emb_ln")
    hidden = torch.zeros(mask.shape).masked_fill(mask == 0, -torch.inf)[:, None, None, :]
    for i in range(c["n_layer"]):
        at = f"encoder.layers.{i}."
        q, k, v = linear(x, at + "attn.Wqkv").view(*ids.shape, 3, heads, d).permute(2, 0, 3, 1, 4)
        scores = rotate(q) @ rotate(k).transpose(-1, -2) / math.sqrt(d) + hidden
        y = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        x = norm(linear(y, at + "attn.out_proj") + x, at + "norm1")
        if c["activation_function"] == "swiglu":
            y = linear(x, at + "mlp.fc11") * F.silu(linear(x, at + "mlp.fc12"))
        else:
            y = F.gelu(linear(x, at + "mlp.fc1"))
        x = norm(linear(y, at + "mlp.fc2") + x, at + "norm2")
    return x


def rows_of(name, lengths, vocab, pad):
    longest = max(lengths)
    ids = (3 + (drawn("tokens of " + name, len(lengths) * longest) + 1) * ((vocab - 3) / 2)).astype(np.int64)
    ids = torch.from_numpy(ids.reshape(len(lengths), longest))
    mask = torch.zeros_like(ids)
    for i, n in enumerate(lengths):
        mask[i, :n] = 1
        ids[i, n:] = pad
    return ids, mask


def model_of(family, fields):
    config = transformers.AutoConfig.for_model(family, **fields)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    auto = transformers.AutoModel if family in HEADLESS else transformers.AutoModelForSequenceClassification
    return auto.from_config(config, attn_implementation="eager").eval().float()


def set_weights(model, family, dtype):
    names = [(k, tuple(v.shape)) for k, v in model.state_dict().items() if v.is_floating_point()]
    tensors, listed = draw_weights(names, family, dtype)
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if key in tensors:
                value.copy_(tensors[key])
    return tensors, listed


def made_by(*packages):
    known = {**VERSIONS, "sentence-transformers": SENTENCE_TRANSFORMERS}
    return ", ".join(f"{k} {known[k]}" for k in packages)


def make(name):
    family, lengths, fields = CASES[name]
    dtype = HALF.get(name, torch.float32)
    pad = fields.get("pad_token_id", 0)
    ids, mask = rows_of(name, lengths, fields["vocab_size"], pad)
    if name == "roberta":
        ids[3, 4] = pad  # a text may hold the padding's token
    types = torch.zeros_like(ids)
    if fields.get("type_vocab_size", 2 if family == "bert" else 0) > 1:
        types = (torch.arange(ids.shape[1])[None] >= torch.tensor(lengths)[:, None] // 2).long()
    kept = {"ids": ids.int().numpy(), "lengths": np.array(lengths, np.int32), "types": types.int().numpy()}
    config = {"model_type": family, **fields}
    with torch.no_grad():
        if family == "nomic_bert":
            tensors, listed = draw_weights(nomic_shapes(fields), family, dtype)
            hidden = nomic_forward(fields, tensors, ids, mask, types)
        else:
            model = model_of(family, fields)
            tensors, listed = set_weights(model, family, dtype)
            inputs = {"input_ids": ids, "attention_mask": mask}
            if types.any():
                inputs["token_type_ids"] = types
            hidden = model.base_model(**inputs).last_hidden_state
            if family not in HEADLESS:
                kept["scores"] = model(**inputs).logits.float().numpy()
                config["id2label"] = {str(i): f"LABEL_{i}" for i in range(fields["num_labels"])}
            fields = {**model.config.to_dict(), **fields}
            wanted = ("layer_norm_eps", "hidden_act", "type_vocab_size", "activation", "norm_eps")
            config = {**{k: fields[k] for k in wanted if k in fields}, **config}
    kept["hidden"] = np.concatenate([hidden[i, :n].float().numpy() for i, n in enumerate(lengths)])
    config.pop("num_labels", None)
    text = {
        "config": json.dumps(config, separators=(",", ":"), sort_keys=True),
        "weights": json.dumps(listed, separators=(",", ":")),
        "dtype": {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}[dtype],
        "made_by": made_by("torch", "transformers"),
    }
    save_file(kept, FOLDER / f"{name}.safetensors", text)
    scores = kept["scores"].ravel()[:4] if "scores" in kept else "-"
    print(f"{name:18} {sum(lengths):4} tokens, {len(listed):3} weights, |hidden| up to "
          f"{np.abs(kept['hidden']).max():.3g}, scores {scores}")  # fmt: skip


WORDS = ("a b c d e f g h i j k l m n o p q r s t u v w x y z the cat dog sat on mat sun rain is in how many "
         "people live query passage : , . ? ! and to of city river long short ##s ##ing ##ed ##er un "
         "##known").split()  # fmt: skip


def wordpiece(kind):
    """A WordPiece tokeniser with BERT's template."""
    vocab = {t: i for i, t in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    if kind == "template":
        t.post_processor = processors.TemplateProcessing(
            single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)])  # fmt: skip
    elif kind == "bert":
        t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    elif kind == "odd":
        t.post_processor = processors.TemplateProcessing(
            single="$A:0", pair="[SEP]:3 $B:2 [CLS]:0 $A:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)])  # fmt: skip
    return t


def byte_bpe(kind):
    """A byte-level tokeniser without merges: RoBERTa's pairs, or Qwen's end of text."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = [c for c in letters if c.isascii()] + ["\u0120"]
    vocab = {t: i for i, t in enumerate(["<s>", "<pad>", "</s>", "<unk>", *letters])}
    t = Tokenizer(models.BPE(vocab, [], unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=kind == "roberta")  # else as transformers sets it
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(x, normalized=False) for x in ("<s>", "<pad>", "</s>", "<unk>")])
    if kind.startswith("roberta"):
        t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=kind == "roberta")
    elif kind == "eos":
        t.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="$A:0 </s>:0", pair="$A:0 </s>:0 $B:1 </s>:1",
                                          special_tokens=[("</s>", 2)])])  # fmt: skip
    return t


LONG = ("the sun is in the river, and the long river is in the city: a cat and dogs sitting on the short mats, "
        "unknowns raining")  # fmt: skip
TEXTS = ["the cat sat on the mat", "How many people live in the city?", "rain", LONG, "dogs and cats",
         "a b c d e f g h i"]  # fmt: skip
TEXT_PAIRS = [(TEXTS[1], t) for t in TEXTS] + [(TEXTS[3], "rain"), (TEXTS[3], TEXTS[3]), ("sun?", "")]


def write_pairs():
    tokenizers = {"template": wordpiece("template"), "bert": wordpiece("bert"), "odd": wordpiece("odd"),
                  "none": wordpiece("none"), "roberta": byte_bpe("roberta"), "eos": byte_bpe("eos")}  # fmt: skip
    texts = ["", "a", "a b c", "the cat sat", "a b c d e f g h"]
    lines = []
    for name, t in tokenizers.items():
        plain = t.to_str()
        cases = []
        for a in texts:
            for b in texts:
                for most in (0, 5, 6, 9, 12):
                    t.no_truncation()
                    if most:
                        t.enable_truncation(most, strategy="longest_first")
                    e = t.encode(a, b)
                    cases.append([a, b, most, e.ids, e.type_ids])
        lines.append(json.dumps({"name": name, "tokenizer": json.loads(plain), "cases": cases}, separators=(",", ":")))
    PAIRS.write_text("\n".join(lines) + "\n")
    print(f"{PAIRS.name}: {len(lines)} tokenisers")


def module_list(*modules):
    return [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
            for i, (kind, path) in enumerate(modules)]  # fmt: skip


POOLED = {"word_embedding_dimension": 32}
# name: (family, configuration, tokeniser, files besides, dense layers, prompt names or None for pairs)
FOLDERS = {
    "mean": ("bert", {**BERT, "max_position_embeddings": 64}, wordpiece("template"), {
        "modules.json": module_list(("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"),
                                     ("Dense", "3_Dense"), ("Normalize", "4_Normalize")),
        "1_Pooling/config.json": {**POOLED, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
        "2_Dense/config.json": {"in_features": 32, "out_features": 20, "bias": True,
                                "activation_function": "torch.nn.modules.activation.Tanh"},
        "3_Dense/config.json": {"in_features": 20, "out_features": 24, "bias": False,
                                "activation_function": "torch.nn.modules.linear.Identity"},
        "sentence_bert_config.json": {"max_seq_length": 16, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {"query": "query: ", "passage": "passage: "},
                                              "default_prompt_name": "passage"}}, ["", "query", "passage"]),
    "last": ("qwen3", {**QWEN, "pad_token_id": 1, "max_position_embeddings": 256}, byte_bpe("eos"), {
        "modules.json": module_list(("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")),
        "1_Pooling/config.json": {**POOLED, "pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False},
        "config_sentence_transformers.json": {"prompts": {"query": "Instruct: find\nQuery:", "document": ""},
                                              "default_prompt_name": None}}, ["", "query"]),
    "max": ("mpnet", {**ROBERTA, "max_position_embeddings": 66}, wordpiece("template"), {
        "modules.json": module_list(("Transformer", ""), ("Pooling", "1_Pooling")),
        "1_Pooling/config.json": {**POOLED, "pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": False}}, [""]),
    "rerank_bert": ("bert", {**BERT, "max_position_embeddings": 48}, wordpiece("template"), {}, None),
    "rerank_roberta": ("xlm-roberta", {**ROBERTA, "max_position_embeddings": 130,
                        "sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
                       byte_bpe("roberta_plain"), {}, None),
}  # fmt: skip


def make_folder(name):
    from sentence_transformers import CrossEncoder, SentenceTransformer

    family, fields, tokenizer, files, prompts = FOLDERS[name]
    fields = {**fields, "vocab_size": tokenizer.get_vocab_size()}
    if name == "max":
        fields["pad_token_id"] = 1
    kept, texts = {}, {}
    with tempfile.TemporaryDirectory() as where, torch.no_grad():
        where = pathlib.Path(where)
        config = transformers.AutoConfig.for_model(family, **fields)
        torch.manual_seed(0)
        auto = transformers.AutoModelForSequenceClassification if prompts is None else transformers.AutoModel
        model = auto.from_config(config).eval().float()
        _, listed = set_weights(model, family, torch.float32)
        model.save_pretrained(where)
        pad = tokenizer.id_to_token(0) if tokenizer.id_to_token(0).startswith("[") else "<pad>"
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": pad, "model_max_length": 10**30}
        if name.startswith("rerank"):
            settings["model_max_length"] = 32 if family == "bert" else 100
            if family == "bert":
                settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
            else:
                settings["model_input_names"] = ["input_ids", "attention_mask"]
        files = {**files, "tokenizer_config.json": settings}
        (where / "tokenizer.json").write_text(tokenizer.to_str())
        dense = {}
        for path, content in files.items():
            (where / path).parent.mkdir(exist_ok=True)
            (where / path).write_text(json.dumps(content))
            texts[path] = json.dumps(content)
            if path.endswith("_Dense/config.json"):
                shapes = [("linear.weight", (content["out_features"], content["in_features"]))]
                if content["bias"]:
                    shapes.append(("linear.bias", (content["out_features"],)))
                tensors, dense_listed = draw_weights(shapes, family, torch.float32)
                inside = path.split("/")[0]
                save_file({k: v.numpy() for k, v in tensors.items()}, where / inside / "model.safetensors")
                dense[inside] = dense_listed
        for path in ("config.json", "tokenizer.json"):
            texts[path] = (where / path).read_text()
        if prompts is None:
            scorer = CrossEncoder(str(where), device="cpu")
            kept["scores"] = scorer.predict(TEXT_PAIRS, batch_size=4).astype(np.float32)
            texts["given"] = json.dumps(TEXT_PAIRS)
        else:
            encoder = SentenceTransformer(str(where), device="cpu")
            for prompt in prompts:
                options = {"prompt_name": prompt} if prompt else {}
                kept["vectors:" + prompt] = encoder.encode(TEXTS, batch_size=4, **options).astype(np.float32)
            texts["given"] = json.dumps(TEXTS)
    text = {"files": json.dumps(texts, separators=(",", ":")), "weights": json.dumps(listed, separators=(",", ":")),
            "dense": json.dumps(dense, separators=(",", ":")),
            "made_by": made_by("torch", "transformers", "sentence-transformers")}  # fmt: skip
    save_file(kept, FOLDER / f"folder_{name}.safetensors", text)
    first = next(iter(kept.values())).ravel()[:4]
    print(f"folder_{name:12} {', '.join(f'{k} {v.shape}' for k, v in kept.items())}: {first}")


# The published usage of Qwen3-Reranker.
ASKED_BEGIN = ("<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
               'Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n')
ASKED_END = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
ASKED_FOR = "Given a web search query, retrieve relevant passages that answer the query"  # fmt: skip
QWEN_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
              r"|\s+(?!\S)|\s+")  # fmt: skip


def qwen_bpe():
    """Qwen's tokeniser with letters, "yes" and "no" alone, and its special tokens."""
    from tokenizers import Regex

    letters = sorted(c for c in pre_tokenizers.ByteLevel.alphabet() if c.isascii()) + ["\u0120", "\u010a"]
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = special + letters + ["ye", "yes", "no", "<think>", "</think>"]
    t = Tokenizer(models.BPE({x: i for i, x in enumerate(tokens)}, [("y", "e"), ("ye", "s"), ("n", "o")]))
    t.normalizer = normalizers.NFC()
    words = pre_tokenizers.Split(Regex(QWEN_WORDS), "isolated")
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(x, normalized=False) for x in special])
    t.add_tokens([AddedToken(x, normalized=False) for x in ("<think>", "</think>")])
    return t


def make_asked(name):
    tokenizer = qwen_bpe()
    fields = {**QWEN, "vocab_size": tokenizer.get_vocab_size(), "max_position_embeddings": 640, "pad_token_id": 0}
    fields.pop("num_labels")
    texts = {"given": json.dumps(TEXT_PAIRS), "tokenizer.json": tokenizer.to_str(),
             "tokenizer_config.json": json.dumps({"tokenizer_class": "PreTrainedTokenizerFast",
                                                  "model_max_length": 131072})}  # fmt: skip
    config = transformers.AutoConfig.for_model("qwen3", **fields)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
    names = [(k, tuple(v.shape)) for k, v in model.state_dict().items() if k != "lm_head.weight"]
    tensors, listed = draw_weights(names, "qwen3", torch.float32)
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if key in tensors:
                value.copy_(tensors[key])
    with tempfile.TemporaryDirectory() as where:
        model.save_pretrained(where)
        texts["config.json"] = (pathlib.Path(where) / "config.json").read_text()
    begin, end = (tokenizer.encode(x, add_special_tokens=False).ids for x in (ASKED_BEGIN, ASKED_END))
    no, yes = tokenizer.token_to_id("no"), tokenizer.token_to_id("yes")

    def logits(pairs, instruction, most):
        out = []
        for query, passage in pairs:
            text = f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {passage}"
            middle = tokenizer.encode(text).ids[: most - len(begin) - len(end)]
            with torch.no_grad():
                last = model(input_ids=torch.tensor([begin + middle + end])).logits[0, -1].float()
            out.append([last[no], last[yes]])
        return torch.tensor(out)

    def probability(rows):
        return torch.log_softmax(rows, 1)[:, 1].exp().numpy()

    usual = logits(TEXT_PAIRS, ASKED_FOR, 640)
    kept = {"scores": probability(usual), "vectors:raw": (usual[:, 1] - usual[:, 0]).numpy(),
            "vectors:instruction": probability(logits(TEXT_PAIRS, "find the weather", 640)),
            "vectors:410": probability(logits(TEXT_PAIRS, ASKED_FOR, 410))}  # fmt: skip
    text = {"files": json.dumps(texts, separators=(",", ":")), "weights": json.dumps(listed, separators=(",", ":")),
            "dense": "{}", "made_by": made_by("torch", "transformers")}  # fmt: skip
    save_file(kept, FOLDER / f"folder_{name}.safetensors", text)
    print(f"folder_{name}: {kept}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*CASES, *("folder_" + f for f in FOLDERS), "folder_asked", "pairs"]
    parser.add_argument("case", nargs="*", help="of " + ", ".join(known))
    args = parser.parse_args()
    for package, module_ in (("torch", torch), ("transformers", transformers)):
        if module_.__version__.split("+")[0] != VERSIONS[package]:
            parser.error(f"{package} is {module_.__version__}, the references are made with {VERSIONS[package]}")
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    for name in args.case or known:
        if name == "pairs":
            write_pairs()
        elif name in CASES:
            make(name)
        elif name == "folder_asked":
            make_asked("asked")
        elif name.removeprefix("folder_") in FOLDERS:
            make_folder(name.removeprefix("folder_"))
        else:
            parser.error(f"there is no case {name}; known are {', '.join(known)}")


if __name__ == "__main__":
    main()
