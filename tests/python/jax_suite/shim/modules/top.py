"""jax: the top namespace."""

import numpy as _np
import rlx as _rlx
from jax._src import config as _config_module
from jax._src.api import *  # noqa: F403
from jax._src.api import make_jaxpr  # noqa: F401
from jax._src.config import config  # noqa: F401
from jax._src.standins import Missing
from jax._src.dtypes import float0  # noqa: F401
from jax._src.top_array import Array  # noqa: F401
from jax._src.xla_bridge import (  # noqa: F401
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)


class _Policies:
    def __getattr__(self, name):
        return getattr(_rlx.checkpoint_policies, name, None) or Missing(f"jax.checkpoint_policies.{name}")


checkpoint_policies = _Policies()
__version__, __version_info__ = "99.0.0", (99, 0, 0)
ShapeDtypeStruct = _rlx.ShapeDtype


def device_get(x):
    return _rlx.tree.map(_np.asarray, x)


def device_put(x, device=None, **kwargs):
    return _rlx.tree.map(_rlx.array, x)


def typeof(x):
    from jax._src import core

    return core.typeof(x)


# Flags as contexts.
enable_x64, legacy_prng_key, debug_key_reuse = map(
    _config_module.config_states.__getitem__, ("jax_enable_x64", "jax_legacy_prng_key", "jax_debug_key_reuse")
)
numpy_dtype_promotion, numpy_rank_promotion, default_matmul_precision = map(
    _config_module.config_states.__getitem__,
    ("jax_numpy_dtype_promotion", "jax_numpy_rank_promotion", "jax_default_matmul_precision"),
)
debug_nans, debug_infs, checking_leaks, log_compiles, default_device, enable_checks, transfer_guard = map(
    _config_module.config_states.__getitem__,
    "jax_debug_nans jax_debug_infs jax_check_tracer_leaks jax_log_compiles jax_default_device jax_enable_checks "
    "jax_transfer_guard".split(),
)
default_prng_impl, threefry_partitionable, softmax_custom_jvp, enable_custom_prng, disable_jit = map(
    _config_module.config_states.__getitem__,
    "jax_default_prng_impl jax_threefry_partitionable jax_softmax_custom_jvp jax_enable_custom_prng "
    "jax_disable_jit".split(),
)


def ensure_compile_time_eval():
    import contextlib

    return contextlib.nullcontext()
