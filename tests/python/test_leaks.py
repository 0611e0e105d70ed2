"""Ten thousand calls leak nothing: resident memory, reference counts, numbers of live objects stay where they are."""

import gc
import os
import sys

import numpy as np
import pytest
import tiny_model

import rlx
import rlx.models
import rlx.numpy as rnp

CALLS = 10_000
# What the allocator may hold on to after a warm-up; a leak of one small array a call would be several MiB.
SLACK = 3 << 20


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def counts():
    """How many objects of ours are alive, those that gc knows."""
    gc.collect()
    out = {}
    for o in gc.get_objects():
        name = getattr(type(o), "__module__", "")
        if isinstance(name, str) and name.startswith("rlx"):
            key = f"{name}.{type(o).__name__}"
            out[key] = out.get(key, 0) + 1
    return out


def settle(call, calls=CALLS, slack=SLACK):
    """Calls it again and again; nothing may grow after the first tenth."""
    for _ in range(calls // 10):
        call()
    before_objects, blocks, before = counts(), sys.getallocatedblocks(), resident()
    for _ in range(calls):
        call()
    after_objects, after_blocks, after = counts(), sys.getallocatedblocks(), resident()
    assert after_objects == before_objects
    allowed = max(calls // 20, 100)
    assert after_blocks - blocks < allowed, f"{after_blocks - blocks} Python blocks more after {calls} calls"
    assert after - before < slack, f"{(after - before) >> 10} KiB more after {calls} calls"


X = np.linspace(-1, 1, 256, dtype=np.float32).reshape(16, 16)


def test_compiled_calls_on_numpy():
    f = rlx.jit(lambda x: rnp.tanh(x @ x) + 1.0)
    held = sys.getrefcount(X)
    settle(lambda: f(X))
    assert sys.getrefcount(X) == held


def test_compiled_calls_on_arrays():
    f = rlx.jit(lambda x: rnp.tanh(x) * 2.0)
    a = rlx.array(X)
    held = sys.getrefcount(a)
    settle(lambda: f(f(a)))
    assert sys.getrefcount(a) == held
    out = f(a)
    assert sys.getrefcount(out) == 2


def test_trees():
    tree = {"w": X, "layers": [(X, 2.0), (X, 3.0)], "none": None}
    f = rlx.jit(lambda t: {"out": t["w"] * t["layers"][0][1], "rest": [p[0] + p[1] for p in t["layers"]]})
    held = [sys.getrefcount(tree), sys.getrefcount(X), sys.getrefcount(tree["layers"][0])]
    settle(lambda: f(tree), CALLS // 2)
    assert held == [sys.getrefcount(tree), sys.getrefcount(X), sys.getrefcount(tree["layers"][0])]


def test_errors_of_calls():
    f = rlx.jit(lambda x: x + 1)
    a = rlx.array(X)
    f(a)
    bad = object()

    def call():
        with pytest.raises(TypeError):
            f(bad)
        with pytest.raises(Exception):
            f(a, a)

    held = sys.getrefcount(a), sys.getrefcount(bad)
    settle(call, CALLS // 5)
    assert held == (sys.getrefcount(a), sys.getrefcount(bad))


def test_errors_while_tracing():
    class Stop(Exception):
        pass

    def fails(x):
        y = rnp.tanh(x)
        if y.ndim == 2:
            raise Stop(y.shape)
        return y

    def mismatched(x):
        return x + rnp.zeros((3, 5, 7))

    f, g = rlx.jit(fails), rlx.jit(mismatched)
    a = rlx.array(X)

    def call():
        with pytest.raises(Stop):
            f(a)
        with pytest.raises(rlx.Error):
            g(a)

    held = sys.getrefcount(a)
    settle(call, CALLS // 10)
    assert sys.getrefcount(a) == held


def test_eager_functions():
    a = rlx.array(X)
    held = sys.getrefcount(a)
    settle(lambda: rnp.sum(a * a[0] + rnp.exp(a[:, :1]), 0), CALLS // 4)
    assert sys.getrefcount(a) == held


def test_derivatives_and_batches():
    f = rlx.grad(lambda x: rnp.sum(rnp.sin(x) * x))
    g = rlx.vmap(lambda r: rnp.cumsum(r))
    settle(lambda: (f(X), g(X)), CALLS // 2)


def test_retraces():
    """Each call compiles anew: what a compile makes goes with it."""
    a = rlx.array(X)

    def call():
        rlx.jit(lambda x: rnp.tanh(x) + rlx.scan(lambda c, r: (c + r, c), x[0], x)[1])(a)

    held = sys.getrefcount(a)
    settle(call, 300, 6 << 20)
    assert sys.getrefcount(a) == held


def test_dlpack_both_ways():
    a = rlx.array(X)

    def call():
        there = np.from_dlpack(a)
        back = rlx.from_dlpack(there)
        assert back.shape == (16, 16)

    held = sys.getrefcount(a)
    settle(call)
    gc.collect()
    assert sys.getrefcount(a) == held


def test_donated_arrays():
    f = rlx.jit(lambda x: x * 0.5 + 1.0, donate_argnums=0)
    state = [rlx.array(X)]

    def call():
        state[0] = f(state[0])

    settle(call)


def test_numpy_conversions():
    settle(lambda: np.asarray(rlx.array(X)).sum())
    settle(lambda: rlx.array([1.0, 2.0, 3.0]).tolist())


def test_answers(tmp_path):
    tiny_model.write(tmp_path / "m")
    m = rlx.models.load(tmp_path / "m", context=64, sequences=2)

    def call():
        m.generate("ab", seed=1, max_new_tokens=3, stop="x").finish()
        next(m.chat("ab", seed=1))  # and nobody asks for the rest
        with pytest.raises(rlx.Error):
            m.generate([10**6])
        m.tokenizer.decode(m.tokenizer.encode("abc"))

    settle(call, 600)
    m.generate("ab", max_new_tokens=1).finish()
    m.logits([1, 2])


def test_grammars_failures_and_states(tmp_path):
    tiny_model.write(tmp_path / "m")
    m = rlx.models.load(tmp_path / "m", context=96)
    answer = m.generate("ab" * 35, max_new_tokens=3).finish()

    def call():
        m.generate("ab", json_schema={"enum": ["a", "b"]}).finish()
        failing = m.generate("ab", grammar='root ::= "ab"', logit_bias={ord("b"): -float("inf")})
        with pytest.raises(rlx.Error):
            failing.finish()
        assert failing.error is not None
        m.save_state(tmp_path / "s", answer)
        m.load_state(tmp_path / "s")

    settle(call, 300)


def test_a_leak_would_be_seen():
    kept = []
    with pytest.raises(AssertionError):
        settle(lambda: kept.append(np.zeros(256, np.float32)), 2000)
    kept.clear()
    with pytest.raises(AssertionError):
        settle(lambda: kept.append(rlx.array(X)), 2000, 1 << 20)
