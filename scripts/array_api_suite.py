#!/usr/bin/env python3
"""Runs the test suite of the Python array API standard on rlx.numpy, beside the failures that docs/array_api.md names.

    python3 scripts/array_api_suite.py [--suite FOLDER] [--max-examples N] [--report FILE] [-k EXPRESSION]

Needs rlx, pytest, hypothesis, ndindex and pytest-json-report importable. The suite is a checkout of
github.com/data-apis/array-api-tests with its submodule: the folder --suite, or else that of the variable
ARRAY_API_TESTS, or else it is fetched with git. Fails if another test fails than the page names; says which ones that
the page names passed.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "array_api.md"
SITE = "https://github.com/data-apis/array-api-tests"


def named():
    """The failures of the page: {id of a test: reason}. A row may end in *, for all tests that begin so."""
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE.read_text(), re.M)
    if not rows:
        sys.exit(f"{PAGE}: the table of failures has no rows")
    return dict(rows)


def fetched(folder):
    """The suite from its public site."""
    subprocess.run(["git", "clone", "--quiet", "--filter=blob:none", SITE, folder], check=True)
    subprocess.run(["git", "-C", folder, "submodule", "--quiet", "update", "--init"], check=True)
    return folder


def run(suite, max_examples, chosen):
    """{id: "passed", "failed" or "skipped"} of the tests."""
    with tempfile.TemporaryDirectory() as scratch:
        result = pathlib.Path(scratch) / "result.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "array_api_tests"]
        command += ["--derandomize", "--disable-deadline", f"--max-examples={max_examples}", f"--junitxml={result}"]
        command += ["-k", chosen] if chosen else []
        environment = {**os.environ, "ARRAY_API_TESTS_MODULE": "rlx.numpy", "PYTHONDONTWRITEBYTECODE": "1"}
        places = environment.get("PYTHONPATH", "").split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in places if p)
        subprocess.run(command, cwd=suite, env=environment)
        if not result.exists():
            sys.exit("the suite did not run to its end")
        cases = xml.etree.ElementTree.parse(result).getroot().iter("testcase")
        return {identity(c): outcome(c) for c in cases}


def identity(case):
    return f"{case.get('classname').removeprefix('array_api_tests.')}::{case.get('name')}"


def outcome(case):
    kinds = {child.tag for child in case}
    return "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"


def matches(test, row):
    return test.startswith(row[:-1]) if row.endswith("*") else test == row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default=os.environ.get("ARRAY_API_TESTS"), help="a checkout of the suite")
    parser.add_argument("--max-examples", type=int, default=100, help="examples of each test")
    parser.add_argument("--report", help="a file that gets the counts as lines of Markdown")
    parser.add_argument("-k", dest="chosen", help="the tests to run, as in pytest")
    arguments = parser.parse_args()
    reasons = named()
    with tempfile.TemporaryDirectory() as scratch:
        suite = arguments.suite or fetched(os.path.join(scratch, "array-api-tests"))
        found = run(suite, arguments.max_examples, arguments.chosen)
    counts = {kind: sum(o == kind for o in found.values()) for kind in ("passed", "failed", "skipped")}
    failed = [t for t, o in found.items() if o == "failed"]
    other = [t for t in failed if not any(matches(t, row) for row in reasons)]
    mended = [r for r in reasons if any(matches(t, r) for t in found) and not any(matches(t, r) for t in failed)]
    line = f"array API suite: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
    print(line)
    if arguments.report:
        with open(arguments.report, "a") as report:
            report.write(f"* {line}\n")
    for test in other:
        print(f"fails, and {PAGE.name} does not name it: {test}")
    for row in mended:
        print(f"passes, and {PAGE.name} says that it fails: {row}")
    sys.exit(1 if other or not counts["passed"] else 0)


if __name__ == "__main__":
    main()
