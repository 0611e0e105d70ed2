"""Arguments of JAX that say how to compute and not what: they are accepted and have no effect."""

_FUNCTIONS = {
    "accuracy": "numpy.cbrt numpy.cos numpy.exp numpy.exp2 numpy.expm1 numpy.log numpy.log1p numpy.sin numpy.sqrt "
    "numpy.tan numpy.tanh lax.logistic lax.rsqrt",
    "precision": "numpy.einsum numpy.polyfit numpy.matvec numpy.vecmat numpy.linalg.matmul numpy.linalg.multi_dot "
    "numpy.linalg.tensordot numpy.linalg.vecdot",
    "unique_indices": "numpy.take",
    "indices_are_sorted": "numpy.take",
    "method": "numpy.digitize",
}
HINTS = {}
for _name, _functions in _FUNCTIONS.items():
    for _function in _functions.split():
        HINTS.setdefault(_function, set()).add(_name)
