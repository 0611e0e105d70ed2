"""`--before`: what is compared, what is missing, what was renamed, and the exit status."""

import contextlib
import io
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from bench_tools import ROOT, scripts

import before
from child import Failure

NOW, OLD = pathlib.Path("now"), pathlib.Path("old")


def compare(figures, pairs=4, **options):
    """compare() of a function that gives the figures of a build by turns; (status, rows, what it printed)."""
    series = {build: itertools.cycle(values) for build, values in figures.items()}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status, rows = before.compare(
            "kernels", lambda build: next(series[build]), NOW, OLD, pairs, alone=contextlib.nullcontext, **options
        )
    return status, rows, printed.getvalue()


class Pairs(unittest.TestCase):
    def test_the_builds_take_turns(self):
        order = []

        def measure(build):
            order.append(build)
            return {"a": 1.0}

        before.pairs_of("kernels", measure, NOW, OLD, 2, alone=contextlib.nullcontext)
        self.assertEqual(order, [OLD, NOW, NOW, NOW, OLD, NOW])

    def test_equal_builds_pass(self):
        status, rows, _ = compare({NOW: [{"a": 2.0}], OLD: [{"a": 2.0}]})
        self.assertEqual(status, 0)
        self.assertEqual((rows[0]["ratio"], rows[0]["scatter"], rows[0]["passes"]), (1.0, 1.0, True))

    def test_a_slower_case_is_named(self):
        status, rows, printed = compare({NOW: [{"a": 2.0, "b": 1.06}], OLD: [{"a": 2.0, "b": 1.0}]})
        self.assertEqual(status, before.SLOWER)
        self.assertEqual([row["passes"] for row in rows], [True, False])
        self.assertRegex(printed, r"b .*1\.060 .*NO")

    def test_scatter_of_equal_builds_excuses(self):
        noisy = [{"a": value} for value in (1.0, 1.3, 1.0, 1.3)]
        status, rows, _ = compare({NOW: noisy, OLD: [{"a": 1.1}]})
        self.assertGreater(rows[0]["scatter"], 1.2)
        self.assertEqual(status, 0)

    def test_within_two_percent_passes(self):
        self.assertEqual(compare({NOW: [{"a": 1.015}], OLD: [{"a": 1.0}]})[0], 0)

    def test_a_case_that_one_side_lacks_is_an_error(self):
        for now, old, side in (({"a": 1.0}, {"a": 1.0, "b": 1.0}, "now"), ({"a": 1.0, "b": 1.0}, {"a": 1.0}, "before")):
            status, rows, printed = compare({NOW: [now], OLD: [old]})
            self.assertEqual(status, before.MISSING)
            self.assertIn(f"MISSING {side}: b", printed)
            self.assertIn({"case": "b", "missing": side}, rows)

    def test_slower_and_missing_at_once(self):
        status, _, _ = compare({NOW: [{"a": 2.0}], OLD: [{"a": 1.0, "b": 1.0}]})
        self.assertEqual(status, before.SLOWER | before.MISSING)

    def test_a_case_missing_in_one_run_is_missing(self):
        status, _, _ = compare({NOW: [{"a": 1.0, "b": 1.0}, {"a": 1.0}], OLD: [{"a": 1.0, "b": 1.0}]})
        self.assertEqual(status, before.MISSING)

    def test_renamed_cases_are_compared(self):
        figures = {NOW: [{"matmul 8": 1.0}], OLD: [{"products 8": 1.0}]}
        status, rows, _ = compare(figures, cases=[("kernels", "products", "matmul")])
        self.assertEqual((status, [row["case"] for row in rows]), (0, ["matmul 8"]))
        self.assertEqual(compare(figures, cases=[("grammar", "products", "matmul")])[0], before.MISSING)

    def test_no_figures_are_an_error(self):
        with self.assertRaisesRegex(Failure, "neither build printed a figure"):
            compare({NOW: [{}], OLD: [{}]})


class Builds(unittest.TestCase):
    def test_programs_and_their_former_names(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "bench").mkdir()
            (build / "bench/products").touch()
            table = {"bench/matmul": "bench/products"}
            self.assertEqual(before.program(build, "bench/matmul", table), build / "bench/products")
            (build / "bench/matmul").touch()
            self.assertEqual(before.program(build, "bench/matmul", table), build / "bench/matmul")
            with self.assertRaisesRegex(Failure, "--target bench_kernels"):
                before.program(build, "bench/kernels", table)

    def test_a_build_is_named_by_its_folder_or_its_command(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder).resolve()
            (build / "rlx").touch()
            self.assertEqual(before.build_folder(build), build)
            self.assertEqual(before.build_folder(build / "rlx"), build)
            with self.assertRaisesRegex(Failure, "no such build"):
                before.build_folder(build / "nothing")


class Figures(unittest.TestCase):
    def test_times_by_their_words(self):
        text = "     16x  384x  384       hot      1.25 us   60.0 GF/s,  97.1 % of tile,  95.0 % of FMA\n"
        text += "     32x  384x  384       hot      2.50 us   60.0 GF/s,  97.1 % of tile,  95.0 % of FMA\n"
        found = before.figures_of_text(text)
        self.assertEqual(list(found.values()), [1.25, 2.5])
        self.assertTrue(all("384x 384" in case and "us" in case for case in found))

    def test_names_do_not_depend_on_the_figures(self):
        line = "  1024x  384: layer norm {:8.2f}, softmax {:8.2f}, copy {:8.2f} us\n"
        first, second = (before.figures_of_text(line.format(*v)) for v in ((1.5, 2.25, 100.5), (99.75, 12.5, 3.25)))
        self.assertEqual(list(first), list(second))
        self.assertEqual(list(first.values()), [1.5, 2.25, 100.5])

    def test_whole_numbers_with_a_unit_are_figures_and_goals_are_none(self):
        found = before.figures_of_text("scan over 12 stacked layers: 900 us, written out 850 us (goal 1.3)\n")
        self.assertEqual(list(found.values()), [900, 850])

    def test_rates_are_turned_where_no_time_stands(self):
        self.assertEqual(list(before.figures_of_text("read 4.0 GB/s\n").values()), [0.25])
        self.assertEqual(list(before.figures_of_text("read 4.0 GB/s in 2.0 ms\n").values()), [2.0])

    def test_equal_lines_stay_apart(self):
        found = before.figures_of_text("new 1.0 us\nnew 2.0 us\nnew 3.0 us\n")
        self.assertEqual(list(found.values()), [1.0, 2.0, 3.0])

    def test_shares_and_multiples_are_no_figures(self):
        self.assertEqual(list(before.figures_of_text("load 10.0 ms, 3.5x as fast, 40.5 %\n").values()), [10.0])

    def test_json(self):
        reply = {"p50_us": 2.0, "n": 30, "tok_s": 4.0, "cpus": 1.9, "prefill128": 5, "peak_mb": 7, "waited": 0.1}
        want = {"p50_us": 2.0, "tok_s, turned": 0.25, "prefill128": 5, "peak_mb": 7}
        self.assertEqual(before.figures_of_json(reply), want)

    def test_shapes_of_compile(self):
        laps = {"build": 1.0, "compile": 2.0, "set_param": 3.0, "make_inputs": 4.0, "run": 5.0, "peak_mb": 6.0}
        self.assertEqual(before.figures_of_compile(laps), {"compile": 2.0, "first": 15.0, "peak_mb": 6.0})
        self.assertEqual(before.figures_of_compile({"print": 0.5, "nodes": 10}), {"print": 0.5})


# What stands in for a program of bench/: prints its file.
PROGRAM = "#!/bin/sh\ncat \"$0.out\"\n"


class Command(unittest.TestCase):
    """bench/before itself, on builds whose programs print what the test says."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def build(self, name, **outputs):
        bench = pathlib.Path(self.folder.name) / name / "bench"
        bench.mkdir(parents=True)
        for program, text in outputs.items():
            (bench / program).write_text(PROGRAM)
            (bench / program).chmod(0o755)
            (bench / f"{program}.out").write_text(text)
        return bench.parent

    def run_before(self, now, old, *options):
        command = [sys.executable, ROOT / "bench/before", old, "--build", now, "--pairs", "2", *options]
        env = dict(os.environ, TMPDIR=self.folder.name)
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env)
        return done.returncode, done.stdout + done.stderr

    def test_status(self):
        line = "threefry_u32 65536 words: {:.2f} ns a word\n"
        base = self.build("base", kernels=line.format(1))
        same, slow = self.build("same", kernels=line.format(1)), self.build("slow", kernels=line.format(2))
        less = self.build("less", kernels="softmax 4096: 1.00 us\n" + line.format(1))
        self.assertEqual(self.run_before(same, base, "--only", "kernels")[0], 0)
        self.assertEqual(self.run_before(slow, base, "--only", "kernels")[0], before.SLOWER)
        status, printed = self.run_before(same, less, "--only", "kernels")
        self.assertEqual(status, before.MISSING, printed)
        self.assertIn("MISSING now: softmax 4096", printed)

    def test_a_program_with_arguments_and_json(self):
        line = '{"p50_us": 3.0, "decode_p50": 8.0}\n'
        base, same = (self.build(name, language_model=line) for name in ("base", "same"))
        out = pathlib.Path(self.folder.name) / "out.json"
        status, printed = self.run_before(
            same, base, "--program", "language_model", "--json", out, "--", "model.gguf", "1"
        )
        self.assertEqual(status, 0, printed)
        rows = json.loads(out.read_text())["language_model"]
        self.assertEqual([row["case"] for row in rows], ["p50_us", "decode_p50"])
        self.assertEqual(self.run_before(same, base, "--program", "language_model")[0], 1)

    def test_a_build_without_the_program(self):
        base, none = self.build("base", kernels="a 1.00 us\n"), self.build("none")
        status, printed = self.run_before(base, none, "--only", "kernels")
        self.assertEqual(status, 1)
        self.assertIn("has no bench/kernels", printed)

    def test_a_program_that_fails(self):
        base, bad = (self.build(name, kernels="a 1.00 us\n") for name in ("base", "bad"))
        (bad / "bench/kernels").write_text("#!/bin/sh\necho 'no such instruction set' >&2\nexit 3\n")
        status, printed = self.run_before(base, bad, "--only", "kernels")
        self.assertEqual(status, 1)
        self.assertIn("ended with status 3", printed)
        self.assertIn("no such instruction set", printed)

    def test_what_programs_print(self):
        """Lines of every program whose output is text, and the cases that they make."""
        samples = {
            "new_shapes": (
                "specialise   new length: p50   2430.0 us, p90   2760.0, most   8700.0, sum   619.0 ms   "
                "arena  0.52 MB   runs (us):  1x16 3300  1x77 15600  1x128 26600\n",
                ["specialise: bind p50", "specialise: arena", *(f"specialise: run 1x{n}" for n in (16, 77, 128))],
            ),
            "quantised_products": (
                "Q4_0  M   1  best  14.2 GB/s, plain read  15.0; median share of it  93 %, by processors' time  95 %\n"
                "Q4_0  M 512  best 900.1 Gop/s, peak   950.0; median share of it   3 %, by processors' time   4 %\n",
                [
                    "Q4_0 M 1: 1 / best rate",
                    "Q4_0 M 1: 1 / share of the limit in CPU time",
                    "Q4_0 M 512: 1 / best rate",
                ],
            ),
            "speculation": (
                "drafts                        temp   tokens/run       right  ms/token\n"
                "none                           0.0         1.00          0%     12.30\n"
                "looking back                   0.8         2.10         63%      8.40\n",
                ["none at 0.0", "looking back at 0.8"],
            ),
            "control_flow": (
                "1 thread, medians of 51 interleaved runs\n"
                "scan of 512 steps, cell of 64x64: 1200 us, written out 1100 us: 1.09 (goal 1.3)\n"
                "while: 300 us, its bodies written out 200 us: 0.20 us a trip beyond its body (goal 2)\n",
                [
                    "scan of 512 steps, cell of 64x64: # us, written out # us [0]",
                    "scan of 512 steps, cell of 64x64: # us, written out # us [1]",
                    "while: # us, its bodies written out # us [0]",
                    "while: # us, its bodies written out # us [1]",
                ],
            ),
            "kernels": (
                "f32 FMA from registers 110.0 GF/s, best GEMM tile from L1 (K = 128) 108.0 GF/s, one thread\n"
                "  ns per element in L1: exp 0.251 log 0.302\n",
                ["ns per element in L1: exp # log # [0]", "ns per element in L1: exp # log # [1]"],
            ),
        }
        for program, (text, cases) in samples.items():
            base, same = (self.build(f"{program}-{side}", **{program: text}) for side in ("base", "same"))
            out = pathlib.Path(self.folder.name) / "out.json"
            status, printed = self.run_before(same, base, "--program", program, "--json", out, "--", "argument")
            self.assertEqual(status, 0, printed)
            self.assertEqual([row["case"] for row in json.loads(out.read_text())[program]], cases)


class Everywhere(unittest.TestCase):
    # What runs nothing: a table of files, and a list of steps of the last build.
    WITHOUT = {"report.py", "build_time.py"}
    # Sides of a script: bench/gemm, bench/train and bench/tpu start and compare them.
    WORKERS = {"gemm_worker.cpp", "train_worker.cpp", "tpu_worker.cpp"}

    def test_every_script_has_it(self):
        names = {path.name for path in scripts()}
        self.assertLess(self.WITHOUT - {"build_time.py"}, names)
        for path in scripts():
            if path.name not in self.WITHOUT:
                done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, f"{path}: {done.stderr}")
                self.assertRegex(done.stdout, r"BUILD", path.name)

    def test_every_program_has_it(self):
        known = (ROOT / "bench/before").read_text()
        for path in sorted((ROOT / "bench").glob("*.cpp")):
            if path.name not in self.WORKERS:
                self.assertIn("compare_before_if_asked(argc, argv);", path.read_text(), path.name)
                self.assertIn(f'    "{path.stem}": (', known, f"bench/before does not read {path.stem}")

    def test_tables_name_what_is_there(self):
        for name in before.PROGRAMS:
            self.assertTrue((ROOT / f"{name}.cpp").exists() or name == "rlx", name)
        for bench, old, new in before.CASES:
            self.assertNotEqual(old, new, bench)


if __name__ == "__main__":
    unittest.main()
