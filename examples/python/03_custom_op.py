"""A custom op: a kernel in NumPy, its shape, both derivatives and its batch rule."""

from typing import Any

import numpy as np
import rlx
import rlx.numpy as rnp


def kernel(x: np.ndarray[Any, Any], limit: float = 1.0) -> np.ndarray[Any, Any]:
    """Called at each run: takes NumPy arrays, returns arrays of the dtypes and shapes of the op."""
    return np.asarray(limit * np.tanh(x / limit), x.dtype)


def slope(y: rlx.Array, limit: float) -> rlx.Array:
    """The derivative of the op by its operand, computed from its result."""
    return 1 - rnp.square(y / limit)


# Rules are functions of traced values. Their results are part of the program and have derivatives too.
soft_clip = rlx.custom_op(
    "example.soft_clip",
    kernel=kernel,
    vjp=lambda cotangents, operands, results, limit=1.0: cotangents[0] * slope(results[0], limit),
    jvp=lambda operands, tangents, results, limit=1.0: tangents[0] * slope(results[0], limit),
    batch="broadcast",  # elementwise: a batch is just a larger operand
    doc="limit * tanh(x / limit): x, which never gets beyond the limit.",
)


@rlx.jit
def loss(x: rlx.Array) -> rlx.Array:
    return rnp.sum(soft_clip(x, limit=2.0) * rnp.float32(3))


x = np.array([-8, -1, 0, 0.5, 3], np.float32)
print("value   ", np.round(soft_clip(x, limit=2.0), 4))
print("gradient", np.round(rlx.grad(loss)(x), 4))
print("by hand ", np.round(3 * (1 - np.tanh(x / 2) ** 2), 4))
print("second  ", np.round(rlx.vmap(rlx.grad(rlx.grad(lambda v: soft_clip(v, limit=2.0))))(x), 4))
print("batch   ", rlx.vmap(lambda row: soft_clip(row, limit=2.0))(np.stack([x, x])).shape)

# An op may be composed of other ops instead. Its rules follow from theirs, and it fuses with the ops around it.
cube = rlx.custom_op("example.cube", decompose=lambda x: x * x * x)
print("cube    ", rlx.grad(lambda v: cube(v))(2.0))
