"""rlx.ops.segment_sum and the like beside jax.ops'."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import normal, same

import rlx

IDS = np.array([0, 2, 2, 1, 9, -1, 4, 2], np.int32)  # some are no segments
DATA = normal(8, 3)


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
def test_is_what_jax_joins(name):
    ours, theirs = getattr(rlx.ops, name), getattr(jax.ops, name)
    for data, ids in [
        (DATA, IDS),
        (DATA[:, 0], IDS),
        ((DATA * 9).astype(np.int32), IDS),
        (DATA, IDS.astype(np.uint32)),
        (DATA[:0], IDS[:0]),
    ]:
        same(ours(data, ids, 5), theirs(data, ids, 5), ("rel", 1e-6), name)
    same(ours(DATA.reshape(2, 4, 3), IDS.reshape(2, 4), 5), ours(DATA, IDS, 5), None, name)  # of two axes, unlike JAX
    square = lambda f: lambda d: (f(d, IDS, 5)[:3] ** 2).sum()  # noqa: E731
    if name == "segment_prod":  # of which JAX has no derivative where numbers repeat
        theirs = lambda d, ids, count: jnp.stack([jnp.prod(d[ids == i], 0) for i in range(count)])  # noqa: E731
    same(rlx.grad(square(ours))(DATA), jax.grad(square(theirs))(DATA), ("rel", 1e-5), name)
    batch = np.stack([DATA, -DATA])
    same(rlx.vmap(lambda d: ours(d, IDS, 5))(batch), np.stack([ours(d, IDS, 5) for d in batch]), None, name)


def test_refused():
    for call, error in [
        (lambda f: rlx.jit(f)(DATA, IDS), TypeError),
        (lambda f: f(DATA, DATA[:, 0], 5), TypeError),
        (lambda f: f(DATA, IDS[:3], 5), ValueError),
        (lambda f: f(DATA, IDS, -1), ValueError),
    ]:
        with pytest.raises(error, match="segment_sum"):
            call(rlx.ops.segment_sum)
