"""Python's numbers beside arrays of float64: at once, compiled, and as arguments they keep all of their digits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

X = np.random.default_rng(0).normal(size=(4, 5))
EXPRESSIONS = (
    """
x * .3; x + .3; x % .3; x // .3; x ** .3; .3 ** x; 1 / (1 + m.exp(-x)); m.fmod(x, .3); divmod(x, .3)
m.clip(x, -.3, .3); m.where(x > 0, x, .3); m.maximum(x, .3); m.full_like(x, .3); m.full((2,), .3, "float64")
m.full(2, .3, dtype="float64"); m.pad(x, 1, constant_values=.3); x.at[0].set(.3); x.at[0].add(.3)
x.at[0].multiply(.3); m.arctan2(x, .3); m.hypot(x, .3); m.logaddexp(x, .3); m.copysign(.3, x)
m.select([x > 0], [x], .3); m.quantile(x, .3); m.percentile(x, 30.3); m.polyval(x[0], .3)
m.linspace(0., .3, 7, dtype="float64"); m.arange(0, 1, .1, dtype="float64"); m.asarray(.3, "float64")
m.append(x, .3); m.insert(x[0], 1, .3); m.stack([x[0, 0], .3]); m.array([x[0, 0], .3, 2])
m.array([[x[0, 0], .3], [x[1, 1], 1.]]); m.gradient(x[0], .3); m.trapezoid(x, dx=.3); m.nan_to_num(x, nan=.3)
m.heaviside(x, .3); x * (.1 + .2j); m.array([.1, .2], "float64") * x[0, 0]
""".strip()
    .replace("\n", ";")
    .split(";")
)


def results(tree):
    return [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(tree)]


@pytest.mark.parametrize("text", [e.strip() for e in EXPRESSIONS])
def test_digits(text):
    def f(m):
        return lambda x: eval(text, {"m": m, "x": x})

    want = results(f(jnp)(jnp.asarray(X)))
    for made in (f(rnp)(rlx.array(X)), rlx.jit(f(rnp))(X)):
        made = rlx.tree.leaves(made)
        assert len(made) == len(want)
        for g, w in zip(made, want):
            assert g.dtype.name == w.dtype.name
            np.testing.assert_allclose(np.asarray(g), w, rtol=1e-14, atol=1e-300)


def test_numbers_as_arguments():
    f = rlx.jit(lambda x, a: x * a)
    assert f(X, 0.1).tolist() == (X * 0.1).tolist()
    assert f(X.astype(np.float32), 0.1).dtype == rlx.float32  # they stay weak
    assert f(0.1, X).tolist() == (X * 0.1).tolist()
    assert f(X, 0.1j).tolist() == (X * 0.1j).tolist()
    assert (
        rlx.jit(lambda t: t["x"] * t["a"], dims={"t.x": ("n", None)})({"x": X, "a": 0.1}).tolist() == (X * 0.1).tolist()
    )
    assert float(rlx.grad(lambda a, x: rnp.sum(a * x))(0.1, X)) == pytest.approx(X.sum(), rel=1e-7)
    assert f(rlx.array([1, 2]), 0.5).dtype == rlx.float32  # without an array of float64 nothing is


@pytest.mark.parametrize(
    "f, at",
    [
        (lambda m: lambda v: m.logaddexp(v, 0.0), 0.0),
        (lambda m: lambda v: m.logaddexp2(v, 0.0), 0.0),
        (lambda m: lambda v: m.logaddexp(v, -v), 0.0),
        (lambda m: lambda v: m.hypot(v, 1.0), 0.0),
        (lambda m: lambda v: m.abs(v + 1j), 1.0),
        (lambda m: lambda v: m.power(v + 2.0, v + 1.0), -1.0),
        (lambda m: lambda v: m.power(v, v), 1.0),
        (lambda m: lambda v: m.power(2.0, v), 0.0),
    ],
    ids=[
        "logaddexp",
        "logaddexp2",
        "logaddexp of v and -v",
        "hypot",
        "abs of complex",
        "power 0",
        "power 1",
        "exponent 0",
    ],
)
def test_higher_derivatives_at_ties_and_special_points(f, at):
    ours, theirs = f(rnp), f(jnp)
    for order in range(1, 4):
        ours, theirs = rlx.grad(ours), jax.grad(theirs)
        assert float(ours(np.float64(at))) == pytest.approx(float(theirs(at)), rel=1e-12, abs=1e-14), order


def test_mixed_derivatives_of_a_power():
    for x, y, orders, want in ((2.0, 0.0, (0, 1), 0.5), (2.0, 1.0, (0, 0, 1), 0.5), (0.0, 0.0, (0,), 0.0)):
        f = rnp.power
        for argument in orders:
            f = rlx.grad(f, argument)
        assert float(f(x, y)) == pytest.approx(want)


def test_hypot_where_both_are_equal():  # where JAX has 0.0589
    assert float(rlx.grad(rlx.grad(lambda v: rnp.hypot(v, 3.0)))(3.0)) == pytest.approx(9 / 18**1.5)


def test_a_graph_built_by_hand_takes_every_function():
    g = rlx.Graph("all")
    x, n = g.input("x", (3, 4)), g.state("n", np.int32(0))
    g.set_state("n", n + 1)
    outputs = {
        "row set": x.at[0].set(1.0),
        "row at n": x.at[n].set(x[2]),
        "stack": rnp.stack([n, np.int32(7)]),
        "scan": rlx.scan(lambda c, r: (c + r, c), rnp.zeros(4), x)[1],
        "cond": rlx.cond(n > 0, lambda v: v, lambda v: v * 2, x),
        "fori": rlx.fori_loop(0, 3, lambda i, c: c * 2, x),
        "vmap": rlx.vmap(lambda r: rnp.sum(r))(x),
        "grad": rlx.grad(lambda r: rnp.sum(r * r))(x),
        "jit": rlx.jit(lambda r: rnp.cumsum(r, axis=0))(x),
    }
    g.set_outputs(list(outputs.values()))
    program = rlx.Session().compile(g)
    X = np.arange(12, dtype=np.float32).reshape(3, 4)
    for run in range(2):
        got = dict(zip(outputs, map(np.asarray, program.run(X))))
        at_n = X.copy()
        at_n[run] = X[2]
        first = X.copy()
        first[0] = 1
        want = {
            "row set": first,
            "row at n": at_n,
            "stack": [run, 7],
            "scan": np.concatenate([np.zeros((1, 4)), np.cumsum(X, 0)[:-1]]),
            "cond": X if run else 2 * X,
            "fori": 8 * X,
            "vmap": X.sum(1),
            "grad": 2 * X,
            "jit": np.cumsum(X, 0),
        }
        for name, value in want.items():
            np.testing.assert_allclose(got[name], value, err_msg=name)


def test_numpy_types_as_dtypes():
    for t in (np.float32, np.float64, np.int8, np.dtype("float16"), float, int, bool):
        for made in (
            rnp.zeros(3, t),
            rnp.eye(2, dtype=t),
            rlx.array([0, 1]).astype(t),
            rnp.arange(3, dtype=t) if t is not bool else rnp.zeros(3, t),
            rlx.jit(lambda x, t=t: x.astype(t))(np.ones(2)),
        ):
            assert made.dtype == rlx.dtype(t)


def test_jax_takes_arrays_of_rlx():
    x = rlx.array(X)
    np.testing.assert_array_equal(np.asarray(jnp.asarray(x)), X)
    np.testing.assert_array_equal(np.asarray(jnp.asarray(rlx.array([1, 2], "bfloat16"))), [1, 2])


def _ruled(m):
    def product(v, k):
        return v * k

    by_vjp, by_jvp = m.custom_vjp(product), m.custom_jvp(product)
    by_vjp.defvjp(lambda v, k: (v * k, (v, k)), lambda r, ct: (ct * r[1], (ct * r[0]).sum()))
    by_jvp.defjvp(lambda p, t: (p[0] * p[1], t[0] * p[1] + p[0] * t[1]))
    return by_vjp, by_jvp


# Functions of v, an array of float64, that hand a Python number to a transform, a loop or a branch.
HANDED = {
    "jit": lambda m, v: m.jit(lambda v, k: v * k)(v, 0.3),
    "jit by name": lambda m, v: m.jit(lambda v, k: v * k["a"][0])(v, k={"a": [0.3]}),
    "vmap": lambda m, v: m.vmap(lambda v, k: v * k, in_axes=(0, None))(v, 0.3),
    "grad": lambda m, v: m.grad(lambda k, v: (v * k * k).sum())(0.3, v),
    "value_and_grad": lambda m, v: m.value_and_grad(lambda v, k: (v * k).sum(), argnums=(0, 1))(v, 0.3),
    "jvp": lambda m, v: m.jvp(lambda v, k: v * k, (v, 0.3), (v, 0.7)),
    "vjp": lambda m, v: m.vjp(lambda v, k: v * k[0], v, [0.3])[0],
    "linearize": lambda m, v: m.linearize(lambda v, k: v * k, v, 0.3)[1](v, 0.7),
    "jacrev": lambda m, v: m.jacrev(lambda k, v: v * k**3)(0.3, v),
    "jacfwd": lambda m, v: m.jacfwd(lambda k, v: v * k**3)(0.3, v),
    "checkpoint": lambda m, v: m.checkpoint(lambda v, k: v * k)(v, 0.3),
    "cond": lambda m, v: m.lax.cond(v[0] < 9, lambda v, k: v * k, lambda v, k: v, v, 0.3),
    "result of cond": lambda m, v: m.lax.cond(v[0] < 9, lambda v: 0.3, lambda v: v[0], v),
    "switch": lambda m, v: m.lax.switch(1, [lambda v, k: v, lambda v, k: v * k], v, 0.3),
    "carry beside rows": lambda m, v: m.lax.scan(lambda c, x: (c * 0.5 + x, c), 0.3, v),
    "carries": lambda m, v: m.lax.scan(lambda c, x: ((c[0], c[1] * c[0]), None), (0.3, v), None, length=2)[0],
    "fori_loop": lambda m, v: m.lax.fori_loop(0, 2, lambda i, c: (c[0], c[1] * c[0]), (0.3, v)),
    "while_loop": lambda m, v: m.lax.while_loop(
        lambda c: c[2] < 2, lambda c: (c[0], c[1] * c[0], c[2] + 1), (0.3, v, 0)
    )[:2],
    "custom_vjp": lambda m, v: _ruled(m)[0](v, 0.3),
    "grad of custom_vjp": lambda m, v: m.grad(lambda v: _ruled(m)[0](v, 0.3).sum())(v),
    "custom_jvp": lambda m, v: _ruled(m)[1](v, 0.3),
    "grad of custom_jvp": lambda m, v: m.grad(lambda v: _ruled(m)[1](v, 0.3).sum())(v),
}


@pytest.mark.parametrize("name", HANDED)
def test_digits_of_numbers_that_are_handed_on(name):
    f = lambda m: lambda v: HANDED[name](m, v)  # noqa: E731
    v = X[0]
    want = results(f(jax)(jnp.asarray(v)))
    for made in (f(rlx)(rlx.array(v)), rlx.jit(f(rlx))(v), rlx.vmap(f(rlx))(v[None])):
        made = rlx.tree.leaves(made)
        assert len(made) == len(want)
        for g, w in zip(made, want):
            assert g.dtype.name == w.dtype.name
            np.testing.assert_allclose(np.asarray(g).reshape(w.shape), w, rtol=1e-14)


ARGUMENTS = [(X[0], 0.3), (0.3, X[0]), (X[0], 0.3, X[1]), (X[0], X[1], 0.3), (0.3, X[0], X[1]), (X[0], 0.3, 0.7)]
ARGUMENTS += [([X[0], X[1]], 0.3), (X[0] * 1j, 0.3), (X[0], 0.3j)]


@pytest.mark.parametrize("module", ["numpy", "lax", "nn", "scipy.special"])
def test_functions_keep_digits_inside_a_trace_as_outside(module):
    """Every function that takes arrays of float64 and Python numbers gives in a trace what it gives at once."""
    import importlib

    of, tried = importlib.import_module(f"rlx.{module}"), set()
    for name in sorted(n for n in dir(of) if not n.startswith("_")):
        f = getattr(of, name)
        if not callable(f) or isinstance(f, type):
            continue
        for args in ARGUMENTS:
            arrays = [rlx.tree.map(lambda a: a if isinstance(a, (float, complex)) else rlx.array(a), a) for a in args]
            places = [i for i, a in enumerate(args) if not isinstance(a, (float, complex))]

            def traced(given, f=f, args=args, places=places):
                full = list(args)
                for i, x in zip(places, given):
                    full[i] = x
                return f(*full)

            try:
                at_once, inside = f(*arrays), rlx.jit(traced)([arrays[i] for i in places])
            except (TypeError, ValueError, AttributeError, NotImplementedError, IndexError, NameError):
                continue  # it takes no such arguments
            tried.add(name)
            for a, b in zip(results(at_once), results(inside), strict=True):
                assert a.dtype == b.dtype, (name, args)
                np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-13, err_msg=f"{name}{args}")
    assert len(tried) > {"numpy": 60, "lax": 20, "nn": 5, "scipy.special": 5}[module]


# Loops that begin with Python numbers, and whose bodies capture v, an array of float64.
BESIDE_CAPTURED = {
    "scan": lambda m, v: m.lax.scan(lambda c, _: (c * v[0], None), 0.3, None, length=2)[0],
    "scan, rows": lambda m, v: m.lax.scan(lambda c, x: (c * v[0] + x, c), 0.3, m.numpy.ones(3, "float32")),
    "scan, reverse": lambda m, v: m.lax.scan(lambda c, x: (c * v[x], c), 0.3, m.numpy.arange(3), reverse=True),
    "fori_loop": lambda m, v: m.lax.fori_loop(0, 2, lambda i, c: c * v[i], 0.3),
    "fori_loop, traced bounds": lambda m, v: m.lax.fori_loop(0, m.numpy.asarray(2), lambda i, c: c * v[i], 0.3),
    "while_loop": lambda m, v: m.lax.while_loop(lambda c: abs(c) < 1, lambda c: c + v[0] ** 2, 0.3),
    "one after the other": lambda m, v: m.lax.fori_loop(0, 3, lambda i, c: (c[0] * c[1], c[1] + v[0]), (0.3, 0.7)),
    "tree": lambda m, v: m.lax.fori_loop(0, 2, lambda i, c: {"a": c["a"] * v[0], "b": (c["b"][0] * v[1],)}, CARRY),
    "beside an array": lambda m, v: m.lax.fori_loop(0, 2, lambda i, c: (c[0] * c[1][0], c[1]), (0.3, v)),
    "complex": lambda m, v: m.lax.fori_loop(0, 2, lambda i, c: c * v[0], 0.3 + 0.1j),
    "integer": lambda m, v: m.lax.fori_loop(0, 2, lambda i, c: c * v[0], 3),
    "large": lambda m, v: m.lax.fori_loop(0, 2, lambda i, c: c * v[0], 1e200),
}
CARRY = {"a": 0.3, "b": (0.7,)}


@pytest.mark.parametrize("name", BESIDE_CAPTURED)
def test_digits_of_a_carry_beside_captured_arrays(name):
    f = lambda m, np_: BESIDE_CAPTURED[name](type("M", (), {"lax": m.lax, "numpy": np_}), np_.array(X[0]))  # noqa: E731
    want = results(f(jax, jnp))
    for made in (f(rlx, rnp), rlx.jit(lambda: f(rlx, rnp))(), rlx.vmap(lambda _: f(rlx, rnp), out_axes=None)(X)):
        for g, w in zip(rlx.tree.leaves(made), want, strict=True):
            assert g.dtype.name == w.dtype.name
            np.testing.assert_allclose(np.asarray(g), w, rtol=1e-14)


@pytest.mark.parametrize("place", [lambda f: f(), lambda f: rlx.jit(f)()], ids=["at once", "compiled"])
def test_a_carry_never_loses_its_fraction(place):
    """A Python number as carry takes the dtype of the result, but no float becomes an integer."""
    loop = lambda body, init: place(lambda: rlx.fori_loop(0, 1, body, init))  # noqa: E731
    assert loop(lambda i, c: c * 0.5, 0.3).dtype == rlx.float32
    assert loop(lambda i, c: c.astype("float16"), 0.3).dtype == rlx.float16
    assert loop(lambda i, c: c * 0.5, 3).dtype == rlx.float32
    for ends in (lambda i, c: rlx.array(3), lambda i, c: c.astype("int32")):
        with pytest.raises(TypeError, match="goes in as float32.* and comes out as int32"):
            loop(ends, 0.5)
    got = place(lambda: rlx.scan(lambda c, _: (7, c), 0.5, None, length=2))
    assert [g.tolist() for g in got] == [7.0, [0.5, 7.0]] and got[1].dtype == rlx.float32
