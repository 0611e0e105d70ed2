"""rlx: a small compiler for array programs. It traces, differentiates, batches and compiles NumPy-like functions.

    import rlx
    import rlx.numpy as rnp

    @rlx.jit
    def f(x, w):
        return rnp.tanh(x @ w)

NumPy and ml_dtypes are imported at first use.
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
    NotFinite,
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
)

for _d in dtypes:
    globals()["bool_" if _d.name == "bool" else _d.name] = _d

from . import _graph, _names, _operators, numpy, ops, tree  # noqa: E402
from ._arrays import array, asarray, from_dlpack  # noqa: E402
from ._custom import custom_op, io_callback, pure_callback  # noqa: E402
from ._control import checkpoint, checkpoint_policies, cond, custom_gradient  # noqa: E402
from ._control import custom_jvp, custom_vjp, fori_loop  # noqa: E402
from ._control import map, scan, switch, while_loop  # noqa: E402
from ._debugging import debug_nans, disable_jit, full_tracebacks, make_jaxpr  # noqa: E402
from ._files import load_safetensors, save_safetensors  # noqa: E402
from ._graph import Graph, Report, parse  # noqa: E402
from ._jit import Lowered, Program, ShapeDtype, clear_caches, eval_shape, jit, load, trace  # noqa: E402
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
    """Waits until all arrays of the tree x are computed, and returns x."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x


_operators.install()
_graph.install()
__version__ = _rlx.version


# Names of JAX that rlx does not have, and what to use instead; docs/python_for_jax_users.md has more.
_INSTEAD = {
    "closure_convert": "rlx.vjp and rlx.custom_vjp take functions that close over arrays",
    "device_get": "numpy.asarray(x)",
    "device_put": "x.to(device)",
    "linear_transpose": "rlx.vjp",
    "pmap": "one program runs on one device and its host; rlx.vmap makes batches",
    "shard_map": "one program runs on one device and its host; rlx.vmap makes batches",
    "sharding": "one program runs on one device and its host; rlx.vmap makes batches",
    "tree_map": "rlx.tree.map",
    "tree_util": "rlx.tree; rlx.tree.register(cls, flatten, unflatten) makes a class a tree",
}

__getattr__ = _names.getattr_of(
    "rlx",
    _INSTEAD,
    ("debug", "flatten_util", "formats", "image", "lax", "models", "nn", "random", "scipy", "signal", "text"),
    renamed={"Page": ("Report", Report)},
)
