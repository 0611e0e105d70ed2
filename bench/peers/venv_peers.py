"""A virtual environment with the peers at pinned versions: an existing one, or a throw-away one."""

import contextlib
import pathlib
import subprocess
import sys
import tempfile

PINNED = {
    "gguf": "0.19.0",
    "jax": "0.10.2",
    "jaxlib": "0.10.2",
    "jinja2": "3.1.6",
    "markupsafe": "3.0.4",
    "jsonschema[format]": "4.26.0",
    "numpy": "2.4.6",
    "onnx": "1.23.2",
    "llama-cpp-python": "0.3.36",
    "nncf": "3.4.0",
    "onnx-ir": "1.1.0",
    "onnxruntime-genai": "0.18.0",
    "openvino": "2026.4.1",
    "openvino-genai": "2026.4.1.0",
    "optimum-intel": "2.2.0",
    "transformers": "5.5.4",
    "onnxruntime": "1.31.1",
    "protobuf": "7.36.2",
    "sentencepiece": "0.2.3",
    "sympy": "1.14.0",
    "tokenizers": "0.23.3",
    "torch": "2.15.0",
    "onednn-cpu-gomp": "2023.2.0",
    "onednn-devel-cpu-gomp": "2023.2.0",
}


@contextlib.contextmanager
def environment(packages, existing=None):
    """Folder of the environment; without `existing` it is made, filled from PyPI and removed afterwards."""
    if existing:
        folder = pathlib.Path(existing).resolve()
        if not (folder / "bin" / "python").exists():
            sys.exit(f"error: {folder} is no virtual environment")
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="rlx-bench-") as made:
        wanted = [f"{name}=={PINNED[name]}" for name in packages]
        print(f"A throw-away environment {made} gets from PyPI: {' '.join(wanted)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", made], check=True)
        subprocess.run([f"{made}/bin/pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
        yield pathlib.Path(made)
