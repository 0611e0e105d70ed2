"""usage: check_syntax.py COMPILE_COMMANDS [FOLDER...] [--part K/N]

Runs the commands of a compile_commands.json with -fsyntax-only, one per core; exits 1 when any of them fails. With
folders of the project, only those of files in them; with --part only every N-th of these, from the K-th on.
"""

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def syntax_command(command: str) -> list[str]:
    words = shlex.split(command)
    out = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MT"):
            skip = True
        elif word not in ("-c", "-MD", "-O2", "-O3", "-g1"):
            out.append(word)
    # A launcher such as `env X=Y ccache` has nothing to cache here.
    while out and "clang" not in os.path.basename(out[0]):
        out.pop(0)
    return out + ["-fsyntax-only"]


def check(entry: dict) -> tuple[str, int, str]:
    done = subprocess.run(
        syntax_command(entry["command"]),
        cwd=entry["directory"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return entry["file"], done.returncode, done.stdout


def main() -> int:
    words = sys.argv[1:]
    part, parts = 0, 1
    if "--part" in words:
        at = words.index("--part")
        part, parts = map(int, words[at + 1].split("/"))
        del words[at : at + 2]
    with open(words[0]) as file:
        entries = json.load(file)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = tuple(os.path.join(root, folder) + os.sep for folder in words[1:])
    if folders:
        entries = [entry for entry in entries if entry["file"].startswith(folders)]
    entries = entries[part % parts :: parts]
    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cores) as pool:
        num_failed = 0
        for name, code, text in pool.map(check, entries):
            if code != 0:
                num_failed += 1
                print(f"{name}:\n{text}", file=sys.stderr, flush=True)
    print(f"{len(entries) - num_failed} of {len(entries)} files accepted by clang")
    return 1 if num_failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
