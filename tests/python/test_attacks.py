"""Files and texts that make much of little are refused, or cost little: at most 5 s and 1 GiB each (attacks.py)."""

import pathlib
import subprocess
import sys

import attacks
import pytest

GROUPS = 2


@pytest.mark.rotates(2)
@pytest.mark.parametrize("group", range(GROUPS))
def test_attacks(group):
    names = list(attacks.ATTACKS)[group::GROUPS]
    program = [sys.executable, str(pathlib.Path(attacks.__file__)), *names]
    done = subprocess.run(program, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(names)
    assert "Error: 'internal" not in done.stdout, done.stdout


@pytest.mark.parametrize(
    "name",
    [
        "keys of shared tuples",
        "unique of shared tuples",
        "a quadratic pattern",
        "a pattern that looks ahead",
        "a short match after a long look",
        "decoders that double",
        "decoders that double by patterns",
        "decoders that double the whole text",
        "long pieces",
        "a long piece that never matches",
        "GGUF of empty texts",
        "settings without end",
    ],
)
def test_what_took_for_ever_is_refused(name, tmp_path):
    import rlx

    with pytest.raises(rlx.Error, match="too many steps|far more text|far longer|at most"):
        attacks.ATTACKS[name](str(tmp_path))
