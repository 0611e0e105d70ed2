"""Every function that writes a file: a kill, a limit or a full disk leaves the old file, whole, and no other.

Each case runs in a process of its own, which may not write long files, or is killed at a random time.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
import tiny_model

SETUP = """
import os, pathlib, resource, signal, sys
import numpy as np
import rlx, rlx.models, rlx.numpy
from rlx.formats import gguf
path, model = sys.argv[1:]
X = np.zeros((300, 300), np.float32)
"""
WRITERS = {
    "save_safetensors": ("", "rlx.save_safetensors(path, {'x': X})"),
    "gguf.save": ("", "gguf.save(path, {'x': X})"),
    "Program.save": ("p = rlx.jit(lambda x: x + X).lower(X).compile()", "p.save(path)"),
    "Report.save": ("r = rlx.jit(lambda x: x + 1).inspect(X)", "r.save(path)"),
    "numpy.savez": ("", "rlx.numpy.savez(path, X, x=X)"),
    "save_state": (
        "m = rlx.models.load(model)\nt = m.generate('hello ' * 20, max_new_tokens=1)\nt.text",
        "m.save_state(path, t)",
    ),
    "Conversation.save": (
        "c = rlx.models.Conversation(rlx.models.load(model))\nlist(c.say('hello', max_new_tokens=4))",
        "c.save(path)",
    ),
}


FILE = "file.npz"  # the ending that NumPy adds


def run(folder, model, before, write, after="", **options):
    code = f"{SETUP}{before}\n{write.join(after.split('WRITE')) if after else write}\n"
    return subprocess.Popen([sys.executable, "-c", code, str(folder / FILE), str(model)], text=True, **options)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("writers")
    tiny_model.write(folder / "m")
    return folder / "m"


LIMITED = """
size = os.path.getsize(path)
old = pathlib.Path(path).read_bytes()
for most in (0, 1, size // 2, size - 1):
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    try:
        WRITE
        raise SystemExit(f"no error at {most} of {size} bytes")
    except rlx.BadFile as e:
        assert path in str(e) and "File too large" in str(e), e
    assert pathlib.Path(path).read_bytes() == old
    assert os.listdir(os.path.dirname(path)) == ["file.npz"]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
os.mkdir(path + ".d.npz")
for path, words in ((path + ".no/a.npz", "No such file"), (path + ".d.npz", "Is a directory")):
    try:
        WRITE
        raise SystemExit("no error")
    except rlx.Error as e:
        assert path in str(e) and words in str(e), e
"""


@pytest.mark.parametrize("name", WRITERS)
def test_files_that_cannot_be_written_whole(name, model, tmp_path):
    before, write = WRITERS[name]
    process = run(tmp_path, model, f"{before}\n{write}", write, LIMITED, stderr=subprocess.PIPE)
    assert process.communicate()[1] == "" and process.returncode == 0


@pytest.mark.parametrize("name", WRITERS)
def test_a_process_that_is_killed(name, model, tmp_path):
    """The file is the old or the new one, and a later process deletes what a killed one left."""
    before, write = WRITERS[name]
    dice = random.Random(name)
    loop = "print('ready', flush=True)\nwhile True:\n    WRITE\n"
    sizes = set()
    process = run(tmp_path, model, f"{before}\n{write}", write, loop, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    for _ in range(20):  # stops in the middle of a write, and goes on
        time.sleep(dice.random() * 0.005)
        process.send_signal(signal.SIGSTOP)
        sizes.add((tmp_path / FILE).stat().st_size)
        process.send_signal(signal.SIGCONT)
    process.kill()
    process.communicate()
    sizes.add((tmp_path / FILE).stat().st_size)
    assert len(sizes) == 1 and min(sizes) > 500, sizes
    process = run(tmp_path, model, before, write)
    assert process.wait() == 0
    assert os.listdir(tmp_path) == ["file.npz"]
