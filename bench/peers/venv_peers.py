"""A virtual environment with the peers at pinned versions: an existing one, or a temporary one."""

import contextlib
import pathlib
import sys
import tempfile

import child

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
# The module of a package if it differs from its name; "": nothing is imported.
MODULES = {
    "llama-cpp-python": "llama_cpp",
    "onednn-cpu-gomp": "",
    "onednn-devel-cpu-gomp": "",
    "optimum-intel": "optimum",
    "protobuf": "google",
}


def fill(folder, packages):
    """Creates a virtual environment with packages from PyPI at their pinned versions."""
    wanted = [f"{name}=={PINNED[name]}" for name in packages]
    try:
        child.run("making a virtual environment", [sys.executable, "-m", "venv", folder])
    except child.Failure as e:
        raise child.Failure(f"{e}\n  (on Debian: apt-get install python3-venv)") from None
    if wanted:
        pip = [pathlib.Path(folder) / "bin/pip", "install", "--quiet", "--disable-pip-version-check"]
        child.run("installing the peers", [*pip, *wanted])


@contextlib.contextmanager
def environment(packages, existing=None):
    """The folder of the environment. Without `existing` it is created, filled from PyPI and removed afterwards."""
    packages = list(dict.fromkeys(packages))
    if existing:
        folder = pathlib.Path(existing).resolve()
        if not (folder / "bin" / "python").exists():
            raise child.Failure(f"{folder} is no virtual environment")
        modules = [MODULES.get(name, name.replace("-", "_").split("[")[0]) for name in packages]
        lacks = "import importlib.util as u, sys; print(*(m for m in sys.argv[1:] if m and not u.find_spec(m)))"
        missing = child.run("looking at the environment", [folder / "bin/python", "-c", lacks, *modules]).split()
        if missing:
            pins = " ".join(f"{name}=={PINNED[name]}" for name in packages)
            raise child.Failure(f"{folder} lacks {', '.join(missing)}; {folder}/bin/pip install {pins}")
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="rlx-bench-") as made:
        print(f"A throw-away environment {made} gets from PyPI: {' '.join(packages)}", file=sys.stderr)
        fill(made, packages)
        yield pathlib.Path(made)
