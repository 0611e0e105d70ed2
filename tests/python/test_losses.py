"""Losses of rlx.nn: those of optax beside its formulas in jax.numpy, others beside numbers of PyTorch 2.15."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import normal, rng, same, uniform
from sampling import some

import rlx
from rlx import nn

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75], [-2.0, 3.0, 0.125], [0.0, 1.0, -1.0]], np.float32)
P = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0], [0.1, 0.1, 0.8], [0.25, 0.5, 0.25]], np.float32)
Y = np.array([2, 0, 1, 2], np.int32)
W = np.array([1.0, 2.0, 0.5], np.float32)
A, B = np.array([0.5, -1.25, 2.0, 0.0, -3.5], np.float32), np.array([1.0, 0.0, 0.25, 1.0, 0.5], np.float32)
Q, S = np.array([0.3, 0.0, 1.0, 0.75, 0.001], np.float32), np.array([1, -1, 1, -1, 1], np.float32)
V = X[::-1] * np.float32(0.5) + 1
FAR = np.roll(X, 1, 0) + np.float32(0.5)
NONE = {"reduction": "none"}

# Name: call and PyTorch's numbers.
KNOWN = {
    "cross entropy": (lambda: nn.cross_entropy(X, Y), 0.758035150046),
    "of rows": (
        lambda: nn.cross_entropy(X, Y, **NONE),
        [0.232621983102, 0.330672609407, 0.061240043232, 2.407605964444],
    ),
    "ignored": (lambda: nn.cross_entropy(X, Y, ignore_index=1), 0.990300185651),
    "weights": (lambda: nn.cross_entropy(X, Y, W), 0.443316667411),
    "all": (lambda: nn.cross_entropy(X, Y, W, ignore_index=1, label_smoothing=0.1), 1.026573161587),
    "sum": (lambda: nn.cross_entropy(X, Y, W, label_smoothing=0.1, reduction="sum"), 2.385106406035),
    "distributions": (lambda: nn.cross_entropy(X, P, W, label_smoothing=0.1), 1.707158818369),
    "classes first": (lambda: nn.cross_entropy(X.T, Y, W, axis=0), 0.443316667411),
    "u8 labels": (lambda: nn.cross_entropy(X, Y.astype(np.uint8)), 0.758035150046),
    "nll": (lambda: nn.nll_loss(nn.log_softmax(X), Y, W), 0.443316667411),
    "bce": (lambda: nn.binary_cross_entropy(Q, B, **NONE), [1.203972804326, 0, 75.0, 0.287682072452, 3.454377889658]),
    "bce of logits": (
        lambda: nn.binary_cross_entropy_with_logits(A, B, **NONE),
        [0.47407698418, 0.251929081345, 1.626928011043, 0.69314718056, 1.779750418273],
    ),
    "bce, weighted": (
        lambda: nn.binary_cross_entropy_with_logits(A, B, Q, np.float32(3), **NONE),
        [0.426669285762, 0.0, 1.690392016564, 1.55958115626, 0.005309500837],
    ),
    "mse": (lambda: nn.mse_loss(A, B), 4.375),
    "l1": (lambda: nn.l1_loss(A, B), 1.7),
    "smooth l1": (lambda: nn.smooth_l1_loss(A, B, beta=0.75, **NONE), [0.166666666667, 0.875, 1.375, 0.625, 3.625]),
    "kl": (
        lambda: nn.kl_div(nn.log_softmax(X), nn.log_softmax(X * 0.5), log_target=True, reduction="sum"),
        0.475949547646,
    ),
    "cosine": (
        lambda: nn.cosine_embedding_loss(X, V, np.array([1, -1, 1, -1], np.float32), margin=0.1, **NONE),
        [1.083141099321, 0.0, 1.005981295826, 0.0],
    ),
    "hinge": (lambda: nn.hinge_embedding_loss(A, S, margin=0.8, **NONE), [0.5, 2.05, 2.0, 0.8, -3.5]),
    "ranking": (lambda: nn.margin_ranking_loss(A, B, S, margin=0.3, **NONE), [0.8, 0.0, 0.0, 0.0, 4.3]),
    "soft margin": (
        lambda: nn.soft_margin_loss(A, S, **NONE),
        [0.47407698418, 0.251929081345, 0.126928011043, 0.69314718056, 3.529750418273],
    ),
    "triplet": (
        lambda: nn.triplet_margin_loss(X, V, FAR, p=3.0, **NONE),
        [0.581568097855, 0.461484111463, 0.677437480218, 1.22345597802],
    ),
    "swapped": (
        lambda: nn.triplet_margin_loss(X, V, FAR, swap=True, **NONE),
        [3.054108503044, 0.818472111582, 4.238083875776, 0.971792784155],
    ),
    "poisson": (
        lambda: nn.poisson_nll_loss(A, B * 4, full=True, **NONE),
        [2.805984428944, 0.28650479686, 5.389056098931, 4.157263158244, 7.682003868027],
    ),
    "gaussian": (
        lambda: nn.gaussian_nll_loss(A, B, np.array([1, 0.5, 2, 0.25, 3], np.float32), full=True, **NONE),
        None,
    ),
}
KNOWN["gaussian"] = (
    KNOWN["gaussian"][0],
    0.5 * (np.log([1, 0.5, 2, 0.25, 3]) + (A - B) ** 2 / [1, 0.5, 2, 0.25, 3] + np.log(2 * np.pi)),
)


@pytest.mark.parametrize("name", KNOWN)
def test_is_what_pytorch_computes(name):
    call, want = KNOWN[name]
    same(call(), np.asarray(want, np.float32), ("rel", 1e-6), name)
    same(rlx.jit(call)(), np.asarray(want, np.float32), ("rel", 1e-6), name)


def by_formula(x, y):
    picked = jnp.take_along_axis(x, y[..., None], -1)[..., 0]
    return jax.nn.logsumexp(x, -1) - picked


OPTAX = {
    "softmax_cross_entropy": (lambda x, t: -jnp.sum(t * jax.nn.log_softmax(x), -1), (X, P)),
    "sigmoid_binary_cross_entropy": (
        lambda x, t: -t * jax.nn.log_sigmoid(x) - (1 - t) * jax.nn.log_sigmoid(-x),
        (A, B),
    ),
    "squared_error": (lambda x, t: (x - t) ** 2, (A, B)),
    "l2_loss": (lambda x, t: 0.5 * (x - t) ** 2, (A, B)),
    "huber_loss": (lambda x, t: jnp.where(abs(x - t) <= 1, 0.5 * (x - t) ** 2, abs(x - t) - 0.5), (A, B)),
    "log_cosh": (lambda x, t: jnp.logaddexp(x - t, t - x) - jnp.log(2.0), (A, B)),
    "cosine_similarity": (
        lambda x, t: (x * t).sum(-1) / jnp.linalg.norm(x, axis=-1) / jnp.linalg.norm(t, axis=-1),
        (X, V),
    ),
    "cosine_distance": (
        lambda x, t: 1 - (x * t).sum(-1) / jnp.linalg.norm(x, axis=-1) / jnp.linalg.norm(t, axis=-1),
        (X, V),
    ),
    "hinge_loss": (lambda x, t: jnp.maximum(0, 1 - x * t), (A, S)),
    "kl_divergence": (
        lambda x, t: jnp.sum(jnp.where(t > 0, t * (jnp.log(jnp.where(t > 0, t, 1)) - x), 0), -1),
        (np.log(P[::-1] + 0.1), P),
    ),
    "kl_divergence_with_log_targets": (lambda x, t: jnp.sum(jnp.exp(t) * (t - x), -1), (X, V)),
    "sigmoid_focal_loss": (
        lambda x, t: (-t * jax.nn.log_sigmoid(x) - (1 - t) * jax.nn.log_sigmoid(-x))
        * (1 - (jax.nn.sigmoid(x) * t + (1 - jax.nn.sigmoid(x)) * (1 - t))) ** 2,
        (A, B),
    ),
}


@pytest.mark.rotates(2)
@pytest.mark.parametrize("name", OPTAX)
def test_is_the_formula_of_optax(name):
    formula, args = OPTAX[name]
    f = getattr(nn, name)
    same(f(*args), formula(*map(jnp.asarray, args)), ("rel", 2e-6), name)
    ours = rlx.grad(lambda x, t: rlx.numpy.sum(f(x, t)))(*args)
    same(ours, jax.grad(lambda x, t: jnp.sum(formula(x, t)))(*map(jnp.asarray, args)), ("rel", 2e-5), f"{name}, slope")


@pytest.mark.rotates(2)
@pytest.mark.parametrize("shape", some([(5,), (1, 1), (2, 3, 33), (3, 7), (2, 50257), (4, 1000)], 2), ids=str)
def test_integer_labels(shape):
    x, y = normal(*shape, scale=3), rng(1).integers(0, shape[-1], shape[:-1]).astype(np.int32)
    f = nn.softmax_cross_entropy_with_integer_labels
    same(f(x, y), by_formula(jnp.asarray(x), jnp.asarray(y)), ("rel", 1e-6), "loss")
    ours = rlx.grad(lambda v: rlx.numpy.sum(f(v, y)))(x)
    theirs = jax.grad(lambda v: jnp.sum(by_formula(v, jnp.asarray(y))))(jnp.asarray(x))
    same(ours, theirs, ("rel", 1e-6), "slope")
    same(rlx.jit(f)(x, y.astype(np.int64)), by_formula(jnp.asarray(x), jnp.asarray(y)), ("rel", 1e-6), "i64")


def test_special_values():
    x = np.array([[np.inf, 0], [-np.inf, 0], [-np.inf, -np.inf], [np.nan, 0], [0, 0]], np.float32)
    got = np.asarray(nn.softmax_cross_entropy_with_integer_labels(x, np.array([0, 0, 0, 1, 2], np.int32)))
    assert np.isnan(got[[0, 3, 4]]).all()
    assert np.isposinf(got[[1, 2]]).all()
    masked = nn.softmax_cross_entropy(X, P, where=np.array([True, True, False]))
    want = -(P[:, :2] * np.asarray(jax.nn.log_softmax(X[:, :2]))).sum(-1)
    same(masked, want.astype(np.float32), ("rel", 1e-6), "where")
    same(nn.smooth_labels(P, 0.3), (0.7 * P + 0.1).astype(np.float32), ("rel", 1e-6), "smooth_labels")


def spelled(logp, target, blank=0):
    """The probability of a target by adding up all ways of the steps to spell it."""
    total, (steps, classes) = 0.0, logp.shape
    for path in np.ndindex(*[classes] * steps):
        merged = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
        if [c for c in merged if c != blank] == list(target):
            total += np.exp(sum(logp[i, c] for i, c in enumerate(path)))
    return total


def test_ctc_is_the_sum_over_all_ways():
    x = normal(3, 5, 3, seed=4)
    labels = np.array([[1, 1], [2, 1], [2, 0]], np.int32)
    steps = np.array([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], np.float32)
    ends = np.array([[0, 0], [0, 0], [0, 1]], np.float32)
    got = np.asarray(nn.ctc_loss(x, steps, labels, ends))
    logp = np.asarray(jax.nn.log_softmax(x.astype(np.float64)))
    want = [-np.log(spelled(logp[i, : int(5 - steps[i].sum())], labels[i, : int(2 - ends[i].sum())])) for i in range(3)]
    same(got, np.asarray(want, np.float32), ("rel", 1e-5), "ctc")
    slope = np.asarray(rlx.grad(lambda v: rlx.numpy.sum(nn.ctc_loss(v, steps, labels, ends)))(x))
    for at in [(0, 0, 1), (1, 2, 2), (2, 3, 0)]:
        step = np.zeros_like(x, np.float64)
        step[at] = 1e-3
        moved = [np.asarray(nn.ctc_loss((x + s).astype(np.float32), steps, labels, ends)).sum() for s in (step, -step)]
        assert abs((moved[0] - moved[1]) / 2e-3 - slope[at]) < 2e-3
    assert not slope[1, 3:].any()


def test_half_precision():
    x = uniform(4, 9, low=-3, high=3)
    for dtype in ("float16", "bfloat16"):
        got = nn.cross_entropy(rlx.array(x).astype(dtype), np.array([0, 3, 8, 1], np.int32), reduction="none")
        assert got.dtype.name == dtype
        want = by_formula(jnp.asarray(x), jnp.array([0, 3, 8, 1]))
        same(np.asarray(got.astype("float32")), want, ("rel", 0.02), dtype)


REFUSED = {
    "reduction": lambda: nn.mse_loss(A, B, reduction="median"),
    "labels": lambda: nn.cross_entropy(X, Y[:3]),
    "float labels": lambda: nn.softmax_cross_entropy_with_integer_labels(X, X[:, 0]),
    "smoothing": lambda: nn.cross_entropy(X, Y, label_smoothing=2.0),
    "axis": lambda: nn.cross_entropy(X, Y, axis=3),
    "weight": lambda: nn.cross_entropy(X, Y, W[:2]),
    "steps of ctc": lambda: nn.ctc_loss(normal(1, 3, 2), np.zeros((1, 2)), np.ones((1, 1), np.int32), np.zeros((1, 1))),
    "labels of ctc": lambda: nn.ctc_loss(normal(1, 3, 2), np.zeros((1, 3)), np.ones((1, 1), np.int32), np.zeros((1,))),
    "blank": lambda: nn.ctc_loss(normal(1, 3, 2), np.zeros((1, 3)), np.ones((1, 1), np.int32), np.zeros((1, 1)), 5),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refuses(what):
    with pytest.raises((rlx.Error, ValueError, TypeError)):
        REFUSED[what]()
