"""Operators, methods and indexing of arrays and of traced values: the functions of rlx.numpy."""

import functools

from . import _array_methods, _indexing, _rlx
from . import numpy as rnp
from ._names import a_function, guess
from ._nodes import extent_value
from ._op import refuse_traced


def _binary(f, swapped=False):
    if swapped:

        def op(self, other):
            return f(other, self) if _joins(other) else NotImplemented

    else:

        def op(self, other):
            return f(self, other) if _joins(other) else NotImplemented

    return op


def _joins(x):
    return isinstance(x, _rlx.Dim) or (_rlx.is_array_leaf(x) and not isinstance(x, (str, bytes)))


def _refuse_write(self, index, value=None):
    raise TypeError(
        "rlx arrays cannot be written in place: x = x.at[index].set(value) gives the changed array, and makes no copy "
        "if the old array is not used afterwards"
    )


def _refuse_update(name):
    def op(self, *args, **kwargs):
        raise TypeError(
            f"rlx arrays cannot be changed in place, as {name} would: x = x.at[index].set(value) gives the changed "
            "array, and functions of rlx.numpy return their results"
        )

    return op


def _refuse_choice(self):
    shape, where = self.shape, self.made_at
    raise TypeError(
        f"Python asked whether a traced value is true ({self.dtype.name}{list(shape)}, made at "
        f"{where[0]}:{where[1]}): its numbers "
        "exist only when the compiled function runs. Choose with rlx.numpy.where, rlx.cond or rlx.while_loop, or name "
        "the argument in static_argnames"
    )


def _refuse_hash(self):
    raise TypeError(
        f"a traced value is not hashable ({self.dtype.name}{list(self.shape)}): it is compared when the compiled "
        "function runs, so it cannot be a dict key or a set element"
    )


def _refuse_integer(self):
    refuse_traced(
        self,
        "an integer or an index in Python",
        "; rlx.lax.fori_loop, rlx.lax.dynamic_slice and rlx.array(list)[i] accept a traced value",
    )


def _refuse_number(kind):
    def op(self, *args, **kwargs):
        where = self.made_at
        raise TypeError(
            f"{kind} of a traced value ({self.dtype.name}{list(self.shape)}, made at "
            f"{where[0]}:{where[1]}): its numbers exist "
            "only when the compiled function runs. Use rlx.numpy inside it; rlx.numpy.astype casts. If Python must "
            "know the value while the function is traced, name the argument in static_argnames"
        )

    return op


def _iterate(self):
    if self.ndim == 0:
        wrong = TypeError("iteration over a scalar array")
        wrong._rlx_of_python = True  # a function whose argument this is shall be named
        raise wrong
    n = self.shape[0]
    if not isinstance(n, int):
        raise TypeError(f"iteration over an axis of symbolic extent {n}: rlx.scan iterates over its rows")
    return (self[i] for i in range(n))


def _length(self):
    if self.ndim == 0:
        raise TypeError("len() of a scalar array")
    n = self.shape[0]
    if not isinstance(n, int):
        raise TypeError(f"len() of an axis of symbolic extent {n}: use x.shape[0], which is symbolic")
    return n


def _numpy_function(self, ufunc, method, *inputs, **kwargs):
    """Makes NumPy's functions of traced values call the functions of rlx.numpy with the same name."""
    f = getattr(rnp, ufunc.__name__, None)
    if method != "__call__" or f is None or kwargs:
        raise TypeError(
            f"numpy.{ufunc.__name__} cannot take a traced value: use rlx.numpy"
            + ("" if f is None else f".{ufunc.__name__}")
        )
    return f(*inputs)


class _At:
    """x.at: functional updates, which return a changed copy of x."""

    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x

    def __getitem__(self, index):
        return _AtIndex(self.x, index)

    def __call__(self, *index):
        raise TypeError("x.at takes an index in brackets: x.at[index].set(values)")

    def __setitem__(self, index, values):
        raise TypeError("arrays do not change: y = x.at[index].set(values)")

    def __getattr__(self, name):
        raise AttributeError(f"x.at takes an index in brackets before {name!r}: x.at[index].set(values)")


class _AtIndex:
    """x.at[index]. `mode` says what index arrays do out of range, as in JAX. "drop" and "fill" ignore such elements
    (get gives NaN, the least integer, or fill_value there), "clip" takes the nearest element, "wrap" wraps around. The
    default is "clip" for get and "drop" for updates. The index may be an array of bools, with one number for all
    elements where it is True.
    """

    __slots__ = ("x", "index")

    def __init__(self, x, index):
        self.x, self.index = x, index

    def __getattr__(self, name):
        has = [n for n in dir(type(self)) if not n.startswith("_") and n not in self.__slots__]
        raise AttributeError(f"x.at[index] has no {name!r}: " + (guess(name, has) or f"it has {', '.join(has)}"))

    def set(self, values, *, mode=None, **hints):
        """x with x[index] = values."""
        return _update(self, values, "set", mode, hints)

    def add(self, values, *, mode=None, **hints):
        """x with values added to x[index]. Values of an index that occurs twice are both added."""
        return _update(self, values, "add", mode, hints)

    def subtract(self, values, *, mode=None, **hints):
        """x with values subtracted from x[index]."""
        return _update(self, rnp.negative(values), "add", mode, hints)

    def multiply(self, values, *, mode=None, **hints):
        """x with x[index] multiplied by values."""
        return _update(self, values, "mul", mode, hints)

    mul = multiply

    def divide(self, values, *, mode=None, **hints):
        """x with x[index] divided by values."""
        return self.x / _update(_AtIndex(rnp.ones_like(self.x), self.index), values, "mul", mode, hints)

    def power(self, values, *, mode=None, **hints):
        """x with x[index] raised to the power of values."""
        return self.x ** _update(_AtIndex(rnp.ones_like(self.x), self.index), values, "mul", mode, hints)

    def min(self, values, *, mode=None, **hints):
        """x with the smaller of x[index] and values."""
        return _update(self, values, "min", mode, hints)

    def max(self, values, *, mode=None, **hints):
        """x with the larger of x[index] and values."""
        return _update(self, values, "max", mode, hints)

    def apply(self, function, *, mode=None, **hints):
        """x with function(x[index]) at the index."""
        a_function(function, "apply: the argument")
        return _update(self, function(self.get(mode=mode)), "set", mode, hints)

    def get(self, *, mode=None, fill_value=None, **hints):
        """x[index], with fill_value where an index is out of range in mode "fill"."""
        index, mode = _index_of(self, hints, mode, "clip" if fill_value is None else "fill")
        return _indexing.get(self.x, index, mode, fill_value)


def _index_of(at, hints, mode, default):
    """(the index, the mode): accepts the hints of JAX. Only wrap_negative_indices=False changes the result."""
    for name in hints:
        if name not in ("indices_are_sorted", "unique_indices", "wrap_negative_indices"):
            raise TypeError(f"x.at[...] takes mode, fill_value of get, and JAX's hints; got {name!r}")
    if hints.get("wrap_negative_indices", True):
        return at.index, mode
    mode = default if mode is None else mode
    how = str(getattr(mode, "name", mode)).lower()
    if how == "wrap":
        return at.index, mode
    below = 0 if how in ("clip", "clamp") else 2**31 - 1
    entries = at.index if isinstance(at.index, tuple) else (at.index,)
    entries = tuple(_without_negative(i, below) for i in entries)
    return entries if isinstance(at.index, tuple) else entries[0], mode


def _without_negative(i, number):
    """The entry of an index with a number, 0 or one out of range, in place of negative ones."""
    if isinstance(i, list) or hasattr(i, "dtype"):
        i = rnp.asarray(i)
        return rnp.where(i < 0, number, i.astype("int64")) if i.dtype.kind == "i" else i
    return number if type(i) is int and i < 0 else i


def _update(at, values, how, mode, hints):
    index, mode = _index_of(at, hints, mode, "drop")
    return _indexing.update(at.x, index, values, how, mode)


_BINARY = {
    "add": rnp.add,
    "sub": rnp.subtract,
    "mul": rnp.multiply,
    "truediv": rnp.divide,
    "floordiv": rnp.floor_divide,
    "mod": rnp.remainder,
    "pow": rnp.power,
    "matmul": rnp.matmul,
    "and": rnp.bitwise_and,
    "or": rnp.bitwise_or,
    "xor": rnp.bitwise_xor,
    "lshift": rnp.left_shift,
    "rshift": rnp.right_shift,
    "divmod": rnp.divmod,
}
_COMPARE = {
    "eq": rnp.equal,
    "ne": rnp.not_equal,
    "lt": rnp.less,
    "le": rnp.less_equal,
    "gt": rnp.greater,
    "ge": rnp.greater_equal,
}
_METHODS = (
    "sum",
    "mean",
    "max",
    "min",
    "prod",
    "std",
    "var",
    "any",
    "all",
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
    "sort",
    "argsort",
    "ravel",
    "squeeze",
    "astype",
    "clip",
    "dot",
    "round",
    "conj",
    "conjugate",
    "swapaxes",
    "repeat",
    "take",
    "diagonal",
    "trace",
    "nonzero",
    "ptp",
    "choose",
    "searchsorted",
    "argpartition",
    "copy",
)


# NumPy's functions of these names call the method with out=None: np.sum(x) calls x.sum(out=None).
_WITH_OUT = frozenset(_METHODS) - {"astype", "sort", "argsort", "ravel", "copy", "swapaxes", "repeat", "squeeze"}


def _method(f):
    @functools.wraps(f)
    def method(self, *args, **kwargs):
        if kwargs and kwargs.pop("out", None) is not None:
            raise TypeError(f"{f.__name__}(out=...): rlx arrays are not written in place; use the result")
        return f(self, *args, **kwargs)

    return method


def _reshape(self, *shape, **kwargs):
    """The same elements in another shape: a tuple or several ints, one of which may be -1."""
    return rnp.reshape(self, shape[0] if len(shape) == 1 else shape, **kwargs)


def _transpose(self, *axes):
    """The array with its axes in this order, or reversed if none are given."""
    if not axes:
        return rnp.transpose(self)
    return rnp.transpose(self, axes[0] if len(axes) == 1 else axes)


def _compress(self, condition, axis=None, **kwargs):
    """The parts along an axis where condition is true, as rlx.numpy.compress."""
    return rnp.compress(condition, self, axis, **kwargs)


_array_methods.named(_compress, "compress")


def _set(cls, name, f, op, swapped=False):
    """Gives a class an operator. Those of arrays run without Python where they can."""
    if cls is _rlx.Array:
        _rlx.set_operator(name, f, op, swapped)
    else:
        setattr(cls, name, op)


def _common(cls):
    for name, f in _BINARY.items():
        _set(cls, f"__{name}__", f, _binary(f))
        _set(cls, f"__r{name}__", f, _binary(f, swapped=True), swapped=True)
    for name, f in _COMPARE.items():
        _set(cls, f"__{name}__", f, _binary(f))
    _set(cls, "__neg__", rnp.negative, lambda self: rnp.negative(self))
    _set(cls, "__abs__", rnp.abs, lambda self: rnp.abs(self))
    cls.__pos__ = lambda self: self
    cls.__round__ = lambda self, ndigits=None: rnp.round(self, ndigits or 0)
    _set(cls, "__invert__", rnp.invert, lambda self: rnp.invert(self))
    cls.__getitem__ = _indexing.getitem
    cls.__setitem__ = _refuse_write
    cls.__delitem__ = _refuse_write
    cls.__iter__ = _iterate
    cls.__array_priority__ = 100
    cls.at = property(_At)
    cls.T = property(lambda self: rnp.transpose(self), doc="The axes in reverse order.")
    cls.mT = property(lambda self: rnp.matrix_transpose(self), doc="The last two axes swapped.")
    cls.real = property(lambda self: rnp.real(self), doc="The real parts.")
    cls.imag = property(lambda self: rnp.imag(self), doc="The imaginary parts.")
    for name in _METHODS:
        f = getattr(rnp, name)
        setattr(cls, name, _method(f) if name in _WITH_OUT else f)
    cls.flatten = rnp.ravel
    cls.compress = _compress
    cls.reshape = _array_methods.named(_reshape, "reshape")
    cls.transpose = _array_methods.named(_transpose, "transpose")
    cls.fill, cls.put, cls.partition = map(_refuse_update, ("fill", "put", "partition"))


def _for_jax(self):
    """The array as a jax.Array: jax.numpy.asarray(x)."""
    import jax

    return jax.numpy.from_dlpack(self)


def _array_text(self):
    return f"{self._text()}"


def _array_repr(self):
    if self.ndim == 0 and self.size == 0:
        return "Array(donated: its bytes are those of a result now)"
    host = self.to_host()
    try:
        import numpy as np

        values = np.array2string(np.asarray(host), separator=", ", prefix="Array(")
    except Exception:  # noqa: BLE001  repr never fails
        values = host._text()
    weak = ", weak_type=True" if self.weak_type else ""
    if self.size == 0:
        values = f"[], shape={self.shape}"
    where = f", device={self.device!r}" if self.device != "cpu" else ""
    return f"Array({values}, dtype={self.dtype.name}{weak}{where})"


def _array_str(self):
    if self.ndim == 0 and self.size == 0:
        return repr(self)
    import numpy as np

    return str(np.asarray(self))


def _value_repr(self):
    if not self.alive:
        where = self.made_at
        return f"Value(of a trace or graph that has ended, made at {where[0]}:{where[1]})"
    return f"Value({self._text()})"


def _extent_operator(name, f):
    """Adds an operator to symbolic extents. With an integer or an extent it gives an extent if the result is one;
    otherwise it gives a value.
    """
    plain = {swapped: getattr(_rlx.Dim, f"__{'r' * swapped}{name}__", None) for swapped in (False, True)}

    def make(swapped):
        def op(self, other):
            if isinstance(other, (int, _rlx.Dim)) and plain[swapped] is not None:
                return plain[swapped](self, other)
            if not _joins(other):
                return NotImplemented
            mine, other = extent_value(self), extent_value(other) if isinstance(other, _rlx.Dim) else other
            return f(other, mine) if swapped else f(mine, other)

        return op

    setattr(_rlx.Dim, f"__{name}__", make(False))
    setattr(_rlx.Dim, f"__r{name}__", make(True))


def _extent_comparison(name, f):
    """Adds a comparison to symbolic extents. With an array it compares element by element; with integers and extents it
    needs a known result.
    """
    plain = getattr(_rlx.Dim, f"__{name}__")

    def op(self, other):
        return f(extent_value(self), other) if isinstance(other, (_rlx.Array, _rlx.Value)) else plain(self, other)

    setattr(_rlx.Dim, f"__{name}__", op)


def install():
    """Adds operators and methods to the classes of arrays, traced values, extents and dtypes."""
    for cls in (_rlx.Array, _rlx.Value):
        _common(cls)
    _array_methods.install()
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        _extent_operator(name, _BINARY[name])
    for name, f in _COMPARE.items():
        _extent_comparison(name, f)
    _rlx.dtype.__call__ = _array_methods.named(_of_dtype, "dtype")
    value, array = _rlx.Value, _rlx.Array
    value.__bool__ = _refuse_choice
    value.__hash__ = _refuse_hash
    for name, kind in (
        ("__float__", "float()"),
        ("__int__", "int()"),
        ("__complex__", "complex()"),
        ("item", "item()"),
        ("tolist", "tolist()"),
        ("tobytes", "tobytes()"),
        ("__array__", "numpy.asarray()"),
        ("__dlpack__", "DLPack"),
    ):
        setattr(value, name, _refuse_number(kind))
    value.__index__ = _refuse_integer
    value.__len__ = _length
    value.__array_ufunc__ = _numpy_function
    value.__repr__ = value.__str__ = _value_repr
    array.__repr__ = _array_repr
    array.__jax_array__ = _for_jax
    array.__str__ = _array_str
    array.__format__ = lambda self, spec: format(self.item() if self.ndim == 0 and spec else str(self), spec)
    for cls in (array, value):  # neither ever changes
        cls.__copy__ = lambda self: self
        cls.__deepcopy__ = lambda self, memo: self
    array.__reduce__ = _pickle


def _of_dtype(self, value):
    """An array of this dtype."""
    return rnp.array(value, self)


def _unpickle(numpy_array, dtype, weak):
    return _rlx.array_from(numpy_array, dtype, True)._with_weak(weak)


def _pickle(self):
    import numpy as np

    return _unpickle, (np.array(self), self.dtype.name, self.weak_type)
