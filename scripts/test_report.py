"""usage: test_report.py STEPS [--reference SECONDS] [--no-budgets]

Run by scripts/test.sh at its end. From its folder of steps (build/steps) it prints what each step took beside its
budget,
and how many tests ran, by build and compiler. Exits 1 when a step or the whole took half more than its budget. SECONDS
are what the reference took on the machine of the budgets; what it took here, in STEPS/reference, scales them.
"""

import argparse
import pathlib
import re
import sys
import time

ALLOWED = 1.5  # times the budget
COUNTS = {  # what lines of a step's output say how many ran
    "ctest entries": r"\d+ tests failed out of (\d+)",
    "test cases": r"\[doctest\] test cases: *\d+ \| *(\d+) passed",
    "assertions": r"\[doctest\] assertions: *(\d+) \|",
    "Python tests": r"^(\d+) passed",
    "random programs": r": (\d+) programs, ",
    "fuzz targets": r"^fuzz_\w+ +.*\d+ runs, (seed)",
    "fuzz runs": r"^fuzz_\w+ +.*?(\d+) runs, seed",
}
TESTS = ("test cases", "Python tests", "fuzz targets")  # what the closing line adds up


def seconds_of(times):
    """The second line of what bash's `times` prints: those of the children, as 1m2.345s."""
    parts = re.findall(r"(\d+)m([\d.]+)s", times.splitlines()[1])
    return sum(int(m) * 60 + float(s) for m, s in parts)


class Step:
    def __init__(self, folder, row):
        self.name, self.code, budget, self.title = (part.strip() for part in row.split("|"))
        self.budget = None if budget == "-" else float(budget)
        took, times = folder / f"{self.name}.took", folder / f"{self.name}.times"
        self.ran = took.exists() and times.exists()
        if not self.ran:
            return
        status, self.began, self.ended = took.read_text().split()
        self.began, self.ended = float(self.began), float(self.ended)
        self.failed = status != "0"
        self.cpu = seconds_of(times.read_text())
        said = ""
        for ending in ("log", "ctest"):
            path = folder / f"{self.name}.{ending}"
            said += path.read_text(errors="replace") if path.exists() else ""
        self.counts = {}
        for what, pattern in COUNTS.items():
            found = re.findall(pattern, said, re.MULTILINE)
            self.counts[what] = sum(1 if n == "seed" else int(n) for n in found)


def table(head, rows):
    """Markdown whose columns stand below each other; all but the first and the last column of text are to the right."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    right = [i > 0 and any(re.fullmatch(r"[\d,]+", str(row[i])) for row in rows) for i in range(len(head))]

    def line(row):
        cells = [str(c).rjust(w) if r else str(c).ljust(w) for c, w, r in zip(row, widths, right)]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (w + 1) + (":" if r else "-") for w, r in zip(widths, right)) + "|"
    print("\n".join([line(head), rule, *map(line, rows)]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=pathlib.Path)
    parser.add_argument("--reference", type=float)
    parser.add_argument("--no-budgets", action="store_true")
    args = parser.parse_args()
    table_rows = [row for row in (args.steps / "table").read_text().splitlines() if row.strip()]
    all_steps = [Step(args.steps, row) for row in table_rows]
    steps = [step for step in all_steps if step.ran]
    if not steps:
        return 0
    # At most twice: a reference that a pause of the machine hit says nothing of the steps.
    measured = args.steps / "reference"
    scale = 1.0
    if args.reference and measured.exists():
        scale = min(2.0, max(1.0, max(map(float, measured.read_text().split())) / args.reference))

    over = []

    def checked(step, cpu):
        if step.budget is None or args.no_budgets:
            return "", ""
        budget = step.budget * scale
        verdict = ""
        if cpu > ALLOWED * budget:
            verdict = "over its budget by half"
            over.append(f"{step.name}: {cpu:.0f} CPU s of {budget:.0f}")
        elif cpu > budget:
            verdict = "over"
        return f"{budget:,.0f}", verdict

    rows = []
    for step in steps:
        budget, verdict = checked(step, step.cpu)
        verdict = "**failed**" if step.failed else verdict
        rows.append((step.name, f"{step.ended - step.began:,.0f}", f"{step.cpu:,.0f}", budget, verdict, step.title))
    wall = time.time() - min(step.began for step in steps)
    cpu = sum(step.cpu for step in steps)
    total = next(step for step in all_steps if step.name == "total")
    rows.append(("total", f"{wall:,.0f}", f"{cpu:,.0f}", *checked(total, cpu), ""))
    table(("step", "wall s", "CPU s", "budget", "", "what"), rows)
    if not args.no_budgets:
        print(f"\nBudgets are those of scripts/test.sh times {scale:.2f}, for the speed of this machine.")

    print()
    counted = {}
    for step in steps:
        sums = counted.setdefault(step.code, dict.fromkeys(COUNTS, 0))
        for what, n in step.counts.items():
            sums[what] += n
    counted = {code: sums for code, sums in counted.items() if any(sums.values())}
    rows = [(code, *(f"{sums[what]:,}" for what in COUNTS)) for code, sums in counted.items()]
    table(("build", *COUNTS), rows)

    passed = sum(sums[what] for sums in counted.values() for what in TESTS)
    minutes, seconds = divmod(int(wall), 60)
    hours, minutes = divmod(minutes, 60)
    failed = sum(step.failed for step in steps)
    print(f"\n== {passed} passed, {failed} failed in {wall:.2f}s ({hours}:{minutes:02}:{seconds:02}) ==")
    for line in over:
        print(f"over its budget by half: {line}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
