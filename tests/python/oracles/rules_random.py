"""JAX's random bits (threefry2x32, partitionable) without compiling anything. Salmon et al., SC 2011."""

import numpy as np

from .evaluator import rule

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(k0, k1, x0, x1):
    """Threefry-2x32 with 20 rounds of uint32 arrays."""
    with np.errstate(over="ignore"):
        keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
        x0, x1 = x0 + keys[0], x1 + keys[1]
        for i in range(5):
            for r in _ROTATIONS[i % 2]:
                x0 = x0 + x1
                x1 = (x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))
                x1 = x1 ^ x0
            x0 = x0 + keys[(i + 1) % 3]
            x1 = x1 + keys[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1


def _bits(key, shape, width):
    n = int(np.prod(shape, dtype=int))
    place = np.arange(n, dtype=np.uint64)
    x0, x1 = threefry(key[0], key[1], (place >> np.uint64(32)).astype(np.uint32), place.astype(np.uint32))
    if width == 64:
        out = (x0.astype(np.uint64) << np.uint64(32)) | x1.astype(np.uint64)
    else:
        out = (x0 ^ x1).astype(f"uint{width}")
    return out.reshape(shape)


@rule("random_wrap", "random_unwrap")
def _same(ev, eqn, ins):
    return ins[0]


@rule("random_bits")
def _random_bits(ev, eqn, ins):
    keys, shape, width = ins[0], eqn.params["shape"], eqn.params["bit_width"]
    lead = keys.shape[:-1]
    out = np.zeros((*lead, *shape), f"uint{width}")
    for place in np.ndindex(*lead):
        out[place] = _bits(keys[place], shape, width)
    return out


@rule("threefry2x32")
def _threefry2x32(ev, eqn, ins):
    return list(threefry(*ins))
