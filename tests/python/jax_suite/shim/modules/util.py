"""jax._src.util: small helpers of tests."""

import functools
import itertools


def safe_map(f, *args):
    args = [list(a) for a in args]
    if any(len(a) != len(args[0]) for a in args[1:]):
        raise AssertionError(f"length mismatch: {[len(a) for a in args]}")
    return [f(*row) for row in zip(*args)]


def safe_zip(*args):
    args = [list(a) for a in args]
    if any(len(a) != len(args[0]) for a in args[1:]):
        raise AssertionError(f"length mismatch: {[len(a) for a in args]}")
    return list(zip(*args))


def unzip2(pairs):
    first, second = [], []
    for a, b in pairs:
        first.append(a)
        second.append(b)
    return tuple(first), tuple(second)


def split_list(values, ends):
    values, out = list(values), []
    for n in ends:
        out.append(values[:n])
        values = values[n:]
    return out + [values]


def tuple_update(t, index, value):
    return tuple(t[:index]) + (value,) + tuple(t[index + 1 :])


def concatenate(lists):
    return list(itertools.chain.from_iterable(lists))


def wraps(function, *args, **kwargs):
    return functools.wraps(function)


def install_failure_signal_handler():
    pass


def prod(values):
    import math

    return math.prod(values)


test_event_listener = None
