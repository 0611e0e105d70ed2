"""Trees of arrays in safetensors files, whose names join the steps of a path by dots: "layers.0.weight"."""

from . import _rlx, tree


def _found_model(path):
    from . import hub  # its client of HTTP takes time to import

    return hub.find(path)


_rlx.set_model_finder(_found_model)  # for the models of the extension


def _names(tensors):
    """({name: array}, the names in the order of the leaves)."""
    pairs, _ = tree.flatten_with_path(tensors)
    named = {}
    for path, leaf in pairs:
        name = ".".join(str(step[0]) for step in path)
        if name in named:
            raise ValueError(f"two arrays of the tree have the name {name!r} in a safetensors file")
        if not name:
            raise TypeError("a safetensors file has names: give a dict or another tree of arrays, not one array")
        named[name] = leaf
    return named


def save_safetensors(path, tensors, metadata=None):
    """Writes a dict name -> array, or a tree of arrays, as a safetensors file. The array at tree["layers"][0] has the
    name "layers.0". metadata: strings for the header of the file.
    """
    if not isinstance(metadata, (dict, type(None))):
        raise TypeError(f"save_safetensors: metadata must be a dict of strings, got {metadata!r}")
    flat = isinstance(tensors, dict) and not any(isinstance(t, (dict, list, tuple)) for t in tensors.values())
    _rlx.save_safetensors(path, tensors if flat else _names(tensors), dict(metadata or {}))


def load_safetensors(path, like=None):
    """The arrays of a safetensors file, name -> array. They share the mapped file. like: a tree such as
    save_safetensors was given; the result has its structure, and arrays of its shapes.
    """
    found = _rlx.load_safetensors(path)
    if like is None:
        return found
    names = _names(like)
    missing = next((n for n in names if n not in found), None)
    if missing is not None:
        raise _rlx.NotFound(f"load_safetensors: the file has no array {missing!r}; it has {', '.join(sorted(found))}")
    for name, leaf in names.items():
        shape = getattr(leaf, "shape", None)
        if shape is not None and tuple(shape) != found[name].shape:
            raise _rlx.ShapeMismatch(
                f"load_safetensors: {name!r} has the shape {found[name].shape} in the file and {tuple(shape)} in `like`"
            )
    return tree.structure(like).unflatten([found[n] for n in names])
