#!/usr/bin/env python3
"""Writes python/rlx/_argument_names.py: the names that NumPy, JAX and SciPy give to the arguments of functions that rlx
has under another name. Arguments correspond by their places.

Needs rlx, NumPy, JAX and SciPy importable. --check only says whether the file is up to date.
"""

import argparse
import importlib
import inspect
import pathlib
import sys

PEERS = {
    "numpy": ("numpy", "jax.numpy"),
    "numpy.linalg": ("numpy.linalg", "jax.numpy.linalg"),
    "numpy.fft": ("numpy.fft", "jax.numpy.fft"),
    "lax": ("jax.lax",),
    "lax.linalg": ("jax.lax.linalg",),
    "nn": ("jax.nn",),
    "nn.initializers": ("jax.nn.initializers",),
    "random": ("jax.random",),
    "image": ("jax.image",),
    "scipy.linalg": ("scipy.linalg", "jax.scipy.linalg"),
    "scipy.special": ("scipy.special", "jax.scipy.special"),
    "scipy.fft": ("scipy.fft", "jax.scipy.fft"),
    "scipy.ndimage": ("scipy.ndimage", "jax.scipy.ndimage"),
    "scipy.cluster.vq": ("scipy.cluster.vq", "jax.scipy.cluster.vq"),
    "scipy.signal": ("scipy.signal", "jax.scipy.signal"),
}
PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
HEAD = '''"""Names that NumPy, JAX and SciPy give to arguments: {function: {their name: ours}}.

Written by scripts/argument_names.py: do not edit.
"""

'''


def parameters(function):
    """The parameters of a function that have a place, and the names of all."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [], set()
    return [p.name for p in found if p.kind in PLACED], {p.name for p in found}


def table():
    """{function: {their name: ours}}, sorted."""
    out = {}
    for module, peers in PEERS.items():
        ours = importlib.import_module(f"rlx.{module}")
        for name, function in vars(ours).items():
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            home = function.__module__.removeprefix("rlx.").partition("._")[0]
            placed, every = parameters(function)
            for peer in peers:
                other = getattr(importlib.import_module(peer), name, None)
                if other is None or isinstance(other, type):
                    continue
                their_placed, _ = parameters(other)
                for mine, theirs in zip(placed, their_placed):
                    if mine != theirs and theirs not in {*every, "device"} and mine not in their_placed:
                        aliases = out.setdefault(f"{home}.{function.__name__}", {})
                        if aliases.setdefault(theirs, mine) != mine:
                            sys.exit(f"{module}.{name}: {theirs} is both {aliases[theirs]} and {mine}")
    return dict(sorted(out.items()))


def text():
    """The text of the file: functions whose arguments correspond alike share a line."""
    groups = {}
    for function, aliases in table().items():
        groups.setdefault(" ".join(f"{theirs}={mine}" for theirs, mine in sorted(aliases.items())), []).append(function)
    lines = [HEAD, "_GROUPS = (\n"]
    for aliases, functions in sorted(groups.items()):
        lines.append(f'    (\n        "{aliases}",\n        """')
        row = ""
        for f in functions:
            if row and len(row) + len(f) > 100:
                lines.append(row + "\n        ")
                row = ""
            row += " " * bool(row) + f
        lines.append(row + '""",\n    ),\n')
    lines.append(")\n")
    lines.append(
        'ALIASES = {f: dict(a.split("=") for a in aliases.split()) for aliases, fs in _GROUPS for f in fs.split()}\n'
    )
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    path = pathlib.Path(__file__).parent.parent / "python" / "rlx" / "_argument_names.py"
    new = text()
    if arguments.check:
        sys.exit(0 if path.exists() and path.read_text() == new else f"{path} is out of date")
    path.write_text(new)


if __name__ == "__main__":
    main()
