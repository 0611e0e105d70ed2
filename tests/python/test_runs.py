"""Runs beside each other: threads, await, fork, ctrl-C; what changes hands while they run."""

import asyncio
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import rlx
import rlx.numpy as rnp


def graph_program(scale=2.0):
    g = rlx.Graph("scale")
    x = g.input("x", (64, 64))
    g.set_outputs(x * scale)
    return rlx.Session("cpu").compile(g)


def test_threads_call_one_function():
    f = rlx.jit(lambda x, y: rnp.tanh(x @ y))
    inputs = [np.full((32, 32), i / 100, np.float32) for i in range(8)]
    want = [np.asarray(f(x, x)) for x in inputs]
    wrong = []

    def work(i):
        for _ in range(200):
            if not np.array_equal(np.asarray(f(inputs[i], inputs[i])), want[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_threads_trace_at_once():
    fs = [rlx.jit(lambda x, k=k: rlx.scan(lambda c, v: (c + v * k, c), rnp.float32(0), x)[0]) for k in range(8)]
    out = [None] * 8

    def work(i):
        out[i] = float(fs[i](np.ones(5, np.float32)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert out == [5.0 * k for k in range(8)]


def test_a_long_run_lets_other_threads_go_on():
    f = rlx.jit(lambda x: rlx.fori_loop(0, 300, lambda i, c: rnp.tanh(c @ c), x))
    x = np.eye(200, dtype=np.float32)
    f(x)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    t = threading.Thread(target=tick)
    t.start()
    begin = time.perf_counter()
    f(x)
    end = time.perf_counter()
    done.set()
    t.join()
    inside = [v for v in ticks if begin < v < end]
    assert len(inside) > 0.1 * (end - begin) / 0.001


def test_await():
    c = graph_program()
    f = rlx.jit(lambda x: x + 1)
    x = np.ones((64, 64), np.float32)

    async def both():
        return await asyncio.gather(c.run_async(x), c.run_async(x=x), f.run_async(x))

    a, b, d = asyncio.run(both())
    assert float(a[0][0, 0]) == 2 and float(b[0][0, 0]) == 2 and float(d[0, 0]) == 2


FORKS = """
import os, rlx, rlx.numpy as rnp, numpy as np
f = rlx.jit(lambda x: rnp.sum(x @ x))
x = np.ones((128, 128), np.float32)
want = float(f(x))
child = os.fork()
if child == 0:
    same = float(f(x)) == want and float(rlx.jit(lambda v: rnp.sum(v))(x)) == 128 * 128
    os._exit(0 if same else 1)
print(os.waitpid(child, 0)[1], float(f(x)) == want)
"""


def test_fork():
    out = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60)
    assert out.stdout == "0 True\n", out.stderr


ENDLESS = """
import rlx, rlx.numpy as rnp, numpy as np, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells make what runs in the background deaf to it
f = rlx.jit(lambda x: rlx.while_loop(lambda c: c[0] >= 0, lambda c: (c[0] * 0 + 1, c[1] + 1), (x, rnp.int64(0)))[1])
print("ready", flush=True)
try:
    f(np.float32(1))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    g = rlx.jit(lambda x: x + 1)
    print(float(g(np.float32(1))), flush=True)
"""


def test_ctrl_c_ends_an_endless_loop():
    p = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "ready\n"
        time.sleep(0.5)
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=20)
        assert out == "interrupted\n2.0\n"
    finally:
        p.kill()


def test_arrays_may_go_while_a_run_is_under_way():
    f = rlx.jit(lambda x: rlx.fori_loop(0, 200, lambda i, c: rnp.tanh(c @ c), x))
    x = np.eye(150, dtype=np.float32)
    want = np.asarray(f(x))
    results = []
    threads = []
    for _ in range(4):
        a = x.copy()
        threads.append(threading.Thread(target=lambda a=a: results.append(np.asarray(f(a)))))
        threads[-1].start()
        del a
    for t in threads:
        t.join()
    assert all(np.array_equal(r, want) for r in results) and len(results) == 4


def test_donated_arrays_are_gone():
    f = rlx.jit(lambda x, y: x + y, donate_argnums=0)
    x = rlx.array(np.ones((8, 8), np.float32))
    address = x._address()
    y = f(x, np.ones((8, 8), np.float32))
    assert y._address() == address and float(y[0, 0]) == 2
    with pytest.raises(ValueError, match="donated"):
        f(x, x)
    kept = rlx.array(np.ones((8, 8), np.float32))
    view = np.asarray(kept)
    f(kept, np.ones((8, 8), np.float32))
    assert float(view[0, 0]) == 1  # somebody else held the bytes: they were copied


def test_paths_and_files_that_are_not_there(tmp_path):
    rlx.save_safetensors(tmp_path / "w.safetensors", {"w": np.arange(3.0)})
    assert np.array_equal(rlx.load_safetensors(tmp_path / "w.safetensors")["w"], np.arange(3.0))
    gone = tmp_path / "gone"
    program = rlx.Session().compile(rlx.trace(lambda x: x + 1, np.float32(1)))
    for read in (rlx.load, rlx.load_safetensors, rlx.SentenceEncoder, rlx.load_plugin, program.load_params):
        with pytest.raises(FileNotFoundError, match="gone"):
            read(gone)
