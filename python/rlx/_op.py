"""What functions of arrays share: at once on arrays, as nodes on traced values."""

import functools

from . import _rlx


def refuse_traced(x, what, way=""):
    """Raises what is said of a traced value where something of Python belongs."""
    where = x.made_at
    raise TypeError(
        f"{what} is a traced value ({x.dtype.name}{list(x.shape)}, made at {where[0]}:{where[1]}): it must be known "
        f"while the function is traced: name the argument in static_argnames{way}"
    )


def _frozen(x, fun="", name="an argument"):
    """Lists and arrays in the static arguments of a call, as tuples."""
    if isinstance(x, (list, tuple)):
        return tuple(_frozen(i, fun, name) for i in x)
    if isinstance(x, _rlx.Value):
        refuse_traced(x, f"{getattr(fun, '__name__', fun)}: {name}")
    if isinstance(x, _rlx.Array) or (hasattr(x, "tolist") and hasattr(x, "shape") and not isinstance(x, type)):
        plain = x.tolist()
        return x if type(plain) is type(x) else _frozen(plain, fun, name)  # longdouble has no Python number
    return x


def _typed(x):
    """What tells static arguments apart that are equal, as 1, 1.0 and True are."""
    return tuple(_typed(i) for i in x) if isinstance(x, tuple) else (type(x), x)


def _has_value(x, kinds=_rlx.Value):
    if isinstance(x, kinds):
        return True
    return isinstance(x, (list, tuple)) and any(_has_value(i, kinds) for i in x)


def _large(x):
    """A Python integer that no integer dtype holds, of nested lists; None: there is none."""
    if isinstance(x, (list, tuple)):
        return next((n for n in map(_large, x) if n is not None), None)
    return x if type(x) is int and not -(2**63) <= x < 2**64 else None


def array_of_list(x, dtype=None, copy=False):
    """An array of nested lists of numbers."""
    try:
        return _rlx.array_from(x, dtype, copy)
    except _rlx.DTypeMismatch:
        large = _large(x)
        if large is None:
            raise
    raise _rlx.DTypeMismatch(f"the integer {large} fits no integer dtype\n  hint: write it as a float")


def _as_array(x):
    """An array of a nested list of numbers, arrays and traced values."""
    if not isinstance(x, (list, tuple)):
        return x
    if _has_value(x, (_rlx.Value, _rlx.Array)):
        from .numpy import stack

        return stack([_as_array(i) for i in x])
    return array_of_list(x)._with_weak(False)


# Arguments whose integers do not become elements of the arrays beside them.
_NO_ELEMENTS = frozenset(
    "key data minval maxval index indices start_index start_indices multi_index obj shift repeats".split()
)


def _check_numbers(numbers, beside, dtype=None):
    """Refuses a Python integer that the stated dtype, or the integer dtype of the arrays beside it, cannot hold, as a
    compiled function refuses it as a constant.
    """
    if dtype is None:
        arrays = [a for a in beside if isinstance(a, _rlx.Array) or (hasattr(a, "dtype") and hasattr(a, "shape"))]
        if not arrays:
            return
        dtype, weak = _rlx.result_type(*arrays)
        if weak:
            return
    if dtype.kind not in "iu":
        return
    low, high = (0, 2**dtype.bits - 1) if dtype.kind == "u" else (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1)
    for n in numbers:
        if not low <= n <= high:
            raise _rlx.DTypeMismatch(
                f"{n} is no value of {dtype.name}, which holds {low} to {high}\n  hint: cast the array, or write the "
                f"number with a dtype that holds it: rlx.array({n})"
            )


def names_of_variadic(code):
    """The name behind * in a function's parameters."""
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount]


def op(*arrays):
    """Makes fun, which builds nodes, a function of arrays too: `arrays` are its arguments that hold arrays, those with
    a star in front hold lists or other trees of them; all others are static. On arrays it is compiled once for each
    signature.
    """
    single = frozenset(a for a in arrays if not a.startswith("*"))
    arrays = frozenset(a.lstrip("*") for a in arrays)

    def decorate(fun):
        # inspect.signature says this too, but `import rlx` would wait for it.
        code = fun.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        statics = [n for n in names if n not in arrays]
        static_places = [i for i, n in enumerate(names[: code.co_argcount]) if n in statics]
        single_places = [n in single for n in names[: code.co_argcount]]
        variadic = code.co_flags & 4 and names_of_variadic(code) in single
        takes_any = code.co_flags & 8
        placed = names[: code.co_argcount]
        dtype_place = placed.index("dtype") if "dtype" in placed else None
        apart = {i for i, n in enumerate(placed) if n in statics or n in _NO_ELEMENTS}
        compiled = None

        @functools.wraps(fun)
        def call(*args, **kwargs):
            nonlocal compiled
            for i, a in enumerate(args):
                if isinstance(a, (list, tuple)) and (single_places[i] if i < len(single_places) else variadic):
                    args = (*args[:i], _as_array(a), *args[i + 1 :])
            for k in kwargs:
                if k in single:
                    kwargs[k] = _as_array(kwargs[k])
                elif k not in names and not takes_any:
                    raise TypeError(f"{fun.__name__} has no argument {k!r}; it has {', '.join(names)}")
            if len(args) > 1 or kwargs:
                args = [_frozen(a, fun, names[i]) if i in static_places else a for i, a in enumerate(args)]
                kwargs = {k: _frozen(v, fun, k) if k in statics else v for k, v in kwargs.items()}
            if _rlx.tracing():
                for i, a in enumerate(args):
                    if type(a) is _rlx.Dim and i not in static_places:
                        args = [*args[:i], extent_value(a), *args[i + 1 :]]
                for k, a in kwargs.items():
                    if type(a) is _rlx.Dim and k not in statics:
                        kwargs[k] = extent_value(a)
                return fun(*args, **kwargs)
            stated = dtype_place is not None and dtype_place < len(args)
            dtype = args[dtype_place] if stated else kwargs.get("dtype")
            large = [i for i, a in enumerate(args) if type(a) is int and not 0 <= a < 128 and i not in apart]
            if large:
                elements = [a for i, a in enumerate(args) if i not in apart]
                _check_numbers([args[i] for i in large], elements, None if dtype is None else _rlx.dtype(dtype))
            if dtype is not None and _rlx.dtype(dtype).name in ("float64", "complex128"):
                # Python's numbers keep all of their digits where the result is to have them.
                wide = lambda a: _rlx.array_from(a, dtype) if type(a) in (float, complex) else a  # noqa: E731
                args = [a if i in static_places else wide(a) for i, a in enumerate(args)]
                kwargs = {k: v if k in statics else wide(v) for k, v in kwargs.items()}
            if compiled is None:
                from ._jit import jit

                compiled = jit(fun, static_argnames=tuple(statics), cache_size=1024)
            return compiled(*args, **kwargs)

        return call

    return decorate


def creator(fun):
    """The same for functions without array arguments: an array outside of a trace, a value inside."""
    names = fun.__code__.co_varnames[: fun.__code__.co_argcount]

    @functools.wraps(fun)
    def call(*args, **kwargs):
        if _rlx.tracing():
            for name, a in (*zip(names, args), *kwargs.items()):
                if name != "k" and _has_value(a):  # which diagonal no shape depends on
                    _frozen(a, fun, name)
            return fun(*args, **kwargs)
        from ._jit import cached_jit

        args = tuple(_frozen(a) for a in args)
        kwargs = {k: _frozen(v) for k, v in sorted(kwargs.items())}
        key = (fun, _typed(args), tuple((k, _typed(v)) for k, v in kwargs.items()))
        return cached_jit(key, lambda: functools.wraps(fun)(lambda: fun(*args, **kwargs)))()

    return call


def extent_value(extent):
    """An extent as a value, weak as Python's integers are: a symbolic one is what it is in this run."""
    if not isinstance(extent, _rlx.Dim):
        return _rlx.value(extent)
    has_it = _rlx.add_node("iota", (), {"dims": (extent,), "dtype": "int32", "axis": 0})
    return _rlx.dim_size([has_it], 0)._with_weak(True)


def node(name, *operands, **attrs):
    """The node `name` of the op table over the operands."""
    for i, x in enumerate(operands):
        if type(x) is _rlx.Dim:
            operands = (*operands[:i], extent_value(x), *operands[i + 1 :])
    return _rlx.add_node(name, operands, attrs)


def cast(x, dtype):
    """x as dtype."""
    x = _rlx.value(x)
    dtype = _rlx.dtype(dtype)
    return x._with_weak(False) if x.dtype == dtype else _rlx.add_node("cast", (x,), {"to": dtype})


def as_index(x):
    """Integers as indices: int32, or int64 where 32 bits may not do; a uint64 beyond int64, past every end, is its
    largest number.
    """
    x = _rlx.value(x)
    if x.dtype.name == "uint64":
        x = node("min", x, 2**63 - 1)
    return x if x.dtype.name in ("int32", "int64") else cast(x, "int64" if x.dtype.itemsize >= 4 else "int32")


def index_round(x, n):
    """Integers as indices taken round an axis of n entries."""
    x = _rlx.value(x)
    if x.dtype.name == "uint64":  # before it is cut to int64
        return cast(node("mod", x, n), "int64")
    return node("mod", as_index(x), n)


def inexact(x):
    """x as a value; integers and truth values become float32."""
    x = _rlx.value(x)
    if x.dtype.kind in "fc":
        return x
    return cast(x, "float32")._with_weak(x.weak_type)


def axes_of(axis, ndim, what):
    """`axis` (None: all) as a sorted list of axes from 0 on."""
    if axis is None:
        return list(range(ndim))
    out = []
    for a in axis if isinstance(axis, (tuple, list)) else (axis,):
        try:
            a = a.__index__()
        except AttributeError:
            raise TypeError(f"{what}: axis {a!r} is no integer") from None
        if not -ndim <= a < ndim:
            raise ValueError(f"{what}: axis {a} of an array with {ndim} axes")
        out.append(a % ndim)
    if len(set(out)) != len(out):
        raise ValueError(f"{what}: an axis is named twice in {axis}")
    return sorted(out)


def axis_of(axis, ndim, what):
    """The axis that `axis` names, from 0 on."""
    try:
        axis = axis.__index__()
    except AttributeError:
        raise TypeError(f"{what}: an axis is one integer, got {axis!r}") from None
    return axes_of(axis, ndim, what)[0]
