#!/usr/bin/env python3
"""Runs the tests of JAX on rlx, through the package `jax` of the folder shim, and counts what fails by kind.

    PYTHONPATH=build/python/python python tests/python/jax_suite/run.py [--suite JAX] [--files nn_test ...]

JAX is a checkout of the sources of JAX, or its folders `tests` and `jax/_src` alone: the folder --suite, or else that
of the variable JAX_TESTS, or else it is fetched with git. It also needs absl-py, opt_einsum and SciPy.

Each file runs in processes of its own, in parts. A process that dies or hangs counts for the test that it was in, and
the next process goes on behind it.
"""

import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

FILES = [
    "lax_test", "lax_numpy_test", "lax_numpy_einsum_test", "lax_numpy_indexing_test", "lax_numpy_operators_test",
    "lax_numpy_reducers_test", "lax_numpy_setops_test", "lax_numpy_ufuncs_test", "lax_numpy_vectorize_test",
    "lax_scipy_test", "lax_scipy_special_functions_test", "scipy_fft_test", "scipy_interpolate_test",
    "scipy_ndimage_test", "scipy_optimize_test", "scipy_signal_test", "scipy_spatial_test", "scipy_stats_test",
    "nn_test", "random_test", "random_lax_test", "linalg_test", "fft_test", "api_test", "lax_control_flow_test",
    "custom_api_test", "lax_vmap_test", "lax_vmap_op_test", "lax_autodiff_test", "image_test", "polynomial_test",
]  # fmt: skip


SITE, TAG = "https://github.com/jax-ml/jax", "jax-v0.10.2"


def fetched(folder):
    """The tests and their tools from the public site, kept in a folder."""
    if not os.path.isdir(os.path.join(folder, "tests")):
        git = ["git", "-c", "advice.detachedHead=false"]
        clone = ["clone", "--quiet", "--depth=1", "--filter=blob:none", "--sparse", f"--branch={TAG}", SITE, folder]
        subprocess.run(git + clone, check=True)
        subprocess.run(git + ["-C", folder, "sparse-checkout", "set", "tests", "jax/_src"], check=True)
    return folder


class TookTooLong(Exception):
    pass


def _tests(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from _tests(item)
        else:
            yield item


def worker(options):
    """Runs a part of one file; each test is a line of the output, in front of it a line that it starts."""
    sys.path.insert(0, HERE)
    import shim

    shim.install(options.suite)
    os.environ["JAX_NUM_GENERATED_CASES"] = str(options.cases)
    sys.path.insert(0, os.path.join(options.suite, "tests"))
    import classify
    import numpy as np

    classify.watch_raises()
    out = open(options.out, "a", encoding="utf-8")

    def write(record):
        out.write(json.dumps(record) + "\n")
        out.flush()

    def ring(*_):
        raise TookTooLong(f"more than {options.limit} s")

    signal.signal(signal.SIGALRM, ring)
    import importlib

    from absl import flags

    flags.FLAGS(["tests"], known_only=True)
    try:
        module = importlib.import_module(options.worker)
    except Exception as error:
        write({"test": f"{options.worker}", "result": "fail", **classify.of(error)})
        write({"end": True})
        return
    found = list(_tests(unittest.defaultTestLoader.loadTestsFromModule(module)))
    shim.standins.running = True
    seen = {}
    if os.path.exists(options.out):
        for line in open(options.out, encoding="utf-8"):
            record = json.loads(line)
            if "test" in record:
                seen[record["test"]] = True
    for index, test in enumerate(found):
        if index % options.parts != options.part:
            continue
        name = f"{options.worker}.{type(test).__name__}.{test._testMethodName}"
        if name in seen or options.pattern and not re.search(options.pattern, name):
            continue
        write({"start": name})
        result = classify.Result()
        signal.alarm(options.limit)
        began = time.time()
        try:
            with np.errstate(all="ignore"):
                test.run(result)
        except TookTooLong as error:
            result.errors.append(error)
        finally:
            signal.alarm(0)
        write({"test": name, "s": round(time.time() - began, 2), **result.record()})
    write({"end": True})


def run_file(options, name, out):
    """All tests of one file; returns nothing, the records are in the file `out`."""
    for part in range(options.parts):
        for _ in range(50):
            command = [
                sys.executable, os.path.abspath(__file__), "--suite", options.suite, "--worker", name, "--out", out,
                "--cases", str(options.cases), "--limit", str(options.limit), "--part", str(part), "--parts",
                str(options.parts), "--pattern", options.pattern,
            ]  # fmt: skip
            process = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            last = _last(out)
            if last.get("end") or "start" not in last:
                break
            with open(out, "a", encoding="utf-8") as file:
                what = f"the process ended with {process.returncode}"
                record = {"test": last["start"], "result": "fail", "kind": "crash", "what": what, "where": ""}
                file.write(json.dumps(record) + "\n")
        else:
            print(f"{name}: given up after 50 processes", file=sys.stderr)
        if not last.get("end"):
            print(f"{name}: the process ended with {process.returncode}: {process.stderr[-2000:]}", file=sys.stderr)


def _last(path):
    try:
        lines = open(path, encoding="utf-8").read().splitlines()
    except FileNotFoundError:
        return {}
    return json.loads(lines[-1]) if lines else {}


def read(path):
    if not os.path.exists(path):
        return []
    return [r for r in map(json.loads, open(path, encoding="utf-8")) if "test" in r]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suite", default=os.environ.get("JAX_TESTS"), help="a checkout of JAX")
    parser.add_argument("--files", nargs="*", default=FILES)
    parser.add_argument("--cases", type=int, default=10, help="generated cases for each test")
    parser.add_argument("--limit", type=int, default=120, help="seconds for each test")
    parser.add_argument("--parts", type=int, default=1, help="processes for each file, one after the other")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--pattern", default="", help="only tests whose name has this regular expression")
    parser.add_argument("--worker", default="")
    parser.add_argument("--out", default="build/jax-suite")
    parser.add_argument("--most", type=int, default=None, help="fail if more fail for other reasons than internals")
    parser.add_argument("--report", default="", help="a file for the counts, in Markdown")
    options = parser.parse_args()
    options.suite = os.path.abspath(options.suite or fetched(os.path.join(options.out, "jax")))
    if options.worker:
        return worker(options)
    os.makedirs(options.out, exist_ok=True)
    records = []
    for name in options.files:
        out = os.path.join(options.out, name + ".jsonl")
        if os.path.exists(out):
            os.remove(out)
        run_file(options, name, out)
        found = read(out)
        records += found
        counts = collections.Counter(r["result"] for r in found)
        print(f"{name}: {counts['pass']} pass, {counts['skip']} skipped, {counts['fail']} fail", flush=True)
    sys.path.insert(0, HERE)
    import classify

    text, others = classify.summary(records)
    print(text)
    if options.report:
        with open(options.report, "a", encoding="utf-8") as file:
            file.write(text + "\n")
    return 1 if options.most is not None and others > options.most else 0


if __name__ == "__main__":
    sys.exit(main())
