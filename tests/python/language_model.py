"""What the tests of language models share: the command, a text, settings of sampling."""

import os
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLI = pathlib.Path(os.environ.get("RLX_CLI", ROOT / "build" / "dev" / "rlx"))
TEXT = "Then the other one said: thé end — 中文."
SETTINGS = [
    dict(seed=7, temperature=0.8, top_k=40, top_p=0.9),
    dict(seed=2**64 - 1, min_p=0.05, repetition_penalty=1.2, penalty_window=-1, dynamic_range=0.3),
    dict(seed=3, mirostat=2, mirostat_tau=4.0),
    dict(seed=4, typical_p=0.9, xtc_probability=0.5, xtc_threshold=0.05, dry_multiplier=0.8, top_n_sigma=2.5),
    dict(seed=5, order="top_k;temperature", top_k=5, frequency_penalty=1.0),
]


def closeness(ours, theirs):
    """The largest distance as a part of the largest logit; NaN is no closeness."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs)
    assert ours.shape == theirs.shape and np.isfinite(ours).all()
    return np.abs(ours - theirs).max() / np.abs(theirs).max()
