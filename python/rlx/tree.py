"""Trees of arrays: tuples, lists, dicts (by sorted keys), named tuples, dataclasses, None, and registered classes.

A field of a dataclass with metadata {"static": True} is part of the tree's form; the other fields are its children.
"""

from . import _rlx

TreeDef = _rlx.TreeDef


def flatten(tree):
    """(leaves, form) of a tree."""
    return _rlx.tree_flatten(tree)


def unflatten(form, leaves):
    """The tree of this form with these leaves."""
    return form.unflatten(leaves)


def leaves(tree):
    """The leaves of a tree, in order."""
    return _rlx.tree_flatten(tree)[0]


def structure(tree):
    """The form of a tree without its leaves."""
    return _rlx.tree_flatten(tree)[1]


def map(f, tree, *others):
    """f of the leaves of one tree, or of the leaves side by side of several trees of one form."""
    first, form = _rlx.tree_flatten(tree)
    columns = [first]
    for other in others:
        more, other_form = _rlx.tree_flatten(other)
        if other_form != form:
            raise ValueError(f"tree.map: trees of different forms: {form} and {other_form}")
        columns.append(more)
    return form.unflatten([f(*row) for row in zip(*columns)])


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
