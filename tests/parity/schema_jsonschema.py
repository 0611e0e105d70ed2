#!/usr/bin/env python3
"""Compares grammars of JSON schemas with the PyPI package `jsonschema`.

    ninja -C build/dev schema_texts
    schema_jsonschema.py --tool build/dev/tests/schema_texts [--venv DIR] [--schemas N] [--texts N] [--seed N]

The package comes from PyPI, at the version bench/peers pins, into an environment that is removed afterwards; --venv
DIR reuses one. For schemas written here and N random ones: every text that a random walk over the token masks makes
must parse as JSON and be valid, and every valid instance that a generator of its own makes from the schema must be
accepted, as Python writes it, in three forms of whitespace. Instances made invalid by a small change, which the
package says they are, must be refused. Exit status 0 when everything agrees.
"""

import argparse
import decimal
import json
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "peers"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from schema_conditions import TOP, condition_instance, python_schema, random_condition  # noqa: E402
from venv_peers import environment  # noqa: E402

decimal.getcontext().prec = 3000  # of remainders

LETTERS = 'abz09 _-"\\/\n\té€😀'

HAND_PICKED = [
    {},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "value": {"type": ["number", "null"]},
                    "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3},
                },
                "required": ["value"],
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/node",
    },
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 130},
            "born": {"type": "string", "format": "date"},
            "seen": {"type": "string", "format": "date-time"},
            "id": {"type": "string", "format": "uuid"},
            "kind": {"enum": ["a", "b\n", 3, None]},
        },
        "required": ["name", "id"],
    },
    {"type": "string", "format": "time"},
    {"type": "string", "format": "ipv4"},
    {"type": "string", "format": "ipv6"},
    {"type": "string", "format": "email"},
    {"type": "string", "format": "hostname"},
    {"type": "string", "format": "duration"},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}(/x)?$"},
    {"type": "string", "pattern": "ab+c|^x"},
    {"type": "number", "minimum": -1.25, "exclusiveMaximum": 1e3},
    {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "null"}, "b": {"const": 1}}}]},
    {"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": {"type": "integer"}},
]


def random_schema(rng, depth=TOP):
    """A schema of the keywords that grammars can hold."""
    kinds = ["null", "boolean", "integer", "number", "string", "enum", "const", "pattern"]
    if depth > 0:
        kinds += ["array", "object", "object", "anyOf", "allOf", "types", "described"] + ["condition"] * 4
    kind = rng.choice(kinds)
    if kind == "condition":
        return random_condition(rng, depth, random_schema, random_pattern)
    if kind in ("null", "boolean"):
        return {"type": kind}
    if kind in ("integer", "number"):
        schema = {"type": kind}
        low = rng.randint(-1100, 1100) if kind == "integer" else round(rng.uniform(-20, 20), rng.randint(0, 3))
        if rng.random() < 0.5:
            schema[rng.choice(["minimum", "exclusiveMinimum"])] = low
        if rng.random() < 0.5:
            schema[rng.choice(["maximum", "exclusiveMaximum"])] = low + rng.choice([2, 5, 100, 12345])
        return schema
    if kind == "string":
        schema = {"type": "string"}
        if rng.random() < 0.5:
            schema["minLength"] = rng.randint(0, 4)
        if rng.random() < 0.5:
            schema["maxLength"] = rng.randint(4, 9)
        return schema
    if kind == "const":
        return {"const": random_value(rng)}
    if kind == "pattern":
        return {"type": "string", "pattern": random_pattern(rng)}
    if kind == "types":
        schema = {"type": rng.sample(["null", "boolean", "integer", "string"], rng.randint(1, 3))}
        if "integer" in schema["type"]:
            schema["minimum"] = rng.randint(-50, 50)
        if "string" in schema["type"]:
            schema["maxLength"] = rng.randint(0, 6)
        return schema
    if kind == "described":
        return {**random_schema(rng, depth - 1), "title": "what it is", "default": 3}
    if kind == "enum":
        return {"enum": [random_value(rng) for _ in range(rng.randint(1, 4))]}
    if kind == "array":
        schema = {"type": "array", "items": random_schema(rng, depth - 1)}
        if rng.random() < 0.3:
            schema["prefixItems"] = [random_schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.4:
            schema["minItems"] = rng.randint(0, 3)
        if rng.random() < 0.4:
            schema["maxItems"] = rng.randint(3, 5)
        return schema
    if kind == "object":
        names = rng.sample(["a", "ab", "b", "é", 'q"', "long name", "\n", ""], rng.randint(0, 5))
        schema = {"type": "object", "properties": {n: random_schema(rng, depth - 1) for n in names}}
        schema["required"] = [n for n in names if rng.random() < 0.5]
        if not names and rng.random() < 0.5:
            schema["minProperties"] = rng.randint(0, 2)
        extra = rng.choice([False, False, None, "schema"])
        if extra is not None:
            schema["additionalProperties"] = random_schema(rng, depth - 1) if extra else False
        return schema
    if kind == "anyOf":
        return {"anyOf": [random_schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]}
    first = random_schema(rng, 0)
    names = ["a", "b"]
    return {
        "allOf": [
            {"type": "object", "properties": {"a": first}, "required": ["a"]},
            {"properties": {n: {} if rng.random() < 0.5 else random_schema(rng, depth - 1) for n in names}},
        ]
    }


PATTERNS = {}  # the strings of a pattern, by its text: a function of a random generator


def random_pattern(rng):
    """A pattern of classes, groups, quantifiers and anchors, kept with what makes strings of it."""

    def atom(depth):
        kind = rng.randrange(6 if depth else 4)
        if kind == 0:
            letter = rng.choice("ab09_-é€")
            return letter, lambda r: letter
        if kind == 1:
            text, letters = rng.choice(
                [
                    ("[a-c]", "abc"),
                    ("[^b-z]", 'aZ09_"\\\n\té€😀'),
                    ("\\d", "0189"),
                    ("[\\w-]", "aZ0_-"),
                    (".", 'a"\\é😀 '),
                ]
            )
            return text, lambda r: r.choice(letters)
        if kind == 2:
            text, letter = rng.choice(
                [("\\.", "."), ('"', '"'), ("\\\\", "\\"), ("\\n", "\n"), ("\\u00e9", "é"), ("/", "/")]
            )
            return text, lambda r: letter
        if kind == 3:
            low, high = rng.randint(0, 2), rng.randint(2, 4)
            text, make = atom(0) if depth == 0 else atom(depth - 1)
            if text[-1] in "*+?}":
                return text, make
            quantifier, least, most = rng.choice(
                [
                    ("*", 0, 3),
                    ("+", 1, 3),
                    ("?", 0, 1),
                    ("{%d}" % high, high, high),
                    ("{%d,%d}" % (low, high), low, high),
                ]
            )
            return text + quantifier, lambda r: "".join(make(r) for _ in range(r.randint(least, most)))
        choices = [[atom(depth - 1) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 3))]
        text = "|".join("".join(t for t, _ in parts) for parts in choices)
        opening = rng.choice(["(", "(?:"])
        return opening + text + ")", lambda r: "".join(make(r) for _, make in r.choice(choices))

    parts = [atom(2) for _ in range(rng.randint(1, 3))]
    start, end = rng.random() < 0.7, rng.random() < 0.7
    text = ("^" if start else "") + "".join(t for t, _ in parts) + ("$" if end else "")

    def make(r):
        around = [random_text(r) if not anchored and r.random() < 0.5 else "" for anchored in (start, end)]
        return around[0] + "".join(m(r) for _, m in parts) + around[1]

    PATTERNS[text] = make
    return text


def random_text(rng, low=0, high=5):
    return "".join(rng.choice(LETTERS) for _ in range(rng.randint(low, high)))


def random_value(rng, depth=2):
    kind = rng.randrange(7 if depth else 5)
    if kind == 0:
        return None
    if kind == 1:
        return rng.random() < 0.5
    if kind == 2:
        return rng.randint(-2000, 2000)
    if kind == 3:
        return round(rng.uniform(-30, 30), 3)
    if kind == 4:
        return random_text(rng)
    if kind == 5:
        return [random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return {random_text(rng, 1): random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))}


def instance(rng, schema, root, depth=6):
    """A value that mostly fits `schema`, members in the order of the schema."""
    if schema is True or schema == {}:
        return random_value(rng)
    if schema is False:
        return None
    if "$ref" in schema:
        target = root
        for key in schema["$ref"][2:].split("/"):
            target = target[key]
        return instance(rng, target, root, depth - 1)
    special = condition_instance(rng, schema, lambda s: instance(rng, s, root, depth - 1), PATTERNS)
    if special is not NotImplemented:
        return special
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return instance(rng, rng.choice(schema["anyOf"]), root, depth)
    if "allOf" in schema:
        value = {}
        for part in schema["allOf"]:
            for key, own in part.get("properties", {}).items():
                if key not in value or rng.random() < 0.5:
                    value[key] = instance(rng, own, root, depth - 1)
        order = [k for part in schema["allOf"] for k in part.get("properties", {})]
        return {k: value[k] for k in dict.fromkeys(order) if k in value}
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = rng.choice(kind)
    if kind == "null":
        return None
    if kind == "boolean":
        return rng.random() < 0.5
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        low = low if low is not None else (high if high is not None else 0) - 1500
        high = high if high is not None else low + 1500
        if rng.random() < 0.3:
            value = rng.choice([low, high])
        elif kind == "integer":
            value = rng.randint(int(low), int(high))
        else:
            value = round(rng.uniform(low, high), rng.randint(0, 5))
        return int(value) if value == int(value) else value
    if kind == "string" and schema.get("pattern") in PATTERNS:
        return PATTERNS[schema["pattern"]](rng)
    if kind == "string":
        return random_text(rng, schema.get("minLength", 0), schema.get("maxLength", 9))
    if kind == "array":
        prefix = schema.get("prefixItems", [])
        low = schema.get("minItems", 0)
        high = schema.get("maxItems", max(low, len(prefix)) + 2)
        count = low if depth <= 0 else rng.randint(low, high)
        item = schema.get("items", {})
        return [instance(rng, prefix[i] if i < len(prefix) else item, root, depth - 1) for i in range(count)]
    value = {}
    for key, own in schema.get("properties", {}).items():
        if key in schema.get("required", []) or (depth > 0 and rng.random() < 0.5):
            value[key] = instance(rng, own, root, depth - 1)
    extra = schema.get("additionalProperties", {})
    if extra is not False and depth > 0 and rng.random() < 0.5:
        for _ in range(rng.randint(1, 2)):
            key = random_text(rng, 0, 3)
            if key not in schema.get("properties", {}):
                value[key] = instance(rng, extra, root, depth - 1)
    return value


def changed(rng, value):
    """`value` with one thing in it changed."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        if rng.random() < 0.3:
            return {k: v for k, v in value.items() if k != key}
        return {k: changed(rng, v) if k == key else v for k, v in value.items()}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        if rng.random() < 0.3:
            return value[:at] + value[at + 1 :]
        return [changed(rng, v) if i == at else v for i, v in enumerate(value)]
    return random_value(rng)


def exact(text):
    """The JSON text with numbers as they are written: grammars know no rounding."""

    def number(digits):
        try:
            return decimal.Decimal(digits)
        except decimal.InvalidOperation:  # an exponent of twenty digits
            return float(digits)

    return json.loads(text, parse_float=number)


def repeats_names(text):
    """Whether an object of the JSON text has two members of one name."""
    found = []

    def members(pairs):
        found.append(len(dict(pairs)) < len(pairs))
        return dict(pairs)

    json.loads(text, object_pairs_hook=members)
    return any(found)


def has_exponent(value):
    """Whether Python writes a number of `value` with an exponent, which numbers with limits have not here."""
    if isinstance(value, dict):
        return any(has_exponent(v) for v in value.values())
    if isinstance(value, list):
        return any(has_exponent(v) for v in value)
    return isinstance(value, float) and "e" in repr(value)


WRITERS = {
    "none": lambda v: json.dumps(v, separators=(",", ":"), ensure_ascii=False),
    "spaced": lambda v: json.dumps(v, ensure_ascii=False),
    "flexible": lambda v: json.dumps(v, indent=2, ensure_ascii=False),
}


class Tool:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def ask(self, line, answers=1):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return [self.process.stdout.readline().rstrip("\n") for _ in range(answers)]


def compare(args):
    import jsonschema

    rng = random.Random(args.seed)
    tool = Tool(args.tool)
    counts = dict.fromkeys(
        ("schemas", "unsatisfiable", "inexpressible", "texts", "endless", "accepted", "refused", "other"), 0
    )
    faults = []

    def fault(what, schema, text):
        faults.append(what)
        print(f"{what}\n  schema {json.dumps(schema, ensure_ascii=False)}\n  text   {text!r}")

    for schema in HAND_PICKED + [random_schema(rng) for _ in range(args.schemas)]:
        checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
        # A list of items is from draft 7.
        draft = (
            jsonschema.Draft7Validator if '"additionalItems"' in json.dumps(schema) else jsonschema.Draft202012Validator
        )
        validator = draft(exact(json.dumps(python_schema(schema))), format_checker=checker)
        is_valid = lambda value: validator.is_valid(exact(json.dumps(value)))  # noqa: E731
        for spaces, write in WRITERS.items():
            (answer,) = tool.ask(f"S {spaces} {json.dumps(schema)}")
            if any(said in answer for said in ("cannot become a grammar", "too many states", "combinations of anyOf")):
                counts["inexpressible"] += 1  # as docs/grammars.md says
                continue
            if answer != "ok":
                if "no value fits" not in answer:
                    fault(answer, schema, "")
                counts["unsatisfiable"] += 1
                for _ in range(20):
                    value = instance(rng, schema, schema)
                    if is_valid(value):
                        fault("said to have no value", schema, write(value))
                        break
                continue
            counts["schemas"] += 1
            for line in tool.ask(f"G {rng.randrange(1 << 40)} {args.texts}", args.texts):
                if line == "-":
                    counts["endless"] += 1
                    continue
                if line.startswith("error"):
                    fault(line, schema, "")
                    break
                text = json.loads(line)
                counts["texts"] += 1
                try:
                    value = exact(text)
                except ValueError:
                    fault("no JSON", schema, text)
                    continue
                # A grammar does not know which names were there before, and Python keeps one of those that are equal.
                if not validator.is_valid(value) and not (
                    any(f"{word}Properties" in json.dumps(schema) for word in ("min", "max")) and repeats_names(text)
                ):
                    fault("not valid", schema, text)
            for _ in range(args.texts):
                value = instance(rng, schema, schema)
                text = write(value)
                if has_exponent(value):
                    continue
                valid = is_valid(value)
                taken = tool.ask("A " + json.dumps(text))[0] == "1"
                if valid and not taken and '"format"' not in json.dumps(schema):  # we take fewer than the package
                    fault("valid, but refused", schema, text)
                if not valid and taken:
                    fault("not valid, but accepted", schema, text)
                counts["accepted" if taken else "refused"] += 1
                value = changed(rng, value)
                if not is_valid(value) and tool.ask("A " + json.dumps(write(value)))[0] != "0":
                    fault("made invalid, but accepted", schema, write(value))
                counts["other"] += 1
    print(
        f"{counts['schemas']} grammars ({counts['unsatisfiable']} unsatisfiable, {counts['inexpressible']} that no "
        f"grammar holds): {counts['texts']} texts made "
        f"({counts['endless']} without an end), {counts['accepted']} instances accepted, {counts['refused']} refused, "
        f"{counts['other']} changed ones; {len(faults)} faults"
    )
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True, help="the program schema_texts")
    parser.add_argument("--venv", help="an environment to use again")
    parser.add_argument("--schemas", type=int, default=300)
    parser.add_argument("--texts", type=int, default=20, help="texts and instances for each schema and whitespace")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return compare(args)
    with environment(["jsonschema[format]"], args.venv) as folder:
        command = [str(folder / "bin" / "python"), os.path.abspath(__file__), "--inside", "--tool", args.tool]
        command += ["--schemas", str(args.schemas), "--texts", str(args.texts), "--seed", str(args.seed)]
        return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
