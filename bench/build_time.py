"""Prints the slowest steps of the last build from .ninja_log, and the total of all steps.

The figures are wall-clock times per step in ninja's log; other load on the machine or a cache (ccache) changes them.
"""

import argparse
import sys
from pathlib import Path

KERNEL_LIMIT_S = 15.0
FILE_LIMIT_S = 5.0


def read_steps(log: Path) -> dict[str, float]:
    """{output path: seconds}, by the newest entry of each output."""
    steps: dict[str, float] = {}
    for line in log.read_text().splitlines():
        if line.startswith("#"):
            continue
        start, end, _mtime, output, _command = line.split("\t")
        steps[output] = (int(end) - int(start)) / 1000
    return steps


def limit_of(output: str) -> float:
    return KERNEL_LIMIT_S if "_kernels.cpp" in output else FILE_LIMIT_S


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/dev"), help="a build folder of ninja")
    parser.add_argument("count", nargs="?", type=int, default=20, help="how many of the slowest steps")
    options = parser.parse_args()
    log = options.folder / ".ninja_log"
    if not log.exists():
        print(f"{log} does not exist; build first, for example: cmake --workflow --preset dev", file=sys.stderr)
        return 1
    steps = read_steps(log)
    objects = {name: seconds for name, seconds in steps.items() if name.endswith((".o", ".gch", ".pch"))}
    slowest = sorted(steps.items(), key=lambda step: -step[1])[: options.count]
    for name, seconds in slowest:
        over = "  over its limit" if name in objects and seconds > limit_of(name) else ""
        print(f"{seconds:7.2f} s  {name}{over}")
    print(f"{sum(steps.values()):7.2f} s  all {len(steps)} steps ({len(objects)} compiled files) one after another")
    return 0


if __name__ == "__main__":
    sys.exit(main())
