"""Inputs that make much of little, for test_attacks.py. Each function runs one reader on one of them."""

import json
import os
import pathlib
import struct

import numpy as np
import tiny_model

import rlx
import rlx.models
import rlx.text
from rlx.formats import gguf

MESSAGES = [{"role": "user", "content": "hi"}]
BIG = 2**60


def template(text):
    return lambda folder: rlx.text.ChatTemplate(text).render(MESSAGES)


def tokenizer(change, use=None):
    """tokenizer.json with a change, on a text."""

    def attack(folder):
        j = tiny_model.tokenizer_json()
        change(j)
        t = rlx.text.Tokenizer.from_json(json.dumps(j))
        return (use or (lambda t: t.encode("the aaaa " * 5)))(t)

    return attack


def part(name, value):
    return lambda j: j.__setitem__(name, value)


def split(pattern):
    steps = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
    ]
    return part("pre_tokenizer", {"type": "Sequence", "pretokenizers": steps})


def many(kind, name, step, n):
    return part(kind, {"type": "Sequence", name: [step] * n})


def nested(kind, name, n):
    def change(j):
        inner = {"type": "Sequence", name: []}
        for _ in range(n):
            inner = {"type": "Sequence", name: [inner]}
        j[kind] = inner

    return change


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def model(value):
    def change(j):
        j.update(model=value, pre_tokenizer=None, decoder=None, added_tokens=[])

    return change


def decode(t):
    return t.decode(t.encode("aaaa" * 4))


def file(name, data, read, size=0):
    """A file of these bytes, made longer without blocks on the disk."""

    def attack(folder):
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(data)
            if size:
                f.truncate(size)
        return read(path)

    return attack


def text_of(s):
    return struct.pack("<Q", len(s)) + s.encode()


def gguf_of(tensors=0, values=0, rest=b"", version=3):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, values) + rest


def safetensors_of(head, size=None):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text


def program_of(head):
    return b"RLXPROG1" + len(head).to_bytes(8, "little") + head


def grammar(text):
    return lambda folder: rlx.models.Grammar(text)


def schema(value):
    return lambda folder: rlx.models.Grammar.json_schema(json.dumps(value))


def tuples(n, use):
    grow = "{% set a=namespace(s=()) %}{% for i in range(N) %}{% set a.s=(a.s,a.s) %}{% endfor %}"
    other = "{% set b=namespace(s=()) %}{% for i in range(N) %}{% set b.s=(b.s,b.s) %}{% endfor %}"
    return template((grow + other).replace("N", str(n)) + use)


def lists(n, use):
    grow = "{% set a=namespace(s=[1]) %}{% for i in range(N) %}{% set a.s=[a.s,a.s] %}{% endfor %}"
    other = "{% set b=namespace(s=[1]) %}{% for i in range(N) %}{% set b.s=[b.s,b.s] %}{% endfor %}"
    return template((grow + other).replace("N", str(n)) + use)


def long_text(n=200_000, word="ab "):
    return lambda t: t.encode((word * (n // len(word) + 1))[:n])


def deep(open_, close, n=200_000):
    return (open_ * n + close * n).encode()


double = replace({"String": "a"}, "aa")
pieces = {"type": "BPE", "vocab": {chr(97 + i): i for i in range(26)}, "merges": []}
unigram = [["<unk>", 0.0], ["a", -1.0]] + [["a" * n, -float(n)] for n in range(2, 3000)]

ATTACKS = {
    # chat templates
    "keys of shared tuples": tuples(100, "{{ {a.s:1}|length }}"),
    "unique of shared tuples": tuples(100, "{{ [a.s, b.s]|unique|list|length }}"),
    "a dict of shared tuples": tuples(100, "{{ a.s in {b.s: 1} }}"),
    "get of shared tuples": tuples(100, "{{ {1: 1}.get(a.s) }}"),
    "dicts of shared tuples": tuples(25, "{{ {a.s: 1} == {b.s: 1} }}"),
    "an index by shared tuples": tuples(100, "{{ {1: 1}[a.s] }}"),
    "equal shared tuples": tuples(100, "{{ a.s == b.s }}"),
    "order of shared tuples": tuples(100, "{{ a.s < b.s }}"),
    "sorted shared lists": lists(100, "{{ [a.s, b.s]|sort|length }}"),
    "equal shared lists": lists(100, "{{ a.s == b.s }}"),
    "shared lists as text": lists(100, "{{ a.s }}"),
    "shared lists as JSON": lists(100, "{{ a.s|tojson }}"),
    "a sum of lists": template("{{ ([[1,2,3]] * 10000000)|sum(start=[])|length }}"),
    "a long text": template("{{ 'a' * 1000000000000 }}"),
    "texts that double": template(
        "{% set a=namespace(s='a') %}{% for i in range(100) %}{% set a.s=a.s+a.s %}{% endfor %}{{ a.s }}"
    ),
    "replacements that grow": template(
        "{% set a=namespace(s='a') %}{% for i in range(100) %}{% set a.s=a.s.replace('a','aa') %}{% endfor %}"
    ),
    "a range": template("{% for i in range(1000000000000) %}{{ i }}{% endfor %}"),
    "a list of a range": template("{{ range(1000000000000)|list|length }}"),
    "loops in loops": template("{% for a in range(100000) %}" * 6 + "x" + "{% endfor %}" * 6),
    "a macro that calls itself": template("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}"),
    "a wide number": template("{{ '%1000000000d' % 1 }}"),
    "a wide format": template("{{ '{:>1000000000}'.format(1) }}"),
    "a wide centre": template("{{ 'a'|center(1000000000) }}"),
    "a deep indent": template("{{ 'a\nb'|indent(1000000000) }}"),
    "batches": template("{{ [1]|batch(1000000000, 0)|list|length }}"),
    "slices": template("{{ [1]|slice(1000000000)|list|length }}"),
    "a power": template("{{ 9 ** 9 ** 9 }}"),
    "a long number": template("{{ ('9' * 1000000)|int }}"),
    "nested parentheses": template("{{ " + "(" * 100_000 + "1" + ")" * 100_000 + " }}"),
    "nested ifs": template("{% if 1 %}" * 20_000 + "{% endif %}" * 20_000),
    "a chain of filters": template("{{ 'a'" + "|upper" * 100_000 + " }}"),
    # tokenizers
    "a quadratic pattern": tokenizer(split(r"(\p{L}+ )*\p{N}"), long_text()),
    "a pattern that never matches": tokenizer(split(r"\p{L}+\p{N}"), long_text(word="a")),
    "a pattern that looks ahead": tokenizer(split(r"(?:(?=\p{L}*\p{N})\p{L})*\p{N}"), long_text(word="a")),
    "an exponential pattern": tokenizer(split(r"(a+)+$"), lambda t: t.encode("a" * 200_000 + "b")),
    "a short match after a long look": tokenizer(split(r"a(?=.*b)|a"), long_text(word="a")),
    "a pattern of many parts": tokenizer(
        split("|".join(f"a*{chr(98 + i % 20)}x" for i in range(9000))), long_text(word="a")
    ),
    "a pattern of repetitions": tokenizer(split(r"((a{1,1000}){1,1000}){1,1000}b"), long_text(word="a")),
    "decoders that double": tokenizer(many("decoder", "decoders", double, 40), decode),
    "decoders that double by patterns": tokenizer(
        many("decoder", "decoders", replace({"Regex": "a"}, "aa"), 40), decode
    ),
    "decoders that double the whole text": tokenizer(
        part("decoder", {"type": "Sequence", "decoders": [{"type": "Fuse"}] + [double] * 40}), decode
    ),
    "decoders that fill": tokenizer(many("decoder", "decoders", replace({"String": "a"}, "a" * 100_000), 3), decode),
    "many decoders": tokenizer(
        many("decoder", "decoders", replace({"String": "x"}, "y"), 100_000), lambda t: t.decode(t.encode("a" * 3000))
    ),
    "a decoder that strips nothing": tokenizer(
        part("decoder", {"type": "Strip", "content": "", "start": BIG, "stop": BIG}), decode
    ),
    "a decoder that strips for ever": tokenizer(
        part("decoder", {"type": "Strip", "content": "a", "start": BIG, "stop": BIG}), decode
    ),
    "a clean-up of a long text": tokenizer(
        part("decoder", {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "WordPiece", "prefix": "##"}]}),
        lambda t: t.decode(t.encode(" ." * 200_000)),
    ),
    "nested decoders": tokenizer(nested("decoder", "decoders", 400), decode),
    "normalizers that double": tokenizer(many("normalizer", "normalizers", double, 40)),
    "normalizers that fill": tokenizer(many("normalizer", "normalizers", replace({"String": "a"}, "a" * 100_000), 3)),
    "many normalizers": tokenizer(many("normalizer", "normalizers", {"type": "NFC"}, 100_000), long_text(3000, "é")),
    "many long normalizers": tokenizer(
        part(
            "normalizer",
            {
                "type": "Sequence",
                "normalizers": [replace({"String": "a"}, "a" * 200)] + [{"type": "Lowercase"}] * 20_000,
            },
        ),
        long_text(20_000, "a"),
    ),
    "normalizers that prepend": tokenizer(
        many("normalizer", "normalizers", {"type": "Prepend", "prepend": "a" * 10_000}, 10_000)
    ),
    "nested normalizers": tokenizer(nested("normalizer", "normalizers", 400)),
    "nested pre-tokenizers": tokenizer(nested("pre_tokenizer", "pretokenizers", 400)),
    "many pre-tokenizers": tokenizer(
        many("pre_tokenizer", "pretokenizers", {"type": "Punctuation", "behavior": "Isolated"}, 20_000),
        long_text(20_000),
    ),
    "one long word": tokenizer(model(pieces), long_text(1_000_000, "a")),
    "a word of many merges": tokenizer(
        model(
            {
                "type": "BPE",
                "vocab": {"a" * 2**i: i for i in range(12)},
                "merges": [["a" * 2**i, "a" * 2**i] for i in range(11)],
            }
        ),
        long_text(1_000_000, "a"),
    ),
    "long pieces": tokenizer(
        model({"type": "Unigram", "unk_id": 0, "vocab": unigram, "byte_fallback": False}), long_text(200_000, "a")
    ),
    "long WordPiece words": tokenizer(
        model(
            {
                "type": "WordPiece",
                "unk_token": "<u>",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 10**9,
                "vocab": {"<u>": 0, "a": 1, "##a": 2, **{"##" + "a" * n: n + 1 for n in range(2, 300)}},
            }
        ),
        long_text(200_000, "a"),
    ),
    "a long piece that never matches": tokenizer(
        model(
            {
                "type": "WordPiece",
                "unk_token": "<u>",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 10**9,
                "vocab": {"<u>": 0, "a": 1, "##a": 2, "a" * 200_000 + "b": 3},
            }
        ),
        long_text(200_000, "a"),
    ),
    "padding": tokenizer(
        part(
            "padding",
            {
                "strategy": {"Fixed": BIG},
                "direction": "Right",
                "pad_to_multiple_of": None,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": "<eos>",
            },
        )
    ),
    # grammars
    "a grammar of repetitions": grammar('root ::= (("a"{1,1000}){1,1000}){1,1000}'),
    "a grammar that counts": grammar('root ::= "a"{1000000000}'),
    "a grammar of itself": grammar("root ::= root root | root"),
    "a deep grammar": grammar("root ::= " + "(" * 100_000 + '"a"' + ")" * 100_000),
    "a schema that counts": schema({"type": "array", "minItems": 10**9, "items": {"type": "integer"}}),
    "a schema of long texts": schema({"type": "string", "minLength": 10**9}),
    "a schema of itself": schema({"$ref": "#"}),
    "a schema of a pattern": schema({"type": "string", "pattern": "^((a{1,1000}){1,1000}){1,1000}$"}),
    "a deep schema": lambda folder: rlx.models.Grammar.json_schema('{"items":' * 50_000 + "{}" + "}" * 50_000),
    "a schema that doubles": schema(
        {
            "$ref": "#/$defs/d40",
            "$defs": {
                "d0": {"type": "null"},
                **{
                    f"d{i + 1}": {"type": "array", "prefixItems": [{"$ref": f"#/$defs/d{i}"}] * 2, "minItems": 2}
                    for i in range(40)
                },
            },
        }
    ),
    # heads of files
    "GGUF of many tensors": file("a.gguf", gguf_of(tensors=BIG), gguf.open),
    "GGUF of many values": file("a.gguf", gguf_of(values=BIG), gguf.open),
    "GGUF of a long key": file("a.gguf", gguf_of(values=1, rest=struct.pack("<Q", BIG)), gguf.open),
    "GGUF of a long array": file(
        "a.gguf", gguf_of(values=1, rest=text_of("a") + struct.pack("<IIQ", 9, 0, BIG)), gguf.open, 1 << 40
    ),
    "GGUF of arrays of arrays": file(
        "a.gguf",
        gguf_of(values=1, rest=text_of("a") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 100_000),
        gguf.open,
    ),
    "GGUF of empty texts": file(
        "a.gguf", gguf_of(values=1, rest=text_of("a") + struct.pack("<IIQ", 9, 8, 1 << 36)), gguf.open, 1 << 40
    ),
    "GGUF of many axes": file("a.gguf", gguf_of(1, 0, text_of("a") + struct.pack("<I", 2**31)), gguf.open, 1 << 40),
    "GGUF of large axes": file(
        "a.gguf", gguf_of(1, 0, text_of("a") + struct.pack("<IQQIQ", 2, 2**33, 2**33, 0, 0)), gguf.open, 1 << 40
    ),
    "GGUF of empty names": file("a.gguf", gguf_of(tensors=1 << 34), gguf.open, 1 << 40),
    "safetensors of a long head": file("a.st", safetensors_of(b"{}", BIG), rlx.load_safetensors),
    "safetensors of a head of nothing": file("a.st", safetensors_of(b"{", 90_000_000), rlx.load_safetensors, 1 << 40),
    "safetensors of a deep head": file("a.st", safetensors_of(b'{"a":' + deep("[", "]") + b"}"), rlx.load_safetensors),
    "safetensors of many axes": file(
        "a.st",
        safetensors_of({"a": {"dtype": "F32", "shape": [1] * 1_000_000, "data_offsets": [0, 4]}}) + bytes(4),
        rlx.load_safetensors,
    ),
    "safetensors of large axes": file(
        "a.st",
        safetensors_of({"a": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 0]}}),
        rlx.load_safetensors,
    ),
    "safetensors of many names": file(
        "a.st",
        safetensors_of({f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(100_000)}),
        rlx.load_safetensors,
    ),
    "a program of a long head": file("a.rlx", b"RLXPROG1" + b"\xff" * 8, rlx.load, 1 << 16),
    "a program of a deep tree": file("a.rlx", program_of(b'{"version":1,"tree":' + deep("[", "]") + b"}"), rlx.load),
    "a graph of a deep text": lambda folder: rlx.parse("graph @g { %0 = " + "(" * 200_000, "g"),
    "settings without end": lambda folder: sparse_model(folder),
}


def sparse_model(folder):
    tiny_model.write(pathlib.Path(folder) / "m")
    folder = os.path.join(folder, "m")
    os.truncate(os.path.join(folder, "config.json"), 1 << 40)
    return rlx.models.load(folder)


if __name__ == "__main__":
    import resource
    import sys
    import tempfile
    import time

    cpu, memory = 5, 1 << 30
    refused = {
        "of rlx": rlx.Error,
        "of Python": (ValueError, MemoryError, RecursionError, TypeError, OverflowError),
    }
    np.zeros(1)
    for name in sys.argv[1:]:
        before = resource.getrusage(resource.RUSAGE_SELF)
        soft = int(before.ru_utime + before.ru_stime) + cpu + 1
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
        print(f"{name}: ", end="", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            try:
                ATTACKS[name](folder)
                said = "accepted"
            except refused["of rlx"] as e:
                said = f"refused: {str(e)[:150]!r}"
            except refused["of Python"] as e:
                said = f"{type(e).__name__}: {str(e)[:150]!r}"
        spent = time.process_time() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss) * 1024
        print(f"{spent:.2f} s, {grown >> 20} MiB, {said}", flush=True)
        if spent > cpu or grown > memory:
            sys.exit(f"{name}: {spent:.1f} s and {grown >> 20} MiB")
