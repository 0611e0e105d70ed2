#!/usr/bin/env python3
"""Writes tests/unit/text/tokenizer_cases.jsonl: small tokenizer.json files of every kind, with ids and texts from the
PyPI package `tokenizers`, for a unit test that needs no Python.

    make_tokenizer_cases.py [--venv DIR]

Needs the packages tokenizers and sentencepiece (DIR, or an environment that is removed afterwards).
"""

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peers"))
from venv_peers import environment  # noqa: E402

OUT = os.path.join(HERE, "..", "unit", "text", "tokenizer_cases.jsonl")
MARK = "\u2581"
CORPUS = [
    "the quick brown fox jumps over the lazy dog, and the dog sleeps",
    "there is a house in new orleans they call the rising sun",
    "to be or not to be: that is the question; whether 't is nobler in the mind",
    "int main() { return 0; }  // a program of 12345 lines",
    "don't we're I'll they've it's he'd I'm",
    "d\u00e9j\u00e0 vu, na\u00efve caf\u00e9, \u4e2d\u6587\u5b57\u7b26, "
    "\u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440, \U0001f600\U0001f44d",
    "sun sunny suns house houses housed mind minds minding",
]
TEXTS = [
    "",
    " ",
    "the house",
    "The  House ",
    "  there is\n\n a dog\t!\r\n",
    "don't they'll WE'RE it\u2019s",
    "caf\u00e9 cafe\u0301 \u00c5ngstr\u00f6m \ufb01ne \u00bd \u2460",
    "\u4e2d\u6587 abc\u4e2d \u65e5\u672c\u8a9e",
    "1 12 123 1234 12345,678",
    "\u043f\u0440\u0438\u0432\u0435\u0442 \U0001f600\U0001f44d\U0001f3fd\u200d",
    "aaaa bbbb  cccc",
    "x=1;y(2)--z_3 [a]{b}",
    "<s>the</s> <sp> <mask>  fox<mask>",
    "a<left>b  <left> c <right>  d<both>  e foxword word wordx word",
    "HELLO hello \u0130 \u1e9e stra\u00dfe",
    "\u2581a\u2581\u2581b \u0120 <0x0A> <0xe4>",
    "nul\x00 ctl\x01\x7f\u0085\u00a0\u200b\u2028\ufeff\ufffd end",
    "e\u0301\u0323 e\u0323\u0301 \uac01 \u1100\u1161\u11a8",
    "the quick brown fox jumps over the lazy dog " * 3,
    "\n\n\n   \t\t x \u3000\u3000y",
]


def added(id, content, **flags):
    entry = dict(id=id, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
    entry.update(flags)
    return entry


def sequence(key, *steps):
    return {"type": "Sequence", key: list(steps)}


def regex(pattern):
    return {"Regex": pattern}


def split(pattern, behavior="Isolated", invert=False):
    pattern = pattern if isinstance(pattern, dict) else {"String": pattern}
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, use_regex=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": use_regex}


def metaspace(scheme="always", cut=True):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": cut}


def train_bpe(normalizer, pre_tokenizer, size, **options):
    from tokenizers import Tokenizer, models, trainers

    base = {
        "model": {"type": "BPE", "vocab": {}, "merges": []},
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
    }
    tokenizer = Tokenizer.from_str(json.dumps(base | {"added_tokens": []}))
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, **options)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return json.loads(tokenizer.to_str())["model"]


def byte_alphabet():
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


def train_unigram(normalizer, pre_tokenizer, size):
    from tokenizers import Tokenizer, trainers

    base = {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0]]}, "normalizer": normalizer}
    tokenizer = Tokenizer.from_str(json.dumps(base | {"pre_tokenizer": pre_tokenizer, "added_tokens": []}))
    trainer = trainers.UnigramTrainer(vocab_size=size, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS * 5, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    model["vocab"] = [[piece, round(score, 6)] for piece, score in model["vocab"]]
    return model


def small_charsmap():
    """A precompiled map of a few rules, made by sentencepiece."""
    import sentencepiece

    with tempfile.TemporaryDirectory() as scratch:
        rules, model = os.path.join(scratch, "rules.tsv"), os.path.join(scratch, "m")
        with open(rules, "w", encoding="utf-8") as f:
            for source, target in (("\ufb01", "fi"), ("\u00bd", "1/2"), ("\u2460", "1"), ("\u3000", " "), ("\x01", "")):
                f.write(f"{ord(source):X}\t{' '.join(f'{ord(c):X}' for c in target)}\n")
            f.write("65 301\tE9\n")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS * 20),
            model_prefix=model,
            vocab_size=90,
            hard_vocab_limit=False,
            normalization_rule_tsv=rules,
            minloglevel=2,
        )
        from sentencepiece import sentencepiece_model_pb2

        proto = sentencepiece_model_pb2.ModelProto()
        with open(model + ".model", "rb") as f:
            proto.ParseFromString(f.read())
        return base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()


def pieces_model():
    """Characters, with ## inside a piece: ids show where pieces begin."""
    characters = "abcdefghijklmnopqrstuvwxyz0123456789.,!=;()' \n" + MARK + "\u4e2d"
    vocab = {"<unk>": 0}
    for c in characters:
        vocab[c] = len(vocab)
        vocab["##" + c] = len(vocab)
    return {"type": "BPE", "unk_token": "<unk>", "continuing_subword_prefix": "##", "vocab": vocab, "merges": []}


def documents():
    gpt2 = train_bpe(None, byte_level(), 330, initial_alphabet=byte_alphabet())
    size = len(gpt2["vocab"])
    yield "gpt2", {
        "added_tokens": [
            added(size, "<s>", special=True),
            added(size + 1, "</s>", special=True),
            added(size + 2, "<mask>", special=True, lstrip=True),
            added(size + 3, "<left>", lstrip=True),
            added(size + 4, "<right>", rstrip=True),
            added(size + 5, "<both>", lstrip=True, rstrip=True),
            added(size + 6, "word", single_word=True),
            added(size + 7, "<sp>", normalized=True),
        ],
        "pre_tokenizer": byte_level(prefix=True),
        "post_processor": {
            "type": "RobertaProcessing",
            "sep": ["</s>", size + 1],
            "cls": ["<s>", size],
            "trim_offsets": True,
            "add_prefix_space": False,
        },
        "decoder": byte_level(),
        "model": gpt2,
    }
    llama3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    llama3 += r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [size], "tokens": ["<s>"]}},
    }
    yield "llama3", {
        "added_tokens": [added(size, "<s>", special=True), added(size + 1, "</s>")],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": sequence("pretokenizers", split(regex(llama3)), byte_level(use_regex=False)),
        "post_processor": sequence("processors", byte_level(), template),
        "decoder": byte_level(),
        "model": gpt2 | {"ignore_merges": True},
    }
    yield "byte_level_normalizer", {
        "added_tokens": [added(size, "<s>", special=True), added(size + 1, "caf\u00e9", normalized=True)],
        "normalizer": {"type": "ByteLevel"},
        "pre_tokenizer": None,
        "decoder": byte_level(),
        "model": gpt2,
    }
    spm_normalizer = sequence(
        "normalizers",
        {"type": "Prepend", "prepend": MARK},
        {"type": "Replace", "pattern": {"String": " "}, "content": MARK},
    )
    spm_decoder = sequence(
        "decoders",
        {"type": "Replace", "pattern": {"String": MARK}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    )
    bytes_tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    spm = train_bpe(None, metaspace(), 420, special_tokens=bytes_tokens)
    spm |= {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}
    special = [added(0, "<unk>", special=True), added(1, "<s>", special=True), added(2, "</s>", special=True)]
    yield "llama2", {
        "added_tokens": special,
        "normalizer": spm_normalizer,
        "pre_tokenizer": None,
        "decoder": spm_decoder,
        "model": spm,
    }
    yield "metaspace_first", {
        "added_tokens": special,
        "pre_tokenizer": metaspace("first", False),
        "decoder": spm_decoder,
        "model": spm,
    }
    few = {token: i for i, token in enumerate(["<unk>", MARK, "t", "h", "e", "<0xC3>", "<0xA9>", "th", "the"])}
    for name, options in (
        ("unknowns_fused", {"fuse_unk": True}),
        ("unknowns", {"fuse_unk": False}),
        ("unknowns_vanish", {"unk_token": None}),
        ("some_bytes", {"byte_fallback": True, "fuse_unk": True}),
    ):
        model = {"type": "BPE", "unk_token": "<unk>", "vocab": few, "merges": [["t", "h"], ["th", "e"]]}
        yield name, {"pre_tokenizer": metaspace(), "decoder": metaspace(), "model": model | options}
    unigram = train_unigram({"type": "Nmt"}, metaspace(), 120)
    yield "unigram", {
        "added_tokens": [added(0, "<unk>", special=True)],
        "normalizer": sequence(
            "normalizers",
            {"type": "Nmt"},
            {"type": "NFKC"},
            {"type": "Replace", "pattern": regex(" {2,}"), "content": " "},
            {"type": "Strip", "strip_left": False, "strip_right": True},
        ),
        "pre_tokenizer": sequence("pretokenizers", {"type": "WhitespaceSplit"}, metaspace()),
        "decoder": metaspace(),
        "model": unigram,
    }
    yield "unigram_charsmap", {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": small_charsmap()},
        "pre_tokenizer": metaspace("never"),
        "decoder": metaspace("never"),
        "model": {
            "type": "Unigram",
            "unk_id": 0,
            "byte_fallback": True,
            "vocab": unigram["vocab"][:40] + [[f"<0x{b:02X}>", -20.0] for b in range(256)],
        },
    }
    words = [
        "[UNK]",
        "[PAD]",
        "the",
        "house",
        "hous",
        "##e",
        "fox",
        "##es",
        "cafe",
        "a",
        "##a",
        "b",
        "##b",
        "!",
        "1",
        "##2",
        "hello",
    ]
    wordpiece = {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 20,
        "vocab": {w: i for i, w in enumerate(words)},
    }
    yield "wordpiece", {
        "added_tokens": [added(0, "[UNK]", special=True)],
        "normalizer": sequence("normalizers", {"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}),
        "pre_tokenizer": {"type": "Whitespace"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": wordpiece,
    }
    yield "bert", {
        "added_tokens": [added(0, "[UNK]", special=True)],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[PAD]", 1], "cls": ["[UNK]", 0]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": wordpiece,
    }
    clip = train_bpe({"type": "Lowercase"}, {"type": "WhitespaceSplit"}, 150, end_of_word_suffix="</w>")
    yield "clip", {
        "normalizer": sequence("normalizers", {"type": "NFC"}, {"type": "Lowercase"}),
        "pre_tokenizer": sequence(
            "pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"}
        ),
        "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
        "model": clip,
    }
    yield "nfkd", {
        "normalizer": sequence(
            "normalizers", {"type": "NFKD"}, {"type": "Strip", "strip_left": True, "strip_right": True}
        ),
        "decoder": None,
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "vocab": {"<unk>": 0, "e": 1, "\u0301": 2, "\u0323": 3, "f": 4, "i": 5, " ": 6},
            "merges": [],
        },
    }
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            for title, pattern in (("text", " "), ("regex", regex(r"\s|[a-c]|\d+"))):
                yield f"split_{title}_{behavior}_{invert}", {
                    "pre_tokenizer": split(pattern, behavior, invert),
                    "decoder": {"type": "Fuse"},
                    "model": pieces_model(),
                }
        yield f"punctuation_{behavior}", {
            "pre_tokenizer": {"type": "Punctuation", "behavior": behavior},
            "model": pieces_model(),
        }
    for name, step in (
        ("digits", {"type": "Digits", "individual_digits": False}),
        ("digits_each", {"type": "Digits", "individual_digits": True}),
        ("whitespace", {"type": "Whitespace"}),
        ("delimiter", {"type": "CharDelimiterSplit", "delimiter": "e"}),
        ("fixed_length", {"type": "FixedLength", "length": 3}),
        ("metaspace_never", metaspace("never")),
        (
            "metaspace_digits",
            sequence("pretokenizers", metaspace("first"), {"type": "Digits", "individual_digits": True}),
        ),
        ("empty_matches", split(regex(r"x*"), "Isolated")),
        ("look_ahead", split(regex(r"\s+(?!\S)|\s+|(?<=o)x|[\w.]+"), "Isolated")),
    ):
        yield name, {
            "pre_tokenizer": step,
            "decoder": {"type": "CTC", "pad_token": "##a", "word_delimiter_token": "##e", "cleanup": True},
            "model": pieces_model(),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", help="an existing environment with tokenizers, sentencepiece and protobuf")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.inside:
        with environment(["tokenizers", "sentencepiece", "protobuf"], args.venv) as venv:
            return subprocess.run([venv / "bin/python", *sys.argv, "--inside"]).returncode
    from tokenizers import Tokenizer

    with open(OUT, "w", encoding="ascii") as f:
        for name, document in documents():
            document = {
                "version": "1.0",
                "added_tokens": [],
                "normalizer": None,
                "post_processor": None,
                "decoder": None,
            } | document
            reference = Tokenizer.from_str(json.dumps(document))
            cases = []
            for text in TEXTS:
                encoded = reference.encode(text)
                kept = reference.decode(encoded.ids, skip_special_tokens=False) if encoded.ids else ""
                decoded = reference.decode(encoded.ids) if encoded.ids else ""
                cases.append([text, encoded.ids, decoded, kept])
            json.dump({"name": name, "tokenizer": document, "cases": cases}, f, separators=(",", ":"))
            f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
