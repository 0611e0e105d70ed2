"""Names of jax for the devices of the machine, and for scopes that only profilers and checkers read."""

import contextlib

from . import _rlx, tree


def device_put(x, device=None, *, src=None, donate=False, may_alias=None):
    """The leaves of a tree as arrays on a device: a name such as "cpu" or "vulkan:0"; None: where they are, or the cpu.
    Inside of compiled functions, which run on one device, the device has no effect. The other arguments have none.
    """
    if device is not None and not isinstance(device, str):
        raise TypeError(f"device_put: a device is a name, as rlx.devices() gives them, not {type(device).__name__}")
    if _rlx.tracing():
        return tree.map(_rlx.value, x)
    from ._arrays import asarray

    def put(leaf):
        leaf = leaf if isinstance(leaf, _rlx.Array) else asarray(leaf)
        return leaf if device is None else leaf.to(device)

    return tree.map(put, x)


def device_get(x):
    """The leaves of a tree as NumPy arrays."""
    import numpy

    return tree.map(lambda leaf: numpy.asarray(leaf) if isinstance(leaf, _rlx.Array) else leaf, x)


def local_devices(*args, **kwargs):
    """The devices that can be used, as rlx.devices(); arguments have no effect."""
    return _rlx.devices()


def device_count(backend=None):
    """The number of devices that a program runs on: 1."""
    return 1


def local_device_count(backend=None):
    """The number of devices that a program runs on: 1."""
    return 1


def process_count(backend=None):
    """The number of processes that a program runs in: 1."""
    return 1


def process_index(backend=None):
    """The number of this process: 0."""
    return 0


def default_backend():
    """The device that functions run on unless another one is named: "cpu"."""
    return "cpu"


def typeof(x):
    """The shape and the dtype of an array, a number or a traced value, as an rlx.ShapeDtype."""
    from ._jit import ShapeDtype

    if not isinstance(x, _rlx.Value):
        from ._arrays import asarray

        x = asarray(x)
    return ShapeDtype(x.shape, x.dtype)


@contextlib.contextmanager
def named_scope(name):
    """A context without effect; timelines show the lines of your code."""
    yield


def named_call(fun, *, name=None):
    """fun: the name has no effect."""
    return fun
