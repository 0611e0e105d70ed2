"""The files of Program.save: a checksum, a JSON head (names, trees), and the graph in its binary form.

A file may come from anywhere, so each part of the head is compared with the graph before a program is made of it.
"""

import json
import os
import stat

from . import _rlx, tree

MAGIC = b"RLXPROG2"  # then 16 bytes of checksum of all that follows, 8 bytes of size of the head, head, graph
OLD_MAGIC = b"RLXPROG1"  # without the checksum


def write(path, name, graph, in_names, in_specs, out_tree, out_weak):
    head = {
        "rlx": "program",
        "version": 2,
        "name": name,
        "inputs": [[n, [str(d) for d in s.shape], s.dtype.name, bool(s.weak_type)] for n, s in zip(in_names, in_specs)],
        "weak": [bool(w) for w in out_weak],
        "tree": _tree_to_json(out_tree),
    }
    text = json.dumps(head).encode()
    content = len(text).to_bytes(8, "little") + text + graph.to_bytes()
    _rlx.write_file(path, MAGIC + _rlx.checksum(content) + content)


def read(path):
    """(name, graph, in_names, in_types, out_tree, out_weak) of a file; a type is (shape, dtype, whether it is weak).

    Errors: FileNotFoundError; BadFile that names the file.
    """
    path = os.fspath(path)  # an integer would be the number of an open file, which this closes
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe or a device may never end
        kind = "a folder" if os.path.isdir(path) else "a device or a pipe"
        raise _rlx.BadFile(f"{path} is {kind}, expected a file that a program was saved to")
    with open(path, "rb") as f:
        data = f.read(32)
        if data[:7] == MAGIC[:7]:  # another file may be larger than the memory
            data += f.read()
    content = _content(path, data)
    size = int.from_bytes(content[:8], "little")
    if 8 + size > len(content):
        raise _rlx.BadFile(f"{path}: the file is cut off: its header alone takes {size} bytes, {len(content)} are left")
    graph_bytes = content[8 + size :]
    try:
        head = json.loads(bytes(content[8 : 8 + size]))
        if type(head) is not dict:
            raise ValueError("it is not an object")
        if head.get("version") not in (1, 2):
            raise _rlx.BadFile(
                f"{path}: written by a later rlx (format {head.get('version')!r}, this version reads 1 and 2)"
            )
        graph = _rlx.parse(bytes(graph_bytes), str(path))
        return (_name(head), graph, *_inputs(head, graph), *_results(head, graph))
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as e:
        if isinstance(e, _rlx.Error):
            raise
        raise _rlx.BadFile(f"{path}: the header is damaged ({e}); save the program again") from None


def _content(path, data):
    if data[:8] == MAGIC and len(data) >= 32:
        content = memoryview(data)[24:]
        if data[8:24] != _rlx.checksum(content):
            raise _rlx.BadFile(f"{path}: the file is damaged: its checksum does not match its content; save it again")
        return content
    if data[:8] == OLD_MAGIC and len(data) >= 16:
        return memoryview(data)[8:]
    if data[:7] == MAGIC[:7] and data[7:8] not in (b"", b"1", b"2"):
        raise _rlx.BadFile(f"{path}: written by a later rlx: its first bytes are {data[:8]!r}, expected {MAGIC!r}")
    raise _rlx.BadFile(f"{path}: not a program saved by rlx; rlx.parse reads graphs")


def _name(head):
    if type(head["name"]) is not str:
        raise ValueError("its name is no text")
    return head["name"]


def _inputs(head, graph):
    given, inputs = head["inputs"], [(n, graph.leaf(n)) for n in graph.inputs()]
    if type(given) is not list or len(given) != len(inputs):
        raise ValueError(f"it does not list the {len(inputs)} inputs of the graph")
    types = []
    for entry, (name, value) in zip(given, inputs):
        expected = [name, [str(d) for d in value.shape], value.dtype.name]
        if type(entry) is not list or entry[:3] != expected or len(entry) != 4 or type(entry[3]) is not bool:
            raise ValueError(f"its input {entry!r} is {expected!r} in the graph")
        types.append((value.shape, value.dtype, entry[3]))
    return [name for name, _ in inputs], types


def _results(head, graph):
    count = len(graph.outputs)
    weak = head["weak"]
    if type(weak) is not list or len(weak) != count or not all(type(w) is bool for w in weak):
        raise ValueError(f"it does not say of each of the {count} results whether its dtype is weak")
    leaves = []
    out_tree = tree.structure(_tree_from_json(head["tree"], leaves))
    if leaves != list(range(count)) or out_tree.num_leaves != count:
        raise ValueError(f"its tree does not have the {count} results of the graph, each once and in order")
    return out_tree, weak


def _tree_to_json(treedef):
    marks = treedef.unflatten(list(range(treedef.num_leaves)))

    def walk(t):
        if isinstance(t, int) and not isinstance(t, bool):
            return t
        if t is None:
            return None
        if type(t) is tuple:
            return {"tuple": [walk(x) for x in t]}
        if type(t) is list:
            return [walk(x) for x in t]
        if isinstance(t, dict) and all(isinstance(k, str) for k in t):
            return {"dict": {k: walk(v) for k, v in t.items()}}
        raise TypeError(
            f"a result of type {type(t).__name__} cannot be saved: files hold tuples, lists, dicts "
            f"with string keys and arrays"
        )

    return walk(marks)


def _tree_from_json(t, leaves):
    """The tree of a head. Appends its leaves in the order in which trees are flattened."""
    if t is None:
        return None
    if type(t) is int:
        leaves.append(t)
        return t
    if type(t) is list:
        return [_tree_from_json(x, leaves) for x in t]
    if type(t) is dict and list(t) == ["tuple"] and type(t["tuple"]) is list:
        return tuple(_tree_from_json(x, leaves) for x in t["tuple"])
    if type(t) is dict and list(t) == ["dict"] and type(t["dict"]) is dict:
        return {k: _tree_from_json(t["dict"][k], leaves) for k in sorted(t["dict"])}
    raise ValueError(f"{str(t)[:60]!r} is no tree of results")
