"""What the array API standard asks beyond NumPy, and the script that runs its suite."""

import os
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import rlx.numpy as rnp

import rlx

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "array_api_suite.py"
INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_floor_divide_of_infinities(dtype):
    cases = {
        (INF, 2): INF, (INF, -2): -INF, (-INF, 2): -INF, (-INF, -2): INF, (INF, INF): NAN, (INF, -INF): NAN,
        (1, INF): 0, (-1, -INF): 0, (1, -INF): -1, (-1, INF): -1, (0, -INF): -0.0, (-0.0, INF): -0.0,
        (1, 0): INF, (-1, 0): -INF, (0, 0): NAN, (INF, 0): INF, (NAN, 1): NAN, (1, NAN): NAN,
    }  # fmt: skip
    x, y = np.array(list(cases), np.float64).T.astype(dtype)
    for f in (rnp.floor_divide, rlx.jit(lambda a, b: a // b), rlx.vmap(rnp.floor_divide)):
        got = np.asarray(f(x, y)).astype(np.float64)
        np.testing.assert_array_equal(got, list(cases.values()))
        np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(list(cases.values()))[~np.isnan(got)])


def test_signs_of_zeros():
    for zero in (0.0, -0.0):
        assert not np.signbit(np.asarray(rnp.sign(np.float64(zero))))
        assert not np.signbit(np.asarray(rnp.expm1(np.complex128(complex(zero, 0)))).real)


def test_an_axis_that_is_missing_is_an_index_error_too():
    for call in (lambda x: rnp.expand_dims(x, 5), lambda x: rnp.sum(x, axis=2), lambda x: rnp.flip(x, -4)):
        for kind in (IndexError, ValueError):
            with pytest.raises(kind, match="axis"):
                call(np.ones((2, 3)))


def test_bounds_for_each_matrix():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((3, 4, 2))
    a[1, :, 1] = a[1, :, 0]
    bounds = np.array([1e-10, 1e-10, 0.99])
    np.testing.assert_array_equal(rnp.linalg.matrix_rank(a, bounds), np.linalg.matrix_rank(a, rtol=bounds))
    np.testing.assert_array_equal(rnp.linalg.matrix_rank(a, tol=[0.1, 0.1, 9]), np.linalg.matrix_rank(a, [0.1, 0.1, 9]))
    np.testing.assert_allclose(rnp.linalg.pinv(a, bounds), np.linalg.pinv(a, bounds), atol=1e-12)
    np.testing.assert_allclose(rlx.jit(rnp.linalg.pinv)(a, bounds), np.linalg.pinv(a, bounds), atol=1e-12)
    weights = rng.standard_normal((2, 4))
    by_number = rlx.grad(lambda m: (rnp.linalg.pinv(m, 1e-10) * weights).sum())
    by_array = rlx.grad(lambda m: (rnp.linalg.pinv(m, np.array(1e-10)[None])[0] * weights).sum())
    np.testing.assert_allclose(by_array(a[:1])[0], by_number(a[0]), rtol=1e-10)
    assert rnp.linalg.pinv(np.zeros((3, 0)), np.float32(0.1)).shape == (0, 3)


# -- the script --

CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--max-examples")
    parser.addoption("--derandomize", action="store_true")
    parser.addoption("--disable-deadline", action="store_true")
"""
SUITE = """
import os, importlib
xp = importlib.import_module(os.environ["ARRAY_API_TESTS_MODULE"])
def test_ones():
    assert xp.ones(2).shape == (2,)
def test_setitem():
    {setitem}
def test_more():
    {more}
"""


def run(folder, setitem, more):
    (folder / "array_api_tests").mkdir(exist_ok=True)
    (folder / "conftest.py").write_text(CONFTEST)
    text = SUITE.format(setitem=setitem, more=more)
    (folder / "array_api_tests" / "test_array_object.py").write_text(text)
    report = folder / "report.md"
    report.write_text("")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ARRAY_API_TESTS": str(folder)}
    command = [sys.executable, str(SCRIPT), "--report", str(report)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, report.read_text()


def test_the_script_tells_named_failures_from_others(tmp_path):
    code, _, report = run(tmp_path, "xp.ones(2)[0] = 1", "pass")
    assert (code, report) == (0, "* array API suite: 2 passed, 1 failed, 0 skipped\n")
    code, out, _ = run(tmp_path, "pass", "assert xp.ones(2).shape == (3,)")
    assert code == 1
    assert "does not name it: test_array_object::test_more" in out
    assert "says that it fails: test_array_object::test_setitem\n" in out


def test_the_script_fails_without_tests(tmp_path):
    folder = tmp_path / "array_api_tests"
    folder.mkdir()
    (tmp_path / "conftest.py").write_text(CONFTEST)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(SCRIPT), "--suite", str(tmp_path)]
    assert subprocess.run(command, env=environment, capture_output=True, timeout=120).returncode == 1
