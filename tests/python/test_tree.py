"""rlx.tree and rlx.flatten_util beside JAX's, and the names of rlx that are JAX's for other ones of its own."""

import collections
import dataclasses
import operator

import jax
import jax.flatten_util
import numpy as np
import pytest

import rlx
import rlx.flatten_util

Pair = collections.namedtuple("Pair", "x y")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object


class Bag:
    def __init__(self, items):
        self.items = items


rlx.tree.register(Bag, lambda b: (b.items, None), lambda static, items: Bag(list(items)))
jax.tree_util.register_pytree_node(Bag, lambda b: (b.items, None), lambda static, items: Bag(list(items)))
TREE = {"b": [1, (2, None)], "a": Pair(3, {0: 4}), "d": Layer(5, [6]), "e": Bag([7, (8,)])}


def is_none(x):
    return x is None


def paths(t):
    """The paths of TREE as text, of the module jax.tree or rlx.tree."""
    keystr = t.keystr if t is rlx.tree else jax.tree_util.keystr
    found, _ = t.flatten_with_path(TREE)
    parts = [
        (repr(p) if t is rlx.tree else str(p), keystr(p), keystr(p, simple=True, separator="/"), x) for p, x in found
    ]
    return [p for p in parts if "Flattened" not in p[0]]  # a class without keys: its steps are printed differently


def nested(t):
    outer, inner = t.structure([0, 0]), t.structure({"a": 0, "b": 0})
    tree = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    return t.transpose(outer, inner, tree), t.transpose(outer, None, tree)


CASES = {
    "leaves": lambda t: (t.leaves(TREE), t.leaves(TREE, is_leaf=is_none)),
    "leaf in a leaf": lambda t: t.leaves(TREE, is_leaf=lambda x: isinstance(x, Layer))[4].b,
    "structure": lambda t: t.structure([1, None], is_leaf=is_none).num_leaves,
    "unflatten": lambda t: t.unflatten(t.structure((0, [0])), [1, 2]),
    "flatten": lambda t: t.flatten([1, None], is_leaf=is_none)[0],
    "map": lambda t: t.map(operator.add, {"a": 1, "b": (2,)}, {"a": 3, "b": (4,)}),
    "map with is_leaf": lambda t: t.map(lambda x, y: (x, y), [1, None], [2, [3]], is_leaf=is_none),
    "map of a prefix": lambda t: t.map(lambda x, y: (x, y), (1, 2), ([3, 4], 5)),
    "map keeps classes": lambda t: t.leaves(t.map(lambda x: -x, TREE)),
    "reduce": lambda t: (t.reduce(operator.sub, [1, 2, 3]), t.reduce(operator.sub, [1, 2, 3], 10)),
    "reduce with is_leaf": lambda t: t.reduce(lambda n, x: n + (x is None), [1, None], 0, is_leaf=is_none),
    "all": lambda t: (t.all([True, []]), t.all({"a": 0}), t.all([None], is_leaf=is_none)),
    "broadcast": lambda t: t.broadcast([1, 2], [{"a": 0}, (1, 2)]),
    "transpose": nested,
    "paths": paths,
    "leaves_with_path": lambda t: [x for _, x in t.leaves_with_path(TREE, is_leaf=is_none)],
    "map_with_path": lambda t: t.map_with_path(lambda p, x, y: (str(p[0].key), x, y), {"a": 1}, {"a": [2]}),
}


@pytest.mark.parametrize("case", CASES)
def test_is_what_jax_gives(case):
    assert CASES[case](rlx.tree) == CASES[case](jax.tree)


def test_steps_to_children_of_a_registered_class():
    path, leaf = rlx.tree.leaves_with_path(TREE)[-1]
    assert leaf == 8 and path[1] == rlx.tree.FlattenedIndexKey(1) and path[2] == rlx.tree.SequenceKey(0)
    assert rlx.tree.keystr(path) == jax.tree_util.keystr(jax.tree.leaves_with_path(TREE)[-1][0])


def test_refuses_trees_of_different_forms():
    for call in (
        lambda t: t.map(operator.add, (1, [2]), (3, 4)),
        lambda t: t.map(operator.add, {"a": 1}, {"b": 1}),
        lambda t: t.broadcast([1, 2], [1]),
        lambda t: t.transpose(t.structure([0, 0]), t.structure((0,)), [(1,), (2, 3)]),
    ):
        with pytest.raises(ValueError, match="different structures"):
            call(rlx.tree)
        with pytest.raises((ValueError, TypeError)):
            call(jax.tree)
    with pytest.raises(ZeroDivisionError):  # what is_leaf raises comes out
        rlx.tree.leaves([1], is_leaf=lambda x: 1 / 0)


def test_ravel_pytree():
    tree = {"a": np.ones((2, 2), np.float32), "b": np.arange(3, dtype=np.int32), "c": np.float32(7)}
    (ours, back), (theirs, _) = (m.flatten_util.ravel_pytree(tree) for m in (rlx, jax))
    assert ours.tolist() == theirs.tolist() and ours.dtype == theirs.dtype
    again = back(ours * 2)
    assert again["a"].tolist() == [[2, 2], [2, 2]] and again["b"].dtype == "int32" and again["c"].shape == ()
    f = lambda t: rlx.numpy.sum(rlx.flatten_util.ravel_pytree(t)[0] ** 2)  # noqa: E731
    assert rlx.grad(f)({"a": np.float32(3), "b": np.ones(2, np.float32)})["b"].tolist() == [2, 2]
    empty, back = rlx.flatten_util.ravel_pytree({})
    assert empty.shape == (0,) and back(empty) == {}
    with pytest.raises(ValueError, match="8 elements"):
        rlx.flatten_util.ravel_pytree(tree)[1](np.ones(7, np.float32))


def test_names_of_jax_for_functions_of_rlx():
    assert rlx.remat is rlx.checkpoint and rlx.jacobian is rlx.jacrev and rlx.ShapeDtypeStruct is rlx.ShapeDtype
    tree = {"a": rlx.array([1.0]), "b": [2, None, "text"]}
    assert rlx.block_until_ready(tree) is tree
    assert rlx.array([1.0]).block_until_ready().tolist() == [1]
