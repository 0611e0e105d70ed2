"""What the tests of the benches share: the modules of bench/peers, and numpy where it is there."""

import importlib.util
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PEERS = ROOT / "bench/peers"
sys.path.insert(0, str(PEERS))

HAS_NUMPY = importlib.util.find_spec("numpy") is not None or bool(os.environ.get("RLX_REQUIRE_ALL_TESTS"))
needs_numpy = unittest.skipUnless(HAS_NUMPY, "NumPy is missing")


def scripts():
    """The benches that are Python programs."""
    found = []
    for path in sorted((ROOT / "bench").iterdir()):
        if path.is_file() and path.suffix in ("", ".py") and path.read_bytes().startswith(b"#!"):
            found.append(path)
    return found
