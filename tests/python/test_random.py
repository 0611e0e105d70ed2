"""Every function of rlx.random beside jax.random: the same integers and choices, others to rounding or distribution."""

import jax
import numpy as np
import pytest
import rlx.numpy as rnp
from oracle import Table, same

import rlx

KEY = np.array([0, 7], np.uint32)
ROWS = np.arange(12, dtype=np.int32).reshape(4, 3)
FLOATS = np.arange(5, dtype=np.float32) * 1.5
LOGITS = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], np.float32))
P = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
MANY = (300,)

TABLE = Table("random")
exact = lambda name, *calls: TABLE.add(name, *calls, tol=None)  # noqa: E731


def call(name, *args, **kwargs):
    return lambda r, np_: getattr(r, name)(KEY, *args, **kwargs)


exact("key", lambda r, np_: r.PRNGKey(5), lambda r, np_: r.PRNGKey(-1))
exact("split", *(call("split", *a) for a in [(), (3,), ((2, 3),)]))
exact("fold_in", call("fold_in", 5))
exact("bits", *(call("bits", (5,), d) for d in ("uint8", "uint16", "uint32")), call("bits"))
exact("uniform", *(call("uniform", MANY, d) for d in ("float32", "float16", "bfloat16")), call("uniform"))
TABLE.add(
    "uniform",
    call("uniform", MANY, minval=0, maxval=10),
    lambda r, np_: r.uniform(KEY, (2, 2), minval=np_.arange(2.0), maxval=np_.array([[3.0], [4.0]])),
)
TABLE.add("uniform", call("uniform", MANY, "float32", -2.0, 3.7), tol=("rel", 1e-7))
exact("bernoulli", call("bernoulli"), call("bernoulli", 0.3, MANY), call("bernoulli", np.array([0.1, 0.9], np.float32)))
exact(
    "randint",
    *(
        call("randint", *a)
        for a in [
            (MANY, 0, 7),
            (MANY, -100, 50, "int8"),
            (MANY, 0, 1000, "int16"),
            (MANY, 0, 2**31 - 1),
            (MANY, -(2**31), 2**31 - 1),
            (MANY, 0, 256, "uint8"),
            (MANY, -300, 1000, "int8"),
            (MANY, -1, 5, "uint8"),
            ((), 0, 10),
            ((4,), 5, 5),
            ((4,), 5, 3),
        ]
    ),
    lambda r, np_: r.randint(KEY, (2, 2), np_.array([0, 5]), np_.array([3, 9])),
)
exact("rademacher", call("rademacher", MANY))
exact("geometric", call("geometric", 0.3, MANY), call("geometric", P))
exact(
    "permutation",
    *(call("permutation", x) for x in (10, 3000, 0, -3, ROWS, FLOATS)),
    *(call("permutation", ROWS, *a) for a in [(1,), (1, True), (0, True), (-1, True)]),
)
exact(
    "choice",
    call("choice", 5, (8,)),
    call("choice", 5, (3,), False),
    call("choice", 4, (6,), p=P),
    call("choice", 4, (3,), replace=False, p=P),
    call("choice", ROWS, (3,)),
    call("choice", ROWS, (2, 1), False, axis=1),
    call("choice", ROWS, (2, 2), axis=1),
    call("choice", FLOATS),
)
exact(
    "categorical",
    *(call("categorical", LOGITS, **a) for a in [{}, {"shape": (4, 2)}, {"axis": 0}, {"axis": 0, "shape": (4, 3)}]),
    *(call("categorical", LOGITS[:1], shape=s) for s in [(4,), (3, 4)]),
    *(call("categorical", LOGITS, replace=False, **a) for a in [{"shape": (2, 2)}, {"axis": 0, "shape": (1, 2, 3)}]),
    call("categorical", LOGITS[0], shape=(3,), replace=False),
    call("categorical", LOGITS[0]),
)
for name, *args in [
    ("normal",),
    ("gumbel",),
    ("exponential",),
    ("laplace",),
    ("logistic",),
    ("cauchy",),
    ("maxwell",),
    ("rayleigh", 2.0),
    ("weibull_min", 2.0, 3.0),
    ("pareto", 2.0),
    ("triangular", 1.0, 2.0, 4.0),
    ("lognormal", 0.5),
    ("truncated_normal", -2.0, 1.0),
]:
    TABLE.add(name, call(name, *args, MANY), tol=("rel", 3e-6))
TABLE.add("truncated_normal", call("truncated_normal", np.array([-1, 0, 1], np.float32), 2.0), tol=("rel", 3e-6))
TABLE.add("gumbel", call("gumbel", MANY, "float16"), tol=("rel", 2e-3))
TABLE.add("pareto", call("pareto", np.ones(3, np.float32)), tol=("rel", 3e-6))
WIDE = np.array([[2, 0.5, 0.1], [0.5, 1, 0.2], [0.1, 0.2, 3]], np.float32)
MEANS = np.arange(6, dtype=np.float32).reshape(2, 3)
TABLE.add(
    "multivariate_normal",
    *(
        call("multivariate_normal", *a)
        for a in [(MEANS, WIDE), (MEANS[0], WIDE, (5,)), (MEANS, np.stack([WIDE, 2 * WIDE]), (4, 2))]
    ),
    tol=("rel", 1e-5),
)
TABLE.add(
    "orthogonal",
    *(call("orthogonal", *a, "float32", m) for *a, m in [(4, (), None), (4, (3,), 2), (2, (2,), 5)]),
    tol=("rel", 2e-5),
)
exact("PRNGKey", lambda r, np_: r.PRNGKey(3))
MEAN, COV = np.array([1.0, -2.0], np.float32), np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)
TABLE.add(
    "multivariate_normal",
    call("multivariate_normal", MEAN, COV, (50,), "float32"),
    call("multivariate_normal", MEAN, np.stack([COV, 2 * COV]), dtype="float32"),
    tol=("rel", 1e-5),
)


@pytest.mark.parametrize("i", TABLE.params())
def test_is_what_jax_draws(i):
    TABLE.check(i)


# Drawn by rejection: the distributions are those of JAX's draws, the numbers are not.
REJECTED = {
    "gamma": (0.3,),
    "loggamma": (2.5,),
    "beta": (2.0, 0.7),
    "chisquare": (3.0,),
    "t": (4.0,),
    "f": (5.0, 8.0),
    "poisson": (4.5,),
    "binomial": (30.0, 0.7),
    "generalized_normal": (1.5,),
    "double_sided_maxwell": (1.0, 2.0),
    "wald": (2.0,),
    "dirichlet": (np.array([0.5, 2.0, 4.0], np.float32),),
    "ball": (3, 1.0),
}
LARGE = {"poisson": (60.0,), "binomial": (400.0, 0.2), "gamma": (50.0,)}


def distance(a, b):
    """The largest distance between two distributions of samples (Kolmogorov and Smirnov), in what chance leaves."""
    a, b = np.sort(np.ravel(a)), np.sort(np.ravel(b))
    at = np.concatenate([a, b])
    ours, theirs = (np.searchsorted(v, at, side="right") / len(v) for v in (a, b))
    return np.abs(ours - theirs).max() * np.sqrt(len(a) * len(b) / (len(a) + len(b)))


@pytest.mark.rotates(2)
@pytest.mark.parametrize(("name", "args"), [*REJECTED.items(), *LARGE.items()], ids=str)
def test_distributions_are_those_of_jax(name, args):
    where = {"shape": (5000,), "dtype": np.dtype("int32" if name == "poisson" else "float32")}
    ours = np.asarray(getattr(rlx.random, name)(KEY, *args, **where))
    theirs = np.asarray(getattr(jax.random, name)(jax.random.PRNGKey(3), *args, **where))
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    columns = (ours, theirs) if ours.ndim == 1 else (ours[:, 0], theirs[:, 0])
    assert distance(*columns) < 2.0  # by chance in 1 of 1500
    compiled = rlx.jit(lambda k: getattr(rlx.random, name)(k, *args, **where))(KEY)
    assert np.allclose(ours, compiled, rtol=1e-5, atol=1e-7)


def test_multinomial_counts_trials():
    p = np.array([[0.2, 0.3, 0.5], [0, 2, 2]], np.float32)
    ours = np.asarray(rlx.random.multinomial(KEY, 40, p, shape=(4000, 2, 3)))
    theirs = np.asarray(jax.random.multinomial(jax.random.PRNGKey(3), 40, p, shape=(4000, 2, 3)))
    assert ours.shape == theirs.shape and ours.dtype == np.float32
    assert (ours.sum(-1) == 40).all() and (ours[:, 1, 0] == 0).all() and (ours >= 0).all()
    for i, j in ((0, 0), (0, 1), (0, 2), (1, 1)):
        assert distance(ours[:, i, j], theirs[:, i, j]) < 2.0
    assert np.asarray(rlx.random.multinomial(KEY, np.array([3.0, 0.0], np.float32), p[0])).sum(-1).tolist() == [3, 0]


def test_philox_gives_the_vectors_of_random123():
    bits = rlx.random.philox_bits(np.zeros(2, np.uint32), (4,))
    assert np.asarray(bits).tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


KEYS = {"clone", "key_data", "key_impl", "wrap_key_data"}  # in test_jax_names.py


def test_every_function_is_tried():
    assert sorted(set(TABLE.forgotten()) - set(REJECTED) - {"philox_bits", "multinomial"} - KEYS) == []


@pytest.mark.parametrize("name", ["permutation", "choice", "categorical", "randint", "split", "truncated_normal"])
def test_batches_of_keys(name):
    args = {
        "permutation": (5,),
        "choice": (5, (2,), False),
        "categorical": (LOGITS, -1, (3, 2)),
        "randint": ((2,), 0, 9),
        "split": (),
        "truncated_normal": (-1.0, 1.0, (2,)),
    }[name]
    keys = rlx.random.split(KEY, 3)
    one = lambda k: getattr(rlx.random, name)(k, *args)  # noqa: E731
    same(rlx.vmap(one)(keys), np.stack([one(k) for k in keys]), ("ulp", 2), name)


def test_keys_of_traced_seeds_are_those_of_jax():
    seeds = np.arange(-1, 3, dtype=np.int32)
    want = jax.vmap(lambda s: jax.random.PRNGKey(s))(seeds)
    same(rlx.vmap(rlx.random.PRNGKey)(seeds), want, None, "keys")


def test_double_precision():
    with jax.enable_x64(True):
        for args in [("uniform", (50,), "float64", 0.1, 0.7), ("normal", (50,), "float64")]:
            name, *rest = args
            same(getattr(rlx.random, name)(KEY, *rest), getattr(jax.random, name)(KEY, *rest), ("rel", 1e-13), name)
        ours, theirs = (m.randint(KEY, (50,), 0, 10**12 + 7, "int64") for m in (rlx.random, jax.random))
        same(ours, theirs, None, "randint")


REFUSED = {
    "float": (TypeError, lambda r: r.randint(KEY, (3,), 0.5, 2)),
    "integers": (TypeError, lambda r: r.normal(KEY, (3,), "int32")),
    "keys": (TypeError, lambda r: r.split(r.split(KEY))),
    "seeds": (TypeError, lambda r: r.key(np.arange(3))),
    "rows": (TypeError, lambda r: r.permutation(KEY, 1.5)),
    "too many": (ValueError, lambda r: r.choice(KEY, 5, (6,), False)),
    "too many with p": (ValueError, lambda r: r.categorical(KEY, LOGITS[0], shape=(4,), replace=False)),
    "nothing": (ValueError, lambda r: r.choice(KEY, 0, (2,))),
    "other p": (ValueError, lambda r: r.choice(KEY, 3, (2,), p=P)),
    "shape": (ValueError, lambda r: r.categorical(KEY, LOGITS, shape=(4, 1))),
    "mean of another width": (ValueError, lambda r: r.multivariate_normal(KEY, P, WIDE)),
    "factor": (ValueError, lambda r: r.multivariate_normal(KEY, MEANS, WIDE, method="lu")),
    "kinds": (ValueError, lambda r: r.multinomial(KEY, 3, P, shape=(4, 5))),
    "p of integers": (TypeError, lambda r: r.bernoulli(KEY, 1)),
    "a covariance": (ValueError, lambda r: r.multivariate_normal(KEY, MEAN, np.eye(3, dtype=np.float32))),
    "a factor": (ValueError, lambda r: r.multivariate_normal(KEY, MEAN, COV, method="qr")),
    "one chance": (ValueError, lambda r: r.multinomial(KEY, 3, 0.5)),
    "below nothing": (ValueError, lambda r: r.orthogonal(KEY, -1)),
    "mode": (ValueError, lambda r: r.gumbel(KEY, mode="higher")),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refuses(what):
    error, call = REFUSED[what]
    with pytest.raises(error):
        call(rlx.random)


def test_gradients_by_parameters():
    f = lambda s: rnp.sum(rlx.random.lognormal(KEY, s, (5,)))  # noqa: E731
    g = lambda s: jax.numpy.sum(jax.random.lognormal(KEY, s, (5,), "float32"))  # noqa: E731
    same(rlx.grad(f)(np.float32(0.5)), jax.grad(g)(np.float32(0.5)), ("rel", 1e-5), "lognormal")


def test_factors_of_a_covariance():
    for method in ("cholesky", "eigh", "svd"):
        x = np.asarray(rlx.random.multivariate_normal(KEY, MEAN, COV, (20000,), method=method))
        assert np.abs(x.mean(0) - MEAN).max() < 0.04
        assert np.abs(np.cov(x.T) - COV).max() < 0.08
    flat = np.ones((2, 2), np.float32)  # semidefinite
    x = np.asarray(rlx.random.multivariate_normal(KEY, MEAN, flat, (9,), method="eigh")) - MEAN
    assert np.abs(x[:, 0] - x[:, 1]).max() < 1e-5


def test_outcomes_add_up():
    x = np.asarray(rlx.random.multinomial(KEY, np.array([3.0, 50.0]), np.array([[0, 1, 0], [1, 1, 2.0]])))
    assert x.sum(1).tolist() == [3, 50]
    assert x[0].tolist() == [0, 3, 0]


def test_implicit_gradients():
    """E x is a, so that the mean of dx / da is 1; parts of one move by nothing together."""
    slope = rlx.grad(lambda a: rlx.random.gamma(KEY, a, (4000,)).mean())
    for a in (0.3, 2.5, 80.0):
        assert abs(float(slope(a)) - 1) < 0.1
    beta = rlx.grad(lambda a, b: rlx.random.beta(KEY, a, b, (4000,)).mean(), argnums=(0, 1))(2.0, 3.0)
    assert np.allclose(beta, (3 / 25, -2 / 25), atol=0.01)  # of a / (a + b)
    dirichlet = rlx.jacrev(lambda a: rlx.random.dirichlet(KEY, a, (4,)))(np.array([0.5, 2.0, 4.0], np.float32))
    assert np.abs(np.asarray(dirichlet).sum(1)).max() < 1e-5
    assert float(rlx.grad(lambda r: rlx.random.binomial(KEY, 9.0, r, (5,)).sum())(0.5)) == 0
