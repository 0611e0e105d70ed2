"""rlx.tree_util, custom_derivatives, gaussian_kde, devices by JAX's names, and the list of names that rlx lacks."""

import dataclasses
import importlib
import inspect
import pathlib
import re

import jax
import numpy as np
import pytest
import scipy.stats

import rlx
from rlx import custom_derivatives as cd
from rlx import random
from rlx import tree_util as tu
from rlx.scipy import stats

RNG = np.random.default_rng(0)


def test_trees():
    t = {"a": (1, 2), "b": [3, None]}
    for name in "tree_leaves tree_structure tree_flatten tree_leaves_with_path".split():
        ours, theirs = getattr(tu, name)(t), getattr(jax.tree_util, name)(t)
        assert len(str(ours)) > 2 and (name != "tree_leaves" or ours == theirs)
    assert tu.tree_map(lambda x, y: x + y, t, t) == jax.tree_util.tree_map(lambda x, y: x + y, t, t)
    assert tu.treedef_is_leaf(tu.tree_structure(1)) and not tu.treedef_is_leaf(tu.tree_structure(t))
    kids = tu.treedef_children(tu.tree_structure(t))
    assert kids == [tu.tree_structure((1, 2)), tu.tree_structure([3, None])]
    assert tu.all_leaves([1, 2.0]) and not tu.all_leaves([1, (2,)]) and not tu.all_leaves([None])


def test_classes_as_trees():
    class Pair:
        def __init__(self, x, y, name):
            self.x, self.y, self.name = x, y, name

    class Node(Pair):
        def tree_flatten(self):
            return (self.x, self.y), self.name

        @classmethod
        def tree_unflatten(cls, name, children):
            return cls(*children, name)

    class Keyed(Node):
        def tree_flatten_with_keys(self):
            return ((tu.GetAttrKey("x"), self.x), (tu.GetAttrKey("y"), self.y)), self.name

    @dataclasses.dataclass
    class Data:
        x: object
        y: object
        name: str = dataclasses.field(metadata={"static": True})

    tu.register_pytree_node(Pair, lambda p: ((p.x, p.y), p.name), lambda name, c: Pair(*c, name))
    tu.register_pytree_node_class(Node)
    tu.register_pytree_with_keys_class(Keyed)
    tu.register_dataclass(Data)
    for cls in (Pair, Node, Keyed, Data):
        out = rlx.jit(lambda p: type(p)(p.x * 2, p.y + 1, p.name))(cls(1.0, 2.0, "n"))
        assert (type(out), float(out.x), float(out.y), out.name) == (cls, 2, 3, "n")

    @tu.register_static
    @dataclasses.dataclass(frozen=True)
    class Setting:
        n: int

    assert tu.tree_leaves(Setting(3)) == []
    assert float(rlx.jit(lambda s, x: x * s.n)(Setting(3), 2.0)) == 6
    p = tu.Partial(lambda a, b, k: a * b + k, 3.0, k=1.0)
    assert float(rlx.jit(lambda p, b: p(b))(p, 2.0)) == 7 and len(tu.tree_leaves(p)) == 2


def test_rules_with_symbolic_zeros():
    def build(m, derivatives):
        @m.custom_vjp
        def f(x, y):
            return x * y

        def forward(x, y):
            assert isinstance(x, derivatives.CustomVJPPrimal)
            values = derivatives.custom_vjp_primal_tree_values((x, y))
            return x.value * y.value, values

        f.defvjp(forward, lambda kept, ct: (ct * kept[1] * 10, ct * kept[0] * 10), symbolic_zeros=True)

        @m.custom_jvp
        def g(x, y):
            return x * y

        def rule(primals, tangents):
            (x, y), (dx, dy) = primals, tangents
            known = lambda t, x: x * 0 if type(t) is derivatives.SymbolicZero else t  # noqa: E731
            return g(x, y), 10 * (known(dx, x) * y + x * known(dy, y))

        g.defjvp(rule, symbolic_zeros=True)
        return f, g

    for ours, theirs in zip(build(rlx, cd), build(jax, jax.custom_derivatives)):
        for k in (0, 1):
            assert float(rlx.grad(ours, k)(2.0, 3.0)) == float(jax.grad(theirs, k)(2.0, 3.0))


def test_linear_call():
    f = lambda r, x: cd.linear_call(lambda r, x: x * r, lambda r, ct: ct * r * 10, r, x)  # noqa: E731
    assert float(f(2.0, 3.0)) == 6 and float(rlx.grad(f, 1)(2.0, 3.0)) == 20
    assert float(rlx.jvp(lambda x: f(2.0, x), (3.0,), (1.0,))[1]) == 2
    assert float(rlx.grad(f, 0)(2.0, 3.0)) == 0
    assert cd.zero_from_primal(np.ones(3)).shape == (3,)
    assert rlx.jit(cd.zero_from_primal)(np.ones(3)).dtype == rlx.float64


def test_places():
    t = rlx.device_put({"a": np.ones(2), "b": 3.0})
    assert all(isinstance(x, rlx.Array) for x in rlx.tree.leaves(t))
    assert rlx.device_put(np.ones(2), "cpu").shape == (2,)
    assert isinstance(rlx.device_get(t)["a"], np.ndarray)
    with pytest.raises(TypeError, match="a device is a name"):
        rlx.device_put(1.0, device=object())
    assert rlx.jit(lambda x: rlx.device_put(x))(2.0) == 2
    assert (rlx.device_count(), rlx.process_count(), rlx.process_index(), rlx.default_backend()) == (1, 1, 0, "cpu")
    assert rlx.typeof(np.ones((2, 3), "f4")).shape == (2, 3) and rlx.local_devices() == rlx.devices()
    with rlx.named_scope("part"):
        assert rlx.named_call(np.sin, name="sine") is np.sin


def test_keys():
    k = random.key(3)
    assert random.wrap_key_data(random.key_data(k)).tolist() == k.tolist() == random.clone(k).tolist()
    assert random.key_impl(k) == "threefry2x32"
    with pytest.raises(NotImplementedError, match="threefry2x32"):
        random.wrap_key_data(k, impl="rbg")


# -- densities --


@pytest.mark.parametrize("bw", [None, "silverman", 0.4])
@pytest.mark.parametrize("d", [1, 2])
def test_density_estimates(d, bw):
    data, weights, points = RNG.standard_normal((d, 40)), RNG.random(40), RNG.standard_normal((d, 9))
    for w in (None, weights):
        ours, theirs = stats.gaussian_kde(data, bw, w), scipy.stats.gaussian_kde(data, bw, w)
        np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-10)
        np.testing.assert_allclose(ours.logpdf(points * 20), theirs.logpdf(points * 20), rtol=1e-10)
        np.testing.assert_allclose(ours.covariance, theirs.covariance, rtol=1e-12)
        np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs), rtol=1e-10)
        got = ours.integrate_gaussian(points[:, 0], np.eye(d))
        np.testing.assert_allclose(got, theirs.integrate_gaussian(points[:, 0], np.eye(d)), rtol=1e-10)
        if d == 1:
            np.testing.assert_allclose(ours.integrate_box_1d(-1, 0.5), theirs.integrate_box_1d(-1, 0.5), rtol=1e-10)
        np.testing.assert_allclose(rlx.jit(lambda k, p: k(p))(ours, points), theirs(points), rtol=1e-10)
    drawn = np.asarray(ours.resample(random.key(0), (20000,)))
    assert drawn.shape == (d, 20000)
    np.testing.assert_allclose(np.cov(drawn), np.cov(data, aweights=w) + np.asarray(ours.covariance), atol=0.08)
    slope = rlx.grad(lambda p: ours(p)[0])(points[:, :1])
    moved = [(theirs(points[:, :1] + s) - theirs(points[:, :1] - s))[0] / 2e-6 for s in 1e-6 * np.eye(d)[..., None]]
    np.testing.assert_allclose(np.asarray(slope)[:, 0], moved, rtol=1e-5)


def test_more_of_distributions():
    mu = np.array([0.0, 0.01, 1.0, 20.0, 499.0, 501.0, 1e6])
    np.testing.assert_allclose(stats.poisson.entropy(mu)[1:6], scipy.stats.poisson.entropy(mu[1:6]), rtol=1e-9)
    np.testing.assert_allclose(stats.poisson.entropy(mu)[6], np.log(2 * np.pi * np.e * 1e6) / 2 - 1 / 12e6, rtol=1e-12)
    assert float(stats.poisson.entropy(mu)[0]) == 0
    q = np.array([0.0, 0.3, 0.7, 0.71, 1.0, -0.1, 1.1, np.nan])
    np.testing.assert_array_equal(stats.bernoulli.ppf(q, 0.3), [0, 0, 0, 1, 1, np.nan, np.nan, np.nan])


# -- the names of JAX: each is there, or the page says why it is not --

MODULES = """ numpy numpy.linalg numpy.fft lax lax.linalg nn nn.initializers random tree tree_util flatten_util image
scipy.special scipy.linalg scipy.signal scipy.fft scipy.ndimage scipy.optimize scipy.integrate scipy.interpolate
scipy.cluster.vq scipy.spatial.transform scipy.sparse.linalg scipy.stats custom_derivatives""".split(" ")
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "names_of_jax.md"


def refused():
    """The names of the page, as patterns: {module: [pattern]}."""
    out = {}
    for modules, names in re.findall(r"^\| (`[^|]+) \| (`[^|]+) \|", PAGE.read_text(), re.M):
        for module in re.findall(r"`([^`]+)`", modules):
            out.setdefault(module.removeprefix("jax").lstrip("."), []).extend(re.findall(r"`([^`]+)`", names))
    return out


@pytest.mark.parametrize("module", " ".join(MODULES).split())
def test_every_public_name_is_here_or_refused(module):
    theirs = importlib.import_module(f"jax.{module}")
    try:
        ours = importlib.import_module(f"rlx.{module}")
    except ImportError:
        ours = None
    patterns = [re.compile(re.escape(p).replace(r"\*", r"\w+") + "$") for p in refused().get(module, [])]
    lacks = []
    for name in dir(theirs):
        if name.startswith("_") or inspect.ismodule(getattr(theirs, name, None)) or ours and hasattr(ours, name):
            continue
        if not any(p.match(name) for p in patterns):
            lacks.append(name)
    assert not lacks, f"jax.{module} has {lacks}: add them, or a line to docs/names_of_jax.md"
