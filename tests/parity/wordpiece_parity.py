#!/usr/bin/env python3
"""Compares WordPiece token ids with the PyPI package `tokenizers`, text by text.

    ninja -C build/dev token_ids
    wordpiece_parity.py --tool build/dev/tests/token_ids --model MODEL_FOLDER [--venv DIR] [--update-exceptions]
                        [--update-golden]

The package comes from PyPI, at the version bench/peers pins, into an environment that is removed afterwards; --venv
DIR reuses one. The texts are made here from a fixed seed: natural text of this machine, hand-picked traps, random
code points of every kind. Every code point on its own is compared too. Those that differ must be the ones listed in
tests/unit/text/wordpiece_newer_code_points.txt, and may not occur elsewhere; --update-exceptions rewrites that
list. --update-golden rewrites tests/unit/text/wordpiece_golden.jsonl, texts with the package's ids for a unit test
that needs no Python. Exit status 0 when everything agrees.
"""

import argparse
import glob
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "peers"))
from venv_peers import environment  # noqa: E402

EXCEPTIONS = os.path.join(os.path.dirname(__file__), "..", "unit", "text", "wordpiece_newer_code_points.txt")
GOLDEN = os.path.join(os.path.dirname(__file__), "..", "unit", "text", "wordpiece_golden.jsonl")

HAND_PICKED = [
    "",
    " ",
    "\n",
    "\t \r\n",
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
    "[CLS]hello[SEP]",
    "[cls] [MASK][PAD] [UNK]x[[SEP]]",
    "[SEP",
    "SEP]",
    "[MASK]" * 50,
    "a[SEP]\u0301b",
    "\u0301[CLS]\u0301",
    "unaffable",
    "x" * 99,
    "x" * 100,
    "x" * 101,
    "é" * 100,
    "é" * 101,
    "a" * 100000,
    "1234567890" * 30,
    "." * 5000,
    "ab" * 50 + " " + "ab" * 51,
    "İstanbul ILGAZ ß ẞ ΑΣ ς ǅ ﬁ ſ K Å Ω",
    "naïve café coöperate Ångström Dvořák",
    "e\u0301 e\u0301\u0323 e\u0323\u0301 \u1e69 \u1e9b\u0323",
    "한국어 텍스트 각 ᄀ ᅡ",
    "日本語のテキスト 中文字符 漢字かな交じり",
    "中" * 300,
    "Привет мир ёжик Ѐ",
    "नमस्ते दुनिया क्षत्रिय",
    "สวัสดีชาวโลก",
    "שָׁלוֹם עולם",
    "مَرْحَبًا بالعالم",
    "👍🏽👩‍👩‍👧‍👦🏳️‍🌈🇩🇪 😀😃😄",
    "zero\u200bwidth\u200cnon\u200djoiner\ufeffbom\u00adsoft",
    "a\u0000b\u0001c\u007fd\u0080e\u0085f",
    "nbsp\u00a0here\u2003em\u3000wide\u2028line\u2029para\u1680ogham\u180emongolian",
    "\ufffd\ufffe\uffff\U0010ffff",
    "‘quotes’ “double” – — … ¿ ¡ § ¶ † ‡ ‰ € £ ¥ ™ ® © ° ± × ÷",
    "$100 + 50% = 2^3 | ~`<>",
    "http://example.org/a_b?c=d&e=f#g",
    "x²³¹ ½ ⅓ Ⅷ ⑨ ㊿ ㍿ ﷺ",
    "\U0001d15e\U0001d165\U0001d157\U0001d165\U0001d16e",
    "\u302e\u302f\u3099\u309a か\u3099",
    "\U00020000\U0002a6d6\U0002b740\U0002f800豈更",
    "𝐁𝐨𝐥𝐝 𝒮𝒸𝓇𝒾𝓅𝓉 ＦＵＬＬ ｗｉｄｔｈ",
    "\u0f73\u0f75\u0f81 \u0f71\u0f72 \u0344 \u1fee",
    "\U000e0001\U000e0041 tag",
    "\ue000\uf8ff\U000f0000 private",
    "\u0378\u0379 unassigned \U0001fffe",
    "don't won't it's I'm they've",
]


def natural_lines():
    """Lines of texts that come with the system or the repository."""
    lines = []
    here = os.path.join(os.path.dirname(__file__), "..", "..")
    names = sorted(glob.glob("/usr/share/common-licenses/*")) + sorted(glob.glob("/usr/share/perl/*/unicore/Name.pl"))
    names += sorted(glob.glob("/usr/share/i18n/locales/*"))[:60] + sorted(glob.glob(os.path.join(here, "*.md")))
    for name in names:
        if os.path.isfile(name):
            with open(name, encoding="utf-8", errors="ignore") as f:
                lines += [line.rstrip("\n") for line in f]
    return lines


def random_lines(rng, allowed):
    """Random code points, mostly several of one block, mixed with words, spaces, marks and punctuation."""
    words = [
        "the",
        "Quick",
        "BROWN",
        "fox",
        "jumps",
        "tokenization",
        "##ing",
        "unbelievably",
        "[SEP]",
        "3.14159",
        "e-mail",
    ]
    spaces = [" ", "  ", "\t", "\n", "\u00a0", "\u2009", "\u3000", ""]
    marks = ["\u0301", "\u0308", "\u0323", "\u0345", "\u302e", "\U0001d165", "\u094d", "\u200d", "\ufe0f"]
    out = []
    for _ in range(6000):
        parts = []
        base = rng.choice(
            [
                0x80,
                0x250,
                0x370,
                0x400,
                0x590,
                0x900,
                0xE00,
                0x1100,
                0x1E00,
                0x2000,
                0x2100,
                0x3000,
                0x4E00,
                0xA000,
                0xAC00,
                0xF900,
                0xFE00,
                0x10000,
                0x1D100,
                0x1F300,
                0x20000,
                None,
            ]
        )
        for _ in range(rng.randrange(1, 40)):
            kind = rng.random()
            if kind < 0.25:
                parts.append(rng.choice(words))
            elif kind < 0.4:
                parts.append(rng.choice(spaces))
            elif kind < 0.5:
                parts.append(rng.choice(marks))
            elif kind < 0.6:
                parts.append(chr(rng.randrange(0x80)))
            else:
                c = rng.randrange(0x110000) if base is None else base + rng.randrange(0x300)
                if c in allowed:
                    parts.append(chr(c))
        out.append("".join(parts))
    for _ in range(200):  # very long words of known and unknown pieces
        out.append("".join(rng.choice("abcdefghijklmnopqrstuvwxyzàéîöüß中") for _ in range(rng.randrange(80, 400))))
    return out


def run_tool(tool, mode, model, texts):
    data = b"".join(struct.pack("<I", len(b)) + b for b in (t.encode() for t in texts))
    done = subprocess.run([tool, mode, model], input=data, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().split("\n")[: len(texts)]


def ours(tool, model, texts):
    return [[int(x) for x in line.split()] for line in run_tool(tool, "encode", model, texts)]


def theirs(reference, texts):
    return [e.ids for e in reference.encode_batch(texts)]


def ranges_of(points):
    out = []
    for p in sorted(points):
        if out and out[-1][1] == p - 1:
            out[-1][1] = p
        else:
            out.append([p, p])
    return out


def read_exceptions(path=EXCEPTIONS):
    points = set()
    with open(path, encoding="ascii") as f:
        for line in f:
            line = line.split("#")[0].strip()
            if line:
                first, _, last = line.partition("-")
                points.update(range(int(first, 16), int(last or first, 16) + 1))
    return points


def load_reference(path):
    from tokenizers import Tokenizer  # there only in the environment

    reference = Tokenizer.from_file(path)
    reference.no_truncation()
    reference.no_padding()
    return reference


def compare(title, texts, got, want, show=5):
    bad = [i for i in range(len(texts)) if got[i] != want[i]]
    print(f"{title}: {len(texts)} texts, {len(bad)} differ")
    for i in bad[:show]:
        print(f"  {ascii(texts[i])[:200]}\n    rlx        {str(got[i])[:200]}\n    tokenizers {str(want[i])[:200]}")
    return not bad


def variant_folders(model, scratch):
    """Tokenisers with other settings: cased, accents kept, no CJK spacing, and added tokens of every kind."""
    with open(os.path.join(model, "tokenizer.json"), encoding="utf-8") as f:
        base = json.load(f)

    def added(id, content, **flags):
        entry = dict(
            id=id, content=content, special=False, single_word=False, lstrip=False, rstrip=False, normalized=False
        )
        entry.update(flags)
        return entry

    settings = {
        "cased": dict(lowercase=False),
        "accents": dict(strip_accents=False),
        "cased_stripped": dict(lowercase=False, strip_accents=True),
        "uncleaned": dict(clean_text=False),
        "no_cjk": dict(handle_chinese_chars=False),
    }
    for name, change in settings.items():
        variant = json.loads(json.dumps(base))
        variant["normalizer"].update(change)
        yield name, variant
    variant = json.loads(json.dumps(base))
    variant["added_tokens"] += [
        added(30522, "<left>", lstrip=True),
        added(30523, "<right>", rstrip=True),
        added(30524, "<both>", lstrip=True, rstrip=True),
        added(30525, "zfox", single_word=True),
        added(30526, "Brown", normalized=True),
        added(30527, "<leftmost>"),
        added(30528, "Ça", normalized=True, single_word=True),
    ]
    yield "added", variant


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--venv", help="an existing environment with tokenizers")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # this is the run in the environment
    parser.add_argument("--update-exceptions", action="store_true")
    parser.add_argument("--update-golden", action="store_true")
    args = parser.parse_args()
    if not args.inside:
        with environment(["tokenizers"], args.venv) as venv:
            return subprocess.run([venv / "bin/python", *sys.argv, "--inside"]).returncode
    reference = load_reference(os.path.join(args.model, "tokenizer.json"))

    # Every code point: alone inside a word, and after a letter with a mark behind it.
    scalars = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    differ = set()
    for make in (lambda c: f"a{chr(c)}b", lambda c: f"a{chr(c)}\u0301 {chr(c)}"):
        for at in range(0, len(scalars), 65536):
            chunk = scalars[at : at + 65536]
            texts = [make(c) for c in chunk]
            got, want = ours(args.tool, args.model, texts), theirs(reference, texts)
            differ.update(c for c, g, w in zip(chunk, got, want) if g != w)
    print(f"code points: {len(scalars)} compared, {len(differ)} differ")
    if args.update_exceptions:
        with open(EXCEPTIONS, "w", encoding="ascii") as f:
            f.write(
                "# Code points assigned after the Unicode tables of the Python package `tokenizers`: "
                "it sees them as unassigned,\n"
                "# rlx by their present properties, so the ids of a text that holds one can differ. One range a line.\n"
            )
            for first, last in ranges_of(differ):
                f.write(f"{first:04X}-{last:04X}\n" if first != last else f"{first:04X}\n")
    exceptions = read_exceptions()
    good = differ <= exceptions
    if not good:
        print("  not listed:", " ".join(f"{c:04X}" for c in sorted(differ - exceptions)[:50]))
    allowed = set(scalars) - exceptions

    rng = random.Random(20240607)
    natural = ["".join(c for c in line if ord(c) in allowed) for line in natural_lines()]
    texts = HAND_PICKED + natural + random_lines(rng, allowed)
    if len(texts) < 10000:
        print(f"only {len(texts)} texts: not enough natural text on this machine")
        good = False
    if args.update_golden:
        short = [t for t in HAND_PICKED if len(t) < 2000] + random_lines(random.Random(7), allowed)[::80]
        with open(GOLDEN, "w", encoding="ascii") as f:
            for text, ids in zip(short, theirs(reference, short)):
                f.write(json.dumps({"text": text, "ids": ids}, separators=(",", ":")) + "\n")
    good &= compare("tokenizer.json", texts, ours(args.tool, args.model, texts), theirs(reference, texts))
    decoded = [bytes.fromhex(line).decode() for line in run_tool(args.tool, "decode", args.model, texts[:3000])]
    good &= compare("decode", texts[:3000], decoded, [reference.decode(e) for e in theirs(reference, texts[:3000])])

    with tempfile.TemporaryDirectory() as scratch:
        vocab = os.path.join(scratch, "vocab_only")
        os.mkdir(vocab)
        for name in ("vocab.txt", "tokenizer_config.json"):
            with open(os.path.join(args.model, name), "rb") as f, open(os.path.join(vocab, name), "wb") as g:
                g.write(f.read())
        good &= compare("vocab.txt", texts, ours(args.tool, vocab, texts), theirs(reference, texts))
        with_added = HAND_PICKED + [
            " ".join(
                rng.choice(
                    [
                        "<left>",
                        "<right>",
                        "<both>",
                        "zfox",
                        "Brown",
                        "brown",
                        "zfoxes",
                        "<leftmost>",
                        "ça",
                        "Ça",
                        "\u3000",
                        "",
                        "x",
                        "_",
                        ",",
                        "[SEP]",
                        "ézfox",
                        "BROWN",
                        "\n",
                    ]
                )
                for _ in range(rng.randrange(1, 12))
            ).replace(" ", rng.choice(["", " ", "  "]))
            for _ in range(4000)
        ]
        for name, variant in variant_folders(args.model, scratch):
            folder = os.path.join(scratch, name)
            os.mkdir(folder)
            path = os.path.join(folder, "tokenizer.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(variant, f, ensure_ascii=False)
            some = with_added + (random_lines(rng, allowed)[:3000] if name != "added" else [])
            good &= compare(name, some, ours(args.tool, folder, some), theirs(load_reference(path), some))
    print("all equal" if good else "DIFFERENCES")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
