"""Functions with an axis argument, on every axis from both ends, with array-valued options of every shape that
broadcasts, beside NumPy.
"""

import itertools

import numpy as np
import pytest
import rlx.numpy as rnp

SHAPE = (2, 3, 4)
G = np.random.default_rng(5)
X = G.normal(size=SHAPE)
POSITIVE = np.abs(X) + 0.1
MASK = G.random(SHAPE) < 0.7
AXES = (-3, -2, -1, 0, 1, 2)
PAIRS = tuple(itertools.permutations(range(3), 2)) + ((-1, 0), (1, -3))


def halves(shape):
    """Arrays of all shapes that broadcast with this one without enlarging it."""
    return [
        G.normal(size=[n if keep else 1 for n, keep in zip(shape, keeps)])
        for keeps in itertools.product((0, 1), repeat=len(shape))
    ] + [G.normal(size=shape[k:]) for k in range(len(shape) + 1)]


def less_one(axis):
    return [n - (i == axis % 3) for i, n in enumerate(SHAPE)]


def cut(x, axis):
    return np.take(x, [0], axis)


CASES = {
    "trapezoid dx": lambda m, a: [m.trapezoid(X, dx=d, axis=a) for d in halves(less_one(a))],
    "trapezoid x": lambda m, a: [
        m.trapezoid(X, x=x, axis=a) for x in (np.cumsum(POSITIVE, a), np.arange(SHAPE[a]) ** 2.0)
    ],
    "diff": lambda m, a: [
        m.diff(X, n, a, prepend=p, append=q)
        for n, p, q in itertools.product((0, 1, 2), (np.float64(2), cut(X, a)), (np.float64(3), np.take(X, [0, 1], a)))
    ],
    "gradient": lambda m, a: [
        m.gradient(X, h, axis=a, edge_order=o)
        for h in (0.5, np.arange(SHAPE[a]) ** 1.5)
        for o in (1, 2)
        if SHAPE[a] > o
    ],
    "average": lambda m, a: [m.average(X, a, w) for w in (POSITIVE, np.arange(1.0, SHAPE[a] + 1))],
    "quantile": lambda m, a: [
        m.quantile(X, q, axis=a, keepdims=k) for q in (0.3, np.array([0.1, 0.5])) for k in (False, True)
    ],
    "percentile": lambda m, a: [m.percentile(X, q, axis=a) for q in (30.0, np.array([10.0, 50, 100]))],
    "median": lambda m, a: [m.median(X, axis=a, keepdims=k) for k in (False, True)],
    "sums": lambda m, a: [
        f(X, axis=a, where=w, keepdims=k)
        for f in (m.sum, m.prod)
        for w in (MASK, MASK[:1], MASK[0, :, :1], True)
        for k in (False, True)
    ],
    "initial": lambda m, a: [
        f(X, axis=a, initial=0.5, where=w) for f in (m.max, m.min, m.sum, m.prod) for w in (MASK, MASK[:, :, :1])
    ],
    "means": lambda m, a: [
        f(X, axis=a, where=w) for f in (m.mean, m.std, m.var) for w in (MASK | (X > -9), X[:1] > -9)
    ],
    "ddof": lambda m, a: [f(X, axis=a, ddof=1, keepdims=True) for f in (m.std, m.var)],
    "any": lambda m, a: [f(MASK, axis=a, where=w) for f in (m.any, m.all) for w in (MASK, X[:, :1] > 0)],
    "counts": lambda m, a: [m.count_nonzero(MASK, axis=a, keepdims=k) for k in (False, True)],
    "arg": lambda m, a: [f(X, axis=a, keepdims=k) for f in (m.argmax, m.argmin) for k in (False, True)],
    "running": lambda m, a: [f(X, axis=a) for f in (m.cumsum, m.cumprod)],
    "sort": lambda m, a: [m.sort(X, axis=a), m.argsort(X, axis=a), m.take(m.partition(X, 1, axis=a), 1, a)],
    "repeat": lambda m, a: [m.repeat(X, r, axis=a) for r in (2, np.arange(SHAPE[a]))],
    "roll": lambda m, a: [m.roll(X, 1, a), m.roll(X, (1, -2), (a, 0)), m.flip(X, a)],
    "take": lambda m, a: [m.take(X, i, axis=a) for i in (1, np.array([0, 1]), np.array([[1], [0]]))],
    "take_along": lambda m, a: [
        m.take_along_axis(X, np.argsort(X, a), a),
        m.take_along_axis(X, np.zeros([1 if k == a % 3 else n for k, n in enumerate(SHAPE)], int), a),
    ],
    "delete": lambda m, a: [m.delete(X, 1, axis=a), m.delete(X, np.array([0, 1]), axis=a)],
    "insert": lambda m, a: [m.insert(X, 1, v, axis=a) for v in (7.0, np.take(X, 0, a))],
    "append": lambda m, a: [m.append(X, cut(X, a), axis=a), m.concatenate([X, X], a), m.stack([X, X], a)],
    "split": lambda m, a: [*m.array_split(X, 2, a), *m.split(X, [1], a)],
    "unwrap": lambda m, a: [m.unwrap(4 * X, axis=a), m.unwrap(4 * X, axis=a, period=3.0)],
    "compress": lambda m, a: [m.compress(np.arange(SHAPE[a]) != 1, X, axis=a)],
    "extremes": lambda m, a: [m.ptp(X, axis=a), m.nanmax(X, a), m.nanmin(X, a), m.nansum(X, a), m.nanmean(X, a)],
    "linspace": lambda m, a: [
        *m.linspace(X, np.float64(2), 5, axis=a, retstep=True),
        m.linspace(X[0], X, 3, axis=a, endpoint=False),
        m.geomspace(POSITIVE, 2 * POSITIVE[:, :1], 4, axis=a),
        m.logspace(X, X[0], 4, axis=a),
    ],
    "packbits": lambda m, a: [m.packbits(MASK, axis=a), m.unpackbits(MASK.astype(np.uint8), axis=a)],
    "along": lambda m, a: [m.apply_along_axis(lambda v: m.sum(v) * v[:2], a, X)],
    "moves": lambda m, a: [m.moveaxis(X, a, 0), m.rollaxis(X, a), m.swapaxes(X, a, 1), m.expand_dims(X, a)],
    "vecdot": lambda m, a: [m.vecdot(X, y, axis=a) for y in (X + 1,)],
}
TWO = {
    "sum": lambda m, a: [m.sum(X, axis=a, where=MASK), m.mean(X, axis=a), m.var(X, axis=a, ddof=1), m.max(X, axis=a)],
    "median": lambda m, a: [m.median(X, axis=a), m.quantile(X, np.array([0.2, 0.7]), axis=a), m.average(X, a)],
    "flip": lambda m, a: [m.flip(X, a), m.rot90(X, 1, a), m.roll(X, (1, 2), a), m.moveaxis(X, a, (0, 1))],
    "trace": lambda m, a: [m.trace(X, 0, *a), m.diagonal(X, 1, *a), m.count_nonzero(X, axis=a)],
    "expand": lambda m, a: [m.expand_dims(X, a)],
}


def check(case, axis):
    with np.errstate(all="ignore"):
        state = G.bit_generator.state
        want = case(np, axis)
        G.bit_generator.state = state
        got = case(rnp, axis)
    assert len(got) == len(want)
    for k, (g, w) in enumerate(zip(got, want)):
        assert g.shape == w.shape, (k, g.shape, w.shape)
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-12, atol=1e-12, err_msg=str(k))


@pytest.mark.parametrize("name", CASES)
def test_every_axis(name):
    for axis in AXES:
        check(CASES[name], axis)


@pytest.mark.parametrize("name", TWO)
def test_pairs_of_axes(name):
    for axes in PAIRS:
        check(TWO[name], axes)


def test_polynomials_of_coefficients_with_axes():
    for p, x in ((np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0])), (X, X[0]), (X, np.float64(2)), (X[:, :1], X[0])):
        np.testing.assert_allclose(np.asarray(rnp.polyval(p, x)), np.polyval(p, x), rtol=1e-12)


def test_covariance_of_one_observation():
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
        assert rnp.cov(np.ones((1, 3)), rowvar=False).shape == np.cov(np.ones((1, 3)), rowvar=False).shape == (3, 3)
