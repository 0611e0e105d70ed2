"""Which cases of a long list run: all in full runs (RLX_ALL_CASES, which scripts/test.sh --full sets), else a sample."""

import os

EVERYTHING = bool(os.environ.get("RLX_ALL_CASES"))


def some(cases, n):
    """Every n-th of the cases, the first one among them; all in full runs."""
    cases = list(cases)
    return cases if EVERYTHING else cases[::n]
