"""The numbers that weights of references are drawn as, the same in C++ (tests/support) and here, of NumPy alone."""

import numpy as np

MASK = (1 << 64) - 1


def name_hash(name):
    """FNV-1a of the name, 64 bits."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def drawn(name, count):
    """`count` numbers in [-1, 1) with 24 bits, as f32: the output function of SplitMix64 over a counter."""
    with np.errstate(over="ignore"):
        x = np.uint64(name_hash(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(40)).astype(np.float32) / np.float32(1 << 23) - np.float32(1)
