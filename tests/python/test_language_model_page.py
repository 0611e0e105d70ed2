"""docs/transformers_and_llama_cpp.md: its Python and its commands run; the stubs of rlx.models."""

import ast
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from language_model import CLI, ROOT, TEXT

import rlx
import rlx.formats
import rlx.models

PAGE = ROOT / "docs" / "transformers_and_llama_cpp.md"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.S | re.M)


@pytest.fixture
def beside_the_page(folder, gguf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder, "model")
    shutil.copy(gguf, "model.gguf")
    pathlib.Path("text.txt").write_text(TEXT)


def test_the_python_of_the_page_runs(beside_the_page, capsys):
    ours, theirs = [], 0
    for block in blocks("python"):
        code = compile(block, str(PAGE), "exec")
        if "from transformers" in block or "from llama_cpp" in block:
            theirs += 1
        else:
            ours.append(code)
    assert len(ours) >= 5 and theirs == 2
    namespace = {}
    for code in ours:
        exec(code, namespace)  # noqa: S102
    assert "llama" in capsys.readouterr().out


def test_the_commands_of_the_page_run(beside_the_page):
    if not CLI.exists():
        pytest.skip(f"{CLI} is not built")
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("rlx ")]
    assert len(commands) >= 7
    for command in commands:
        words = shlex.split(command)
        limit = ["-n", "12"] if words[1] == "chat" else []
        done = subprocess.run(
            [str(CLI), *words[1:], *limit], input="Hello\nAnd?\n", capture_output=True, timeout=120, text=True
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout.strip() or words[1] == "convert", command


TYPED = """
import pathlib

import numpy as np
import rlx.formats
import rlx.models
import rlx.text

model = rlx.models.load("model", context=64, cache="q8_0", sequences=2)
answer = model.generate("abc", temperature=0.5, top_k=3, stop=["x"], logit_bias={1: 2.0}, seed=1)
pieces: list[str] = list(answer)
reason: str | None = answer.finish_reason
prompts: list[rlx.models.Prompt] = ["a", [1, 2], np.array([1], np.int64), [{"role": "user", "content": "x"}]]
more = model.generate_batch(prompts, max_new_tokens=3)
texts: list[str] = [a.text for a in more]
rows: rlx.Array = model.logits(model.tokenizer.encode("abc"), rows="last")
with model.chat([{"role": "user", "content": "x"}], tools=[]) as said:
    text: str = next(said)
file = rlx.formats.gguf.open("a.gguf")
shape: tuple[int, ...] = file.tensors[0].shape
rlx.formats.gguf.save("b.gguf", {"x": np.ones(3), "y": (file["x"], "Q8_0")}, {"n": 1})
flow = rlx.models.Flow(rlx.Graph("g"), {"w": np.ones(3)})
value: rlx.Value = flow.weight("w", (3,))
talk = rlx.models.Conversation(model, "Be brief.", temperature=0)
said_too: str = "".join(talk.say("x", seed=3))
token: int = rlx.models.Sampler(top_k=3, seed=1).draw(rows)
small = rlx.models.load("model", adapters={"a": "x", "b": [("y", 0.5), "z"]}, draft="d", lookup=3, memory_limit=1 << 30)
packed = rlx.models.load("model", packed_weights=pathlib.Path("f"), verify_packed_weights=True)
told: list[str] = packed.packed_weight_problems
held = small.generate("abc", json_schema={"type": "object"}, adapter="a").finish()
wrong: rlx.Error | None = held.error
same = small.chat("x", grammar=rlx.models.Grammar('root ::= "a"'), adapter=None)
kept: int = small.save_state("s", held, [{"role": "user", "content": "x"}])
ids, said_before = small.load_state("s")
continued = small.generate(ids, grammar='root ::= "b"')
best: list[tuple[int, float]] = rlx.Reranker("r", activation="identity").rank("q", ["a", "b"], 1)
vectors: rlx.Array = rlx.SentenceEncoder("e", dimensions=8).embed(["a"], prompt_name="query")
index = rlx.models.TextIndex("i")
done: int = index.update("i", ["folder", pathlib.Path("b")], rlx.SentenceEncoder("e"), globs=["*.md"])["embedded"]
places: list[tuple[str, int]] = index.search(rlx.SentenceEncoder("e"), "q", count=2)[0]["places"]
template = model.chat_template
if template is not None:
    print(template.render("x", variables={"a": 1}), rlx.text.StreamDecoder(model.tokenizer).push(3))
"""
WRONGLY_TYPED = [
    'model.generate("abc", temperature="hot")',
    "model.generate(3)",
    'model.chat("x", colour=1)',
    "rlx.text.Tokenizer(3)",
    'rlx.models.Sampler(stop="x")',
    'model.generate("abc", json_schema=3)',
    'rlx.models.load("model", adapters=3)',
    'rlx.Reranker("r").rank("q", "a", "b")',
    'rlx.models.TextIndex("i").search("q")',
]


def test_the_stubs_name_every_option():
    stub = ast.parse((ROOT / "python" / "rlx" / "models.pyi").read_text())
    named = [n for n in stub.body if isinstance(n, ast.ClassDef) and n.name in ("_SamplingOptions", "_AnswerOptions")]
    names = {n.target.id for part in named for n in part.body if isinstance(n, ast.AnnAssign)}
    of_messages = {"tools", "documents", "variables", "template", "add_generation_prompt", "special_tokens", "now"}
    assert names == {*rlx._rlx.answer_options()} | of_messages


def test_the_stubs_say_what_is_taken(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    (tmp_path / "right.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text(TYPED + "\n".join(WRONGLY_TYPED) + "\n")
    env = {**os.environ, "MYPYPATH": str(ROOT / "python"), "MYPY_CACHE_DIR": os.devnull}
    command = [sys.executable, "-m", "mypy", "--strict", "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    first = len(TYPED.splitlines()) + 1
    faults = {tuple(line.split(":")[:2]) for line in done.stdout.splitlines() if ": error:" in line}
    assert faults == {("wrong.py", str(first + i)) for i in range(len(WRONGLY_TYPED))}, done.stdout
