"""Trees by the names of jax.tree_util; rlx.tree has the same functions under shorter ones."""

import functools

from . import tree
from .tree import (  # noqa: F401
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    keystr,
)
from .tree import TreeDef as PyTreeDef  # noqa: F401
from .tree import all as tree_all
from .tree import broadcast as tree_broadcast
from .tree import flatten as tree_flatten
from .tree import flatten_with_path as tree_flatten_with_path
from .tree import leaves as tree_leaves
from .tree import leaves_with_path as tree_leaves_with_path
from .tree import map as tree_map
from .tree import map_with_path as tree_map_with_path
from .tree import reduce as tree_reduce
from .tree import structure as tree_structure
from .tree import transpose as tree_transpose
from .tree import unflatten as tree_unflatten
from ._names import accept_names as _accept_names

__all__ = """DictKey FlattenedIndexKey GetAttrKey Partial PyTreeDef SequenceKey all_leaves keystr register_dataclass
register_pytree_node register_pytree_node_class register_pytree_with_keys register_pytree_with_keys_class
register_static tree_all tree_broadcast tree_flatten tree_flatten_with_path tree_leaves tree_leaves_with_path tree_map
tree_map_with_path tree_reduce tree_structure tree_transpose tree_unflatten treedef_children
treedef_is_leaf treedef_tuple""".split()


def all_leaves(iterable, is_leaf=None):
    """True if all objects are leaves."""
    return all(len(found) == 1 and found[0] is x for x in iterable for found in [tree.leaves(x, is_leaf)])


def treedef_children(treedef):
    """The structures of the children of a structure."""
    if treedef_is_leaf(treedef):
        return []
    filled = treedef.unflatten([_Place() for _ in range(treedef.num_leaves)])
    kids, _ = tree.flatten(filled, is_leaf=lambda x: x is not filled)
    return [tree.structure(kid) for kid in kids]


class _Place:
    """A leaf that stands for any other."""


def treedef_tuple(treedefs):
    """The structure of a tuple of trees of these structures."""
    return tree.structure(tuple(t.unflatten([_Place() for _ in range(t.num_leaves)]) for t in treedefs))


def treedef_is_leaf(treedef):
    """True for the structure of one leaf."""
    return treedef == tree.structure(_Place())


def register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None):
    """Makes instances of a class trees: flatten_func(x) returns (children, static), unflatten_func(static, children) an
    instance. Paths number the children.
    """
    tree.register(nodetype, flatten_func, unflatten_func)


def register_pytree_node_class(cls):
    """A decorator of classes with the methods tree_flatten and, of the class, tree_unflatten."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func=None):
    """register_pytree_node with pairs (key, child) as children. Paths number the children."""

    def flatten(x):
        children, static = flatten_with_keys(x)
        return [child for _, child in children], static

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func)


def register_pytree_with_keys_class(cls):
    """A decorator of classes with the methods tree_flatten_with_keys and tree_unflatten."""
    plain = getattr(cls, "tree_flatten", None)
    flatten = None if plain is None else lambda x: x.tree_flatten()
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten, flatten)
    return cls


def register_dataclass(nodetype, data_fields=None, meta_fields=None, drop_fields=()):
    """Makes instances of a class trees of the fields data_fields; meta_fields are static. Both may be left out for
    dataclasses, whose fields with metadata {"static": True} are static.
    """
    if data_fields is None or meta_fields is None:
        import dataclasses

        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        meta_fields = [f.name for f in fields if f.metadata.get("static")] if meta_fields is None else meta_fields
        given = {*meta_fields, *(data_fields or ())}
        data_fields = [f.name for f in fields if f.name not in given] if data_fields is None else data_fields
    data_fields, meta_fields = tuple(data_fields), tuple(meta_fields)

    def flatten(x):
        return [getattr(x, f) for f in data_fields], tuple(getattr(x, f) for f in meta_fields)

    def unflatten(static, children):
        return nodetype(**dict(zip(data_fields, children)), **dict(zip(meta_fields, static)))

    tree.register(nodetype, flatten, unflatten)
    return nodetype


def register_static(cls):
    """Makes instances of a class trees without leaves; they need __eq__ and __hash__."""
    tree.register(cls, lambda x: ([], x), lambda static, children: static)
    return cls


class Partial(functools.partial):
    """functools.partial whose arguments are the leaves of a tree."""


tree.register(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)

_accept_names(globals())
