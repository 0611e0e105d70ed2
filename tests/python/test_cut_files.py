"""A mapped file that is made shorter while it is in use: calls of rlx raise BadFile with its name, and no process dies.

Each case runs in a process of its own.
"""

import subprocess
import sys

import pytest

SETUP = """
import os, pathlib, shutil, sys
import numpy as np
import rlx, rlx.models, rlx.text
from rlx.formats import gguf
folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, sys.argv[2])
path = folder / "weights"
X = np.ones((512, 512), np.float32)

def cut(where=path):
    os.truncate(where, 4096)

def refused(call, where=path):
    try:
        result = call()
    except rlx.BadFile as e:
        assert str(where) in str(e) and "shorter" in str(e), e
        return
    raise SystemExit(f"no error: {result!r}")

def save():
    rlx.save_safetensors(path, {"a": X, "w": X, "b": X[0]})
"""
CASES = {
    "load_safetensors, to NumPy": "save(); a = rlx.load_safetensors(path); cut(); refused(lambda: np.asarray(a['w']))",
    "load_safetensors, then a sum": "save(); a = rlx.load_safetensors(path)['w']; cut(); refused(lambda: a.sum())",
    "load_safetensors, then an index": "save(); a = rlx.load_safetensors(path)['w']; cut(); refused(lambda: a[511, 3])",
    "load_safetensors, then a list": "save(); a = rlx.load_safetensors(path)['w']; cut(); refused(lambda: a.tolist())",
    "load_safetensors, then its text": "save(); a = rlx.load_safetensors(path)['w']; cut(); refused(lambda: repr(a))",
    "load_safetensors, then jit": """
save(); a = rlx.load_safetensors(path)['w']; f = rlx.jit(lambda x: x * 2); f(a); cut()
refused(lambda: f(a)); refused(lambda: f(a)); assert float(f(X)[0, 0]) == 2
""",
    "load_safetensors, then grad": """
save(); a = rlx.load_safetensors(path)['w']; cut(); refused(lambda: rlx.grad(lambda x: (x * x).sum())(a))
""",
    "load_safetensors, then a file": """
save(); a = rlx.load_safetensors(path)['w']; cut()
for write in (rlx.save_safetensors, gguf.save):
    try:
        write(folder / "copy", {"a": a})
        raise SystemExit("no error")
    except rlx.BadFile as e:
        assert "shorter" in str(e) or "Bad address" in str(e), e
assert not (folder / "copy").exists()
""",
    "NumPy's own view": """
save(); a = np.asarray(rlx.load_safetensors(path)['a']); cut()
assert a[0, 0] == 1 and a[511, 0] == 0  # zeros and a note, as no exception can be raised inside NumPy
""",
    "load_params": """
save(); g = rlx.Graph("g"); x = g.input("x", (4, 512)); w = g.param("w", (512, 512)); g.set_outputs([x @ w])
c = rlx.Session().compile(g); c.load_params(path, strict=False)
want = np.asarray(c.run(x=X[:4])[0]); cut()
try:
    np.testing.assert_array_equal(np.asarray(c.run(x=X[:4])[0]), want)  # packed weights are whole
except rlx.BadFile as e:
    assert str(path) in str(e)
try:
    c.load_params(path, strict=False)
    raise SystemExit("no error")
except rlx.BadFile as e:
    assert str(path) in str(e)
""",
    "gguf.open": """
gguf.save(path, {"w": X, "q": (X, "Q4_0")}); f = gguf.open(path); a = f["w"]; cut()
refused(lambda: f.tensor("q").array()); refused(lambda: np.asarray(f["w"])); refused(lambda: a + 1)
""",
    "encoders": """
from test_encoders import Reference
for name, model, call in (
    ("mean", rlx.SentenceEncoder, lambda m: m.embed("hello world")),
    ("rerank_bert", rlx.Reranker, lambda m: m.score("hello", ["world", "hello"])),
):
    r = Reference(name, folder / name)
    at = r.folder / "model.safetensors"
    m = model(r.folder)
    want = np.asarray(call(m)).tolist()
    cut(at)
    try:
        assert np.asarray(call(m)).tolist() == want  # packed weights are whole
    except rlx.BadFile as e:
        assert str(at) in str(e)
""",
    "language models": """
import tiny_model
tiny_model.write(folder / "m"); at = folder / "m" / "model.safetensors"
m = rlx.models.load(folder / "m"); want = m.generate("the", max_new_tokens=3, temperature=0).text; cut(at)
try:
    assert m.generate("the", max_new_tokens=3, temperature=0).text == want
except rlx.BadFile as e:
    assert str(at) in str(e)
""",
    "a conversion": """
import tiny_model, threading
tiny_model.write(folder / "m"); at = folder / "m" / "model.safetensors"
try:
    rlx.models.convert(folder / "m", folder / "c.gguf", note=lambda text: cut(at))
    cut(at)
    rlx.models.convert(folder / "m", folder / "d.gguf")
    raise SystemExit("no error")
except rlx.BadFile as e:
    assert str(at) in str(e)
""",
}


@pytest.mark.parametrize("name", CASES)
def test_a_file_that_is_cut(name, tmp_path, request):
    code = f"{SETUP}{CASES[name]}\n"
    here = str(request.config.rootpath / "tests" / "python")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path), here], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    notes = [line for line in done.stderr.splitlines() if line.startswith("rlx: warning: ")]
    assert len(notes) == (name == "NumPy's own view"), done.stderr
