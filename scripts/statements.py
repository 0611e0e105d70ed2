#!/usr/bin/env python3
"""Counts the statements of C++ sources: semicolons outside comments, strings and the headers of `for` loops.

    scripts/statements.py [--at COMMIT] [FOLDER]..

prints the count of each folder (default: rlx/) and of its subfolders, in the working tree or at a commit. It measures
how much code there is, whatever its line breaks and comments.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

SUFFIXES = {".cpp", ".h", ".inc"}
TOKENS = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r'|R"([^(\s"]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\''  # strings and characters
    r"|\bfor\s*\(|[();]",
    re.DOTALL,
)


def statements(text: str) -> int:
    """The number of statements of a source text."""
    count, depth = 0, []  # depth: the parentheses of open `for` headers
    for match in TOKENS.finditer(text):
        token = match.group()
        if token.startswith("for") and token.endswith("("):
            depth.append(1)
        elif token == "(" and depth:
            depth[-1] += 1
        elif token == ")" and depth:
            depth[-1] -= 1
            if depth[-1] == 0:
                depth.pop()
        elif token == ";" and not depth:
            count += 1
    return count


def sources(folder: str, commit: str | None):
    """Path and text of each source below `folder`."""
    if commit is None:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix in SUFFIXES:
                yield str(path), path.read_text(encoding="utf-8")
        return
    names = subprocess.check_output(["git", "ls-tree", "-r", "--name-only", commit, folder], text=True).splitlines()
    for name in names:
        if pathlib.PurePath(name).suffix in SUFFIXES:
            yield name, subprocess.check_output(["git", "show", f"{commit}:{name}"], text=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folders", nargs="*", default=["rlx"])
    parser.add_argument("--at", metavar="COMMIT", help="count a commit instead of the working tree")
    options = parser.parse_args()
    for folder in options.folders:
        counts = collections.Counter()
        for name, text in sources(folder, options.at):
            rest = pathlib.PurePath(name).relative_to(folder).parts
            counts[rest[0] if len(rest) > 1 else "."] += statements(text)
        print(f"{sum(counts.values()):8} {folder}")
        for part, count in sorted(counts.items(), key=lambda entry: -entry[1]):
            print(f"{count:8}   {part}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
