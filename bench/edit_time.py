#!/usr/bin/env python3
"""Time from an edit to a test result: edits a file, builds a test program in build/dev, runs a case, restores the file.

Prints the number of compiled files, the wall-clock seconds, and the CPU seconds, which other load on the machine
changes less. Two idle cores take half of the CPU seconds, but a step that runs alone (one file, the link) takes all of
its own. Aims on two idle cores: an op's attributes (a header of rlx/ir/ops/) 20 s, its rules (a source of rlx/ops/) 8
s, a kernel 20 s, a test 10 s. ccache is disabled.

    bench/edit_time.py rlx/ir/ops/rope.h '*rope*'
    bench/edit_time.py rlx/ops/attention/rope.cpp '*rope*'
    bench/edit_time.py rlx/backends/cpu/norm/norm_kernels.cpp '*norm*' --program kernels_tests
    bench/edit_time.py rlx/ops/attention/rope.cpp '*rope*' --before BUILD [--was FILE]

--before does the same in the source tree of BUILD (a dev build), pair by pair, and compares CPU seconds. --was names
the file there if it has moved.
"""
import argparse
import os
import pathlib
import re
import resource
import sys
import time

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "bench" / "peers"))
import before  # noqa: E402
import child  # noqa: E402


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def edit(build, program, file, test_case, jobs):
    """One edit: (files compiled, seconds of the build, seconds in all, CPU seconds). The file is restored."""
    ninja = ["ninja", "-C", build, "-j", jobs, program]
    child.run("building before the edit", ninja)
    text = file.read_text()
    try:
        file.write_text(text + "// edited\n")
        cpu, clock = cpu_seconds(), time.monotonic()
        compiled = child.run("building", ninja, env=dict(os.environ, CCACHE_DISABLE="1")).count("Building CXX")
        build_clock = time.monotonic() - clock
        ran = child.run("the test", [build / "tests" / program, f"--test-case={test_case}"])
        if " 0 passed" in ran:
            raise child.Failure(f"no test case is called {test_case}\n{ran}")
        return compiled, build_clock, time.monotonic() - clock, cpu_seconds() - cpu
    finally:
        file.write_text(text)


def sources_of(build):
    """The source tree of a build directory."""
    cache = build / "CMakeCache.txt"
    child.need(cache, "name a build directory of CMake")
    return pathlib.Path(re.search(r"^CMAKE_HOME_DIRECTORY:\w+=(.*)$", cache.read_text(), re.M)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="what is edited, from the repository's root")
    parser.add_argument("test_case", help="doctest's filter, for example '*rope*'")
    parser.add_argument("--program", default="unit_tests", help="the test program (unit_tests)")
    parser.add_argument("-j", type=int, default=2, help="compilers at once (2)")
    parser.add_argument("--was", help="of --before: the file's path there")
    before.add_options(parser, pairs=3)
    args = parser.parse_args()
    build = root / "build/dev"
    if args.before:

        def measure(folder):
            file = args.file if folder == build else args.was or args.file
            cpu = edit(folder, args.program, sources_of(folder) / file, args.test_case, args.j)[3]
            return {f"{args.file}: CPU seconds": cpu}

        return before.run("edit_time", measure, build, args)
    compiled, build_clock, clock, cpu = edit(build, args.program, root / args.file, args.test_case, args.j)
    print(
        f"{args.file}: {compiled} files compiled, {clock:.1f} s by the clock (build {build_clock:.1f} s), "
        f"CPU {cpu:.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
