"""Every script's --before, on builds of stand-ins: equal builds pass, a slower one is named and fails."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from bench_tools import ROOT

FAKE = pathlib.Path(__file__).resolve().parent / "fake_program.py"
PROGRAMS = ("gemm_worker", "train_worker", "tpu_worker", "compile_worker", "tokenizer", "language_model")


class Scripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for build, us in (("now", 1000), ("same", 1000), ("fast", 500)):
            for program in ("rlx", *(f"bench/{name}" for name in PROGRAMS)):
                path = cls.folder / build / program
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(FAKE.read_text())
                path.chmod(0o755)
            (cls.folder / build / "FAKE_US").write_text(str(us))
        for file in ("model/model.safetensors", "llm/Q4_0.gguf", "tokenizers/gpt2/tokenizer.json"):
            (cls.folder / file).parent.mkdir(parents=True)
            (cls.folder / file).touch()
        sizes = {"num_hidden_layers": 6, "hidden_size": 384, "intermediate_size": 1536}
        (cls.folder / "model/config.json").write_text(json.dumps(sizes))

    def run_script(self, script, *arguments):
        env = dict(os.environ, TMPDIR=str(self.folder), RLX_TPU_PLUGIN="a plug-in")
        command = [sys.executable, ROOT / "bench" / script, *arguments]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env)
        return done.returncode, done.stdout + done.stderr

    def check(self, script, *arguments, case):
        for old, status in (("same", 0), ("fast", 1)):
            got, printed = self.run_script(script, *arguments, "--before", self.folder / old, "--pairs", "1")
            self.assertEqual(got, status, printed)
            self.assertRegex(printed, rf"(?m)^{case} .*{'NO' if status else 'yes'}$", script)

    def test_minilm(self):
        model = self.folder / "model"
        self.check(
            "minilm", "--rlx", self.folder / "now/rlx", "--model", model, "--shapes", "8x32", case="8x32, 1 thread, us"
        )

    def test_gemm(self):
        worker = self.folder / "now/bench/gemm_worker"
        self.check("gemm", "--worker", worker, "--threads", "1", case="16x384x384, threads 1, us")

    def test_compile(self):
        worker = self.folder / "now/bench/compile_worker"
        self.check("compile", "--worker", worker, "--sizes", "1000", case="chain of 1000 nodes: compile")

    def test_compile_without_an_older_build(self):
        status, printed = self.run_script(
            "compile", "--worker", self.folder / "now/bench/compile_worker", "--sizes", "1000"
        )
        self.assertEqual(status, 0, printed)

    def test_llm(self):
        common = ("--rlx", self.folder / "now", "--engines", "rlx Q4_0", "--threads", "1")
        for mode, case in (
            ("run", "rlx Q4_0, threads 1, single: decode_p50"),
            ("batch", "rlx Q4_0, threads 1, 32: step_p50"),
            ("long", "rlx Q4_0, threads 1, long: decode_p50"),
            ("start", "rlx Q4_0, threads 1, start: prefill128"),
        ):
            self.check("llm", mode, self.folder / "llm", *common, case=case)

    def test_tokenizers(self):
        tool, files = self.folder / "now/bench/tokenizer", self.folder / "tokenizers"
        self.check("tokenizers", "--tool", tool, "--files", files, "gpt2", case="gpt2: load ms")

    def test_tpu(self):
        worker, model = self.folder / "now/bench/tpu_worker", self.folder / "model"
        self.check("tpu", "--worker", worker, "--model", model, case="8x32: run us")

    def test_parts_of_before(self):
        for old, status in (("same", 0), ("fast", 1)):
            now, pairs = self.folder / "now", ("--pairs", "1", "--only", "compile")
            got, printed = self.run_script("before", self.folder / old, "--build", now, *pairs)
            self.assertEqual(got, status, printed)

    def test_what_is_not_built_is_named(self):
        for script, option, target in (
            ("minilm", "--rlx", "rlx_cli"),
            ("gemm", "--worker", "bench_gemm_worker"),
            ("train", "--worker", "bench_train_worker"),
            ("compile", "--worker", "bench_compile_worker"),
            ("encoders", "--rlx", "rlx_cli"),
        ):
            more = ("--model", self.folder / "model") if script == "minilm" else ()
            status, printed = self.run_script(script, option, self.folder / "nothing", *more)
            self.assertEqual(status, 1)
            self.assertIn(f"--target {target}", printed)


if __name__ == "__main__":
    unittest.main()
