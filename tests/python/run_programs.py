"""Random programs on rlx beside JAX.

    python tests/python/run_programs.py --count 1000 --seed 1 --device cpu --mode all
    python tests/python/run_programs.py --seed 4711 --count 1 --mode vmap    # one program again
    python tests/python/run_programs.py --file tests/python/regressions/NAME.txt

Program k has seed SEED + k. A program that fails is printed, made smaller, and written to tests/python/regressions
(--keep FOLDER for another folder). --plugin PATH loads a backend's plug-in first, whose device may then be named.
"""

import argparse
import collections
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jax.extend  # noqa: E402,F401
from oracles import catalogue  # noqa: E402
from oracles.dice import Dice  # noqa: E402
from programs import generate, model, run, shrink  # noqa: E402

_MIX = ("forward",) * 13 + ("grad", "vjp", "jvp", "vmap", "vmap", "nested", "nested")
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "regressions")
ROOT = FOLDER.removesuffix(os.path.join("tests", "python", "regressions"))  # says nothing to others


def mode_of(seed, mode):
    """The mode of a seed: `all` is a mixture that the seed alone decides."""
    return Dice(seed ^ 0xA11).pick(_MIX) if mode == "all" else mode


def program_of(seed, mode="all"):
    return generate.program_of(seed, mode_of(seed, mode))


def uncovered(counts):
    """Ops of the catalogue that no program had."""
    return sorted(n for n in catalogue.load() if not counts.get(n))


class Tally:
    def __init__(self):
        self.programs, self.ops, self.depths = collections.Counter(), collections.Counter(), collections.Counter()
        self.elements = self.loose = self.steps = 0
        self.failed = []

    def add(self, program, mode, elements, loose):
        self.programs[mode] += 1
        self.ops.update(model.all_ops(program.steps))
        self.depths[max([s.depth() for s in program.steps], default=0) + len(program.transforms)] += 1
        self.elements, self.loose = self.elements + elements, self.loose + loose
        self.steps += len(program.steps)

    def text(self):
        total = sum(self.programs.values())
        lines = [
            f"{total} programs: " + ", ".join(f"{k} {v}" for k, v in sorted(self.programs.items())),
            "nesting: " + ", ".join(f"{k} deep {v}" for k, v in sorted(self.depths.items())),
            f"{self.steps} steps, {self.elements} elements compared, {self.loose} of them decided or blurred by "
            f"rounding ({100 * self.loose / max(self.elements, 1):.1f} %)",
            f"{len(self.failed)} failed" + (": seeds " + ", ".join(map(str, self.failed)) if self.failed else ""),
            "ops: " + ", ".join(f"{k} {v}" for k, v in sorted(self.ops.items())),
        ]
        missing = uncovered(self.ops)
        if missing:
            lines.append("in none of them: " + ", ".join(missing))
        return "\n".join(lines)


def report(seed, mode, program, error, folder, devices):
    print(f"\nseed {seed}, mode {mode}: {error}", flush=True)
    try:
        small, error = shrink.shrink(program, devices)
    except Exception as e:  # noqa: BLE001  the first error is what matters
        print(f"(not made smaller: {type(e).__name__}: {e})")
        small = program
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{mode}_{seed}.txt")
    with open(path, "w") as f:
        f.write(small.text(f"seed {seed}, mode {mode}: {error}".replace(ROOT, "")[:600]))
    print(f"{error}\nwritten to {path} with {len(small.steps)} steps", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", action="append", help="may be given several times; cpu where it is not")
    parser.add_argument("--mode", default="all", choices=("all", *generate.MODES))
    parser.add_argument("--plugin", action="append", default=[])
    parser.add_argument("--keep", default=FOLDER)
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("--way", action="append", choices=sorted(run.WAYS), help="ways of compiling; all of them")
    parser.add_argument("--seconds", type=float, default=0, help="stop after so long")
    parser.add_argument("--show", action="store_true", help="print each program")
    a = parser.parse_args()
    import rlx

    catalogue.load()
    for path in a.plugin:
        print(f"{path}: {rlx.load_plugin(path)}")
    devices = a.device or ["cpu"]
    ways = {k: run.WAYS[k] for k in a.way} if a.way else None
    for path in a.file:
        with open(path) as f:
            print(path, run.check(model.Program.parse(f.read()), devices, ways))
    if a.file:
        return 0
    tally, began, none = Tally(), time.time(), 0
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))  # ends behind this program, with its tally
    for seed in range(a.seed, a.seed + a.count):
        if stopped:
            print(f"stopped before seed {seed}")
            break
        if a.seconds and time.time() - began > a.seconds:
            print(f"time is up before seed {seed}")
            break
        mode = mode_of(seed, a.mode)
        try:
            program = generate.program_of(seed, mode)
        except Exception as e:  # noqa: BLE001  JAX or the oracle
            tally.failed.append(seed)
            print(f"\nseed {seed}, mode {mode}: the generator fails: {type(e).__name__}: {str(e)[:300]}", flush=True)
            continue
        if program is None:
            none += 1
            continue
        if a.show:
            print(program.text())
        try:
            tally.add(program, mode, *run.check(program, devices, ways))
        except run.Mismatch as e:
            tally.failed.append(seed)
            report(seed, mode, program, e, a.keep, devices)
        except Exception as e:  # noqa: BLE001  JAX or the oracle: no judgement of rlx
            tally.failed.append(seed)
            print(f"\nseed {seed}, mode {mode}: the oracle fails: {type(e).__name__}: {str(e)[:300]}", flush=True)
        if (seed - a.seed) % 500 == 499:
            print(f"seed {seed}: {len(tally.failed)} failed, {time.time() - began:.0f} s", flush=True)
    print(f"seeds {a.seed} to {seed} on {', '.join(devices)}, {time.time() - began:.0f} s; {none} drew no program")
    print(tally.text())
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
