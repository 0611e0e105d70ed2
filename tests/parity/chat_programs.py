"""Random chat templates from a small grammar, to be rendered by jinja2 and by rlx."""

import random

VARIABLES = {
    "s": "Hello, World",
    "t": "  héllo wörld\n\tzwei ß Σ ΑΣ İ ﬁ 世界 👋 ",
    "w": "one two  three\nfour",
    "h": "<a href=\"x\">'b' & c</a>",
    "i": 7,
    "j": -3,
    "z": 0,
    "f": 2.5,
    "g": -1e-7,
    "b": True,
    "c": False,
    "n": None,
    "l": [3, 1, 2, 3],
    "m": [1.5, True, "x", None, [1, [2]], {"k": "v"}],
    "ls": ["pear", "Apple", "fig", "äpfel", "fig"],
    "ld": [
        {"role": "user", "content": "a", "n": 3, "x": {"y": 1}},
        {"role": "system", "content": "B", "n": 1},
        {"role": "User", "content": None, "n": 2, "items": [1]},
    ],
    "d": {"b": 1, "a": "two", "C": [3], "keys": "key", "none": None},
    "dd": {"x": {"y": {"z": [1, {"w": "deep"}]}}, "list": [[1, 2], [3, 4]], "t": "<&>"},
    "e": [],
    "o": {},
}

STRING_METHODS = [
    "upper()", "lower()", "strip()", "lstrip()", "rstrip()", "title()", "capitalize()", "swapcase()",
    "casefold()", "split()", "split(' ')", "split('l', 1)", "rsplit(' ', 1)", "rsplit(None, 1)",
    "split(maxsplit=1)", "splitlines()", "splitlines(true)", "startswith('H')", "startswith(('x', 'H'))",
    "endswith('d')", "endswith('', 99)", "replace('l', 'L')", "replace('', '-')", "replace('o', '', 1)",
    "find('o')", "rfind('o', 2, 8)", "index('zz')", "count('l')", "count('')", "strip('Hd ')", "strip(none)",
    "isdigit()", "isalpha()", "isalnum()", "isupper()", "islower()", "istitle()", "isspace()", "isnumeric()",
    "isdecimal()", "join(ls)", "join(l)", "join('abc')", "center(20)", "center(21, '*')", "ljust(15, '.')",
    "rjust(15)", "zfill(20)", "partition(' ')", "rpartition('o')", "removeprefix('He')", "removesuffix('ld')",
    "expandtabs(4)", "format(1, 2)", "encode()", "nosuch()", "isidentifier()", "isascii()", "split('')",
    "startswith(1)", "replace('a')", "join(n)", "find(1)", "__class__", "format_map(d)", "isprintable()",
]  # fmt: skip
DICT_METHODS = [
    "get('a')", "get('zz')", "get('zz', 5)", "keys()", "values()", "items()", "copy()", "items", "pop('a')",
    "update(d)", "keys()|list", "values()|list", "items()|list", "get()", "get([])", "setdefault('q', 1)", "a",
    "zz", "x.y.z[1].w", "_p", "__class__", "keys",
]  # fmt: skip
LIST_METHODS = ["index(3)", "count(3)", "index(99)", "append(1)", "copy()", "pop()", "zz", "0", "sort()", "__len__"]
FILTERS = [
    "upper", "lower", "title", "capitalize", "trim", "trim('H')", "length", "count", "first", "last", "list",
    "join", "join(', ')", "join('-', attribute='role')", "sort", "sort(reverse=true)",
    "sort(case_sensitive=true)", "sort(attribute='n')", "sort(attribute='role,n')", "unique|list",
    "unique(attribute='role')|list", "reverse|list", "reverse", "map('upper')|list",
    "map(attribute='role')|list", "map(attribute='x.y', default='-')|list", "map('nosuch')|list", "select|list",
    "select('string')|list", "reject('none')|list", "selectattr('n')|list", "selectattr('n', 'gt', 1)|list",
    "rejectattr('content', 'none')|list", "selectattr('role', 'equalto', 'user')|list", "select('odd')|list",
    "pprint", "striptags", "wordwrap(7)", "wordwrap(4, false)", "xmlattr",
    "tojson", "tojson(indent=2)", "tojson(sort_keys=true)", "tojson(ensure_ascii=true)",
    "tojson(separators=(',', ':'))", "tojson(indent='--')", "string", "int", "int(5)", "int(base=16)", "float",
    "float(1.5)", "abs", "round", "round(1)", "round(1, 'floor')", "round(2, 'ceil')", "default('dflt')",
    "default('dflt', true)", "d(1)", "replace('l', '1')", "replace('o', '0', 1)", "indent", "indent(2)",
    "indent(3, true)", "indent('>', true, true)", "escape", "e", "safe", "forceescape", "items|list",
    "dictsort", "dictsort(by='value')", "dictsort(true, 'key', true)", "batch(2)|list", "batch(3, 'f')|list",
    "slice(2)|list", "slice(3, 'f')|list", "groupby('role')", "groupby('n')|map('last')|list",
    "groupby('role', case_sensitive=true)", "sum", "sum(attribute='n')", "sum(start=10)", "min", "max",
    "min(attribute='n')", "max(case_sensitive=true)", "wordcount", "truncate(8)", "truncate(8, true)",
    "truncate(5, false, '..', 0)", "center(20)", "format(1, 2)", "attr('upper')", "attr('role')", "urlencode",
    "filesizeformat", "map('length')|list", "first|string", "map(attribute=0)|list", "rejectattr('zz')|list",
    "select('nosuch')|list", "nosuch", "replace(1, 2)", "length(1)", "join(attribute='zz')", "last|upper",
    "list|length", "map('int')|sum", "map('string')|join('+')", "indent(first=true)",
]  # fmt: skip
TESTS = [
    "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false",
    "mapping", "iterable", "sequence", "callable", "odd", "even", "divisibleby(3)", "divisibleby 2", "eq(7)",
    "eq 7", "ne 'x'", "gt 1", "lt(5)", "ge 7", "le 7", "in [1, 7]", "in('Hello')", "sameas none",
    "sameas(true)", "lower", "upper", "escaped", "filter", "test", "equalto 'x'", "nosuch", "not defined",
    "not none", "not string", "not in l",
]  # fmt: skip
LITERALS = [
    "'x'", "\"a\\nb\"", "'é\\u00e9\\x41'", "''", "0", "1", "-1", "42", "1_000", "3.0", "1e20", "0.1", "1.5e-7",
    "true", "False", "none", "[]", "[1, 'a', none]", "(1, 2)", "(1,)", "()", "{}", "{'k': 1, 'l': [2]}",
    "{1: 'i', none: 'n', true: 't'}", "'%s and %d'", "'{} {}'", "'{0!r:>10}|{name}'", "0x1f", "'con' 'cat'",
    "'%(a)s'", "1 .real",
]  # fmt: skip


LOOP_USES = [
    "", "", "{{ loop.index }}", "{{ loop.last }}/{{ loop.length }}", "{{ loop.previtem }}", "{{ loop.nextitem }}",
    "{{ loop.revindex0 }}", "{{ loop.cycle('a', 'b') }}", "{{ loop.changed(x) }}", "{{ loop }}", "{{ loop.depth }}",
    "{% if loop.index > 2 %}{% break %}{% endif %}", "{% continue %}", "{% if loop.first %}{% continue %}{% endif %}",
    "{% set s = s ~ 1 %}{{ s }}", "{{ loop.revindex }}", "{{ x }}",
]  # fmt: skip
BROKEN = [
    "{% endif %}", "{{ }}", "{% set %}", "{{ 1 + }}", "{% do x %}", "{{ 'x }}", "{% for %}", "{{ a b }}", "{{ (1 }}",
    "{{ x | }}", "{% set 1 = 2 %}", "{{ x.1.y }}", "{{ [1, }}", "{% if x %}", "{{ 1..2 }}", "{{ $ }}", "{% break %}",
    "{{ f(a=1, 2) }}", "{% set loop = 1 %}", "{% for loop in l %}{% endfor %}", "{% macro %}",
]  # fmt: skip


# What filters, operators and methods are mostly given, so that programs get further than their first error.
TEXTS = ["s", "t", "w", "h", "'x y'", "('<&>'|safe)", "(h|e)", "s[1:]", "(i ~ s)", "ls[0]"]
NUMBERS = ["i", "j", "z", "f", "g", "1", "42", "2.5", "(i + 1)", "(f * 2)", "l[0]", "(s|length)", "b"]
LISTS = [
    "l",
    "ls",
    "e",
    "[1, 2, 3]",
    "(l + [4])",
    "range(4)",
    "(s|list)",
    "ls[1:]",
    "('b', 'a')",
    "l|map('string')|list",
]
RECORDS = ["ld", "ld[:2]", "ld|reverse|list", "ld + [{'role': 'z', 'n': 0}]"]
DICTS = ["d", "dd", "o", "{'a': 1, 'b': [2]}", "ld[0]", "dict(d, q=1)"]
NEEDS_RECORDS = ("attribute", "attr(", "groupby")
NEEDS_TEXT = ["upper", "lower", "title", "capitalize", "trim", "replace", "indent", "wordcount", "truncate", "center",
              "urlencode", "format", "escape", "int", "safe", "string", "e"]  # fmt: skip
NEEDS_NUMBER = ("abs", "round", "filesizeformat", "float")
NEEDS_DICT = ("dictsort", "items|")


def fitting(filter):
    if any(word in filter for word in NEEDS_RECORDS):
        return RECORDS
    if filter.startswith(NEEDS_DICT):
        return DICTS
    if filter.startswith(NEEDS_NUMBER):
        return NUMBERS
    if filter.startswith(("tojson", "default", "d(")):
        return LISTS + DICTS + TEXTS + NUMBERS
    return TEXTS if filter.split("(")[0].split("|")[0] in NEEDS_TEXT else LISTS


class Programs:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.macros = []
        self.names = []

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, p):
        return self.random.random() < p

    def name(self):
        names = list(VARIABLES) + self.names * 4
        return self.pick(["u", "undefd"]) if self.chance(0.04) else self.pick(names)

    def expression(self, depth=3):
        r = self.random.random()
        if depth <= 0 or r < 0.25:
            return self.pick(LITERALS) if self.chance(0.35) else self.name()
        e = lambda: self.expression(depth - 1)  # noqa: E731
        if r < 0.45:
            filter = self.pick(FILTERS)
            operand = self.pick(fitting(filter)) if self.chance(0.85) else self.operand(depth)
            return f"({operand})|{filter}" if self.chance(0.7) else f"{operand}|{filter}"
        if r < 0.56:
            which = self.random.random()
            if which < 0.5:
                return f"{self.pick(TEXTS if self.chance(0.9) else ['(' + e() + ')'])}.{self.pick(STRING_METHODS)}"
            if which < 0.8:
                return f"{self.pick(DICTS if self.chance(0.9) else ['(' + e() + ')'])}.{self.pick(DICT_METHODS)}"
            return f"({self.pick(LISTS if self.chance(0.9) else [e()])}).{self.pick(LIST_METHODS)}"
        if r < 0.64:
            op = self.pick(["+", "+", "-", "*", "/", "//", "%", "**", "~", "~", "~"])
            pool = self.pick([NUMBERS, NUMBERS, NUMBERS, TEXTS, LISTS]) if op in "+-*~" else NUMBERS
            if self.chance(0.85):
                return f"{self.pick(pool)} {op} {self.pick(NUMBERS if op == '*' else pool)}"
            return f"{self.operand(depth)} {op} {self.operand(depth)}"
        if r < 0.71:
            op = self.pick(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
            pool = self.pick([NUMBERS, TEXTS, LISTS])
            if self.chance(0.85):
                return f"{self.pick(TEXTS if 'in' in op else pool)} {op} {self.pick(TEXTS if 'in' in op else pool)}"
            tail = f" {self.pick(['<', '==', 'in'])} {e()}" if self.chance(0.15) else ""
            return f"{self.operand(depth)} {op} {self.operand(depth)}{tail}"
        if r < 0.78:
            return f"({self.operand(depth)} is {self.pick(TESTS)})" if self.chance(0.8) else f"s is {self.pick(TESTS)}"
        if r < 0.83:
            return f"{self.pick(['not ', '-', '+', 'not not '])}{self.operand(depth)}"
        if r < 0.87:
            return f"({e()} {self.pick(['and', 'or'])} {e()})"
        if r < 0.90:
            other = f" else {e()}" if self.chance(0.8) else ""
            return f"({e()} if {e()}{other})"
        if r < 0.96:
            return self.subscripted(depth)
        which = self.random.random()
        if which < 0.3:
            return f"[{e()}, {e()}]"
        if which < 0.5:
            return f"{{'q': {e()}, {self.pick(['1', 's', 'none', '(1, 2)', 'true', 'f'])}: {e()}}}"
        if which < 0.7 and self.macros:
            return f"{self.pick(self.macros)}({self.arguments(depth)})"
        if which < 0.8:
            return f"dict({self.pick(['', 'd, ', 'ld, '])}k={e()})"
        return f"range({self.pick(['3', '1, 5', '5, 0, -2', 'i', 'n', '0', '1, 2, 0', '200000'])})"

    def operand(self, depth):
        text = self.expression(depth - 1)
        return text if self.chance(0.1) or not any(c in text for c in " |") else f"({text})"

    def subscript(self, depth):
        simple = [
            "0",
            "-1",
            "1",
            "99",
            "'a'",
            "'role'",
            "'zz'",
            "s",
            "i",
            "1:",
            ":2",
            "::-1",
            "-2:",
            "1:3",
            "::2",
            "n:j",
            ":",
        ]
        return self.pick(simple) if self.chance(0.8) else self.expression(depth - 2)

    def subscripted(self, depth):
        # jinja2 folds constants by other rules for slices; a variable in front keeps it from that.
        operand = self.operand(depth) if self.chance(0.3) else self.name()
        subscript = self.subscript(depth)
        return f"({operand}, {self.name()})[{subscript}]" if ":" in subscript else f"{operand}[{subscript}]"

    def arguments(self, depth):
        out = [self.expression(depth - 2) for _ in range(self.random.randrange(3))]
        if self.chance(0.4):
            out.append(f"{self.pick(['p', 'q', 'caller', 'kw'])}={self.expression(depth - 2)}")
        if self.chance(0.05):
            out.append(self.pick(["*l", "**d", "*s", "**o", "*n"]))
        return ", ".join(out)

    def tag(self, text):
        left, right = self.pick(["", "", "", "-", "+"]), self.pick(["", "", "", "-", "+"])
        return f"{{%{left} {text} {right}%}}"

    def data(self):
        return self.pick(
            ["", " ", "\n", "text", " a\n  b ", "\n\n", "  ", "{ }", "\t", "#}", "é\n", "<|im_start|>", "  \n  "]
        )

    def target(self):
        name = self.pick(["a1", "a2", "a3", "s", "l"])
        self.names.append(name)
        return name

    def block(self, depth, count=3):
        return "".join(self.statement(depth) for _ in range(self.random.randrange(1, count + 1)))

    def statement(self, depth=3):
        r = self.random.random()
        d = self.data
        if depth <= 0 or r < 0.40:
            left, right = self.pick(["", "", "-"]), self.pick(["", "", "-"])
            return f"{d()}{{{{{left} {self.expression()} {right}}}}}{d()}"
        if r < 0.55:
            which = self.random.random()
            if which < 0.6:
                value = self.expression()
                return f"{self.tag(f'set {self.target()} = {value}')}{d()}"
            if which < 0.7:
                value = self.expression()
                return f"{self.tag(f'set {self.target()}, {self.target()} = {value}, {self.expression(1)}')}{d()}"
            if which < 0.85:
                value = self.expression()
                return f"{self.tag('set ns.' + self.pick(['x', 'y']) + ' = ' + value)}{d()}{{{{ ns.x }}}}{{{{ ns.y }}}}"
            suffix = "|" + self.pick(["upper", "trim", "indent", "length"]) if self.chance(0.4) else ""
            body = self.block(depth - 1)
            return f"{self.tag(f'set {self.target()}{suffix}')}{body}{self.tag('endset')}"
        if r < 0.70:
            return self.loop(depth)
        if r < 0.82:
            text = self.tag(f"if {self.expression()}") + self.block(depth - 1)
            if self.chance(0.4):
                text += self.tag(f"elif {self.expression()}") + self.block(depth - 1)
            if self.chance(0.6):
                text += self.tag("else") + self.block(depth - 1)
            return text + self.tag("endif") + d()
        if r < 0.89:
            name = self.pick(["mac", "mbc", "s"])
            parameters = self.pick(
                ["", "p", "p, q", "p, q=2", "p=s, q=l", "p='x', caller=none"]
                if self.chance(0.98)
                else ["q=1, p", "p, p"]
            )
            extra = self.pick(
                [
                    "",
                    "{{ p }}",
                    "{{ kwargs }}",
                    "{{ varargs }}",
                    "{{ caller() }}",
                    "{{ caller(1, 2) }}",
                    "{{ q }}{{ p }}",
                ]
            )
            body = self.block(depth - 1) + extra
            if name != "s":
                self.macros.append(name)
            return f"{self.tag(f'macro {name}({parameters})')}{body}{self.tag('endmacro')}{d()}"
        if r < 0.92 and self.macros:
            text = self.tag(f"call{self.pick(['', '(a)', '(a, b=1)'])} {self.pick(self.macros)}({self.arguments(3)})")
            return text + self.block(depth - 1) + self.pick(["", "{{ a }}"]) + self.tag("endcall")
        if r < 0.94:
            return f"{self.tag('filter ' + self.pick(FILTERS))}{self.block(depth - 1)}{self.tag('endfilter')}"
        if r < 0.96:
            text = self.tag(f"with {self.target()} = {self.expression()}, b1 = {self.expression(1)}")
            return text + self.block(depth - 1) + "{{ b1 }}" + self.tag("endwith")
        if r < 0.97:
            return f"{self.tag('generation')}{self.block(depth - 1)}{self.tag('endgeneration')}"
        if r < 0.985:
            return self.pick(["{# note #}", "{#- note -#}\n", " {# {{ #} ", "  {#+ x #}\n", "\n {#-# -#} "]) + d()
        if r < 0.998:
            return self.pick(
                [
                    "{% raw %}{{ x }}{% endraw %}",
                    "{%- raw -%} {% if %} {%- endraw -%}\n",
                    " {% raw %}\n{#{% endraw %}\n",
                ]
            )
        return self.pick(BROKEN)

    def loop(self, depth):
        target = self.pick(["x", "x", "x", "k, v", "x, (y, w)"])
        over = self.pick(
            ["l", "ls", "ld", "d", "d.items()", "d|dictsort", "range(3)", "e", "s", "dd.list", "u", self.expression(2)]
        )
        if target == "k, v" and self.chance(0.8):
            over = self.pick(["d.items()", "d|items", "dd.list", "o.items()", "[(1, 2), (3, 4)]"])
        names = ["x"] if target == "x" else ["k", "v"]
        self.names += names
        test = (
            f" if {self.pick(['x', 'loop.first', 'x != 1', 'x is string', self.expression(2)])}"
            if self.chance(0.25)
            else ""
        )
        recursive = " recursive" if self.chance(0.1) else ""
        uses = self.pick(LOOP_USES)
        if recursive:
            uses += self.pick(
                [
                    "{{ loop(e) }}",
                    "{% if loop.depth < 3 %}{{ loop(l) }}{% endif %}",
                    "{{ loop(x) if x is sequence and x is not string }}",
                ]
            )
        text = self.tag(f"for {target} in {over}{test}{recursive}") + uses + self.block(depth - 1)
        if self.chance(0.25):
            text += self.tag("else") + self.block(depth - 1)
        return text + self.tag("endfor") + self.data()

    def program(self):
        start = "{% set ns = namespace(x=1, y='') %}" if self.chance(0.9) else ""
        if self.chance(0.4):
            return start + "".join(self.statement() for _ in range(self.random.randrange(1, 6)))
        return start + "".join(self.statement(self.random.randrange(3)) for _ in range(self.random.randrange(1, 3)))


def program(seed):
    return Programs(seed).program()
