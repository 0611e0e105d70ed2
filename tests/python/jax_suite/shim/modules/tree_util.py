"""jax.tree_util: the functions of rlx.tree under JAX's names."""

import functools

import rlx
from rlx import tree as _tree

tree_map, tree_leaves, tree_flatten, tree_unflatten = _tree.map, _tree.leaves, _tree.flatten, _tree.unflatten
tree_structure, tree_all, tree_reduce, tree_transpose = _tree.structure, _tree.all, _tree.reduce, _tree.transpose
tree_map_with_path, tree_flatten_with_path = _tree.map_with_path, _tree.flatten_with_path
tree_leaves_with_path, tree_broadcast, keystr = _tree.leaves_with_path, _tree.broadcast, _tree.keystr
DictKey, SequenceKey, GetAttrKey, FlattenedIndexKey = (
    _tree.DictKey,
    _tree.SequenceKey,
    _tree.GetAttrKey,
    _tree.FlattenedIndexKey,
)
Partial = getattr(_tree, "Partial", functools.partial)
PyTreeDef = type(_tree.structure(1))


def register_pytree_node(cls, flatten, unflatten, flatten_with_keys=None):
    _tree.register(cls, flatten, unflatten)


def register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten=None):
    def plain(x):
        children, static = flatten_with_keys(x)
        return tuple(c for _, c in children), static

    _tree.register(cls, flatten or plain, unflatten)


def register_pytree_node_class(cls):
    _tree.register(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_dataclass(cls, data_fields=None, meta_fields=None, drop_fields=()):
    import dataclasses

    if data_fields is None:
        marked = [(f.name, f.metadata.get("static", False)) for f in dataclasses.fields(cls) if f.init]
        data_fields = [n for n, static in marked if not static]
        meta_fields = [n for n, static in marked if static]

    def flatten(x):
        return tuple(getattr(x, n) for n in data_fields), tuple(getattr(x, n) for n in meta_fields)

    def unflatten(meta, data):
        return cls(**dict(zip(data_fields, data)), **dict(zip(meta_fields, meta)))

    _tree.register(cls, flatten, unflatten)
    return cls


def register_static(cls):
    _tree.register(cls, lambda x: ((), x), lambda x, _: x)
    return cls


def all_leaves(values, is_leaf=None):
    return all(not isinstance(v, (list, tuple, dict, type(None))) for v in values)


def treedef_is_leaf(treedef):
    return treedef == _tree.structure(1)


def tree_reduce_associative(f, tree, *, identity, is_leaf=None):
    return functools.reduce(f, rlx.tree.leaves(tree, is_leaf), identity)
