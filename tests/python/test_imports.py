"""The import graph of the package, read from the source: it has no cycle.

Every import counts, those inside functions too. An import from outside of a package runs that package's `__init__`
first, so it counts as an import of the package and of the module. The bindings import Python modules by name; these
imports count for every module that imports the extension.
"""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2] / "python"
EXTENSION = "rlx._rlx"


def modules(root):
    """name -> file of every module of the package."""
    found = {}
    for file in sorted((root / "rlx").rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported_names(source, package):
    """The dotted names that a module of `package` imports, each with its line; `from a import b` gives a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def targets(name, known, importer):
    """The modules that importing `name` runs, but for those that hold the importer."""
    module = name
    while module and module not in known:
        module = module.rpartition(".")[0]
    while module:
        if module in known and module != importer and not importer.startswith(module + "."):
            yield module
        module = module.rpartition(".")[0]
    # `from .. import x` of an ancestor's own name, and not of a module below it, is a cycle.
    holder = name.rpartition(".")[0]
    if name not in known and holder in known and importer.startswith(holder + "."):
        yield holder


def import_graph(sources, extension_imports=()):
    """module -> {module: line}; sources are (file name, text) by module."""
    known = {*sources, EXTENSION}
    graph = {EXTENSION: {name: 0 for name in extension_imports}}
    for module, (file, text) in sources.items():
        package = module if file == "__init__.py" else module.rpartition(".")[0]
        edges = graph[module] = {}
        for name, line in imported_names(text, package):
            for target in targets(name, known, module):
                edges.setdefault(target, line)
    return graph


def a_cycle(graph):
    """A list of modules, each of which imports the next one, that begins and ends with the same; None without."""
    done, path = set(), []

    def visit(module):
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return None
        path.append(module)
        for target in graph.get(module, ()):
            found = visit(target)
            if found:
                return found
        path.pop()
        done.add(module)
        return None

    return next(filter(None, map(visit, graph)), None)


def test_no_module_imports_itself_by_way_of_others():
    sources = {name: (file.name, file.read_text()) for name, file in modules(ROOT).items()}
    assert len(sources) > 50
    by_name = re.compile(r'import_\("(rlx[\w.]*)"\)')
    called = {name for file in (ROOT / "bindings").iterdir() for name in by_name.findall(file.read_text())}
    graph = import_graph(sources, called)
    cycle = a_cycle(graph)
    steps = [f"{a}, line {graph[a][b]}, imports {b}" for a, b in zip(cycle, cycle[1:])] if cycle else []
    assert not cycle, "an import cycle: " + "; ".join(steps)


def test_cycles_are_found():
    def graph(**texts):
        return import_graph(
            {n.replace("__", "."): ("__init__.py" if n == "p" else "m.py", t) for n, t in texts.items()}
        )

    assert a_cycle(graph(p="from . import a, b", p__a="from .b import x", p__b="import os")) is None
    assert a_cycle(graph(p="", p__a="from .b import x", p__b="def f():\n    from . import a")) == ["p.a", "p.b", "p.a"]
    assert a_cycle(graph(p="from . import a", p__a="from . import version")) == ["p", "p.a", "p"]
    assert a_cycle(graph(p="", p__a="import p.b", p__b="from p.a import x")) == ["p.a", "p.b", "p.a"]


def test_a_module_inside_another_package_counts_as_that_package_too():
    sources = {
        "p": ("__init__.py", ""),
        "p.a": ("a.py", "from .q.low import x"),
        "p.q": ("__init__.py", "from .. import a"),
        "p.q.low": ("low.py", ""),
    }
    assert import_graph(sources)["p.a"] == {"p.q.low": 1, "p.q": 1}
    assert a_cycle(import_graph(sources)) == ["p.a", "p.q", "p.a"]
