"""Random numbers with explicit keys: key = rlx.random.key(0); a, b = rlx.random.split(key); rlx.random.normal(a, (3,)).

The same key gives the same bits on every device and thread count; bits are those of jax.random with threefry2x32.
"""

from . import _rlx
from . import numpy as rnp
from ._op import creator as _creator
from ._op import op as _op


def _dims(shape):
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


@_creator
def key(seed):
    """The key of an integer seed, uint32 [2]."""
    return _rlx.rng_key(seed % 2**64)


PRNGKey = key


@_op("key")
def split(key, num=2):
    """num keys of one, uint32 [num, 2]."""
    return _rlx.rng_split([key], num)


@_op("key", "data")
def fold_in(key, data):
    """The key of a key and an integer."""
    return _rlx.rng_fold_in([key, data])


@_op("key")
def bits(key, shape=(), dtype="uint32"):
    """Random unsigned integers, all bits of them."""
    return _rlx.rng_bits([key], _dims(shape), dtype)


@_op("key")
def uniform(key, shape=(), dtype="float32", minval=0.0, maxval=1.0):
    """Numbers in [minval, maxval)."""
    return _rlx.rng_uniform([key], _dims(shape), dtype, float(minval), float(maxval))


@_op("key")
def normal(key, shape=(), dtype="float32"):
    """Numbers of the normal distribution, mean 0 and variance 1."""
    return _rlx.rng_normal([key], _dims(shape), dtype)


@_op("key")
def bernoulli(key, p=0.5, shape=()):
    """True with probability p."""
    return _rlx.rng_bernoulli([key], float(p), _dims(shape))


@_op("key")
def randint(key, shape, minval, maxval, dtype="int32"):
    """Integers in [minval, maxval); of spans that are no power of two some are likelier, by less than 2^-32."""
    if not minval < maxval:
        raise ValueError(f"randint: no integers in [{minval}, {maxval})")
    span = maxval - minval
    wide = bits(key, shape, "uint64")
    return rnp.astype(rnp.add(rnp.astype(rnp.remainder(wide, rnp.asarray(span, "uint64")), "int64"), minval), dtype)


@_op("key", "logits")
def categorical(key, logits, axis=-1, shape=None):
    """Indices drawn by their logits along an axis."""
    logits = _rlx.value(logits)
    u = uniform(key, logits.shape, "float32", 1e-38, 1.0)
    return rnp.argmax(logits - rnp.log(-rnp.log(u)), axis)


def permutation(key, x, axis=0):
    """The rows of x (or range(x)) in a random order."""
    return _permuted(key, rnp.arange(x) if isinstance(x, int) else x, axis)


@_op("key", "x")
def _permuted(key, x, axis):
    x = _rlx.value(x)
    order = rnp.argsort(bits(key, (x.shape[axis],), "uint64"))
    return rnp.take(x, order, axis)
