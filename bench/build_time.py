"""Prints the slowest steps of the last build from .ninja_log, and the total of all steps.

usage: python3 bench/build_time.py [BUILD_FOLDER] [COUNT]     (default: build/dev, 20)
The figures are wall-clock times per step in ninja's log; other load on the machine or a cache (ccache) changes them.
"""

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
    return KERNEL_LIMIT_S if "/kernels/" in output else FILE_LIMIT_S


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/dev")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    log = folder / ".ninja_log"
    if not log.exists():
        print(f"{log} does not exist; build first, for example: cmake --workflow --preset dev", file=sys.stderr)
        return 1
    steps = read_steps(log)
    objects = {name: seconds for name, seconds in steps.items() if name.endswith((".o", ".gch", ".pch"))}
    slowest = sorted(steps.items(), key=lambda step: -step[1])[:count]
    for name, seconds in slowest:
        over = "  over its limit" if name in objects and seconds > limit_of(name) else ""
        print(f"{seconds:7.2f} s  {name}{over}")
    print(f"{sum(steps.values()):7.2f} s  all {len(steps)} steps ({len(objects)} compiled files) one after another")
    return 0


if __name__ == "__main__":
    sys.exit(main())
