"""Tests of random numbers against their distribution, for cases in which two engines have different generators. A sound
generator fails a test once in a million tries.
"""

import math

import numpy as np

KINDS = ("bits", "uniform", "normal")


def faults(y, kind):
    """The tests that the numbers fail, in words. bits: uint32; uniform: [0, 1)."""
    y = np.asarray(y).reshape(-1)
    if kind == "bits":
        if y.dtype != np.uint32:
            return [f"numbers of {y.dtype}, not of uint32"]
        x = y / 2.0**32
    elif y.dtype.kind != "f":
        return [f"numbers of {y.dtype}, not of a float type"]
    else:
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            return [f"{np.count_nonzero(~np.isfinite(y))} numbers are not finite"]
        if kind == "uniform" and not ((y >= 0) & (y < 1)).all():
            return [f"numbers from {y.min()} to {y.max()}, not of [0, 1)"]
        x = y if kind == "uniform" else np.frompyfunc(math.erf, 1, 1)(y / math.sqrt(2)).astype(float) / 2 + 0.5
    n, out = x.size, []
    ordered, steps = np.sort(x), np.arange(n) / n
    distance = max(np.abs(ordered - steps).max(), np.abs(ordered - steps - 1 / n).max())
    if not distance * math.sqrt(n) <= 2.7:
        out.append(f"its distribution is {distance:.1e} away from the {kind} one (Kolmogorov-Smirnov, {n} numbers)")
    centred = x - x.mean()
    correlation = (centred[1:] * centred[:-1]).mean() / max(centred.var(), 1e-300)
    if not abs(correlation) * math.sqrt(n) <= 5:
        out.append(f"neighbours correlate by {correlation:.1e}")
    if kind == "bits":
        for bit in range(32):
            share = (y >> np.uint32(bit) & np.uint32(1)).mean()
            if not abs(share - 0.5) * 2 * math.sqrt(n) <= 6:
                out.append(f"bit {bit} is set in {share:.2%} of the numbers")
        twice, expected = n - np.unique(y).size, n * (n - 1) / 2**33
        if twice > expected + 6 * math.sqrt(expected) + 6:
            out.append(f"{twice} numbers come twice, {expected:.0f} of these are by chance")
    return out
