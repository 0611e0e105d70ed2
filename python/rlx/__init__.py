"""rlx: a small compiler for array programs. NumPy-like functions are traced, differentiated, batched and compiled.

    import rlx
    import rlx.numpy as rnp

    @rlx.jit
    def f(x, w):
        return rnp.tanh(x @ w)

NumPy and ml_dtypes are loaded when first needed.
"""

import os as _os

from . import _rlx

_rlx.set_package_folder(_os.path.dirname(__file__) + _os.sep)

from ._rlx import (  # noqa: E402
    Array,
    BadFile,
    CompiledGraph,
    DeviceLost,
    DeviceUnavailable,
    Dim,
    DTypeMismatch,
    Error,
    InternalError,
    Interrupted,
    InvalidArgument,
    NotFound,
    OutOfMemory,
    Reranker,
    SentenceEncoder,
    Session,
    ShapeMismatch,
    Trace,
    Unsupported,
    Value,
    devices,
    dtype,
    dtypes,
    load_plugin,
    load_safetensors,
    save_safetensors,
)

for _d in dtypes:
    globals()["bool_" if _d.name == "bool" else _d.name] = _d

from . import _graph, _operators, numpy, ops, tree  # noqa: E402
from ._arrays import array, asarray, from_dlpack  # noqa: E402
from ._custom import custom_op, io_callback, pure_callback  # noqa: E402
from ._control import checkpoint, cond, custom_jvp, custom_vjp, fori_loop, map, scan, switch, while_loop  # noqa: E402
from ._graph import Graph, Page, parse  # noqa: E402
from ._jit import Lowered, Program, ShapeDtype, eval_shape, jit, load, trace  # noqa: E402
from ._transforms import (  # noqa: E402
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)

jacobian, remat, ShapeDtypeStruct = jacrev, checkpoint, ShapeDtype


def block_until_ready(x):
    """The tree x when all of its arrays are computed."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x


_operators.install()
_graph.install()
__version__ = _rlx.version


def __getattr__(name):
    if name in ("flatten_util", "formats", "image", "lax", "models", "nn", "random", "scipy", "signal", "text"):
        import importlib

        return importlib.import_module("rlx." + name)
    raise AttributeError(f"module 'rlx' has no attribute {name!r}")
