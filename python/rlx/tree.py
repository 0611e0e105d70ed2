"""Trees of arrays: tuples, lists, dicts (by sorted keys), named tuples, dataclasses, None, and registered classes.

A field of a dataclass with metadata {"static": True} belongs to the treedef. The other fields are children.
"""

import builtins
import functools
from collections import namedtuple as _namedtuple

from . import _rlx
from ._names import accept_names as _accept_names, renamed_arguments as _renamed_arguments

TreeDef = _rlx.TreeDef


class DictKey(_namedtuple("DictKey", "key")):
    """A step of a path: the value of a dict key."""

    __slots__ = ()

    def __str__(self):
        return f"[{self.key!r}]"


class SequenceKey(_namedtuple("SequenceKey", "idx")):
    """A step of a path: an entry of a tuple or a list."""

    __slots__ = ()

    def __str__(self):
        return f"[{self.idx}]"


class GetAttrKey(_namedtuple("GetAttrKey", "name")):
    """A step of a path: a field of a named tuple or a dataclass."""

    __slots__ = ()

    def __str__(self):
        return f".{self.name}"


class FlattenedIndexKey(_namedtuple("FlattenedIndexKey", "key")):
    """A step of a path: a child of an instance of a registered class."""

    __slots__ = ()

    def __str__(self):
        return f"[<flat index {self.key}>]"


_STEPS = {"key": DictKey, "index": SequenceKey, "name": GetAttrKey, "child": FlattenedIndexKey}


def flatten(tree, is_leaf=None):
    """(leaves, treedef) of a tree. Objects for which is_leaf returns True are leaves."""
    return _rlx.tree_flatten(tree, is_leaf)


@_renamed_arguments(form="treedef")
def unflatten(treedef, leaves):
    """The tree of this structure with these leaves."""
    if not isinstance(treedef, TreeDef):
        raise TypeError(f"tree.unflatten(treedef, leaves): treedef is what tree.structure gives, got {treedef!r}")
    return treedef.unflatten(leaves)


def leaves(tree, is_leaf=None):
    """The leaves of a tree, in order."""
    return _rlx.tree_flatten(tree, is_leaf)[0]


def structure(tree, is_leaf=None):
    """The structure of a tree, without its leaves."""
    return _rlx.tree_flatten(tree, is_leaf)[1]


def _below(marks, other, what):
    """The subtrees of `other` at the marks of `marks`."""
    if isinstance(marks, _Mark):
        return [other]
    (kids, treedef), (others, other_treedef) = (_rlx.tree_flatten(x, lambda y, x=x: y is not x) for x in (marks, other))
    if treedef != other_treedef:
        raise ValueError(f"{what}: trees of different structures: {treedef} and {other_treedef}")
    return [x for kid, beside in zip(kids, others) for x in _below(kid, beside, what)]


def _beside(treedef, other, what):
    """The subtrees of `other` at the leaves of a treedef, one for each leaf."""
    found, other_treedef = _rlx.tree_flatten(other)
    if other_treedef == treedef:
        return found
    return _below(treedef.unflatten([_Mark(i) for i in range(treedef.num_leaves)]), other, what)


def map(f, tree, *others, is_leaf=None):
    """Applies f to the leaves of a tree, and to the subtrees of other trees in the same places."""
    first, treedef = _rlx.tree_flatten(tree, is_leaf)
    columns = [first, *(_beside(treedef, other, "tree.map") for other in others)]
    return treedef.unflatten([f(*row) for row in zip(*columns)])


def reduce(function, tree, *initializer, is_leaf=None):
    """Reduces the leaves: function(result so far, leaf) from the first leaf to the last, beginning with the initializer
    if one is given.
    """
    return functools.reduce(function, leaves(tree, is_leaf), *initializer)


def all(tree, *, is_leaf=None):
    """True if all leaves are true."""
    return builtins.all(leaves(tree, is_leaf))


def broadcast(prefix, full, is_leaf=None):
    """A tree with the structure of `full`, in which each leaf of `prefix` is repeated for all leaves below it."""
    first, treedef = _rlx.tree_flatten(prefix, is_leaf)
    parts = _beside(treedef, full, "tree.broadcast")
    return treedef.unflatten([map(lambda _, x=x: x, part, is_leaf=is_leaf) for x, part in zip(first, parts)])


def transpose(outer, inner, tree):
    """Transposes a tree of trees: the result has the structure `inner`, with trees of structure `outer` as leaves.

    inner None: the structure of the first inner tree.
    """
    if not isinstance(outer, TreeDef) or not isinstance(inner, (TreeDef, type(None))):
        raise TypeError("tree.transpose: outer and inner are treedefs, which tree.structure gives")
    parts = _beside(outer, tree, "tree.transpose")
    inner = structure(parts[0]) if inner is None else inner
    rows = [_beside(inner, part, "tree.transpose") for part in parts]
    return inner.unflatten([outer.unflatten(column) for column in zip(*rows)])


def flatten_with_path(tree, is_leaf=None):
    """([(path, leaf), ...], treedef). A path is a tuple of DictKey, SequenceKey, GetAttrKey, FlattenedIndexKey."""
    found, treedef = _rlx.tree_flatten(tree, is_leaf)
    paths = [tuple(_STEPS[kind](key) for kind, key in path) for path in treedef.paths()]
    return list(zip(paths, found)), treedef


def leaves_with_path(tree, is_leaf=None):
    """[(path, leaf), ...] of a tree."""
    return flatten_with_path(tree, is_leaf)[0]


def map_with_path(f, tree, *others, is_leaf=None):
    """Applies f(path, leaf, ...) to the leaves of a tree, and to the subtrees of other trees in the same places."""
    pairs, treedef = flatten_with_path(tree, is_leaf)
    columns = [_beside(treedef, other, "tree.map_with_path") for other in others]
    return treedef.unflatten([f(*pair, *row) for pair, *row in zip(pairs, *columns)])


def keystr(path, *, simple=False, separator=""):
    """A path as text: ['layers'][0].w; with simple=True and the separator "/": layers/0/w."""
    return separator.join(str(step[0]) if simple else str(step) for step in path)


def register(cls, flatten, unflatten):
    """Registers a class, so that its instances are trees: flatten(x) returns (children, static), unflatten(static,
    children) an instance.
    """
    _rlx.register_tree(cls, flatten, unflatten)
    return cls


def spread(prefix, treedef, what):
    """One entry of `prefix` for each leaf of this treedef. An entry of a subtree is repeated for its leaves."""
    count = treedef.num_leaves
    if prefix is None or isinstance(prefix, int):
        return [prefix] * count
    marks = treedef.unflatten([_Mark(i) for i in range(count)])
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
    if type(prefix) is type(marks) and not isinstance(marks, _Mark):  # dataclasses and registered classes
        (parts, treedef), (below, marks_treedef) = (
            _rlx.tree_flatten(x, lambda y, x=x: y is not x) for x in (prefix, marks)
        )
        if treedef != marks_treedef:
            raise ValueError(
                f"{what}: {prefix!r} and the values differ in their fields that are no arrays, or in structure"
            )
        for p, m in zip(parts, below):
            _spread(p, m, out, what)
        return
    raise TypeError(
        f"{what}: {prefix!r} does not follow the structure of the values; give an int, None, or a tree like theirs"
    )


_accept_names(globals())
