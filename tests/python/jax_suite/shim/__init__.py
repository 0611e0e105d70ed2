"""A package `jax` for the tests of JAX, made of rlx.

install(suite) puts a finder in front of all others. After it `import jax` and its submodules give modules of this
folder, with the functions of rlx under the names of JAX. The tools of JAX's tests (test_util and the oracles in NumPy)
are the files of the suite itself, run over these modules. Every other module under `jax` is a stand-in, whose names
raise UsesInternals when a test calls them: so a test that needs JAX's internals fails with that error and no other.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

from .standins import Internal, Missing, Standin, UsesInternals  # noqa: F401

_HERE = os.path.dirname(os.path.abspath(__file__))

# Files of the suite that are tools of its tests: they are loaded from the suite as they are.
TOOLS = (
    "jax._src.test_util",
    "jax._src.public_test_util",
    "jax._src.test_loader",
    "jax._src.test_warning_util",
    "jax._src.lax_reference",
    "jax._src.internal_test_util",
    "jax._src.internal_test_util.lax_test_util",
)

# Modules of this folder.
OURS = {
    "jax": "top",
    "jax._src.api": "api",
    "jax._src.config": "config",
    "jax._src.core": "core",
    "jax.core": "core",
    "jax._src.dtypes": "dtypes",
    "jax.dtypes": "dtypes",
    "jax._src.util": "util",
    "jax._src.tree_util": "tree_util",
    "jax.tree_util": "tree_util",
    "jax.tree": "tree",
    "jax.errors": "errors",
    "jax._src.errors": "errors",
    "jax.numpy": "numpy",
    "jax._src.numpy.util": "numpy_util",
    "jax.test_util": "check",
    "jax._src.lax": "lax",
    "jax._src.lax.lax": "lax",
    "jax.lax": "lax",
    "jax._src.dispatch": "dispatch",
    "jax._src.xla_bridge": "xla_bridge",
    "jax._src.lib": "lib",
    "jax.lib": "lib",
    "jax._src.compilation_cache": "compilation_cache",
    "jax._src.deprecations": "deprecations",
    "jax.custom_derivatives": "custom_derivatives",
    "jax.random": "random",
    "jax._src.array": "array",
    "jax._src.random.prng": "prng",
    "jax._src.top_array": "top_array",
    "jax._src.interpreters.mlir": "mlir",
}

# Namespaces that are those of rlx, name by name.
SAME = {
    "jax": "rlx",
    "jax.numpy": "rlx.numpy",
    "jax.lax": "rlx.lax",
    "jax._src.lax": "rlx.lax",
    "jax._src.lax.lax": "rlx.lax",
    "jax.random": "rlx.random",
    "jax.custom_derivatives": "rlx",
    "jax.nn": "rlx.nn",
    "jax.nn.initializers": "rlx.nn.initializers",
    "jax.numpy.linalg": "rlx.numpy.linalg",
    "jax.numpy.fft": "rlx.numpy.fft",
    "jax.lax.linalg": "rlx.lax.linalg",
    "jax._src.lax.linalg": "rlx.lax.linalg",
    "jax.scipy": "rlx.scipy",
    "jax.scipy.special": "rlx.scipy.special",
    "jax.scipy.linalg": "rlx.scipy.linalg",
    "jax.scipy.stats": "rlx.scipy.stats",
    "jax.scipy.signal": "rlx.scipy.signal",
    "jax.scipy.fft": "rlx.scipy.fft",
    "jax.scipy.ndimage": "rlx.scipy.ndimage",
    "jax.scipy.interpolate": "rlx.scipy.interpolate",
    "jax.scipy.optimize": "rlx.scipy.optimize",
    "jax.scipy.cluster": "rlx.scipy.cluster",
    "jax.scipy.integrate": "rlx.scipy.integrate",
    "jax.scipy.spatial": "rlx.scipy.spatial",
    "jax.scipy.spatial.transform": "rlx.scipy.spatial.transform",
    "jax.image": "rlx.image",
    "jax.ops": "rlx.ops",
    "jax.flatten_util": "rlx.flatten_util",
    "jax.debug": "rlx.debug",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, folders):
        self._folders = folders

    def find_spec(self, name, path=None, target=None):
        if name != "jax" and not name.startswith("jax."):
            return None
        if name in TOOLS:
            below = name.replace(".", os.sep)
            for folder in self._folders:
                for file in (os.path.join(folder, below + ".py"), os.path.join(folder, below, "__init__.py")):
                    if os.path.exists(file):
                        package = [os.path.dirname(file)] if file.endswith("__init__.py") else None
                        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=package)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Standin(spec.name, ours=spec.name in OURS, same=SAME.get(spec.name))

    def exec_module(self, module):
        file = OURS.get(module.__name__)
        if file is not None:
            path = os.path.join(_HERE, "modules", file + ".py")
            module.__file__ = path
            with open(path, encoding="utf-8") as text:
                exec(compile(text.read(), path, "exec"), module.__dict__)


def install(suite):
    """Makes `import jax` give rlx; `suite` holds the folders `tests` and `jax` of JAX's sources."""
    folders = [suite] + [
        p for p in sys.path if p and os.path.isfile(os.path.join(p, "jax", "_src", "lax_reference.py"))
    ]
    from . import standins

    sys.modules["jax._src.standins"] = standins
    sys.meta_path.insert(0, _Finder(folders))
