"""Methods and attributes of arrays that NumPy, JAX and the array API standard have besides operators and functions."""

import functools

from . import _rlx
from . import numpy as rnp
from ._nodes import node
from ._op import op

_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def _namespace(self, *, api_version=None):
    """The module rlx.numpy, as the array API standard asks for it."""
    if api_version not in (None, *_API_VERSIONS):
        raise ValueError(f"array API {api_version!r}; the versions are {', '.join(_API_VERSIONS)}")
    return rnp


def _to_device(self, device, *, stream=None):
    """The array on a device, as x.to(device)."""
    if stream is not None:
        raise ValueError("to_device: rlx has no streams; leave stream=None")
    if not isinstance(device, str):
        raise TypeError(f"to_device: device must be a text, got {device!r} ({type(device).__name__})")
    return self.to(device)


def _contains(self, item):
    return bool(rnp.any(rnp.equal(self, item)))


_PARTS = {"complex64": "float32", "complex128": "float64", "bool": "uint8"}


def _bits(dtype):
    return 8 if dtype.kind == "b" else dtype.bits


@op("x")
def _bitcast(x, dtype, shape):
    """The bytes of x as elements of another dtype, in a shape."""
    x, dtype = _rlx.value(x), _rlx.dtype(dtype)
    if x.dtype.kind == "c":
        x = rnp.stack([rnp.real(x), rnp.imag(x)], -1)
    elif x.dtype.kind == "b":
        x = node("cast", x, to=_rlx.dtype("uint8"))
    part = _rlx.dtype(_PARTS.get(dtype.name, dtype))
    if x.dtype != part:
        per = part.bits // x.dtype.bits
        x = node("bitcast", rnp.reshape(x, (-1, per)) if per > 1 else x, to=part)
    if dtype.kind == "c":
        x = rnp.reshape(x, (-1, 2))
        x = node("complex", x[:, 0], x[:, 1])
    elif dtype.kind == "b":
        x = rnp.not_equal(x, 0)
    return rnp.reshape(x, shape)


def _view(self, dtype=None, *more):
    """The same bytes as elements of another dtype. The last axis grows or shrinks with the size of an element."""
    if more or isinstance(dtype, (int, tuple, list)):
        raise TypeError("view takes a dtype; x.reshape(shape) gives an array another shape")
    dtype = self.dtype if dtype is None else _rlx.dtype(dtype)
    if dtype == self.dtype:
        return self
    old, new = _bits(self.dtype), _bits(dtype)
    if old != new and (self.ndim == 0 or (self.shape[-1] * old) % new):
        raise ValueError(
            f"view of {self.dtype.name}{list(self.shape)} as {dtype.name}: the last axis does not hold whole elements"
        )
    shape = self.shape if old == new else (*self.shape[:-1], self.shape[-1] * old // new)
    return _bitcast(self, dtype, shape)


def _byteswap(self):
    """The array with the bytes of each element in the other order; of each part of complex numbers."""
    size = self.dtype.itemsize // (2 if self.dtype.kind == "c" else 1)
    if size == 1:
        return self
    flat = rnp.ravel(self)
    swapped = rnp.flip(rnp.reshape(flat.view("uint8"), (-1, size)), -1)
    return rnp.reshape(rnp.ravel(swapped).view(self.dtype), self.shape)


def _tobytes(self, order="C"):
    """The elements as bytes, row by row; with order "F" column by column."""
    import numpy as np

    return np.asarray(self.to_host()).tobytes(order)


def _item_of(item):
    @functools.wraps(item)
    def call(self, *index):
        """The element as a Python number: the only one, that of a flat index, or that of an index for each axis."""
        if not index:
            return item(self)
        index = index[0] if len(index) == 1 else index
        if isinstance(index, tuple):
            if len(index) != self.ndim:
                raise ValueError(f"item: {len(index)} indices for an array with {self.ndim} axes")
            return item(self[index])
        return item(rnp.ravel(self)[index])

    return call


# Methods of arrays of other libraries, and what to use instead.
_INSTEAD = {
    "backward": "rlx.grad(f)(x), of a function f",
    **{f"{op}_": "arrays do not change: x = x + y" for op in "add copy div fill mul sub zero".split()},
    "add": "x + y",
    "bmm": "x @ y",
    "bool": "x.astype(bool)",
    "byte": "x.astype(rlx.uint8)",
    "chunk": "rlx.numpy.array_split(x, parts, axis)",
    "contiguous": "arrays are contiguous",
    "cpu": 'x.to("cpu")',
    "cuda": "x.to(device); rlx.devices() lists the devices",
    "clone": "arrays do not change; rlx.numpy.copy(x) makes a copy",
    "detach": "rlx.stop_gradient(x)",
    "dim": "x.ndim",
    "div": "x / y",
    "double": "x.astype(rlx.float64)",
    "eval": "results are computed at once",
    "expand": "rlx.numpy.broadcast_to(x, shape)",
    "float": "x.astype(rlx.float32)",
    "half": "x.astype(rlx.float16)",
    "int": "x.astype(rlx.int32)",
    "long": "x.astype(rlx.int64)",
    "masked_fill": "rlx.numpy.where(mask, value, x)",
    "matmul": "x @ y",
    "mm": "x @ y",
    "mul": "x * y",
    "norm": "rlx.numpy.linalg.norm(x)",
    "numel": "x.size",
    "numpy": "numpy.asarray(x)",
    "permute": "x.transpose(axes)",
    "requires_grad": "rlx.grad(f)(x), of a function f",
    "resize": "rlx.numpy.resize(x, shape)",
    "sub": "x - y",
    "strides": "arrays are stored row by row",
    "to_numpy": "numpy.asarray(x)",
    "tofile": "numpy.asarray(x).tofile",
    "type": "x.astype(dtype)",
    "topk": "rlx.lax.top_k(x, k)",
    "unsqueeze": "rlx.numpy.expand_dims(x, axis)",
}


_FUNCTIONS = """abs ceil cos cosh cross diff einsum equal exp expand_dims floor isfinite isinf isnan log log1p maximum
median minimum moveaxis nanmean nansum outer pad pow quantile roll sign sin sinh split sqrt square stack tan tanh
tensordot tile tril triu unique where""".split()
_INSTEAD |= {name: f"rlx.numpy.{name}(x, ...)" for name in _FUNCTIONS}
_INSTEAD |= {name: f"rlx.nn.{name}(x)" for name in "log_softmax relu sigmoid softmax".split()}


class _Advice:
    """An attribute that arrays do not have. A `__getattr__` would slow down every other attribute."""

    def __init__(self, name):
        self.name = name

    def __get__(self, obj, cls):
        raise AttributeError(f"{cls.__name__!r} object has no attribute {self.name!r}: {_INSTEAD[self.name]}")


def _dir(self):
    return [name for name in object.__dir__(self) if name not in _INSTEAD]


def _of_numpy(self, name):
    """Attributes of dtypes that NumPy has and rlx does not, such as type, str and char: those of NumPy's dtype."""
    if name == "__name__":  # that of the scalar type of NumPy, which programs print
        return self.name
    if name.startswith("_"):
        raise AttributeError(f"rlx.dtype has no attribute {name!r}")
    try:
        return getattr(self.dtype, name)
    except AttributeError:
        raise AttributeError(f"rlx.dtype has no attribute {name!r}") from None


def named(function, name):
    """The function under a public name, which Python puts into errors about its arguments."""
    function.__name__ = function.__qualname__ = name
    return function


def install():
    """Adds the methods to the classes of arrays, traced values and dtypes."""
    for cls in (_rlx.Array, _rlx.Value):
        cls.__array_namespace__ = _namespace
        cls.__contains__ = _contains
        cls.view = named(_view, "view")
        cls.byteswap = named(_byteswap, "byteswap")
        for name in _INSTEAD:
            setattr(cls, name, _Advice(name))
        cls.__dir__ = _dir
        cls.itemsize = property(lambda self: self.dtype.itemsize, doc="Bytes of an element.")
        cls.flat = property(lambda self: rnp.ravel(self), doc="The elements as a vector.")
    _rlx.Value.nbytes = property(lambda self: self.size * self.dtype.itemsize, doc="Bytes of all elements.")
    array = _rlx.Array
    array.to_device = named(_to_device, "to_device")
    array.tobytes = named(_tobytes, "tobytes")
    array.item = _item_of(array.item)
    _rlx.dtype.__getattr__ = _of_numpy
