#!/usr/bin/env python3
"""Writes docs/python_reference.md from the docstrings and signatures of rlx: python3 scripts/python_reference.py

Needs rlx importable (PYTHONPATH=build/.../python). --check only says whether the file is up to date. Signatures of the
extension's classes are those of python/rlx/__init__.pyi.
"""

import ast
import inspect
import pathlib
import re
import sys
import textwrap
import types

from reference_page import write_reference

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "python_reference.md"
HEADER = """# Python reference

Written by `scripts/python_reference.py` from the docstrings of the package; read [python.md](python.md) first.
"""
# The order of the first part; what is in none of these groups stands under "More", so nothing is forgotten.
GROUPS = {
    "Arrays": ["array", "asarray", "from_dlpack", "Array", "dtype", "dtypes", "devices", "block_until_ready"],
    "Compiled functions": [
        "jit",
        "JitFunction",
        "Lowered",
        "Program",
        "load",
        "trace",
        "eval_shape",
        "ShapeDtype",
        "ShapeDtypeStruct",
        "Dim",
    ],
    "Derivatives and batches": [
        "grad",
        "value_and_grad",
        "vjp",
        "jvp",
        "linearize",
        "jacfwd",
        "jacrev",
        "jacobian",
        "hessian",
        "hvp",
        "stop_gradient",
        "vmap",
    ],
    "Control flow": [
        "cond",
        "switch",
        "scan",
        "map",
        "fori_loop",
        "while_loop",
        "checkpoint",
        "remat",
        "custom_vjp",
        "custom_jvp",
    ],
    "Graphs and programs": ["Graph", "Value", "parse", "Session", "CompiledGraph", "Trace", "Report"],
    "Ops of your own": ["custom_op", "CustomOp", "pure_callback", "io_callback"],
    "Files and models": ["load_safetensors", "save_safetensors", "SentenceEncoder", "Reranker"],
}
# Classes that users get from functions, not from a constructor; their titles show no signature.
MADE = ["Report", "CustomOp", "JitFunction", "Lowered", "Program", "Value", "Dim", "CompiledGraph", "Array"]


def cut(doc):
    """A docstring without the signature that the extension puts first."""
    doc = inspect.cleandoc(doc or "")
    first, _, rest = doc.partition("\n")
    return rest.strip() if re.fullmatch(r"\w+\(.*\)( -> .*)?", first) else doc


def stub_signatures(file="__init__.pyi"):
    """class -> name -> signature without types, from the stub; properties have none."""
    found = {}
    tree = ast.parse((ROOT / "python" / "rlx" / file).read_text())
    for node in tree.body:
        body = node.body if isinstance(node, ast.ClassDef) else [node]
        names = found.setdefault(node.name if isinstance(node, ast.ClassDef) else "", {})
        for f in body:
            if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for a in [*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs, f.args.vararg, f.args.kwarg]:
                    if a is not None:
                        a.annotation = None
                fixed = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in f.decorator_list)
                if isinstance(node, ast.ClassDef) and not fixed:
                    f.args.args = f.args.args[1:]
                is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in f.decorator_list)
                text = ast.unparse(f.args)
                names.setdefault(f.name, None if is_property else f"({text})")
    return found


def signature(f, name, stubs):
    if isinstance(f, types.FunctionType) or hasattr(f, "__wrapped__"):
        out = []
        for p in inspect.signature(f).parameters.values():
            out.append(str(p.replace(annotation=inspect.Parameter.empty)))
            if p.kind is p.KEYWORD_ONLY and not any(x.startswith("*") for x in out):
                out.insert(-1, "*")
        return f"({', '.join(out)})"
    return stubs.get(name) or "(*args, **kwargs)"


def paragraphs(doc):
    """Markdown of a docstring: what is indented is code, but for the second lines of an argument's description."""
    out, code = [], False
    for block in doc.split("\n\n"):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines):
            out.append("```\n" + inspect.cleandoc("\n" + block) + "\n```")
            continue
        items = []
        for line in lines:
            if line.startswith("    ") and items:
                items[-1] += " " + line.strip()
            elif ": " in line and all(word.isidentifier() for word in line.split(": ")[0].split(", ")):
                items.append("* " + line)
            elif items:
                items[-1] += " " + line.strip()
            else:
                items.append(line.strip())
        text = "\n".join(items)
        out.append(text.replace("\n*", "\n\n*", 1) if not text.startswith("*") else text)
    return "\n\n".join(wrapped(p) for p in out)


def wrapped(text):
    if text.startswith("```"):
        return text
    return "\n".join(
        (
            textwrap.fill(line, 130, subsequent_indent="  " if line.startswith("* ") else "", break_long_words=False)
            if line
            else ""
        )
        for line in text.split("\n")
    )


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def members(name, cls, stubs, missing):
    """The public methods and properties that are this class's own, as a table."""
    rows = []
    known = stubs.get(name, {})
    for attribute in sorted(n for n in dir(cls) if not n.startswith("_")):
        if name in ("Array", "Value") and attribute not in known:
            continue  # operators and functions of rlx.numpy as methods
        value = inspect.getattr_static(cls, attribute)
        plain = isinstance(value, (str, int, float, tuple))  # its doc is that of its class
        doc = f"`{value!r}`" if plain else cut(getattr(value, "__doc__", "") or "")
        if not doc and not isinstance(value, types.MemberDescriptorType):
            missing.append(f"{name}.{attribute}")
        sign = known.get(attribute) if attribute in known else None
        if sign is None and callable(value) and not isinstance(value, property):
            sign = "(...)" if attribute not in known else ""
        if isinstance(value, types.MemberDescriptorType):
            continue
        rows.append(f"| `{attribute}{cell(sign or '')}` | {cell(doc)} |")
    return "\n| member | |\n|---|---|\n" + "\n".join(rows) + "\n" if rows else ""


def core(rlx, stubs, missing):
    import rlx._custom
    import rlx._graph
    import rlx._jit

    hidden = {
        "Report": rlx._graph.Report,
        "CustomOp": rlx._custom.CustomOp,
        "JitFunction": rlx._rlx.JitFunction,
        "Lowered": rlx._jit.Lowered,
        "Program": rlx._jit.Program,
    }
    exported = {
        n: v
        for n, v in vars(rlx).items()
        if not n.startswith("_") and not isinstance(v, types.ModuleType) and type(v).__name__ != "dtype"
    }
    errors = {n: v for n, v in exported.items() if isinstance(v, type) and issubclass(v, Exception)}
    grouped = {n for names in GROUPS.values() for n in names}
    groups = dict(GROUPS)
    rest = [n for n in sorted(exported) if n not in grouped and n not in errors]
    if rest:
        groups["More"] = rest
    out = ["\n## rlx\n"]
    for title, names in groups.items():
        out.append(f"\n### {title}\n")
        for name in names:
            value = hidden[name] if name in hidden else exported[name]
            if name == "dtypes":
                each = ", ".join(f"`rlx.{'bool_' if d.name == 'bool' else d.name}`" for d in value)
                out.append(
                    "\n#### Dtypes\n\n"
                    + wrapped(
                        f"`rlx.dtypes` lists them: {each}. What takes a dtype takes its name, NumPy's "
                        f"dtype and Python's "
                        "`bool`, `int`, `float` too."
                    )
                    + "\n"
                )
                continue
            if getattr(value, "__name__", name) != name and value is exported.get(value.__name__):
                out.append(f"\n#### `rlx.{name}`\n\n`rlx.{value.__name__}`, by JAX's name.\n")
                continue
            is_class = isinstance(value, type)
            doc = cut(value.__doc__)
            if not doc:
                missing.append(name)
            if is_class:
                init = stubs.get(name, {}).get("__init__")
                title_text = f"class {name}" if name in MADE else f"{name}{init or ''}"
            else:
                title_text = name + signature(value, name, stubs.get("", {}))
            package = "rlx." if hasattr(rlx, name) else ""  # what only functions make is no name of the package
            heading = f"`rlx.{title_text}`".replace("`rlx.class ", f"class `{package}")
            out.append(f"\n#### {heading}\n\n{paragraphs(doc)}\n")
            if is_class:
                out.append(members(name, value, stubs, missing))
    out.append("\n### Exceptions\n\n| exception | is also | when |\n|---|---|---|\n")
    for name, value in errors.items():
        also = ", ".join(b.__name__ for b in value.__bases__ if b not in (rlx.Error, Exception))
        out.append(f"| `{name}` | {f'`{also}`' if also else ''} | {cell(value.__doc__)} |\n")
    return out


def functions(module, title):
    """One line for each function of a module; other names of a function stand with its first one."""
    first = {}
    rows, aliases = {}, {}
    public = getattr(module, "__all__", vars(module))
    for name in sorted(public, key=lambda n: (n != getattr(vars(module)[n], "__name__", n), n)):
        value = vars(module)[name]
        if name.startswith("_") or isinstance(value, (types.ModuleType, type)) or not callable(value):
            continue
        if not getattr(value, "__module__", "").startswith("rlx") and not hasattr(value, "__wrapped__"):
            continue
        if type(value).__name__ == "dtype":
            continue
        if id(value) in first:
            aliases.setdefault(first[id(value)], []).append(name)
            continue
        first[id(value)] = name
        rows[name] = value
    out = [f"\n## {title}\n\n{paragraphs(inspect.cleandoc(module.__doc__ or ''))}\n\n| function | |\n|---|---|\n"]
    for name in sorted(rows):
        # Whole, a table has one line for each: what arguments mean stands behind the first paragraph.
        doc = inspect.cleandoc(rows[name].__doc__ or "")
        also = f" Also {', '.join(f'`{a}`' for a in aliases[name])}." if name in aliases else ""
        out.append(f"| `{name}{cell(signature(rows[name], name, {}))}` | {cell(doc)}{also} |\n")
    return out


def in_full(module, file, missing):
    """A module of few functions and classes, whose stub is written by hand."""
    stubs = stub_signatures(file)
    out = [f"\n## {module.__name__}\n\n{paragraphs(inspect.cleandoc(module.__doc__))}\n"]
    for name in module.__all__:
        value = vars(module)[name]
        if name in ("SentenceEncoder", "Reranker"):  # also rlx's own
            continue
        if not value.__doc__:
            missing.append(f"{module.__name__}.{name}")
        own = stubs.get(name, {})
        sign = (own.get("__init__") or own.get("__new__")) if isinstance(value, type) else signature(value, name, {})
        title = f"`{module.__name__}.{name}{sign}`" if sign else f"class `{module.__name__}.{name}`"
        out.append(f"\n#### {title}\n\n{paragraphs(cut(value.__doc__))}\n")
        if isinstance(value, type):
            out.append(members(name, value, stubs, missing))
    return out


def submodules(package):
    """The public modules of a package, as rlx.numpy.linalg."""
    found = [v for n, v in sorted(vars(package).items()) if isinstance(v, types.ModuleType) and not n.startswith("_")]
    own = [m for m in found if m.__name__.startswith(package.__name__ + ".") and "._" not in m.__name__]
    return [m for part in own for m in (submodules(part) or [part])]


def ops(module):
    out = [f"\n## rlx.ops\n\n{paragraphs(inspect.cleandoc(module.__doc__))}\n\n"]
    out.append("[ops.md](ops.md) says what each gives, `help(rlx.ops.softmax)` its operands and dtypes.\n\n")
    out.append(wrapped(", ".join(f"`{n}`" for n in dir(module))) + "\n")
    return out


def text():
    import rlx
    import rlx.custom_derivatives
    import rlx.debug
    import rlx.flatten_util
    import rlx.formats
    import rlx.hub
    import rlx.image
    import rlx.lax.linalg
    import rlx.models
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
    import rlx.text
    import rlx.tree_util

    stubs = stub_signatures()
    stubs["Array"] = {**stubs.get("_Operators", {}), **stubs["Array"]}
    missing = []
    parts = [HEADER, *core(rlx, stubs, missing)]
    libraries = (
        rlx.numpy,
        *submodules(rlx.numpy),
        rlx.nn,
        *submodules(rlx.nn),
        rlx.random,
        rlx.lax,
        *submodules(rlx.lax),
        rlx.image,
        rlx.signal,
        *(inner for module in submodules(rlx.scipy) for inner in submodules(module) or [module]),
    )
    for module in (rlx.tree, rlx.tree_util, rlx.flatten_util, rlx.custom_derivatives, rlx.debug, *libraries):
        parts += functions(module, module.__name__)
    for module, file in (
        (rlx.models, "models.pyi"),
        (rlx.hub, "hub.pyi"),
        (rlx.text, "text.pyi"),
        (rlx.formats.gguf, "formats/gguf.pyi"),
    ):
        parts += in_full(module, file, missing)
    parts += ops(rlx.ops)
    page = "".join(parts)
    while "\n\n\n" in page:
        page = page.replace("\n\n\n", "\n\n")
    return page, [f"no docstring: rlx.{name}" for name in missing]


if __name__ == "__main__":
    sys.exit(write_reference(__doc__, PAGE, text))
