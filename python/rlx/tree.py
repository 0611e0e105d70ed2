"""Trees of arrays: tuples, lists, dicts (by sorted keys), named tuples, dataclasses, None, and registered classes.

A field of a dataclass with metadata {"static": True} is part of the tree's form; the other fields are its children.
"""

import builtins
import functools
from collections import namedtuple

from . import _rlx

TreeDef = _rlx.TreeDef


class DictKey(namedtuple("DictKey", "key")):
    """A step of a path: the value of a key."""

    __slots__ = ()

    def __str__(self):
        return f"[{self.key!r}]"


class SequenceKey(namedtuple("SequenceKey", "idx")):
    """A step of a path: the entry of a tuple or a list at a place."""

    __slots__ = ()

    def __str__(self):
        return f"[{self.idx}]"


class GetAttrKey(namedtuple("GetAttrKey", "name")):
    """A step of a path: the field of a named tuple or a dataclass."""

    __slots__ = ()

    def __str__(self):
        return f".{self.name}"


class FlattenedIndexKey(namedtuple("FlattenedIndexKey", "key")):
    """A step of a path: the child of an instance of a registered class."""

    __slots__ = ()

    def __str__(self):
        return f"[<flat index {self.key}>]"


_STEPS = {"key": DictKey, "index": SequenceKey, "name": GetAttrKey, "child": FlattenedIndexKey}


def flatten(tree, is_leaf=None):
    """(leaves, form) of a tree; what is_leaf says True of is a leaf, whatever it is."""
    return _rlx.tree_flatten(tree, is_leaf)


def unflatten(form, leaves):
    """The tree of this form with these leaves."""
    if not isinstance(form, TreeDef):
        raise TypeError(f"tree.unflatten(form, leaves): the form is what tree.structure gives, got {form!r}")
    return form.unflatten(leaves)


def leaves(tree, is_leaf=None):
    """The leaves of a tree, in order."""
    return _rlx.tree_flatten(tree, is_leaf)[0]


def structure(tree, is_leaf=None):
    """The form of a tree without its leaves."""
    return _rlx.tree_flatten(tree, is_leaf)[1]


def _below(marks, other, what):
    """What stands in a tree at the place of each mark of another one."""
    if isinstance(marks, _Mark):
        return [other]
    (kids, form), (others, other_form) = (_rlx.tree_flatten(x, lambda y, x=x: y is not x) for x in (marks, other))
    if form != other_form:
        raise ValueError(f"{what}: trees of different forms: {form} and {other_form}")
    return [x for kid, beside in zip(kids, others) for x in _below(kid, beside, what)]


def _beside(form, other, what):
    """What stands in a tree at the places of a form's leaves, one entry for each: leaves, or trees below them."""
    found, other_form = _rlx.tree_flatten(other)
    if other_form == form:
        return found
    return _below(form.unflatten([_Mark(i) for i in range(form.num_leaves)]), other, what)


def map(f, tree, *others, is_leaf=None):
    """f of the leaves of one tree, or of them and what stands at their places in other trees."""
    first, form = _rlx.tree_flatten(tree, is_leaf)
    columns = [first, *(_beside(form, other, "tree.map") for other in others)]
    return form.unflatten([f(*row) for row in zip(*columns)])


def reduce(function, tree, *initializer, is_leaf=None):
    """function(so far, leaf) from the first leaf to the last, from an initializer on if one is given."""
    return functools.reduce(function, leaves(tree, is_leaf), *initializer)


def all(tree, *, is_leaf=None):
    """Whether all leaves are true."""
    return builtins.all(leaves(tree, is_leaf))


def broadcast(prefix, full, is_leaf=None):
    """A tree like `full`: each leaf of `prefix` at all places below its own."""
    first, form = _rlx.tree_flatten(prefix, is_leaf)
    parts = _beside(form, full, "tree.broadcast")
    return form.unflatten([map(lambda _, x=x: x, part, is_leaf=is_leaf) for x, part in zip(first, parts)])


def transpose(outer, inner, tree):
    """A tree of trees the other way round: of form `inner` with trees of form `outer` as its leaves.

    inner None: the form of the first tree inside.
    """
    parts = _beside(outer, tree, "tree.transpose")
    inner = structure(parts[0]) if inner is None else inner
    rows = [_beside(inner, part, "tree.transpose") for part in parts]
    return inner.unflatten([outer.unflatten(column) for column in zip(*rows)])


def flatten_with_path(tree, is_leaf=None):
    """([(path, leaf), ...], form): a path is a tuple of DictKey, SequenceKey, GetAttrKey, FlattenedIndexKey."""
    found, form = _rlx.tree_flatten(tree, is_leaf)
    paths = [tuple(_STEPS[kind](key) for kind, key in path) for path in form.paths()]
    return list(zip(paths, found)), form


def leaves_with_path(tree, is_leaf=None):
    """[(path, leaf), ...] of a tree."""
    return flatten_with_path(tree, is_leaf)[0]


def map_with_path(f, tree, *others, is_leaf=None):
    """f(path, leaf, ...) of the leaves of one tree and what stands at their places in other trees."""
    pairs, form = flatten_with_path(tree, is_leaf)
    columns = [_beside(form, other, "tree.map_with_path") for other in others]
    return form.unflatten([f(*pair, *row) for pair, *row in zip(pairs, *columns)])


def keystr(path, *, simple=False, separator=""):
    """A path as text: ['layers'][0].w, or with simple=True and a separator layers/0/w."""
    return separator.join(str(step[0]) if simple else str(step) for step in path)


def register(cls, flatten, unflatten):
    """Makes instances of `cls` trees: flatten(x) gives (children, static), unflatten(static, children) an x."""
    _rlx.register_tree(cls, flatten, unflatten)
    return cls


def spread(prefix, form, what):
    """One entry of `prefix` for each leaf of a tree of this form; an entry stands for all leaves below its place."""
    count = form.num_leaves
    if prefix is None or isinstance(prefix, int):
        return [prefix] * count
    marks = form.unflatten([_Mark(i) for i in range(count)])
    out = [None] * count
    _spread(prefix, marks, out, what)
    return out


class _Mark:
    __slots__ = ("index",)

    def __init__(self, index):
        self.index = index


def _fill(value, marks, out):
    for leaf in leaves(marks):
        out[leaf.index] = value


def _spread(prefix, marks, out, what):
    if prefix is None or isinstance(prefix, int):
        _fill(prefix, marks, out)
        return
    if isinstance(prefix, (tuple, list)) and isinstance(marks, (tuple, list)):
        if len(prefix) != len(marks):
            raise ValueError(f"{what}: {len(prefix)} entries for {len(marks)} values: {prefix!r}")
        for p, m in zip(prefix, marks):
            _spread(p, m, out, what)
        return
    if isinstance(prefix, dict) and isinstance(marks, dict):
        if prefix.keys() != marks.keys():
            raise ValueError(f"{what}: keys {sorted(prefix)} for values with keys {sorted(marks)}")
        for k, p in prefix.items():
            _spread(p, marks[k], out, what)
        return
    raise TypeError(
        f"{what}: {prefix!r} does not follow the form of the values; give an int, None, or a tree like theirs"
    )
