"""The programs of examples/python: they run, print what stands beside them, and their types and all stubs are right."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

import rlx

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))
MODEL = pathlib.Path(os.environ.get("RLX_MODEL_DIR", ROOT / ".models" / "all-minilm-l6-v2"))


def environment(**more):
    package = str(pathlib.Path(rlx.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": package, "RLX_MODEL_DIR": str(MODEL), **more}


def run(*command, cwd, **env):
    command = [sys.executable, *map(str, command)]
    return subprocess.run(command, cwd=cwd, env=environment(**env), capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_it_prints_what_it_should(path, tmp_path):
    if "minilm" in path.name and not MODEL.is_dir():
        pytest.skip(f"{MODEL} is not there: scripts/demo.sh fetches it")
    done = run(path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == path.with_suffix(".expected.txt").read_text()
    assert len(path.read_text().splitlines()) <= 90


def test_the_loss_curve_is_a_picture(tmp_path):
    done = run(ROOT / "examples" / "python" / "01_mlp_training.py", "curve.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    picture = xml.etree.ElementTree.parse(tmp_path / "curve.svg").getroot()
    line = picture.find("{http://www.w3.org/2000/svg}polyline")
    points = [tuple(map(float, p.split(","))) for p in line.get("points").split()]
    assert len(points) == 300 and points[0][1] == 0 and points[-1][1] > 235


def test_without_a_model_the_search_says_what_to_do(tmp_path):
    done = run(ROOT / "examples" / "python" / "02_minilm_search.py", "nowhere", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("nowhere is not a folder") and "demo.sh" in done.stderr


def test_the_examples_are_typed():
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    done = run("-m", "mypy", "--strict", *EXAMPLES, cwd=ROOT, MYPYPATH="python", MYPY_CACHE_DIR=os.devnull)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", ["python_stubs.py", "python_reference.py", "cpp_reference.py"])
def test_what_is_written_from_the_package_is_up_to_date(script):
    done = run(ROOT / "scripts" / script, "--check", cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
