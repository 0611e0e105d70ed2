"""x[index] and x.at[index] against JAX: index arrays out of range in every mode, masks, at once and compiled."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import rlx
import rlx.numpy as rnp
from rlx import _indexing
from rlx._jit import cached_jit

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
I = X.astype(np.int32)
FAR = np.array([0, -1, 2, 7, -9], np.int32)
MODES = (None, "fill", "drop", "clip", "wrap", "promise_in_bounds")
INDICES = {
    "array": FAR,
    "pair": (FAR, np.array([3, 1, 0, -4, 0], np.int32)),
    "behind": (slice(None), FAR),
    "with an integer": (FAR, 2),
    "integer": 1,
    "window": (slice(1, 3), slice(None, 2)),
}
HOW = ("set", "add", "subtract", "multiply", "divide", "power", "min", "max")


def gone_round(index):
    index = index if isinstance(index, tuple) else (index,)
    return tuple(i if isinstance(i, slice) else np.asarray(i) % n for i, n in zip(index, X.shape))


def both(f, x, index, mode=None):
    """f(x, index, mode) at once and compiled, of rlx, against JAX, which has no mode "wrap": its indices go round
    first.
    """
    theirs = (gone_round(index), None) if mode == "wrap" else (index, mode)
    want = np.asarray(f(jnp.asarray(x), *theirs))
    for got in (f(rlx.array(x), index, mode), rlx.jit(lambda v: f(v, index, mode))(x)):
        assert got.dtype.name == want.dtype.name
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", INDICES)
@pytest.mark.parametrize("x", (X, I), ids=("float32", "int32"))
def test_get(x, kind, mode):
    if mode == "promise_in_bounds" and kind not in ("integer", "window"):
        pytest.skip("JAX says nothing where the promise is broken")
    both(lambda v, i, m: v.at[i].get(mode=m), x, INDICES[kind], mode)


def test_get_with_a_fill_value():
    both(lambda v, i, m: v.at[i].get(mode="fill", fill_value=-7), X, FAR)
    both(lambda v, i, m: v.at[i].get(mode="fill", fill_value=-7), I, (slice(None), FAR))
    both(lambda v, i, m: v.at[i].get(mode="fill"), X, 9)  # NaN: a Python integer too may name nothing
    both(lambda v, i, m: v.at[i].set(8, mode="drop"), X, 9)


@pytest.mark.parametrize("mode", (None, "drop", "clip", "wrap"))
@pytest.mark.parametrize("kind, how", list(itertools.product(INDICES, HOW)))
def test_update(kind, how, mode):
    index = INDICES[kind]
    if how == "set" and mode in ("clip", "wrap") and kind != "window":
        return  # several indices name one element: which of the values it gets is not said
    both(lambda v, i, m: getattr(v.at[i], how)(2.0, mode=m), X, index, mode)


def test_an_unknown_mode_or_hint():
    with pytest.raises(ValueError, match="mode 'near'.*clip, drop, fill"):
        rlx.array(X).at[FAR].get(mode="near")
    with pytest.raises(TypeError, match="got 'sorted'"):
        rlx.array(X).at[FAR].set(1.0, sorted=True)
    assert rlx.array(X).at[FAR].add(1.0, indices_are_sorted=False, unique_indices=False).shape == X.shape
    with pytest.raises(IndexError, match="index 9 is out of range"):
        rlx.array(X)[9]


@pytest.mark.parametrize("mask", (X > 0, X[:, 0] > -3, np.zeros((3, 4), bool)), ids=("whole", "rows", "none"))
def test_masks(mask):
    x = rlx.array(X)
    for m in (mask, rlx.array(mask), mask.tolist()):
        np.testing.assert_array_equal(np.asarray(x[m]), X[mask])
    for how in HOW:
        want = np.asarray(getattr(jnp.asarray(X).at[mask], how)(2.0))
        np.testing.assert_allclose(np.asarray(getattr(x.at[mask], how)(2.0)), want, rtol=2e-6)
        masked = rlx.jit(lambda v, m, h=how: getattr(v.at[m], h)(2.0))
        np.testing.assert_allclose(np.asarray(masked(X, mask)), want, rtol=2e-6)


def test_masks_beside_other_indices():
    x = rlx.array(X)
    np.testing.assert_array_equal(np.asarray(x[X[:, 0] > -3, 1]), X[X[:, 0] > -3, 1])
    np.testing.assert_array_equal(np.asarray(x[:, [True, False, True, False]]), X[:, [True, False, True, False]])


def test_masks_that_a_compiled_function_cannot_take():
    with pytest.raises(IndexError, match=r"where\(mask, x, 0\) or x.at"):
        rlx.jit(lambda v: v[v > 0])(X)
    with pytest.raises(IndexError, match="values of shape \\(2,\\)"):
        rlx.jit(lambda v, m: v.at[m].set(np.ones(2, np.float32)))(X, X > 3)
    with pytest.raises(ValueError, match="does not broadcast"):
        rlx.array(X).at[X > 3].set(np.ones(2, np.float32))
    with pytest.raises(IndexError, match="a mask of shape \\(4,\\)"):
        rlx.jit(lambda v, m: v.at[m].set(0))(X, np.ones(4, bool))


def test_derivatives():
    import jax

    for mode in ("fill", "clip"):
        want = jax.grad(lambda v: jnp.nansum(v.at[FAR].get(mode=mode) ** 2))(jnp.asarray(X))
        got = rlx.grad(lambda v: rnp.nansum(v.at[FAR].get(mode=mode) ** 2))(X)
        np.testing.assert_allclose(np.asarray(got), np.asarray(want))


MASK = np.array([True, False, True])


@pytest.mark.parametrize(
    "index",
    [MASK, (slice(None), MASK), (0, MASK, 1), (np.ones((3, 3), bool),), (np.eye(3, dtype=bool), slice(0, 2))],
    ids=["rows", "columns", "between", "all", "two axes"],
)
def test_known_masks_in_compiled_functions(index):
    """NumPy's and rlx's own arrays of truth values have their places while a function is traced."""
    x = np.arange(27, dtype=np.float32).reshape(3, 3, 3)
    want = x[index]
    assert np.array_equal(rlx.jit(lambda v: v[index])(x), want)
    changed = x.copy()
    changed[index] = -want
    assert np.array_equal(rlx.jit(lambda v, w: v.at[index].set(w))(x, -want), changed)
    assert np.array_equal(rlx.array(x).at[index].set(rlx.array(-want)), changed)
    slope = np.zeros_like(x)
    slope[index] = 1
    assert np.array_equal(rlx.grad(lambda v: v[index].sum())(x), slope)


def test_positions_are_not_compiled(monkeypatch):
    """x[0], x[1], .. and updates at changing places are one program each."""
    used = {}

    def recorded(key, make):
        f = cached_jit(key, make)
        used.setdefault(id(f), (f, f.misses))
        return f

    def compiled():
        return sum(f.misses - before for f, before in used.values())

    monkeypatch.setattr(_indexing, "cached_jit", recorded)
    x = rlx.array(np.arange(77 * 5, dtype=np.float32).reshape(77, 5))  # a shape of its own
    want = np.asarray(x)
    cases = (
        (lambda i: x[i], lambda i: want[i]),
        (lambda i: x[i - 40, :], lambda i: want[i - 40, :]),
        (lambda i: x[..., i % 5], lambda i: want[..., i % 5]),
        (lambda i: x[i : i + 3], lambda i: want[i : i + 3]),
        (lambda i: x[i, ::2], lambda i: want[i, ::2]),
        (lambda i: x[i, rlx.array([1, 2])], lambda i: want[i, [1, 2]]),
        (lambda i: x.at[i].set(2.0)[i], lambda i: np.full(5, 2.0)),
        (lambda i: x.at[i, 1:3].add(1.0)[i, 1], lambda i: want[i, 1] + 1),
    )
    for ours, theirs in cases:
        used.clear()
        for i in range(6):
            np.testing.assert_array_equal(np.asarray(ours(i)), theirs(i))
        assert compiled() <= 2
        before = compiled()
        for i in range(6, 40):
            np.testing.assert_array_equal(np.asarray(ours(i)), theirs(i))
        assert compiled() == before
    for bad in (lambda: x[77], lambda: x[-78], lambda: x[3, 5], lambda: x.at[77].set(0)):
        with pytest.raises(IndexError, match="is out of range for axis"):
            bad()


def test_random_basic_indices():
    random = np.random.default_rng(5)

    def entry(extent):
        bounds = [None, *range(-extent - 1, extent + 2)]
        a, b = (bounds[k] for k in random.integers(len(bounds), size=2))
        kind = random.integers(6)
        if kind < 3:
            return int(random.integers(-extent, extent))
        return (
            slice(a, b) if kind == 3 else slice(a, b, int(random.choice([-2, -1, 2, 3]))) if kind == 4 else slice(None)
        )

    for _ in range(150):
        shape = tuple(int(n) for n in random.integers(1, 5, size=random.integers(1, 4)))
        x = np.arange(np.prod(shape), dtype=random.choice(["float32", "int64", "int8"])).reshape(shape)
        index = [entry(n) for n in shape[: random.integers(1, len(shape) + 1)]]
        if random.integers(5) == 0:
            index.insert(random.integers(len(index) + 1), None)
        if random.integers(5) == 0:
            index.append(Ellipsis)
        index = tuple(index)
        np.testing.assert_array_equal(np.asarray(rlx.array(x)[index]), x[index])
        changed = x.copy()
        changed[index] += 3
        np.testing.assert_array_equal(np.asarray(rlx.array(x).at[index].add(3)), changed)
