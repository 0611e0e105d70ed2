#!/usr/bin/env python3
"""Time from an edit to its test: edits a file, builds unit_tests in build/dev, runs a case, puts the file back.

Prints the files compiled, the seconds by the clock, and the CPU seconds, which a busy machine changes less: two idle
cores need half of them, and a step that runs alone (one file, the link) all of its own.
Aims: an op's attributes (a header of rlx/ir/ops/) 40 s, an op's rules (a source of rlx/ops/) 8 s. ccache is told to
stand aside.

    bench/edit_time.py rlx/ir/ops/rope.h '*rope*'
    bench/edit_time.py rlx/ops/attention/rope.cpp '*rope*'
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import time


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="what is edited, from the repository's root")
    parser.add_argument("test_case", help="doctest's filter, for example '*rope*'")
    parser.add_argument("-j", type=int, default=2, help="compilers at once (2)")
    args = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    build, file = root / "build/dev", root / args.file
    ninja = ["ninja", "-C", str(build), "-j", str(args.j), "unit_tests"]
    environment = dict(os.environ, CCACHE_DISABLE="1")
    subprocess.run(ninja, check=True, stdout=subprocess.DEVNULL)
    text = file.read_text()
    try:
        file.write_text(text + "// edited\n")
        cpu, clock = cpu_seconds(), time.monotonic()
        built = subprocess.run(ninja, env=environment, capture_output=True, text=True)
        if built.returncode:
            sys.exit(built.stdout)
        compiled = built.stdout.count("Building CXX")
        build_clock = time.monotonic() - clock
        tests = build / "tests/unit_tests"
        run = subprocess.run([str(tests), f"--test-case={args.test_case}"], capture_output=True, text=True)
        if run.returncode or " 0 passed" in run.stdout:
            sys.exit(run.stdout)
        total_clock, total_cpu = time.monotonic() - clock, cpu_seconds() - cpu
    finally:
        file.write_text(text)
    print(
        f"{args.file}: {compiled} files compiled, {total_clock:.1f} s by the clock (build {build_clock:.1f} s), "
        f"CPU {total_cpu:.1f} s"
    )


if __name__ == "__main__":
    main()
