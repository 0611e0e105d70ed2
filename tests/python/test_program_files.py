"""Saved programs: what their head says is compared with the graph, whatever wrote it."""

import copy
import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import rlx
from rlx import _rlx

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def parts(path):
    """The head and the graph of a file."""
    data = path.read_bytes()
    assert data[:8] == b"RLXPROG2" and data[8:24] == _rlx.checksum(data[24:])
    size = int.from_bytes(data[24:32], "little")
    return json.loads(data[32 : 32 + size]), data[32 + size :]


def sealed(head, graph, old=False):
    """A file whose checksum is right, or one of the first form, which had none."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    content = len(text).to_bytes(8, "little") + text + graph
    return b"RLXPROG1" + content if old else b"RLXPROG2" + _rlx.checksum(content) + content


@pytest.fixture
def saved(tmp_path):
    def f(p, x):
        return {"y": x @ p["w"], "n": (x.sum(), None, [x * 2])}

    path = tmp_path / "f.rlx"
    p = {"w": np.ones((3, 4), np.float32)}
    rlx.jit(f).lower(p, X).compile().save(path)
    return path, p


def test_a_program_of_the_first_form_is_read(saved):
    path, p = saved
    head, graph = parts(path)
    head["version"] = 1
    path.write_bytes(sealed(head, graph, old=True))
    out = rlx.load(path)(p, X)
    np.testing.assert_array_equal(out["y"], X @ p["w"])
    np.testing.assert_array_equal(out["n"][2][0], X * 2)
    assert out["n"][1] is None and float(out["n"][0]) == 15


def places(value, at=()):
    """The path of every value inside a JSON document."""
    yield at
    if isinstance(value, (list, dict)):
        for k, v in enumerate(value) if isinstance(value, list) else value.items():
            yield from places(v, (*at, k))


def edited(head, at, new):
    out = copy.deepcopy(head)
    if not at:
        return new
    inner = out
    for k in at[:-1]:
        inner = inner[k]
    if new is places:
        del inner[at[-1]]
    else:
        inner[at[-1]] = new
    return out


def test_every_value_of_a_head_is_compared_with_the_graph(saved):
    """Each value of the head is removed, or replaced by others. What is not refused gives the same results."""
    path, p = saved
    head, graph = parts(path)
    others = [
        places,
        None,
        0,
        1,
        3,
        -1,
        2**70,
        0.5,
        True,
        "",
        "x",
        "4",
        [],
        {},
        [0],
        {"tuple": [0, 1]},
        {"dict": {"y": 2}},
    ]
    want, same, refused = rlx.load(path)(p, X), 0, 0
    for at in list(places(head))[1:]:
        for new in others:
            other = edited(head, at, new)
            if json.dumps(other) == json.dumps(head):
                continue
            path.write_bytes(sealed(other, graph, old=(same + refused) % 2))
            try:
                again = rlx.load(path)
            except rlx.BadFile as e:
                assert str(path) in str(e)
                refused += 1
                continue
            same += 1
            assert at[0] in ("name", "version", "rlx", "weak", "tree") or at[0::2] == ("inputs", 3), (at, new)
            out = again(p, X)
            assert at[0] == "tree" or rlx.tree.structure(out) == rlx.tree.structure(want), (at, new)
            for a, b in zip(rlx.tree.leaves(out), rlx.tree.leaves(want), strict=True):
                np.testing.assert_array_equal(a, b)
    assert refused > 400 and same > 10, (refused, same)


def test_bytes_that_changed_are_found_by_the_checksum(saved):
    path, _ = saved
    whole = path.read_bytes()
    dice = random.Random(7)
    for _ in range(300):
        at = dice.randrange(len(whole))
        data = bytearray(whole)
        data[at] ^= dice.randrange(1, 256)
        path.write_bytes(data if dice.random() < 0.8 else whole[:at])
        with pytest.raises(rlx.BadFile, match="f.rlx"):
            rlx.load(path)


def test_a_tree_without_results_is_no_crash(saved, tmp_path):
    """It was: the head was believed, and the call read flags that it did not have."""
    path, _ = saved
    head, graph = parts(path)
    head["tree"], head["weak"] = None, []
    for old in (False, True):
        path.write_bytes(sealed(head, graph, old))
        code = f"import rlx\ntry:\n    rlx.load({str(path)!r})({{'w': 1}}, 2)\nexcept rlx.BadFile as e:\n    print(e)\n"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert "3 results" in out
    program = rlx.jit(lambda x: (x, x * 2)).lower(X).compile()
    for tree, weak in ((None, [False, False]), ((1, 2), [False]), ((1, 2, 3), [False] * 3)):
        with pytest.raises(rlx.InvalidArgument, match="2 results"):
            _rlx.ProgramCall(program.compiled, rlx.tree.structure(tree), weak)


def test_what_is_no_program_is_not_read_whole(tmp_path):
    """Pipes and devices, which may never end, and large files of another kind, in a process of little memory."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("zero", "urandom", "null"):
        (tmp_path / name).symlink_to(f"/dev/{name}")
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 64 << 30)
    (tmp_path / "looks").write_bytes(b"RLXPROG2")
    script = """
import pathlib, resource, sys
import rlx
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    try:
        rlx.load(path)
        raise SystemExit(f"{path} is read")
    except rlx.BadFile as e:
        assert str(path) in str(e), e
        print(path.name, end=" ")
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["folder", "large", "looks", "null", "pipe", "urandom", "zero"]
