"""Which cases of a long list run: a sample, or all where RLX_ALL_CASES is set (scripts/test.sh --full does)."""

import os

EVERYTHING = bool(os.environ.get("RLX_ALL_CASES"))


def some(cases, n):
    """Every n-th of the cases, the first one among them; all in full runs."""
    cases = list(cases)
    return cases if EVERYTHING else cases[::n]
