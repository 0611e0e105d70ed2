"""Decorators that make one function serve both arrays and traced values: on arrays it runs compiled, on traced values
it adds nodes.
"""

import functools

from . import _rlx
from ._faults import OF_PYTHON, told
from ._jit import cached_jit, jit
from ._names import own_names
from ._nodes import extent_value, stacked, with_leaves, with_wide_numbers


def refuse_traced(x, what, way=""):
    """Raises the error about a traced value where a Python value is needed."""
    where = x.made_at
    raise TypeError(
        f"{what} is a traced value ({x.dtype.name}{list(x.shape)}, made at {where[0]}:{where[1]}): it must be known "
        f"while the function is traced: name the argument in static_argnames{way}"
    )


def _frozen(x, fun="", name="an argument"):
    """The static argument x with lists and arrays as tuples, which are hashable."""
    if isinstance(x, (list, tuple)):
        return tuple(_frozen(i, fun, name) for i in x)
    if isinstance(x, _rlx.Value):
        refuse_traced(x, f"{getattr(fun, '__name__', fun)}: {name}")
    if isinstance(x, _rlx.Array) or (hasattr(x, "tolist") and hasattr(x, "shape") and not isinstance(x, type)):
        plain = x.tolist()
        return x if type(plain) is type(x) else _frozen(plain, fun, name)  # tolist() of a longdouble is a longdouble
    return x


def _typed(x):
    """A key that differs for static arguments that are equal but have different types, such as 1, 1.0 and True."""
    return tuple(_typed(i) for i in x) if isinstance(x, tuple) else (type(x), x)


def _has_value(x, kinds=_rlx.Value):
    if isinstance(x, kinds):
        return True
    return isinstance(x, (list, tuple)) and any(_has_value(i, kinds) for i in x)


def _large(x):
    """The first Python integer in nested lists that no integer dtype holds; None if there is none."""
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
    raise _rlx.DTypeMismatch(f"the integer {large} does not fit in any integer dtype\n  hint: write it as a float")


def _as_array(x):
    """A nested list of numbers, arrays and traced values as one array; other objects are returned unchanged."""
    if not isinstance(x, (list, tuple)):
        return x
    if _has_value(x, (_rlx.Value, _rlx.Array)):
        return stack([_as_array(i) for i in x])
    return array_of_list(x)._with_weak(False)


# Arguments whose integers are not elements of the other arrays, so their range is not checked.
_NO_ELEMENTS = frozenset(
    "key data minval maxval index indices start_index start_indices multi_index obj shift repeats".split()
)


def _check_numbers(numbers, beside, dtype=None):
    """Raises an error for a Python integer that does not fit the stated dtype, or the integer dtype of the other
    operands. A compiled function does the same for constants.
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
                f"{n} does not fit in {dtype.name}, which holds {low} to {high}\n  hint: cast the array, or write the "
                f"number with a dtype that holds it: rlx.array({n})"
            )


_MAY_HOLD_NUMBERS = (float, complex, list, tuple)


def _with_wide_numbers(args, kwargs, static_places, statics):
    """The arguments of a call in a trace. Python numbers keep all their digits where they do outside of a trace."""
    parts = [a for i, a in enumerate(args) if i not in static_places]
    parts += [v for k, v in kwargs.items() if k not in statics]
    if not any(type(x) in _MAY_HOLD_NUMBERS for x in parts):
        return args, kwargs
    return with_leaves(args, kwargs, static_places, statics, with_wide_numbers)


def names_of_variadic(code):
    """The name of the *args parameter of a function."""
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount]


def op(*arrays):
    """Makes `fun`, which adds nodes, a function of arrays too. `arrays` names the arguments that hold arrays; a name
    with a star holds a list or another tree of arrays. All other arguments are static. On arrays, `fun` is compiled
    once for each signature.
    """
    single = frozenset(a for a in arrays if not a.startswith("*"))
    arrays = frozenset(a.lstrip("*") for a in arrays)

    def decorate(fun):
        # inspect.signature gives the same, but it would slow down `import rlx`.
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
        # With no more arguments than these, all of them arrays or numbers, a call whose program is kept needs no look.
        plain = min([code.co_argcount, *static_places])

        @functools.wraps(fun)
        def call(*args, **kwargs):
            nonlocal compiled
            try:
                if compiled is not None and not kwargs and len(args) <= plain:
                    known = _rlx.call_known(compiled, args)
                    if known is not None:
                        return known
                if "device" in kwargs and "device" in names:
                    device = kwargs.pop("device")
                    return on_device(call(*args, **kwargs), device, call.__name__)
                for i, a in enumerate(args):
                    if isinstance(a, (list, tuple)) and (single_places[i] if i < len(single_places) else variadic):
                        args = (*args[:i], _as_array(a), *args[i + 1 :])
                for k in kwargs:
                    if k in single:
                        kwargs[k] = _as_array(kwargs[k])
                    elif k not in names and not takes_any:
                        return call(*args, **own_names(call, kwargs, names))
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
                    if len(args) + len(kwargs) > 1 or arrays != single:
                        args, kwargs = _with_wide_numbers(args, kwargs, static_places, statics)
                    return fun(*args, **kwargs)
                stated = dtype_place is not None and dtype_place < len(args)
                dtype = args[dtype_place] if stated else kwargs.get("dtype")
                large = [i for i, a in enumerate(args) if type(a) is int and not 0 <= a < 128 and i not in apart]
                if large:
                    elements = [a for i, a in enumerate(args) if i not in apart]
                    _check_numbers([args[i] for i in large], elements, None if dtype is None else _rlx.dtype(dtype))
                if dtype is not None and _rlx.dtype(dtype).name in ("float64", "complex128"):
                    # A Python number keeps all its digits if the result is float64 or complex128.
                    wide = lambda a: _rlx.array_from(a, dtype) if type(a) in (float, complex) else a  # noqa: E731
                    args = [a if i in static_places else wide(a) for i, a in enumerate(args)]
                    kwargs = {k: v if k in statics else wide(v) for k, v in kwargs.items()}
                if compiled is None:
                    fun.__name__ = call.__name__  # which `named` may have changed
                    call.compiled = compiled = jit(fun, static_argnames=tuple(statics), cache_size=1024)
                return compiled(*args, **kwargs)
            except OF_PYTHON as e:
                new = told(e, call, args, kwargs)
                if new is e:
                    raise
                raise new from None

        call.argument_names = names
        return call

    return decorate


def on_device(x, device, what):
    """The array x on a device; None: where it is."""
    if device is None:
        return x
    if isinstance(x, tuple):
        return tuple(on_device(v, device, what) for v in x)
    if _rlx.tracing():
        raise TypeError(
            f"{what}: device={device!r} inside a compiled function, which runs on one device: rlx.jit(f, device=...) "
            "names it"
        )
    return x.to(device)


def creator(fun):
    """The same for functions without array arguments: they give an array outside of a trace and a traced value
    inside.
    """
    names = fun.__code__.co_varnames[: fun.__code__.co_argcount + fun.__code__.co_kwonlyargcount]

    @functools.wraps(fun)
    def call(*args, **kwargs):
        try:
            if "device" in kwargs:
                device = kwargs.pop("device")
                return on_device(call(*args, **kwargs), device, fun.__name__)
            for k in kwargs:
                if k not in names:
                    return call(*args, **own_names(call, kwargs, names))
            if _rlx.tracing():
                for name, a in (*zip(names, args), *kwargs.items()):
                    if name != "k" and _has_value(a):  # no shape depends on k
                        _frozen(a, fun, name)
                known = lambda a: a if _has_value(a) else _frozen(a)  # noqa: E731  arrays of one number among them
                return fun(*map(known, args), **{k: known(a) for k, a in kwargs.items()})
            args = tuple(_frozen(a) for a in args)
            kwargs = {k: _frozen(v) for k, v in sorted(kwargs.items())}
            key = (fun, _typed(args), tuple((k, _typed(v)) for k, v in kwargs.items()))
            return cached_jit(key, lambda: functools.wraps(fun)(lambda: fun(*args, **kwargs)))()
        except OF_PYTHON as e:
            new = told(e, call, args, kwargs)
            if new is e:
                raise
            raise new from None

    call.argument_names = names
    return call


@op("*arrays")
def stack(arrays):
    """Arrays of one shape, joined along a new first axis."""
    return stacked([_rlx.value(a) for a in arrays])
