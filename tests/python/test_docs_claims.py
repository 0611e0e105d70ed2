"""What pages name exists: environment variables and CMake options, files, presets, names of C++ and of Python."""

import importlib
import json
import pathlib
import re

import pytest
import rlx

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")),
    *sorted((ROOT / "rlx").rglob("README.md")),
    *(ROOT / folder / "README.md" for folder in ("bench", "cli", "python", "tests")),
]
SUFFIXES = {".cpp", ".h", ".inc", ".py", ".pyi", ".cmake", ".txt", ".sh", ".json", ".toml"}
PLACEHOLDERS = {"bench/NAME.cpp"}


@pytest.fixture(scope="module")
def sources():
    found = [(ROOT / name).read_text() for name in ("CMakeLists.txt", "CMakePresets.json", "pyproject.toml")]
    for folder in ("rlx", "cli", "python", "cmake", "tests", "bench", "scripts", "examples"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in SUFFIXES and file != pathlib.Path(__file__).resolve():
                found.append(file.read_text(errors="ignore"))
    return set(re.findall(r"\w+", "\n".join(found)))


def resolves(name):
    """Whether rlx.a.b is an attribute or a module."""
    value, parts = rlx, name.split(".")
    for i, part in enumerate(parts[1:], 2):
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        try:
            value = importlib.import_module(".".join(parts[:i]))
        except ImportError:
            return False
    return True


def problems(page, text, words, presets):
    """Sentences on names of a page that do not exist, and how many names there were."""
    found, count = [], 0
    for name in set(re.findall(r"\bRLX_[A-Z][A-Z0-9_]*\b", text)):
        count += 1
        if name not in words:
            found.append(f"{name}: no source reads it")
    for path in set(re.findall(r"`((?:rlx|examples|scripts|tests|cmake|docs|cli|python|bench)/[\w./-]+)`", text)):
        count += 1
        places = [ROOT / path, page.parent / path]
        if path not in PLACEHOLDERS and not any(p.exists() for p in places) and not any(ROOT.glob(path + "*")):
            found.append(f"{path}: there is no such file")
    for name in set(re.findall(r"--preset (\w[\w-]*)", text)):
        count += 1
        if name not in presets:
            found.append(f"{name}: no preset")
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    for code in re.findall(r"`([^`\n]+)`", prose):
        for name in re.findall(r"\b(?:[A-Za-z_]\w*::)+~?[A-Za-z_]\w*", code):
            count += 1
            parts = name.replace("~", "").split("::")
            of_others = parts[0] == "std" or parts[0].startswith("test_")
            if not of_others and any(p not in words and p != "rlx" for p in parts):
                found.append(f"{name}: no C++ name")
        for name in re.findall(r"\brlx(?:\.[A-Za-z_]\w*)+", code):
            file = re.search(r"\.(h|hxx|cpp|md|so|pc|gguf|npz|whl|txt|rlx|json)$", name)
            count += 1
            if not file and not resolves(name):
                found.append(f"{name}: no Python name")
    return found, count


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_a_page_names_exists(page, sources):
    presets = {p["name"] for p in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    found, _ = problems(page, page.read_text(), sources, presets)
    assert not found


def test_names_that_do_not_exist_are_found():
    text = (
        "`RLX_NO_SUCH` and `rlx/none.h`, `cmake --preset nvidia`, `Session::fly`, `rlx.numpy.no_such`, `rlx.jit`, "
        "`bench/NAME.cpp`, `docs/python.md`, `std::vector`, `Session::compile`"
    )
    words = {"Session", "compile"}
    found, count = problems(ROOT / "docs" / "x.md", text, words, {"dev"})
    assert len(found) == 5 and count == 10, (found, count)
