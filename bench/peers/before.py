"""`--before BUILD` of every bench: the same cases of this build and of an older one, interleaved, beside an A/A pair.

A bench gives a function that measures one build: {case: a figure where less is better}. `compare` calls it in triples,
(this, before, this) and (before, this, this) in turn, so that drift of the machine affects both builds. For each case
it prints the median of this/before and the scatter of this/this. Half of the pairs of equal builds lie within that
scatter, so smaller differences of medians cannot be detected. A case fails if it is above 1.02 and above that scatter.
A case that one side lacks is an error, unless the tables below list it as renamed.
"""

import json
import math
import pathlib
import re
import statistics

import timing
from child import Failure

KEPT = 1.02
SHOWN = 40  # the most rows of a table; a longer table shows the cases above the bound
SLOWER, MISSING = 1, 2  # exit status

# Renames since the older builds. Programs and files of a build: name now -> name before.
PROGRAMS = {}
# Words in the names of cases: (bench, before, now).
CASES = []


def add_options(parser, pairs=15):
    parser.add_argument(
        "--before", type=pathlib.Path, metavar="BUILD", help="compare the time with this older build, pair by pair"
    )
    parser.add_argument("--pairs", type=int, default=pairs, help=f"of --before (default {pairs})")


def build_folder(path):
    """The build directory of a path to it or to its rlx command."""
    folder = path.resolve()
    folder = folder.parent if folder.is_file() else folder
    if not folder.is_dir():
        raise Failure(f"--before {path}: there is no such build directory")
    return folder


def program(build, name, programs=None):
    """A program of a build, by its name now or before."""
    for known in (name, (PROGRAMS if programs is None else programs).get(name)):
        if known and (build / known).exists():
            return build / known
    target = "rlx_cli" if name == "rlx" else "bench_" + pathlib.Path(name).name
    raise Failure(f"{build} has no {name}: cmake --build {build} --target {target}, or list it in {__file__}")


def python_package(path):
    """The folder that holds the Python package rlx/ of a build, from a path to it or to the build directory."""
    for folder in (path, path / "python", path.parent / "python/python"):
        if (folder / "rlx").is_dir() and list((folder / "rlx").glob("_rlx*.so")):
            return folder.resolve()
    raise Failure(f"--before {path}: neither it nor {path}/python holds a built rlx/ (docs/python.md)")


def renamed(bench, case, cases=None):
    """The name now of a case of the older build."""
    for which, old, new in CASES if cases is None else cases:
        if which == bench:
            case = case.replace(old, new)
    return case


def spread(ratios):
    """The ratio that half of the pairs of equal builds lie within."""
    ordered = sorted(ratios)
    return max(ordered[len(ordered) * 3 // 4], 1 / ordered[len(ordered) // 4])


class Row:
    """One case, with the figures of each pair."""

    def __init__(self, case):
        self.case, self.old, self.now, self.again = case, [], [], []

    def finish(self):
        self.ratio = statistics.median(n / o for n, o in zip(self.now, self.old))
        self.same = statistics.median(a / n for a, n in zip(self.again, self.now))
        self.scatter = spread([a / n for a, n in zip(self.again, self.now)])
        self.bound = max(KEPT, self.scatter)
        self.slower = not self.ratio <= self.bound
        return self

    def figures(self):
        return {
            "case": self.case,
            "before": statistics.median(self.old),
            "now": statistics.median(self.now),
            "ratio": self.ratio,
            "scatter": self.scatter,
            "passes": not self.slower,
        }


def pairs_of(bench, measure, now, old, pairs, cases=None, alone=timing.alone):
    """The rows of cases that both builds have, and {case: the side that lacks it}."""
    rows, missing = {}, {}
    for i in range(pairs):
        order = (now, old, now) if i % 2 else (old, now, now)
        with alone():
            figures = [measure(build) for build in order]
        was = {renamed(bench, case, cases): value for case, value in figures.pop(order.index(old)).items()}
        own, again = figures
        for case in [*own, *(c for c in (*was, *again) if c not in own)]:
            absent = [side for side, f in (("before", was), ("now", own), ("now", again)) if case not in f]
            if absent:
                missing[case] = absent[0]
                continue
            row = rows.setdefault(case, Row(case))
            for column, f in ((row.old, was), (row.now, own), (row.again, again)):
                if not f[case] > 0:
                    raise Failure(f"{bench}: {case} is {f[case]}, no figure to compare")
                column.append(f[case])
    return [row.finish() for case, row in rows.items() if case not in missing], missing


def compare(bench, measure, now, old, pairs, **options):
    """Measures and prints the table of a bench. Returns (exit status, rows for --json)."""
    rows, missing = pairs_of(bench, measure, now, old, pairs, **options)
    if not rows and not missing:
        raise Failure(f"{bench}: neither build printed a figure")
    slower = [row for row in rows if row.slower]
    count = f"{len(rows)} case{'s' * (len(rows) != 1)}, {pairs} pair{'s' * (pairs != 1)}"
    if rows:
        mean = math.exp(statistics.fmean(math.log(row.ratio) for row in rows))
        within = len(rows) - len(slower)
        print(f"\n{bench}, this build over {old}: {count}; geometric mean {mean:.3f}, {within} within their bound")
    shown = rows if len(rows) <= SHOWN else sorted(slower, key=lambda row: -row.ratio)
    if shown:
        width = max(len(row.case) for row in shown)
        print(f"{'case':{width}}{'before':>13}{'now':>13}{'now/before':>12}{'now/now':>9}{'scatter':>9}  passes")
    for row in shown:
        was, own = statistics.median(row.old), statistics.median(row.now)
        print(
            f"{row.case:{width}}{was:13.6g}{own:13.6g}{row.ratio:12.3f}{row.same:9.3f}{row.scatter:9.3f}"
            f"  {'NO' if row.slower else 'yes'}",
            flush=True,
        )
    for case, side in missing.items():
        print(f"MISSING {side}: {case}", flush=True)
    status = (SLOWER if slower else 0) | (MISSING if missing else 0)
    figures = [row.figures() for row in rows] + [{"case": c, "missing": side} for c, side in missing.items()]
    return status, figures


def run(bench, measure, now, args, extra=None):
    """All of --before of a bench: table, --json, exit status."""
    print(timing.machine())
    status, rows = compare(bench, measure, now, build_folder(args.before), args.pairs)
    if getattr(args, "json", None):
        args.json.write_text(json.dumps({"machine": timing.machine(), **(extra or {}), bench: rows}, indent=1) + "\n")
    return status


# -- figures from the output of a program --

NUMBER = r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
TIME = r" ?(?:ns|us|µs|ms|s|MB|kB)\b(?! ?/)"
RATE = r" ?(?:(?:GF|GFLOP|Gop|GB|MB|tokens|words)/s\b|GFLOP per processor second)"
SHARE = r" ?%"


def figures_of_text(text, drop=None):
    """{words of a line and the position in it: figure}. Figures are times and memory, or 1 / rate in lines without.

    A figure is a number with a unit after it, or with decimals and no unit. Numbers without decimals and unit, such as
    those of a shape, are part of the words. `drop` matches text that is no figure: goals, ratios, random differences.
    """
    found = {}
    for line in text.splitlines():
        line = re.sub(r"\(goal [^)]*\)", "", line)
        if drop:
            line = re.sub(drop, "", line)
        times, rates, words, end = [], [], "", 0
        for m in re.finditer(rf"(?<![\w.-]){NUMBER}", line):
            rest = line[m.end() :]
            share, rate, time = (re.match(unit, rest) for unit in (SHARE, RATE, TIME))
            decimal = "." in m[1] and not re.match(r" ?(?:x|times)\b", rest)
            if not (share or rate or time or "." in m[1]):
                continue
            words += line[end : m.start()] + "#"
            end = m.end()
            if rate:
                rates.append(float(m[1]))
            elif not share and (time or decimal):
                times.append(float(m[1]))
        words = " ".join((words + line[end:]).split())
        figures = times or [1 / rate for rate in rates if rate > 0]
        for i, value in enumerate(figures):
            if value > 0:
                key = f"{words} [{i}]"
                again = sum(known == key or known.startswith(key + " again ") for known in found)
                found[f"{key} again {again}" if again else key] = value
    return found


RATES = {"tok_s", "fma_gflops", "tile_gflops", "read_gbytes"}
FIGURE = re.compile(r"(?:.*_)?(?:us|ms|ns|s|mb|p50|p10)$|prefill\d+$")


def figures_of_json(reply, prefix=""):
    """The times and memory of an object by their keys, and 1 / rate for rates."""
    found = {}
    for key, value in reply.items():
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
            continue
        if key in RATES:
            found[f"{prefix}{key}, turned"] = 1 / value
        elif FIGURE.match(key):
            found[prefix + key] = value
    return found


def figures_of_compile(figures):
    """Three figures for the shapes that are compiled, every figure for the others."""
    if "compile" in figures:
        first = sum(figures[k] for k in ("build", "compile", "set_param", "make_inputs", "run"))
        return {"compile": figures["compile"], "first": first, "peak_mb": figures["peak_mb"]}
    return {key: value for key, value in figures.items() if key != "nodes" and value > 0}


def figures_of_shapes(worker, sizes, shapes=None):
    """The measurements of bench/compile: all or some shapes of this compile_worker, at each number of nodes."""
    found = {}
    for shape in shapes or timing.run_text([worker]).split():
        for size in sizes:
            figures = figures_of_compile(json.loads(timing.run_text([worker, shape, size], 2)))
            found |= {f"{shape} of {size} nodes: {key}": value for key, value in figures.items()}
    return found
