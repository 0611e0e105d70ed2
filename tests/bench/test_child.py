"""A bench that cannot go on says why: what a child said, what is missing, how it is made."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from bench_tools import PEERS, ROOT

import child
import venv_peers


class Children(unittest.TestCase):
    def test_output_of_one_that_works(self):
        self.assertEqual(child.run("a child", [sys.executable, "-c", "print(7)"]).strip(), "7")

    def test_what_one_said_that_failed(self):
        code = "import sys; print('on stdout'); sys.exit('No module named torch')"
        with self.assertRaises(child.Failure) as caught:
            child.run("making the ONNX file", [sys.executable, "-c", code])
        for words in ("making the ONNX file failed with status 1", "on stdout", "No module named torch"):
            self.assertIn(words, str(caught.exception))

    def test_one_that_is_not_there(self):
        with self.assertRaisesRegex(child.Failure, "compiling: /nowhere/g.. cannot be started"):
            child.run("compiling", ["/nowhere/g++"])

    def test_a_failure_ends_a_program_with_its_words(self):
        code = f"import sys; sys.path.insert(0, {str(PEERS)!r}); import child; raise child.Failure('no model')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.strip()), (1, "error: no model"))


class Environments(unittest.TestCase):
    def test_an_environment_without_the_peers(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "bin").mkdir()
            (pathlib.Path(folder) / "bin/python").symlink_to(sys.executable)
            name = next(n for n in ("onnxruntime-genai", "openvino-genai") if not self.has(n.replace("-", "_")))
            with self.assertRaises(child.Failure) as caught:
                with venv_peers.environment([name], folder):
                    self.fail("the environment was taken")
            self.assertIn(f"{name}=={venv_peers.PINNED[name]}", str(caught.exception))

    def test_no_environment(self):
        with self.assertRaisesRegex(child.Failure, "no virtual environment"):
            with venv_peers.environment([], "/nowhere"):
                self.fail("the environment was taken")

    def test_every_package_that_a_bench_asks_for_is_pinned(self):
        text = "".join((ROOT / "bench" / name).read_text() for name in ("minilm", "encoders", "ops", "train", "llm"))
        for name in ("openvino", "onnxruntime", "torch", "jax", "jaxlib", "transformers", "gguf"):
            self.assertIn(f'"{name}"', text)
            self.assertIn(name, venv_peers.PINNED)

    @staticmethod
    def has(module):
        import importlib.util

        return importlib.util.find_spec(module) is not None


if __name__ == "__main__":
    unittest.main()
