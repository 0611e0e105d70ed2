"""Random schemas of the keywords that negate, choose, count and name: not, if, patternProperties, uniqueItems, ...

`random_condition` makes a schema, `condition_instance` a value that often fits it. `python_schema` is the schema as the
package jsonschema must read it: Python's `$` also matches before a line end at the end of a text.
"""

import decimal

NAMES = ["a", "b", "ab", "x1", "é"]
CONSTANTS = [
    0,
    1,
    -3,
    2.5,
    10.0,
    1e2,
    2**64 - 1,
    2**63 + 1,
    "a",
    "ab",
    "",
    "\n",
    True,
    False,
    None,
    [1, "a"],
    {"a": 1},
    [],
]
TOP = 3  # the depth of a whole schema
DIVISORS = [1, 2, 3, 5, 7, 10, 12, 100, 0.5, 0.25, 0.1, 0.01, 1.5]


def deniable(rng, depth, random_pattern):
    """A schema whose negation a grammar can hold."""
    kind = rng.choice(
        ["const", "enum", "type", "number", "length", "pattern", "multiple", "required", "properties"]
        + ["logic"] * (depth > 0)
    )
    if kind == "const":
        return {"const": rng.choice(CONSTANTS)}
    if kind == "enum":
        return {"enum": rng.sample(CONSTANTS[:13], rng.randint(1, 3))}
    if kind == "type":
        return {
            "type": rng.choice(
                ["null", "boolean", "integer", "number", "string", "array", "object", ["integer", "null"]]
            )
        }
    if kind == "number":
        return {
            rng.choice(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]): rng.choice([-3, 0, 1, 2.5, 10])
        }
    if kind == "length":
        return {
            rng.choice(
                ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]
            ): rng.randint(1, 2)
        }
    if kind == "pattern":
        return {"pattern": random_pattern(rng)}
    if kind == "multiple":
        return {"multipleOf": rng.choice(DIVISORS)}
    if kind == "required":
        return {"required": rng.sample(NAMES, rng.randint(1, 2))}
    if kind == "properties":
        return {"properties": {n: deniable(rng, 0, random_pattern) for n in rng.sample(NAMES, rng.randint(1, 2))}}
    some = [deniable(rng, depth - 1, random_pattern) for _ in range(rng.randint(1, 2))]
    key = rng.choice(["anyOf", "allOf", "not", "prefixItems"])
    return {key: some[0] if key == "not" else some}


def random_object(rng, random_schema, depth):
    names = rng.sample(NAMES, rng.randint(1, 4))
    return {
        "type": "object",
        "properties": {n: random_schema(rng, depth) for n in names},
        "additionalProperties": False,
    }


def random_condition(rng, depth, random_schema, random_pattern):
    kinds = ["not", "if", "patterns", "names", "counted", "multiple", "unique", "big", "dependent"]
    kind = rng.choice(kinds + ["list"] * (depth == TOP))  # the drafts of a schema and of its parts are one
    inner = max(depth - 1, 0)
    if kind == "not":
        base = rng.choice(
            [{}, {"type": rng.choice(["integer", "string", "number", "boolean"])}, random_schema(rng, inner)]
        )
        if "not" in base or "$ref" in base:
            base = {}
        return {**base, "not": deniable(rng, 1, random_pattern)}
    if kind == "if":
        schema = random_object(
            rng,
            lambda r, d: rng.choice([{"enum": [1, "a", None]}, {"type": "integer"}, {"type": ["string", "null"]}]),
            0,
        )
        names = list(schema["properties"])
        test = rng.choice(names)
        schema["if"] = {"properties": {test: rng.choice([{"const": 1}, {"type": "string"}, {"enum": ["a", None]}])}}
        if rng.random() < 0.6:
            schema["if"]["required"] = [test]
        for key in ("then", "else"):
            if rng.random() < 0.8:
                schema[key] = rng.choice(
                    [
                        {"required": [rng.choice(names)]},
                        {"properties": {rng.choice(names): {"type": "integer"}}},
                        {"maxProperties": 1},
                        True,
                    ]
                )
        return schema
    if kind in ("patterns", "names"):
        schema = {"type": "object"}
        names = rng.sample(NAMES, rng.randint(0, 3))
        if names:
            schema["properties"] = {n: random_schema(rng, 0) for n in names}
            schema["required"] = [n for n in names if rng.random() < 0.3]
        if kind == "patterns":
            schema["patternProperties"] = {random_pattern(rng): random_schema(rng, 0) for _ in range(rng.randint(1, 2))}
            extra = rng.choice([None, False, {"type": "null"}])
            if extra is not None:
                schema["additionalProperties"] = extra
        if kind == "names" or rng.random() < 0.2:
            schema["propertyNames"] = rng.choice(
                [
                    {"maxLength": 2},
                    {"pattern": "^[ab]"},
                    {"enum": NAMES},
                    {"not": {"const": "a"}},
                    {"minLength": 1, "maxLength": 3},
                ]
            )
        return schema
    if kind == "counted":
        schema = random_object(rng, random_schema, 0)
        schema["required"] = [n for n in schema["properties"] if rng.random() < 0.2]
        if rng.random() < 0.4:
            schema["additionalProperties"] = {"type": "integer"}
        if rng.random() < 0.7:
            schema["minProperties"] = rng.randint(0, 3)
        if rng.random() < 0.7:
            schema["maxProperties"] = rng.randint(1, 4)
        return schema
    if kind == "multiple":
        schema = {"type": rng.choice(["integer", "number"]), "multipleOf": rng.choice(DIVISORS)}
        if rng.random() < 0.6:
            schema["minimum"] = rng.choice([-20, 0, 1.5])
        if rng.random() < 0.6:
            schema["exclusiveMaximum"] = rng.choice([20, 33.3, 1000])
        return schema
    if kind == "unique":
        values = rng.sample(CONSTANTS, rng.randint(1, 5))
        schema = {
            "type": "array",
            "items": rng.choice([{"enum": values}, {"type": "boolean"}, {"type": ["null", "boolean"]}]),
            "uniqueItems": True,
        }
        if rng.random() < 0.5:
            schema["minItems"] = rng.randint(0, 2)
        if rng.random() < 0.5:
            schema["maxItems"] = rng.randint(1, 3)
        if rng.random() < 0.2:
            schema["prefixItems"] = [{"enum": values[:2]}]
        return schema
    if kind == "big":
        big = rng.choice([2**63, 2**64, 2**64 - 1, 10**30, -(2**70), 123456789012345678901234567890])
        return rng.choice(
            [
                {"const": big},
                {"enum": [big, big + 1]},
                {"type": "integer", "minimum": big, "maximum": big + rng.choice([0, 1, 100])},
            ]
        )
    if kind == "list":
        return {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [random_schema(rng, 0) for _ in range(rng.randint(1, 2))],
            "additionalItems": rng.choice([False, {"type": "null"}]),
        }
    schema = random_object(rng, random_schema, 0)
    names = list(schema["properties"])
    schema["dependentRequired"] = {rng.choice(names): [rng.choice(names)]}
    return schema


def condition_instance(rng, schema, instance, patterns):
    """A value for a schema of random_condition, or NotImplemented for others."""
    if "multipleOf" in schema:
        step = decimal.Decimal(str(schema["multipleOf"]))
        value = step * rng.randint(-30, 60) + rng.choice([0, 0, 0, decimal.Decimal("0.1"), 1])
        return int(value) if value == int(value) else float(value)
    if schema.get("uniqueItems"):
        pool = schema["items"].get("enum", [True, False, None])
        return [rng.choice(pool) for _ in range(rng.randint(0, 3))]
    if isinstance(schema.get("items"), list):
        out = [instance(i) for i in schema["items"]]
        return out[: rng.randint(0, 2)] if rng.random() < 0.4 else out + [None] * rng.randint(0, 2)
    if schema.get("type") == "integer" and abs(schema.get("minimum", 0)) > 2**62:
        return schema["minimum"] + rng.randint(-1, 3)
    if "not" in schema and rng.random() < 0.7:
        return rng.choice(CONSTANTS[:12] + ["xyz", 7, {"b": 1}, [2], -0.75])
    if "patternProperties" in schema or "propertyNames" in schema:
        out = {
            n: instance(s)
            for n, s in schema.get("properties", {}).items()
            if n in schema.get("required", []) or rng.random() < 0.5
        }
        for pattern, of in schema.get("patternProperties", {}).items():
            name = patterns[pattern](rng)
            if name not in schema.get("properties", {}):
                out[name] = instance(of)
        if rng.random() < 0.3:
            name = rng.choice(["zz", "ac", "b3"])
            out[name] = None if rng.random() < 0.5 else 1
        return out
    return NotImplemented


def python_schema(schema):
    """The schema with patterns whose last `$` is Python's \\Z, and whose \\w and \\d are ASCII."""

    def anchored(text):
        return text[:-1] + "\\Z" if text.endswith("$") and not text.endswith("\\$") else text

    if isinstance(schema, list):
        return [python_schema(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for key, value in schema.items():
        if key == "pattern" and isinstance(value, str):
            out[key] = f"(?a:{anchored(value)})"
        elif key == "patternProperties":
            out[key] = {f"(?a:{anchored(p)})": python_schema(s) for p, s in value.items()}
        elif key in ("const", "enum"):
            out[key] = value
        else:
            out[key] = python_schema(value)
    return out
