#!/usr/bin/env python3
"""Writes the type stubs of rlx.numpy, nn, random, lax, image, scipy, signal and ops from their functions.

Needs rlx importable (PYTHONPATH=build/.../python). --check only says whether the files are up to date.
"""

import argparse
import inspect
import pathlib
import sys
import types

# Types of arguments by their names; what is not here follows from the default value.
BY_NAME = {
    "axis": "Axis",
    "axes": "Any",
    "dtype": "DTypeLike | None",
    "shape": "ShapeLike",
    "keepdims": "bool",
    "arrays": "Any",
    "x": "ArrayLike",
    "y": "ArrayLike",
    "a": "ArrayLike",
    "b": "ArrayLike",
    "key": "ArrayLike",
    "indices": "Any",
    "indexing": "str",
    "mode": "str",
    "where": "ArrayLike | None",
    "initial": "ArrayLike | None",
}
HEADER = """# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from {up} import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

"""


def type_of(name, parameter):
    default = parameter.default
    known = BY_NAME.get(name)
    if known:
        if default is None and "None" not in known and known != "Any" and known != "Axis":
            known += " | None"
        return known
    if isinstance(default, bool):
        return "bool"
    if isinstance(default, int):
        return "Any"
    if isinstance(default, float):
        return "Any"
    if isinstance(default, str):
        return "Any"
    return "Any"


def text_of(default):
    if default is inspect.Parameter.empty:
        return ""
    if type(default) in (bool, int, float, str) or default is None:  # an enumerator has no text that a stub takes
        if isinstance(default, float) and default != default or default in (float("inf"), float("-inf")):
            return " = ..."
        return f" = {default!r}"
    if default == ():
        return " = ()"
    return " = ..."


def signature(name, function, module):
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return f"def {name}(*args: Any, **kwargs: Any) -> Any: ...\n"
    parts, star = [], False
    for p in parameters:
        kind = type_of(p.name, p)
        if p.kind is p.VAR_POSITIONAL:
            parts.append(f"*{p.name}: Any")
            star = True
        elif p.kind is p.VAR_KEYWORD:
            parts.append(f"**{p.name}: Any")
        else:
            if p.kind is p.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            parts.append(f"{p.name}: {kind}{text_of(p.default)}")
    own = RESULTS_OF.get(module, {})
    result = getattr(function, "__annotations__", {}).get("return", None) or own.get(name) or RESULTS.get(name, "Array")
    line = f"def {name}({', '.join(parts)}) -> {result}: ..."
    if len(line) > 120:
        line = f"def {name}(\n    " + ",\n    ".join(parts) + f",\n) -> {result}: ..."
    return line + "\n"


# Results that are no single array.
MANY = "list[Array]"
RESULTS = {
    "shape": "tuple[int, ...]",
    "ndim": "int",
    "size": "int",
    "divmod": "tuple[Array, Array]",
    "split": MANY,
    "array_split": MANY,
    "hsplit": MANY,
    "vsplit": MANY,
    "dsplit": MANY,
    "meshgrid": MANY,
    "broadcast_arrays": MANY,
    "unstack": MANY,
    "broadcast_shapes": "tuple[int, ...]",
    "result_type": "dtype",
    "promote_types": "dtype",
    "issubdtype": "bool",
    "can_cast": "bool",
    "finfo": "Any",
    "iinfo": "Any",
    "vectorize": "Any",
    "isscalar": "bool",
    "iterable": "bool",
    "modf": "tuple[Array, Array]",
    "frexp": "tuple[Array, Array]",
    "unravel_index": "tuple[Array, ...]",
    "ix_": "tuple[Array, ...]",
    "tril_indices": "tuple[Array, Array]",
    "triu_indices": "tuple[Array, Array]",
    "diag_indices": "tuple[Array, ...]",
    "histogram": "tuple[Array, Array]",
    "nonzero": "Any",
    "where": "Any",
    "unique": "Any",
    "dtype": "Any",
    "ops": "Any",
}

TREES = """associative_scan composite cond custom_linear_solve custom_root dtype fori_loop map optimization_barrier
pbroadcast platform_dependent pswapaxes psum_scatter reduce scan sort stop_gradient switch while_loop"""
TREE_UTIL = """register_dataclass register_pytree_node register_pytree_node_class register_pytree_with_keys
register_pytree_with_keys_class register_static tree_broadcast tree_flatten tree_flatten_with_path tree_leaves
tree_leaves_with_path tree_map tree_map_with_path tree_reduce tree_structure tree_transpose tree_unflatten
treedef_children treedef_tuple"""
MAKERS = "constant uniform normal truncated_normal variance_scaling orthogonal delta_orthogonal".split() + [
    f"{name}_{kind}" for name in ("glorot", "xavier", "lecun", "he", "kaiming") for kind in ("normal", "uniform")
]
# Those of single modules.
RESULTS_OF = {
    "rlx.random": {"split": "Array", "key_impl": "str"},
    "rlx.lax": {
        **dict.fromkeys(TREES.split(), "Any"),
        **dict.fromkeys("approx_max_k approx_min_k top_k".split(), MANY),
        "sort_key_val": "tuple[Array, Array]",
    },
    "rlx.numpy.linalg": {**dict.fromkeys("eigh qr slogdet svd".split(), "Any"), "lstsq": "tuple[Array, ...]"},
    "rlx.lax.linalg": {
        **dict.fromkeys("eigh hessenberg lu qdwh qr schur svd tridiagonal".split(), "tuple[Array, ...]"),
        "eig": MANY,
    },
    "rlx.scipy.linalg": {
        **dict.fromkeys("lu lu_factor qr qr_multiply rsf2csf schur".split(), "tuple[Array, ...]"),
        **dict.fromkeys("eigh funm hessenberg svd".split(), "Any"),
        "cho_factor": "tuple[Array, bool]",
    },
    "rlx.scipy.optimize": {"minimize": "OptimizeResults"},
    "rlx.scipy.cluster.vq": {"vq": "tuple[Array, Array]"},
    "rlx.scipy.sparse.linalg": dict.fromkeys("bicgstab cg gmres".split(), "tuple[Any, None]"),
    "rlx.tree_util": {
        **dict.fromkeys(TREE_UTIL.split(), "Any"),
        **dict.fromkeys("all_leaves tree_all treedef_is_leaf".split(), "bool"),
        "keystr": "str",
    },
    "rlx.custom_derivatives": dict.fromkeys(
        "closure_convert custom_gradient custom_vjp_primal_tree_values linear_call".split(), "Any"
    ),
    "rlx.signal": {"next_fast_len": "int", "welch_peaks": "tuple[Array, Array]"},
    "rlx.scipy.special": dict.fromkeys("fresnel sici".split(), "tuple[Array, Array]"),
    "rlx.scipy.signal": {
        "csd": "tuple[Array, Array]",
        "welch": "tuple[Array, Array]",
        "stft": "tuple[Array, Array, Array]",
        "istft": "tuple[Array, Array]",
    },
    "rlx.nn": {"max_pool_with_indices": "tuple[Array, Array]", "batch_norm": "Any"},
    "rlx.nn.initializers": dict.fromkeys(MAKERS, "Callable[..., Array]"),
}


def stub(module, up):
    lines = [HEADER.format(up=up)]
    for name in sorted(getattr(module, "__all__", vars(module))):
        if name.startswith("_") or name == "dtype":  # imported by the header
            continue
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith("rlx."):
                lines.append(f"from . import {name} as {name}\n" if hasattr(module, "__path__") else f"{name}: Any\n")
        elif (
            isinstance(value, types.FunctionType)
            or callable(value)
            and not isinstance(value, type)
            and hasattr(value, "__wrapped__")
        ):
            lines.append(signature(name, value, module.__name__))
        elif isinstance(value, type):
            lines.append(f"{name}: Any\n")
        elif isinstance(value, (int, float)):
            lines.append(f"{name}: {type(value).__name__}\n")
        elif value is None:
            lines.append(f"{name}: None\n")
        elif type(value).__name__ == "dtype":
            lines.append(f"{name}: dtype\n")
        else:
            lines.append(f"{name}: Any\n")
    return "".join(lines)


def ops_stub(ops):
    lines = [HEADER.format(up=".")]
    lines += [f"def {name}(*operands: Any, **attrs: Any) -> Any: ...\n" for name in dir(ops)]
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    import rlx
    import rlx.custom_derivatives
    import rlx.image
    import rlx.lax
    import rlx.nn
    import rlx.numpy
    import rlx.random
    import rlx.scipy.cluster.vq
    import rlx.scipy.fft
    import rlx.scipy.integrate
    import rlx.scipy.interpolate
    import rlx.scipy.linalg
    import rlx.scipy.ndimage
    import rlx.scipy.optimize
    import rlx.scipy.signal
    import rlx.scipy.sparse
    import rlx.scipy.spatial.transform
    import rlx.scipy.special
    import rlx.scipy.stats
    import rlx.signal
    import rlx.tree_util

    root = pathlib.Path(__file__).resolve().parent.parent / "python" / "rlx"
    wanted = {}

    def add(module, name, up):
        folder = root / name
        if not folder.is_dir():
            wanted[root / f"{name}.pyi"] = stub(module, up)
            return
        wanted[folder / "__init__.pyi"] = stub(module, up + ".")
        for inner, part in vars(module).items():
            if isinstance(part, types.ModuleType) and part.__name__ == f"{module.__name__}.{inner}" and inner[0] != "_":
                add(part, f"{name}/{inner}", up + ".")

    add(rlx.numpy, "numpy", ".")
    add(rlx.nn, "nn", ".")
    add(rlx.random, "random", ".")
    add(rlx.lax, "lax", ".")
    add(rlx.scipy, "scipy", ".")
    add(rlx.signal, "signal", ".")
    add(rlx.image, "image", ".")
    add(rlx.tree_util, "tree_util", ".")
    add(rlx.custom_derivatives, "custom_derivatives", ".")
    wanted[root / "ops.pyi"] = ops_stub(rlx.ops)
    stale = []
    for path, text in wanted.items():
        if not path.exists() or path.read_text() != text:
            stale.append(path)
            if not args.check:
                path.write_text(text)
    for path in stale:
        print(("stale: " if args.check else "wrote ") + str(path.relative_to(root.parent.parent)))
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
