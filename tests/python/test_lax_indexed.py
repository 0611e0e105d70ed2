"""rlx.lax.gather and the scatters beside jax.lax's, over random axes, windows, batching axes and modes."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax as theirs
from oracle import by_jax

import rlx
from rlx import lax

SCATTERS = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]


class Case:
    """Operand, index vectors and which axes they mean, drawn from a seed."""

    def __init__(self, seed):
        dice, numbers = random.Random(seed), np.random.default_rng(seed)
        rank = dice.randint(1, 4)
        shape = [dice.randint(1, 4) for _ in range(rank)]
        axes = dice.sample(range(rank), rank)
        self.batching = tuple(sorted(axes[: dice.random() < 0.4]))
        others = axes[len(self.batching) :]
        self.map = tuple(others[: dice.randint(1, len(others))]) if others else ()
        self.collapsed = tuple(sorted(a for a in others if dice.random() < 0.4))
        gone = self.collapsed + self.batching
        self.sizes = tuple(1 if a in gone else dice.randint(1, d) for a, d in enumerate(shape))
        batch = [dice.randint(1, 3) for _ in range(dice.randint(len(self.batching), 3))]
        self.index_batching = tuple(dice.sample(range(len(batch)), len(self.batching)))
        for a, b in zip(self.batching, self.index_batching):
            batch[b] = shape[a]
        windows = rank - len(gone)
        self.window = tuple(sorted(dice.sample(range(len(batch) + windows), windows)))
        self.x = numbers.standard_normal(shape).astype(np.float32)
        kind = dice.choice([np.int8, np.int32, np.int64])
        self.indices = numbers.integers(-2, 5, size=(*batch, len(self.map))).astype(kind)
        self.gather_mode = dice.choice([None, "clip", "fill"])
        self.scatter_mode = dice.choice([None, "clip", "drop"])
        self.how = dice.choice(SCATTERS)
        extents, sizes = iter(batch), iter(s for a, s in enumerate(self.sizes) if a not in gone)
        dims = [next(sizes) if i in self.window else next(extents) for i in range(len(batch) + windows)]
        self.updates = numbers.standard_normal(dims).astype(np.float32)

    def gather(self, m, x):
        numbers = (self.window, self.collapsed, self.map, self.batching, self.index_batching)
        return m.gather(x, self.indices, m.GatherDimensionNumbers(*numbers), self.sizes, mode=self.gather_mode)

    def scatter(self, m, x, updates, how):
        numbers = (self.window, self.collapsed, self.map, self.batching, self.index_batching)
        numbers = m.ScatterDimensionNumbers(*numbers)
        return getattr(m, how)(x, self.indices, updates, numbers, mode=self.scatter_mode)


def drawn():
    """Cases with index vectors; XLA sums the updates of empty ones wrongly."""
    cases = (Case(seed) for seed in range(10000))
    kept = (c for c in cases if c.map)
    return [next(kept) for _ in range(150)]


CASES = drawn()


def test_gathers():
    want = by_jax([lambda c=c: c.gather(theirs, c.x) for c in CASES])
    for c, w in zip(CASES, want):
        np.testing.assert_array_equal(np.asarray(c.gather(lax, c.x)), np.asarray(w), strict=True)


def test_scatters():
    want = by_jax([lambda c=c: c.scatter(theirs, c.x, c.updates, c.how) for c in CASES])
    for c, w in zip(CASES, want):
        got, w = np.asarray(c.scatter(lax, c.x, c.updates, c.how)), np.asarray(w)
        named = np.asarray(c.scatter(lax, np.zeros_like(c.x), np.ones_like(c.updates), "scatter_add"))
        told = (
            named <= 1 if c.how == "scatter" else np.full(c.x.shape, True)
        )  # who of several is last, XLA does not say
        assert got.dtype == w.dtype and got.shape == w.shape
        np.testing.assert_allclose(got[told], w[told], rtol=2e-6, atol=2e-6)


def test_derivatives():
    """Of a gather by its operand, of sums by both operands; with mode None JAX clips and differentiates otherwise."""
    some = [c for c in CASES if c.gather_mode == "clip"][:25]

    def slopes(m, np_, c):
        x, u = np_.asarray(c.x), np_.asarray(c.updates)
        first = m.grad(lambda v: np_.sum(np_.sin(c.gather(m.lax, v))))(x)
        both = m.grad(lambda v, w: np_.sum(np_.sin(c.scatter(m.lax, v, w, "scatter_add"))), argnums=(0, 1))(x, u)
        return (first, *both)

    want = by_jax([lambda c=c: slopes(jax, jnp, c) for c in some])
    for c, w in zip(some, want):
        for got, expected in zip(slopes(rlx, rlx.numpy, c), w):
            np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-5, atol=1e-6)


def test_batches():
    c = next(c for c in CASES if c.batching)
    xs = np.stack([c.x, c.x[::-1]])
    got = np.asarray(rlx.vmap(lambda v: c.gather(lax, v))(xs))
    np.testing.assert_array_equal(got, np.stack([np.asarray(c.gather(lax, x)) for x in xs]))


X = np.ones((3, 4), np.float32)
I = np.zeros((2, 1), np.int32)  # noqa: E741


def numbers(*args):
    return lax.GatherDimensionNumbers(*args)


@pytest.mark.parametrize(
    "error, text, call",
    [
        (ValueError, "has extent 4", lambda: lax.gather(X, I, numbers((1,), (0,), (0,)), (1, 5))),
        (ValueError, "which the result drops", lambda: lax.gather(X, I, numbers((1,), (0,), (0,)), (2, 4))),
        (ValueError, "index vectors have 1 entries", lambda: lax.gather(X, I, numbers((1,), (0,), (0, 1)), (1, 4))),
        (ValueError, "window axes", lambda: lax.gather(X, I, numbers((), (0,), (0,)), (1, 4))),
        (ValueError, "different axes from 0 to 1", lambda: lax.gather(X, I, numbers((1,), (2,), (0,)), (1, 4))),
        (ValueError, "ascend", lambda: lax.gather(X, I, numbers((), (1, 0), (0,)), (1, 1))),
        (ValueError, "slice sizes with 1 entries", lambda: lax.gather(X, I, numbers((1,), (0,), (0,)), (1,))),
        (ValueError, "last axis with index", lambda: lax.gather(X, np.int32(0), numbers((1,), (0,), ()), (1, 4))),
        (ValueError, "equally many", lambda: lax.gather(X, I, numbers((), (1,), (1,), (0,), ()), (1, 1))),
        (ValueError, "extents 3 and 2", lambda: lax.gather(X, I, numbers((), (1,), (1,), (0,), (0,)), (1, 1))),
        (TypeError, "they must be integers", lambda: lax.gather(X, X, numbers((1,), (0,), (0,)), (1, 4))),
        (ValueError, "mode 'wrap'", lambda: lax.gather(X, I, numbers((1,), (0,), (0,)), (1, 4), mode="wrap")),
        (
            ValueError,
            "updates with 3 axes",
            lambda: lax.scatter(X, I, np.ones((1, 2, 4)), lax.ScatterDimensionNumbers((1,), (0,), (0,))),
        ),
    ],
)
def test_refuses(error, text, call):
    with pytest.raises(error, match=text):
        call()
