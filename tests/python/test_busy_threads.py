"""Threads that are inside of calls while the process forks, ends or starts another interpreter; ctrl-C in long runs;
calls of one program from many threads."""

import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import rlx
import rlx.numpy as rnp
import tiny_model
from test_encoders import Reference

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    tiny_model.write(path / "model")
    (path / "encoder").mkdir()
    Reference("mean", path / "encoder")
    (path / "reranker").mkdir()
    Reference("rerank_bert", path / "reranker")
    return path


def busy(*arguments):
    command = [sys.executable, str(HERE / "busy_calls.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_the_process_ends_while_daemon_threads_are_inside_of_every_call(models, full):
    for _ in range(30 if full else 2):
        p = busy("exit", models)
        assert (p.returncode, p.stderr) == (0, "")


@pytest.mark.parametrize("name", ["trace", "callback"])
def test_the_process_ends_while_a_daemon_thread_is_inside_of_one_call(models, name):
    p = busy("exit", models, name)
    assert (p.returncode, p.stderr) == (0, "")


def test_forks_while_threads_are_inside_of_every_call(models, full):
    count = 60 if full else 4
    p = busy("fork", models, count)
    assert p.stdout == f"{count} forks, 0 bad [] []\n", p.stdout + p.stderr


SUBINTERPRETER = """
import sys, numpy as np, rlx
try:
    import _xxsubinterpreters as sub
except ImportError:
    import _interpreters as sub
f = rlx.jit(lambda x: x + 1)
x = np.ones(2, np.float32)
said = []
for code in ("import rlx", "import rlx._rlx", "from rlx import numpy"):
    i = sub.create()
    try:
        said.append(repr(sub.run_string(i, f"try:\\n {code}\\nexcept ImportError as e:\\n print(e)")))
    finally:
        sub.destroy(i)
print(f(x), rlx.jit(lambda x: x * 3)(x), rlx.grad(lambda x: (x * x).sum())(x))
"""


def test_a_subinterpreter_cannot_import_rlx_and_harms_nobody():
    p = subprocess.run([sys.executable, "-c", SUBINTERPRETER], capture_output=True, text=True, timeout=120)
    said = "rlx works in the main interpreter of a process only, not in a subinterpreter: use threads, or processes"
    assert p.returncode == 0, p.stderr
    assert p.stdout.count(said) == 3 and p.stdout.endswith("[2. 2.] [3. 3.] [2. 2.]\n"), p.stdout + p.stderr


LONG = """
import sys, signal, time, numpy as np, rlx, rlx.numpy as rnp
signal.signal(signal.SIGINT, signal.default_int_handler)
n = 700
def straight(x):
    for _ in range(400):
        x = rnp.tanh(x @ x)
    return x
x = np.full((n, n), 0.01, np.float32)
kind, threads = sys.argv[1], int(sys.argv[2])
if kind == "jit":
    run = rlx.jit(straight, threads=threads).lower(x).compile()
    call = lambda: run(x)
else:
    program = rlx.Session(threads=threads).compile(rlx.trace(straight, x))
    call = lambda: program.run(x)
print("ready", flush=True)
try:
    call()
    print("ran to its end", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("kind, threads", [("jit", 1), ("jit", 2), ("run", 2)])
def test_ctrl_c_ends_a_long_program_without_loops(kind, threads):
    p = subprocess.Popen([sys.executable, "-c", LONG, kind, str(threads)], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "ready\n"
        time.sleep(0.3)
        begin = time.monotonic()
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=60)
        assert out == "interrupted\n"
        assert time.monotonic() - begin < 2
    finally:
        p.kill()


def test_runs_of_one_program_proceed_at_once_and_see_whole_weights():
    g = rlx.Graph("net")
    g.set_outputs(rnp.tanh(g.input("x", (32, 32)) @ g.param("w", (32, 32))))
    program = rlx.Session("cpu").compile(g)
    ws = [np.full((32, 32), v, np.float32) for v in (0.01, -0.02)]
    xs = [np.full((32, 32), i + 1, np.float32) for i in range(4)]
    want = {}
    for w in ws:
        program.set_param("w", w)
        for i, x in enumerate(xs):
            want.setdefault(i, []).append(np.asarray(program.run(x)[0]).tobytes())
    done, wrong = threading.Event(), []

    def run(i):
        while not done.is_set():
            if np.asarray(program.run(xs[i])[0]).tobytes() not in want[i]:
                wrong.append(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for k in range(200):
        program.set_param("w", ws[k % 2])
        program.plan(), program.arena_bytes, program.prepared_bytes, program.unset_params(), program.clone()
    done.set()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_callback_may_run_its_own_program_unless_it_would_wait_for_itself():
    programs = {}
    depth = []

    def again(x):
        if len(depth) < 3:
            depth.append(1)
            programs["run"](x)
        return x

    def build(state):
        g = rlx.Graph("recursive")
        x = g.input("x", (4,))
        y = rlx.pure_callback(again, rlx.ShapeDtype((4,), "float32"), x * 2)
        if state:
            n = g.state("n", np.float32(0))
            g.set_state("n", n + 1)
        g.set_outputs(y + 1)
        return rlx.Session("cpu").compile(g)

    x = np.ones(4, np.float32)
    program = build(False)
    programs["run"] = program.run
    assert np.asarray(program.run(x)[0]).tolist() == [3] * 4 and len(depth) == 3
    depth.clear()
    program = build(True)
    programs["run"] = program.run
    with pytest.raises(rlx.InvalidArgument, match="called from inside its own run"):
        program.run(x)
