"""Named batch axes, and the arguments of transforms that JAX has, against JAX."""

import dataclasses
import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

X = np.random.default_rng(0).standard_normal((4, 3))
CUBE = np.random.default_rng(1).standard_normal((4, 4, 2))
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
Z = np.array([1 + 1j, 0.3 - 2j])


def _normalized(m, np_):
    def f(v):
        mean = m.lax.pmean(v, "b")
        return (v - mean) / np_.sqrt(m.lax.pmean((v - mean) ** 2, "b") + 1e-5)

    return m.vmap(f, axis_name="b")(X)


def _grid(m, f):
    return m.vmap(m.vmap(f, axis_name="j"), axis_name="i")(X)


AXES = [
    lambda m, n: m.vmap(lambda v: v / m.lax.psum(v, "i"), axis_name="i")(X),
    lambda m, n: m.vmap(lambda v: m.lax.pmax(v, "i") + 3 * m.lax.pmin(v, "i"), axis_name="i")(X),
    lambda m, n: m.vmap(lambda v: v * m.lax.axis_index("i") + m.lax.axis_size("i"), axis_name="i")(X),
    lambda m, n: m.vmap(lambda v: m.lax.psum(1, "i") * v, axis_name="i")(X),
    lambda m, n: m.vmap(lambda v: m.lax.all_gather(v, "i", axis=1), axis_name="i")(X),
    lambda m, n: m.vmap(lambda v: m.lax.all_gather(v, "i", tiled=True), axis_name="i")(X),
    lambda m, n: m.vmap(lambda v: m.lax.ppermute(v, "i", RING), axis_name="i")(X),
    lambda m, n: m.vmap(lambda v: m.lax.pshuffle(v, "i", [2, 0, 3, 1]), axis_name="i")(X),
    lambda m, n: m.vmap(lambda v: m.lax.all_to_all(v, "i", 0, 1), axis_name="i")(CUBE),
    lambda m, n: m.vmap(m.vmap(lambda v: m.lax.all_to_all(v, "i", 0, 0), axis_name="i"), in_axes=2)(CUBE),
    lambda m, n: _grid(m, lambda v: m.lax.psum(v, "i") + 2 * m.lax.psum(v, "j") + m.lax.psum(v * v, ("i", "j"))),
    lambda m, n: _grid(m, lambda v: v * m.lax.axis_index(("i", "j"))),
    lambda m, n: _grid(m, lambda v: m.lax.all_gather(v, "i")),
    lambda m, n: m.vmap(m.vmap(lambda v: m.lax.psum(v, "i")), axis_name="i")(X),
    lambda m, n: m.vmap(m.grad(lambda v: (n.sin(m.lax.psum(v * v, "i")) * v).sum()), axis_name="i")(X),
    lambda m, n: m.grad(lambda x: m.vmap(lambda v: v * m.lax.psum(v * v, "i"), axis_name="i")(x).sum())(X),
    lambda m, n: m.vmap(m.grad(lambda v: (n.sin(m.lax.all_gather(v, "i")) * v[0]).sum()), axis_name="i")(X),
    lambda m, n: m.vmap(m.grad(lambda v: (n.sin(m.lax.ppermute(v, "i", RING)) * v[0]).sum()), axis_name="i")(X),
    lambda m, n: m.vmap(m.grad(lambda v: (n.sin(m.lax.all_to_all(v, "i", 0, 0)) * v[0]).sum()), axis_name="i")(CUBE),
    lambda m, n: m.vmap(lambda v: m.jvp(lambda v: m.lax.psum(v * v, "i"), (v,), (v,))[1], axis_name="i")(X),
    lambda m, n: m.vmap(lambda v: m.lax.scan(lambda c, t: (c + m.lax.psum(t, "i"), c), v.sum(), v)[1], axis_name="i")(
        X
    ),
    lambda m, n: m.vmap(lambda w, v: m.lax.psum(w, "i") + v, in_axes=(None, 0), axis_name="i")(X[0], X),
    lambda m, n: m.vmap(lambda v: m.lax.psum({"a": (v,)}, "i")["a"][0], 1, 1, axis_name="i")(X),
    lambda m, n: m.jit(m.vmap(lambda v: m.lax.psum(v, "i") + m.lax.axis_index("i"), axis_name="i"))(X),
    _normalized,
]


@pytest.mark.parametrize("case", AXES, ids=range(len(AXES)))
def test_named_axes(case):
    np.testing.assert_allclose(case(rlx, rnp), case(jax, jnp), rtol=1e-12, atol=1e-14)


def test_named_axes_that_are_not_there():
    for f in (lambda v: rlx.lax.psum(v, "k"), lambda v: rlx.lax.axis_index("k"), lambda v: rlx.lax.pmean(v, "k")):
        with pytest.raises(NameError, match=r"no axis is named 'k'; there are \['i'\]: .*axis_name='k'"):
            rlx.vmap(f, axis_name="i")(X)
        with pytest.raises(NameError, match="no axis is named 'k': give vmap the name"):
            f(X)
    with pytest.raises(TypeError, match="pmax over the axis 'i' has no derivative"):
        rlx.vmap(rlx.grad(lambda v: rlx.lax.pmax(v, "i").sum()), axis_name="i")(X)
    with pytest.raises(ValueError, match="an index is the destination of two pairs"):
        rlx.vmap(lambda v: rlx.lax.ppermute(v, "i", [(0, 1), (2, 1)]), axis_name="i")(X)
    partial = rlx.vmap(lambda v: rlx.lax.ppermute(v, "i", [(0, 1)]), axis_name="i")(X)
    assert np.array_equal(partial, np.stack([X[0] * 0, X[0], X[0] * 0, X[0] * 0]))


def _ruled(m, make):
    h = m.custom_vjp(lambda d: d["a"] * d["b"][0])
    h.defvjp(lambda d: (h(d), d["b"][0]), lambda r, ct: (make(7 * ct * r),))
    return m.grad(lambda d: h(d).sum())({"a": np.ones(2), "b": (np.ones(2),)})


def _by_name(m, kind):
    f = getattr(m, kind)(lambda mode, x: x * x, nondiff_argnames=("mode",))
    if kind == "custom_jvp":
        f.defjvp(lambda mode, p, t: (p[0] ** 2, t[0] * {"a": 100.0}[mode]))
    else:
        f.defvjp(lambda mode, x: (x * x, x), lambda mode, x, ct: (ct * {"a": 100.0}[mode],))
    return m.grad(lambda x: f("a", x))(2.0)


OPTIONS = [
    lambda m, n: m.grad(lambda z: n.sin(z) * z, holomorphic=True)(Z[0]),
    lambda m, n: m.value_and_grad(lambda z: (n.exp(z), z + 1), has_aux=True, holomorphic=True)(Z[1]),
    lambda m, n: m.grad(lambda a, b: n.exp(a * b), argnums=(0, 1), holomorphic=True)(Z[0], Z[1]),
    lambda m, n: m.vmap(m.grad(lambda z: z**3, holomorphic=True))(Z),
    lambda m, n: m.jacfwd(lambda z: n.sin(z) * z[0], holomorphic=True)(Z),
    lambda m, n: m.jacrev(lambda z: n.sin(z) * z[0], holomorphic=True)(Z),
    lambda m, n: m.hessian(lambda z: (z**3).sum(), holomorphic=True)(Z),
    lambda m, n: m.grad(lambda d: (d["x"] * d["i"]).sum(), allow_int=True)({"x": X[0], "i": np.arange(3)})["x"],
    lambda m, n: m.jvp(lambda x: (x * x, {"a": x}), (X,), (X[:, ::-1],), has_aux=True),
    lambda m, n: m.jit(lambda x: m.jvp(lambda x: (x * x, {"a": x}), (x,), (x,), has_aux=True))(X),
    lambda m, n: (lambda out, push, aux: (out, push(X), aux))(*m.linearize(lambda x: (x * x, -x), X, has_aux=True)),
    lambda m, n: m.jit(lambda x: m.linearize(lambda x: (x * x, -x), x, has_aux=True)[2])(X),
    lambda m, n: m.jvp(lambda x: (), (1.0,), (1.0,)),
    lambda m, n: m.jvp(lambda x: {"a": ()}, (1.0,), (1.0,)),
    lambda m, n: m.lax.map(lambda x: (x * 2, x.sum()), X, batch_size=3),
    lambda m, n: m.lax.map(lambda x: x * 2, X, batch_size=2),
    lambda m, n: m.lax.map(lambda x: x * 2, X, batch_size=9),
    lambda m, n: m.jit(m.grad(lambda x: m.lax.map(n.sin, x, batch_size=3).sum()))(X),
    lambda m, n: _ruled(m, lambda ct: {"a": ct, "b": None}),
    lambda m, n: _ruled(m, lambda ct: {"a": ct, "b": (None,)}),
    lambda m, n: _ruled(m, lambda ct: {"a": None, "b": (ct,)}),
    lambda m, n: _ruled(m, lambda ct: None),
    lambda m, n: _by_name(m, "custom_jvp"),
    lambda m, n: _by_name(m, "custom_vjp"),
    lambda m, n: m.grad(m.checkpoint(lambda x: n.sin(x @ x.T).sum(), policy=m.checkpoint_policies.dots_saveable))(X),
    lambda m, n: m.grad(m.checkpoint(lambda x: n.sin(x @ x.T).sum(), policy=m.checkpoint_policies.everything_saveable))(
        X
    ),
]


@pytest.mark.parametrize("case", OPTIONS, ids=range(len(OPTIONS)))
def test_options(case):
    got, want = case(rlx, rnp), case(jax, jnp)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def _closing(m, kind, w, i, d):
    """A function with rules that use values around it: an array, an integer and an entry of a dict."""
    if kind == "custom_vjp":
        f = m.custom_vjp(lambda v: v * w + i + d["k"])
        f.defvjp(lambda v: (f(v), v * w), lambda r, ct: (ct * w * 2 + 0 * r + i,))
    else:
        f = m.custom_jvp(lambda v: v * w + i + d["k"])
        f.defjvp(lambda p, t: (p[0] * w, t[0] * w * 3 + i * t[0]))
    return f


@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp"])
def test_rules_that_close_over_traced_values(kind):
    x = np.linspace(1, 2, 3)

    def results(m):
        loss = lambda v, w, i: _closing(m, kind, w, i, {"k": w * 2})(v).sum()  # noqa: E731
        yield m.jit(m.grad(loss))(x, x, 3)
        yield m.jit(m.vmap(m.grad(loss), in_axes=(0, None, 0)))(np.stack([x, -x]), x, np.arange(2))
        yield m.jit(m.vmap(m.grad(loss), in_axes=(None, 0, None)))(x, np.stack([x, -x]), 2)
        step = lambda w: lambda c, t: (c + m.grad(lambda u: loss(u, w, t))(c), t)  # noqa: E731
        yield m.jit(lambda v, w: m.lax.scan(step(w), v, v)[0])(x, x)
        if kind == "custom_jvp":
            yield m.jit(lambda v, w: m.jvp(lambda v: loss(v, w, 2), (v,), (w,))[1])(x, x)

    for got, want in zip(results(rlx), results(jax)):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    for transform in (rlx.grad, rlx.jacfwd):
        with pytest.raises(TypeError, match="with respect to a value that the function closes over"):
            transform(lambda v: _closing(rlx, kind, v, 1, {"k": v})(x).sum())(x)


def test_gradients_of_integers_are_zeros():
    grads = rlx.grad(lambda d: (d["x"] * d["i"]).sum(), allow_int=True)({"x": X[0], "i": np.arange(3)})
    assert np.array_equal(grads["i"], np.zeros(3))


@pytest.mark.parametrize(
    "call, what",
    [
        (lambda: rlx.grad(lambda z: z * z, holomorphic=True)(1.0), "holomorphic=True needs complex arguments"),
        (lambda: rlx.grad(lambda z: abs(z), holomorphic=True)(1j), "a gradient needs a complex scalar"),
        (lambda: rlx.grad(lambda z: z * z)(1j), "a gradient needs a real floating scalar"),
        (lambda: rlx.jacfwd(lambda z: z, holomorphic=True)(X), "holomorphic=True needs complex arguments"),
        (lambda: rlx.grad(lambda i: i * 1.0)(3), "derivatives need floating or complex arguments"),
        (lambda: rlx.lax.map(lambda x: x, X, batch_size=0), "batch_size must be a positive integer"),
        (lambda: rlx.checkpoint(lambda x: x, policy=print), "policy 'print'; rlx.checkpoint_policies has"),
        (lambda: rlx.custom_vjp(lambda x: x, nondiff_argnames="y"), r"has no argument 'y'; it has \['x'\]"),
    ],
)
def test_misuse(call, what):
    with pytest.raises((TypeError, ValueError), match=what):
        call()


@dataclasses.dataclass
class Moved:
    place: object
    speed: object
    unit: str = dataclasses.field(default="m", metadata={"static": True})


class Registered:
    def __init__(self, place, speed, unit="m"):
        self.place, self.speed, self.unit = place, speed, unit


class Named(typing.NamedTuple):
    place: object
    speed: object


rlx.tree.register(
    Registered, lambda x: ((x.place, x.speed), x.unit), lambda unit, children: Registered(*children, unit)
)


@pytest.mark.parametrize("make", [Moved, Registered, Named, lambda a, b: {"place": a, "speed": b}])
def test_axes_of_vmap_are_trees_of_any_class(make):
    get = lambda x, name: x[name] if isinstance(x, dict) else getattr(x, name)  # noqa: E731
    f = lambda x: make(get(x, "place") * get(x, "speed"), get(x, "speed"))  # noqa: E731
    moved = rlx.vmap(f, in_axes=(make(1, None),), out_axes=make(1, None))(make(X.T, X[0]))
    np.testing.assert_array_equal(get(moved, "place"), (X * X[0]).T)
    np.testing.assert_array_equal(get(moved, "speed"), X[0])
    inner = rlx.vmap(lambda x: get(x["a"][0], "place"), in_axes=({"a": [make(0, None)], "b": None},))
    np.testing.assert_array_equal(inner({"a": [make(X, 2.0)], "b": None}), X)
    with pytest.raises(TypeError, match="in_axes.*does not follow the structure"):
        rlx.vmap(f, in_axes=(make(0, None),))(X)
    with pytest.raises((TypeError, ValueError), match="axes"):
        rlx.vmap(f, in_axes=(make(0, make(0, 0)),))(make(X, X))


@pytest.mark.parametrize("make", [Moved, Registered])
def test_axes_of_vmap_with_other_static_fields(make):
    with pytest.raises(ValueError, match="in_axes.* fields that are no arrays"):
        rlx.vmap(lambda x: x.place, in_axes=(make(0, None, "km"),))(make(X, 1.0))
