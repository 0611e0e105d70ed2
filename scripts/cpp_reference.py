#!/usr/bin/env python3
"""Writes docs/cpp_reference.md from the comments of the main installed headers: python3 scripts/cpp_reference.py

--check only says whether the page is up to date. Examples are those of examples/21_cpp_reference.cpp, which runs as a
test: the lines of the function named after a group. Needs nothing but Python.
"""

import pathlib
import re
import sys
import textwrap

from reference_page import write_reference

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cpp_reference.md"
EXAMPLES = ROOT / "examples" / "21_cpp_reference.cpp"
HEADER = """# C++ reference

Written by `scripts/cpp_reference.py` from the comments of the headers. Read [cpp.md](cpp.md) first. Everything is in
namespace `rlx`; `#include <rlx/rlx.h>` has all groups whose headers are not named otherwise. [ops.md](ops.md) has every
op and every function composed of ops, with formulas, dtypes and derivatives.
"""
# Title, function of the example, words before it, headers.
GROUPS = [
    ("Graphs", "graphs", "A graph is built node by node; shapes are checked at each call.", ["ir/graph.h"]),
    (
        "Building",
        "building",
        "`Graph` derives from `Builder`: `g.matmul(x, w)`. An operand is an `Expr` or a number. What has no sentence "
        "is the function of its name in NumPy; [ops.md](ops.md) describes each.",
        ["ir/builder.h"],
    ),
    ("Values", "values", "Handles on values of a graph under construction, with operators.", ["ir/value.h"]),
    ("Indexing", "indexing", "", ["ir/index.h"]),
    ("Tensors", "tensors", "", ["tensor/tensor.h", "tensor/shape.h", "tensor/dim.h", "tensor/dtype.h"]),
    ("Sessions", "sessions", "", ["runtime/session.h"]),
    ("Compiled graphs", "compiled_graphs", "", ["runtime/compiled_graph.h"]),
    ("Compile options", "compile_options", "", ["compiler/pipeline.h", "compiler/precision.h"]),
    ("Models as functions", "model_functions", "", ["runtime/model_function.h"]),
    (
        "Derivatives and batches",
        "derivatives",
        "",
        ["transforms/transform.h", "transforms/reverse.h", "transforms/jvp.h", "transforms/hvp.h", "transforms/vmap.h"],
    ),
    ("Evaluation and text", "texts", "", ["ir/evaluate.h", "ir/text.h"]),
    (
        "Custom ops",
        "custom_ops",
        "See [custom_ops.md](custom_ops.md). Kernels need `rlx/backends/cpu/custom_kernel.h`.",
        ["ir/custom_op.h", "backends/cpu/custom_kernel.h"],
    ),
    ("Devices", "devices", "", ["device/device.h", "runtime/device_ext.h"]),
    ("Errors", "errors", "", ["error.h"]),
    (
        "Weights and model blocks",
        "flows",
        "Of the library `rlx::models`; include `rlx/models/flow.h`.",
        ["models/flow.h", "formats/named_tensor.h", "tensor/weight_loader.h"],
    ),
    (
        "Files",
        "files",
        "Of the library `rlx::models`; each header is included by its name.",
        ["formats/safetensors.h", "formats/npy.h"],
    ),
    (
        "Texts and language models",
        "language_models",
        "Of the library `rlx::models`. [generation.md](generation.md) and [embeddings.md](embeddings.md) say more.",
        ["generation/language_model.h", "generation/sampling.h", "models/sentence_encoder.h", "models/reranker.h"],
    ),
]


def functions_of_one_operand():
    """(name in C++, name in texts, number of parameters) of the calls that builder.h makes from a table."""
    table = (ROOT / "rlx/ir/op_kind.h").read_text().partition("#define RLX_FOR_EACH_FUNCTION(X)")[2]
    for line in table.split("\n"):
        yield from re.findall(r'X\(\w+, (\w+), "?(\w+)"?, (\d)\)', line)
        if not line.endswith("\\"):
            return


def called(text):
    """The name of the function that a declaration declares, none for a field."""
    m = re.search(r"(operator ?[^\s(\w]+|operator \w+|[\w:]+)(?:<.*?>)?\(", text)
    return m.group(1) if m and not re.search(r"^[^(]*=", text[: m.start()]) else None


def without_template(head):
    """A declaration without its template parameters and what is required of them."""
    while m := re.match(r"template ?<|requires ?\(|requires ", head):
        opening = m.group(0)[-1]
        at, depth = m.end(), 1
        if opening == " ":  # requires std::is_arithmetic_v<T>
            head = re.sub(r"^requires \S+(<.*?>)? ", "", head)
            continue
        closing = ">" if opening == "<" else ")"
        while depth:
            depth += (head[at] == opening) - (head[at] == closing)
            at += 1
        head = head[at:].strip()
    return head


class Declaration:
    """A function, a field or an enumerator."""

    def __init__(self, text, doc, section, first):
        self.text, self.doc, self.section, self.first = text, doc, section, first


class Class:
    """A class or enum; one of name "" holds the free functions of a header."""

    def __init__(self, name, kind, doc):
        self.name, self.kind, self.doc = name, kind, doc
        self.members = []


class Reader:
    """The public declarations of a header, with the `///` comment above each."""

    def __init__(self, text):
        self.s, self.at = text, 0
        self.doc, self.section, self.gap = [], "", True
        self.free = Class("", "", "")
        self.classes = []

    def read(self):
        self.block("", self.free, shown=True)
        return self.free, self.classes

    def skip_balanced(self):
        """Past the bracket that closes the one at the current position; texts and comments are no brackets."""
        depth = 0
        while self.at < len(self.s):
            m = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'').match(self.s, self.at)
            if m:
                self.at = m.end()
                continue
            depth += (self.s[self.at] in "([{") - (self.s[self.at] in ")]}")
            self.at += 1
            if depth == 0:
                return

    def block(self, scope, owner, shown):
        """Declarations up to the closing brace of a namespace or class."""
        while self.at < len(self.s):
            m = re.compile(r"[ \t]*\n").match(self.s, self.at)
            if m:
                self.at = m.end()
                if re.compile(r"[ \t]*\n").match(self.s, self.at):
                    self.doc, self.gap = [], True
                continue
            if self.s[self.at].isspace() or self.s[self.at] == ";":
                self.at += 1
                continue
            m = re.compile(r"///? ?([^\n]*)\n?").match(self.s, self.at)
            if m:
                if self.s.startswith("///", self.at):
                    self.doc.append(m.group(1).strip())
                elif m.group(1).startswith("-- "):
                    # Titles may go on for lines and end with --.
                    title = [m.group(1)]
                    while True:
                        next_line = re.compile(r"[ \t]*// ?([^\n/][^\n]*)\n").match(self.s, m.end())
                        if not next_line:
                            break
                        title.append(next_line.group(1))
                        m = next_line
                    self.section = " ".join(title).strip("- ").strip()
                    self.doc, self.gap = [], True
                self.at = m.end()
                continue
            if self.s.startswith("#", self.at):
                while True:
                    end = self.s.find("\n", self.at)
                    end = len(self.s) if end < 0 else end
                    more = self.s[end - 1] == "\\"
                    self.at = end + 1
                    if not more:
                        break
                continue
            if self.s[self.at] == "}":
                self.at += 1
                return
            m = re.compile(r"(public|private|protected):").match(self.s, self.at)
            if m:
                shown = m.group(1) == "public"
                self.doc, self.gap, self.at = [], True, m.end()
                continue
            self.declaration(scope, owner, shown)

    def declaration(self, scope, owner, shown):
        m = re.compile(r"namespace ([\w:]*) ?\{").match(self.s, self.at)
        if m:
            if "detail" in m.group(1):
                self.at = m.end() - 1
                self.skip_balanced()
            else:
                self.at = m.end()
                self.doc = []
                self.block("" if m.group(1) == "rlx" else m.group(1).removeprefix("rlx::") + "::", self.free, True)
            self.doc = []
            return
        doc, self.doc = " ".join(self.doc), []
        start = self.at
        while self.at < len(self.s):
            c = self.s[self.at]
            if self.s.startswith("//", self.at):
                self.at = self.s.find("\n", self.at)
                continue
            if c == '"':
                self.skip_text()
                continue
            if c in "([":
                self.skip_balanced()
                continue
            if c in ";{":
                break
            self.at += 1
        head = re.sub(r"//[^\n]*", "", self.s[start : self.at])
        head = " ".join(head.split())
        ends_with_brace = self.s[self.at : self.at + 1] == "{"
        kinds = r"(?:template ?<[^{;]*?> ?)?(enum class|class|struct)"
        m = re.match(kinds + r"(?: \[\[.*?\]\])? ([\w:]+)( final)?( ?:[^:].*)?$", head)
        if m and ends_with_brace and "(" not in head.split(":")[0]:
            self.at += 1
            name, kind = scope + m.group(2), m.group(1)
            made = Class(name, kind, doc)
            if shown and not re.match(r"std\b|.*detail", name) and not head.startswith("template <>"):
                self.classes.append(made)
            if kind == "enum class":
                self.enumerators(made)
            else:
                keep = self.section, self.gap
                self.section, self.gap = "", True
                self.block(name + "::", made, shown=kind == "struct")
                self.section, self.gap = keep
            rest = re.compile(r"[^;]*;[ \t]*").match(self.s, self.at)
            self.at = rest.end() if rest else self.at
            return
        if ends_with_brace and ("(" not in head or re.search(r"= ?[\w:<>]*$", head)):
            # A field with a value in braces.
            while self.s[self.at] != ";":
                if self.s[self.at] in "([{":
                    self.skip_balanced()
                else:
                    self.at += 1
            head = " ".join(self.s[start : self.at].split()).removesuffix("{}")
            self.at += 1
        elif ends_with_brace:
            # The body of a function, after members in braces.
            self.skip_balanced()
            while re.search(r"\)( const)?( noexcept)? : ", head):
                m = re.compile(r"\s*(,\s*[\w:<>]+\s*)?(?=[({])").match(self.s, self.at)
                if not m or not (m.group(1) or self.s[m.end()] == "{"):
                    break
                self.at = m.end()
                self.skip_balanced()
            rest = re.compile(r"[ \t]*;").match(self.s, self.at)
            self.at = rest.end() if rest else self.at
        else:
            self.at += 1
        trailing = re.compile(r"[ \t]*//(?! ?NOLINT) ?([^\n]*)").match(self.s, self.at)
        if trailing:
            self.at = trailing.end()
            more = re.compile(r"\n[ \t]+// ?(?![-/])([^\n]*)")
            text = trailing.group(1)
            column = self.s[: trailing.start(1)].rsplit("\n", 1)[-1]
            while True:
                next_line = more.match(self.s, self.at)
                # The comment goes on below itself only.
                if not next_line or len(next_line.group(0).split("//")[0]) - 1 < len(column) - 4:
                    break
                text += " " + next_line.group(1)
                self.at = next_line.end()
            doc = doc or text
        else:
            skip = re.compile(r"[ \t]*// ?NOLINT[^\n]*").match(self.s, self.at)
            self.at = skip.end() if skip else self.at
        if shown:
            self.record(owner, head, doc, ends_with_brace)
        self.gap = False

    def skip_text(self):
        m = re.compile(r'"(?:\\.|[^"\\])*"').match(self.s, self.at)
        self.at = m.end() if m else self.at + 1

    def enumerators(self, made):
        end = self.at
        depth = 1
        while depth:
            if self.s.startswith("//", end):
                end = self.s.find("\n", end)
            depth += (self.s[end] == "{") - (self.s[end] == "}")
            end += 1
        for line in self.s[self.at : end - 1].split("\n"):
            code, _, text = line.partition("//")
            names = [n.split("=")[0].strip() for n in code.split(",") if n.strip()]
            if not names and text and made.members:
                made.members[-1].doc += " " + text.strip()
            for name in names:
                made.members.append(Declaration(name, text.strip(), "", True))
        self.at = end

    def record(self, owner, head, doc, has_body):
        if re.match(r"RLX_FOR_EACH_FUNCTION", head):
            for name, text, params in functions_of_one_operand():
                more = {"0": "", "1": ", std::optional<double> alpha = {}"}.get(
                    params, ", std::optional<double> alpha = {}, std::optional<double> beta = {}"
                )
                owner.members.append(Declaration(f"Expr {name}(Operand x{more})", "", self.section, False))
            return
        other = r"(friend class|friend struct|using|typedef|static_assert|extern|class \w+$|struct \w+$|enum |RLX_)"
        if re.match(other, head):
            if head.startswith("using ") and " = " in head:
                owner.members.append(Declaration(head, doc, self.section, self.gap or bool(doc)))
            return
        if re.search(r"= ?(default|delete)$", head) or head.startswith("~") or "[[deprecated" in head or "~" in head:
            return
        if re.match(r"template ?<>", head):
            return
        head = without_template(head)
        head = re.sub(r"\[\[nodiscard\]\] |\[\[noreturn\]\] ", "", head)
        for word in ("inline ", "explicit ", "constexpr ", "friend ", "virtual ", "static constexpr "):
            head = head.removeprefix(word)
        if "(" in head and not re.search(r"= ?\{?$|^std::function", head):
            head = re.sub(r"\)( const)?( noexcept)?( override)? : .*$", r")\1", head)
        head = re.sub(r",? ?SourceLoc loc = SourceLoc::current\(\)", "", head)
        head = re.sub(r"std::(int64_t|size_t|uint64_t|uint32_t|int32_t|uint8_t|byte)\b", r"\1", head)
        head = head.strip()
        name = called(head)
        if not head or (name and "::" in name) or "operator=(" in head:
            return
        n = re.escape(name or "")
        if name and re.fullmatch(rf"{n}\((const {n}&|{n}&&)( \w+)?\)( noexcept)?", head):
            return  # copies and moves
        owner.members.append(Declaration(head, doc, self.section, self.gap or bool(doc)))


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def code(text):
    return f"`{cell(text)}`".replace("[](", "[] (")  # which is no link


def wrapped(text):
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def table(members):
    """Rows of declarations; those right below one with a comment share it."""
    rows, group = [], []

    def close():
        if group:
            rows.append(f"| {'<br>'.join(code(d.text) for d in group)} | {cell(group[0].doc)} |")
            group.clear()

    section = None
    for d in members:
        if d.section != section:
            close()
            section = d.section
            if section:
                rows.append(f"| **{cell(section)}** | |")
        overload = group and called(d.text) and called(d.text) == called(group[0].text)
        if d.doc or group and group[0].doc and not overload:  # those without a sentence are in one row
            close()
        group.append(d)
    close()
    return "| | |\n|---|---|\n" + "\n".join(rows) + "\n"


def examples():
    """Group -> lines of the function of that name in the example."""
    found = {}
    for m in re.finditer(r"^void (\w+)\(\) \{\n(.*?)^\}\n", EXAMPLES.read_text(), re.S | re.M):
        found[m.group(1)] = m.group(2)
    return found


def op_sentences():
    """op -> its sentence in docs/ops.md."""
    found = re.findall(r"^### `(\w+)`\n\n([^\n]+)\n", (ROOT / "docs/ops.md").read_text(), re.M)
    return dict(found)


def text():
    shown = examples()
    ops = op_sentences()
    used = set()
    out, problems = [HEADER, "\n"], []
    out.append("| group | |\n|---|---|\n")
    body = []
    for title, example, words, headers in GROUPS:
        names = []
        part = [f"\n## {title}\n"]
        if words:
            part.append("\n" + wrapped(words) + "\n")
        if example in shown:
            part.append(f"\n```cpp\n{shown[example]}```\n")
            used.add(example)
        else:
            problems.append(f"{EXAMPLES.name} has no function {example}()")
        for header in headers:
            free, classes = Reader((ROOT / "rlx" / header).read_text()).read()
            for made in classes:
                internal = re.match(r"Leaf|(.*::)?GraphLife|UseIndex|ValueSlots|DTypeOf", made.name)
                if internal or not (made.members or made.doc):
                    continue
                if "::" not in made.name:
                    names.append(made.name)
                kind = "enum" if made.kind.startswith("enum") else made.kind
                part.append(f"\n### {kind} `{made.name}`\n")
                part.append("\n" + (wrapped(made.doc) + "\n\n" if made.doc else ""))
                if header.startswith(("models", "formats", "generation", "backends")):
                    part.append(f"`#include <rlx/{header}>`\n\n")
                if made.name == "Builder":
                    for d in made.members:
                        d.doc = d.doc or ops.get(called(d.text), "")
                if made.members:
                    part.append(table(made.members))
                if not made.doc:
                    problems.append(f"rlx/{header}: {made.name} has no comment")
            if free.members:
                names += sorted({m.group(1) for d in free.members if (m := re.search(r"(\w+)\(", d.text))})[:6]
                part.append(f"\n### Functions of `rlx/{header}`\n\n{table(free.members)}")
        anchor = title.lower().replace(" ", "-").replace(",", "")
        few = ", ".join(f"`{n}`" for n in names[:8])
        out.append(f"| [{title}](#{anchor}) | {few} |\n")
        body += part
    for name in sorted(set(shown) - used):
        problems.append(f"{EXAMPLES.name}: {name}() belongs to no group")
    page = "".join(out + body)
    while "\n\n\n" in page:
        page = page.replace("\n\n\n", "\n\n")
    return page, problems


if __name__ == "__main__":
    sys.exit(write_reference(__doc__, PAGE, text))
