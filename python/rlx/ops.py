"""The op table as functions: rlx.ops.softmax(x, axis=-1), rlx.ops.gelu(x), rlx.ops.layer_norm(x, gamma, beta).

Every op of the table is a function with its name in graph texts; attributes are keywords. The functions are created at
first use. segment_sum, segment_prod, segment_max and segment_min are here too, as in jax.ops; they are composed of ops.
"""

from . import _rlx
from ._jit import cached_jit
from ._op import _frozen, _has_value

_by_name = None
_SEGMENTS = ("segment_max", "segment_min", "segment_prod", "segment_sum")


def _table():
    global _by_name
    if _by_name is None:
        _by_name = {}
        for record in _rlx.op_table():
            if record["leaf"] or record["level"] == "lir" or record["name"] in ("custom",):
                continue
            for name in record["names"]:
                _by_name[_python_name(name)] = (name, record)
    return _by_name


def _python_name(name):
    return name + "_" if name in ("if", "while", "not", "and", "or") else name


_TYPES = {"ints": "list of int", "floats": "list of float", "strs": "list of str", "shape": "tuple of int or Dim"}


def _document(name, record):
    lines = [record["what"], ""]
    operands = []
    for operand, optional in record["operands"]:
        operands.append(f"[{operand}]" if optional else operand)
    lines.append(
        "Operands: " + (", ".join(operands) or "none") + (" (the first may repeat)" if record["variadic"] else "")
    )
    for a in record["attrs"]:
        values = f": one of {', '.join(a['values'])}" if a["values"] else ""
        default = f" = {a['default']}" if a["default"] != "" else ""
        lines.append(f"{a['name']}{default}: {_TYPES.get(a['type'], a['type'])}{values}")
    dtypes, example = _rlx.op_example(name)
    lines.append("Dtypes: " + (", ".join(dtypes) or "those of its operands"))
    if example:
        lines.append("For example: " + example)
    return "\n".join(lines)


def _make(name, record):
    positional = [o for o, optional in record["operands"]]

    def call(*operands, **attrs):
        graph = attrs.pop("graph", None)
        if graph is not None:
            return _rlx.add_node(name, operands, attrs, graph)
        if _rlx.tracing() or any(isinstance(x, _rlx.Value) for x in operands):
            for k, v in attrs.items():
                if k not in positional and _has_value(v):
                    _frozen(v, name, k)
            return _rlx.add_node(name, operands, attrs)
        named = {k: v for k, v in attrs.items() if k in positional}
        static = {k: _frozen(v, name, k) for k, v in attrs.items() if k not in positional}
        key = (name, tuple(sorted(static.items())))
        run = cached_jit(key, lambda: lambda xs, named: _rlx.add_node(name, tuple(xs), {**static, **named}))
        return run(list(operands), named)

    call.__name__ = call.__qualname__ = _python_name(name)
    call.__doc__ = _document(name, record)
    return call


def __getattr__(name):
    if name in _SEGMENTS:
        from . import _segments

        return getattr(_segments, name)
    found = _table().get(name)
    if found is None or name.startswith("__"):
        import difflib

        near = difflib.get_close_matches(name, _table(), 1)
        raise AttributeError(f"there is no op {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    made = _make(*found)
    globals()[name] = made
    return made


def __dir__():
    return sorted([*_table(), *_SEGMENTS])
