"""The environment in which transformers renders chat templates, written after its documentation, and a way to ask it
and the program chat_render for the same template."""

import datetime
import json
import re
import subprocess
import threading

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1753963200  # what strftime_now reads: 2025-07-31 12:00 UTC


class Generation(jinja2.ext.Extension):
    """{% generation %}: marks what the assistant wrote; the text is what the block renders."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(line)

    @jinja2.pass_context
    def _support(self, context, caller):
        return caller()


def make_environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(format):
        return datetime.datetime.fromtimestamp(NOW).strftime(format)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


ENVIRONMENT = make_environment()


def failure(e):
    if isinstance(e, jinja2.exceptions.TemplateSyntaxError):
        return type(e).__name__, e.message, e.lineno
    if isinstance(e, SyntaxError):
        return type(e).__name__, e.msg, None
    return type(e).__name__, str(e), None


def theirs(source, many_variables):
    """For each set of variables ("text", text) or (class, message, line) of what is raised."""
    try:
        template = ENVIRONMENT.from_string(source)
    except Exception as e:
        return [failure(e)] * len(many_variables)
    out = []
    for variables in many_variables:
        try:
            out.append(("text", template.render(**variables)))
        except Exception as e:
            out.append(failure(e))
    return out


class Ours:
    """The program chat_render, kept running."""

    def __init__(self, tool):
        self.process = subprocess.Popen([tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, source, many_variables):
        jobs = [{"variables": v, "now": NOW} for v in many_variables]
        jobs[0]["template"] = source
        data = b"".join(json.dumps(job).encode() + b"\n" for job in jobs)
        writer = threading.Thread(target=lambda: (self.process.stdin.write(data), self.process.stdin.flush()))
        writer.start()
        answers = [json.loads(self.process.stdout.readline()) for _ in jobs]
        writer.join()
        return [("text", a["text"]) if "text" in a else (a["type"], a["message"], a["line"]) for a in answers]

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def has_address(result):
    """Python prints where an object lies in memory; no template can mean that."""
    return " at 0x" in result[1]


def same(ours, theirs):
    if theirs[0] == "RecursionError" and ours[0] == "limit":
        return "calls itself" in ours[1]
    pieces = re.compile(r"sequence item \d+")  # Python counts the pieces of the output, of which rlx makes others
    if ours[0] != theirs[0] or pieces.sub("", ours[1]) != pieces.sub("", theirs[1]):
        return False
    return theirs[0] == "text" or theirs[2] is None or ours[2] == theirs[2]
