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
from ._control import checkpoint, checkpoint_policies, cond  # noqa: E402
from ._control import custom_jvp, custom_vjp, fori_loop  # noqa: E402
from ._control import map, scan, switch, while_loop  # noqa: E402
from ._implicit import closure_convert, custom_gradient, fwd_and_bwd, linear_transpose  # noqa: E402
from ._debugging import debug_nans, disable_jit, full_tracebacks, make_jaxpr  # noqa: E402
from ._files import load_safetensors, save_safetensors  # noqa: E402
from ._graph import Graph, Report, parse  # noqa: E402
from ._jit import Lowered, Program, ShapeDtype, clear_caches, eval_shape, jit, load, trace  # noqa: E402
from ._placement import default_backend, device_count, device_get, device_put, local_device_count  # noqa: E402
from ._placement import local_devices, named_call, named_scope, process_count, process_index, typeof  # noqa: E402
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
_ONE_DEVICE = "one program runs on one device and its host; rlx.vmap makes batches"
_INSTEAD = {
    **dict.fromkeys("NamedSharding P make_mesh pmap reshard set_mesh shard_map sharding smap".split(), _ONE_DEVICE),
    "Device": "a device is a name: rlx.devices()",
    "Ref": "arrays do not change: x.at[index].set(value), and loops carry state",
    "checking_leaks": "a traced value that is used after its trace raises an error that names its line",
    "config": "rlx has no global settings; arrays of 64-bit dtypes keep them",
    "default_device": "rlx.jit(f, device=...), or x.to(device)",
    "default_matmul_precision": "rlx.jit(f, matmul_precision=...)",
    "effects_barrier": "rlx.block_until_ready(x)",
    "enable_x64": "arrays of 64-bit dtypes keep them: dtype='float64'",
    "ensure_compile_time_eval": "compute it with NumPy, or before the function is traced",
    "float0": "the gradient of an integer is a float32 zero",
    "freeze": "arrays do not change: x.at[index].set(value), and loops carry state",
    "log_compiles": "f.lower(*args) and the variable RLX_TRACE show programs",
    "new_ref": "arrays do not change: x.at[index].set(value), and loops carry state",
    "device": "a device is a name: rlx.devices(), x.to(name), rlx.jit(f, device=name)",
    "manual_seed": "rlx.random.key(seed) makes a key, which every random function takes",
    "no_grad": "rlx computes derivatives only where rlx.grad asks for them; rlx.stop_gradient(x) holds one back",
    "optim": "gradients and parameters are trees: rlx.tree.map(lambda p, g: p - rate * g, params, grads)",
    "optimizers": "gradients and parameters are trees: rlx.tree.map(lambda p, g: p - rate * g, params, grads)",
    "save": "rlx.save_safetensors(path, tree)",
    "tensor": "rlx.array",
    "tree_map": "rlx.tree.map",
    "no_tracing": "rlx.debug and f.lower(*args) show what is traced",
}

__getattr__ = _names.getattr_of(
    "rlx",
    _INSTEAD,
    "custom_derivatives debug flatten_util formats hub image lax models nn random scipy signal text tree_util".split(),
    renamed={"Page": ("Report", Report)},
)
_names.accept_names(globals())
