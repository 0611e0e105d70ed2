"""A program as data: inputs with their values, steps, bodies, outputs, and the transforms that are applied to it.

As text it is JSON with one line for each input and step, so that a regression can be read and edited.
"""

import copy
import json

import numpy as np

from oracles import dtypes


class Input:
    """A leaf with its value."""

    def __init__(self, name, dtype, value, fill="normal", low=-3, high=3):
        self.name, self.dtype, self.value = name, dtype, value
        self.fill, self.low, self.high = fill, low, high

    def to_json(self):
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.value.shape),
            "fill": self.fill,
            "low": self.low,
            "high": self.high,
            "values": numbers(self.value),
        }

    @staticmethod
    def from_json(j):
        return Input(j["name"], j["dtype"], array(j["values"], j["dtype"], j["shape"]), j["fill"], j["low"], j["high"])


def numbers(x):
    """An array as a flat list for JSON; NaN and infinities as texts, complex numbers as pairs."""
    kind = dtypes.kind(x.dtype.name)
    if kind == "c":
        return [[_number(v.real), _number(v.imag)] for v in np.ravel(x).tolist()]
    if kind == "f":
        return [_number(v) for v in np.ravel(x).astype(np.float64).tolist()]
    return np.ravel(x).tolist()


def _number(v):
    return v if np.isfinite(v) else repr(v)


def array(flat, dtype, shape):
    kind = dtypes.kind(dtype)
    if kind == "c":
        values = np.array([complex(float(a), float(b)) for a, b in flat], np.complex128)
    elif kind == "f":
        values = np.array([float(v) for v in flat], np.float64)
    else:
        values = np.array(flat, dtype=object if dtype == "uint64" else None)
    return values.astype(dtypes.of(dtype)).reshape(shape)


class Body:
    """A function of its params and of what the steps around it have made."""

    def __init__(self, params, steps, results):
        self.params, self.steps, self.results = params, steps, results

    def to_json(self):
        return {"params": self.params, "steps": [s.to_json() for s in self.steps], "results": self.results}

    @staticmethod
    def from_json(j):
        return Body(j["params"], [Step.from_json(s) for s in j["steps"]], j["results"])


class Step:
    """outs = op(args, **named) with attributes and bodies."""

    def __init__(self, outs, op, args, named=None, attrs=None, bodies=None):
        self.outs, self.op, self.args = outs, op, args
        self.named, self.attrs, self.bodies = named or {}, attrs or {}, bodies or {}

    def to_json(self):
        j = {"outs": self.outs, "op": self.op, "args": self.args}
        for key in ("named", "attrs"):
            if getattr(self, key):
                j[key] = getattr(self, key)
        if self.bodies:
            j["bodies"] = {k: b.to_json() for k, b in self.bodies.items()}
        return j

    @staticmethod
    def from_json(j):
        bodies = {k: Body.from_json(b) for k, b in j.get("bodies", {}).items()}
        return Step(j["outs"], j["op"], j["args"], j.get("named"), j.get("attrs"), bodies)

    def reads(self):
        """Names of values that this step reads, those that its bodies capture among them."""
        out = list(self.args) + list(self.named.values())
        for b in self.bodies.values():
            own = set(b.params)
            for s in b.steps:
                out += [n for n in s.reads() if n not in own]
                own |= set(s.outs)
            out += [n for n in b.results if n not in own]
        return out

    def depth(self):
        inner = [s.depth() for b in self.bodies.values() for s in b.steps]
        return (1 + max(inner, default=0)) if self.bodies else 0


def all_ops(steps):
    """The names of all ops, those in bodies among them."""
    for s in steps:
        yield s.op
        for b in s.bodies.values():
            yield from all_ops(b.steps)


class Program:
    def __init__(self, seed, inputs, steps, outputs, transforms=None):
        self.seed, self.inputs, self.steps, self.outputs = seed, inputs, steps, outputs
        self.transforms = transforms or []  # dicts, the innermost first
        self.coarse = None  # the largest eps of bf16 and f16 in it, or 0, where the generator knows it
        self.known = None  # of each output (dtype, exact, with errors), where the generator knows them

    def copy(self):
        p = copy.deepcopy(self)
        p.known = None
        return p

    def dead_removed(self):
        """The same without steps and inputs that no output needs."""
        p = self.copy()
        wanted = set(p.outputs)
        steps = []
        for s in reversed(p.steps):
            if wanted & set(s.outs):
                steps.append(s)
                wanted |= set(s.reads())
        p.steps = steps[::-1]
        if not p.transforms:
            p.inputs = [i for i in p.inputs if i.name in wanted]
        return p

    def text(self, note=""):
        def rows(items):
            return "[\n  " + ",\n  ".join(map(json.dumps, items)) + "\n ]" if items else "[]"

        inputs, steps = rows([i.to_json() for i in self.inputs]), rows([s.to_json() for s in self.steps])
        return (
            f'{{\n "note": {json.dumps(note)},\n "seed": {self.seed},\n "inputs": {inputs},\n "steps": {steps},\n'
            f' "outputs": {json.dumps(self.outputs)},\n "transforms": {rows(self.transforms)}\n}}\n'
        )

    @staticmethod
    def parse(text):
        j = json.loads(text)
        return Program(
            j["seed"],
            [Input.from_json(i) for i in j["inputs"]],
            [Step.from_json(s) for s in j["steps"]],
            j["outputs"],
            j["transforms"],
        )
