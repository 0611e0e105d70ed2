"""The package `jax` made of rlx, and the kinds of failures, on a few lines of their own: the suite itself runs with
scripts/test.sh --full python.
"""

import os
import subprocess
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jax_suite")

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import shim
shim.install(sys.argv[2])
import jax, jax.numpy as jnp
from jax import lax
from jax._src import core, config
from jax._src.interpreters import partial_eval as pe
assert jax.__file__.startswith(sys.argv[1])
assert float(jax.jit(jax.grad(jnp.sin))(0.0)) == 1 and float(lax.add(1.0, 2.0)) == 3
assert jax.tree_util.tree_map(lambda x: x + 1, {"a": 1}) == {"a": 2}
shim.standins.running = True
for call, wanted in ((jnp.no_such_function, shim.standins.NotInRlx), (pe.trace_to_jaxpr, shim.UsesInternals)):
    try:
        call(1)
    except wanted:
        continue
    raise SystemExit(f"{call} raised nothing")
with config.enable_x64(True):
    assert config.enable_x64.value
assert not config.enable_x64.value
"""


def test_the_package_jax(tmp_path):
    ran = subprocess.run([sys.executable, "-c", PROGRAM, FOLDER, str(tmp_path)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_kinds_of_failures():
    sys.path.insert(0, FOLDER)
    try:
        import classify
    finally:
        sys.path.remove(FOLDER)
    assert classify.of(AssertionError("Not equal to tolerance rtol=1e-06"))["kind"] == "numbers"
    assert classify.of(AssertionError("ValueError not raised"))["kind"] == "accepted"
    assert classify.of(TypeError("f has no argument 'out'; it has x"))["kind"] == "argument"
    assert classify.of(ValueError("anything"))["kind"] == "refused"
    records = [
        {"test": "a.B.test1", "result": "pass"},
        {"test": "a.B.test2", "result": "fail", "kind": "numbers", "what": "AssertionError: Not equal"},
        {"test": "a.B.test_cache_misses", "result": "fail", "kind": "other", "what": "AssertionError: 0 != 1"},
    ]
    # Wrong numbers count whatever the name of the test says.
    records.append({"test": "a.B.test_cache", "result": "fail", "kind": "numbers", "what": "AssertionError: Not equal"})
    text, others = classify.summary(records)
    assert others == 2 and text.startswith("4 tests: 1 pass, 0 skipped, 3 fail") and "| internals | 1 |" in text
