"""Functions applied to parts of arrays."""

import re as _re

from .. import _rlx
from .._jit import jit
from .._names import a_function
from .._transforms import vmap
from ._base import axis_of, cast, held, node, truth, value
from ._shapes import broadcast_shapes, broadcast_to, expand_dims, moveaxis, ndim
from ._shapes import shape as _shape_of


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """Applies func1d to each vector along an axis. The axes of its result replace this axis. func1d is traced once, on
    a batch.
    """
    arr = held(arr)
    axis = axis_of(axis, arr.ndim, "apply_along_axis")
    arr = moveaxis(arr, axis, -1)

    def call(x):
        return func1d(x, *args, **kwargs)

    f = call
    for _ in range(arr.ndim - 1):
        f = vmap(f)
    out = f(arr)
    lead = arr.ndim - 1
    inner = out.ndim - lead
    return moveaxis(out, tuple(range(lead, lead + inner)), tuple(range(axis, axis + inner))) if inner else out


def apply_over_axes(func, a, axes):
    """Applies func(a, axis) for one axis after the other. An axis that func drops is put back with extent 1."""
    a = held(a)
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        axis = axis_of(axis, a.ndim, "apply_over_axes")
        out = func(a, axis)
        if out.ndim == a.ndim - 1:
            out = expand_dims(out, axis)
        if out.ndim != a.ndim:
            raise ValueError(f"apply_over_axes: the function returns {out.ndim} axes for {a.ndim}")
        a = out
    return a


def piecewise(x, condlist, funclist, *args, **kw):
    """For each element, the function (or number) of the last condition that is true. A function after those of the
    conditions applies elsewhere.
    """
    x = held(x)
    conditions = list(condlist) if isinstance(condlist, (tuple, list)) else [condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"piecewise: {len(funclist)} functions for {len(conditions)} conditions")

    def run(x, conditions):
        x = value(x)
        rest = funclist[len(conditions)] if len(funclist) > len(conditions) else 0
        conditions = [truth(c) for c in conditions]
        later = None  # where a later condition holds
        taken = []
        for c in reversed(conditions):
            taken.insert(0, c if later is None else node("bit_and", c, node("not", later)))
            later = c if later is None else node("bit_or", later, c)
        none = None if later is None else node("not", later)
        out = _part(rest, _with_derivative_where(none, x), args, kw)
        for c, own, f in zip(conditions, taken, funclist):
            out = node("where", c, _part(f, _with_derivative_where(own, x), args, kw), out)
        return broadcast_to(out, x.shape)

    if _rlx.tracing() or isinstance(x, _rlx.Value):
        return run(x, conditions)
    return jit(run)(x, [held(c) for c in conditions])


def _with_derivative_where(taken, x):
    """x, whose derivatives are 0 where `taken` is false: those of the function need not be finite there."""
    return x if taken is None or x.dtype.kind not in "fc" else node("where", taken, x, node("stop_gradient", x))


def _part(f, x, args, kw):
    return cast(f(x, *args, **kw) if callable(f) else f, x.dtype)


def _core(signature, what):
    """The core axes of arguments and results in a signature such as "(m,n),(n)->(m)"."""
    if not _re.fullmatch(r"[\w(),\s]*->[\w(),\s]*", signature):
        raise ValueError(f"vectorize: the signature {signature!r} is not like (m,n),(n)->(m)")
    sides = []
    for side in signature.replace(" ", "").split("->"):
        sides.append([tuple(n for n in group.split(",") if n) for group in _re.findall(r"\(([\w,]*)\)", side)])
    return sides


def _agree(extents, names, shape, what, signature):
    """Enters the extents of core axes, which must be equal for equal names."""
    for name, d in zip(names, shape):
        if extents.setdefault(name, d) != d:
            raise ValueError(
                f"vectorize: the core axis {name} of the signature {signature!r} is {extents[name]}, and {d} in {what} "
                f"with core axes {shape}"
            )


def _check_results(out, cores, extents, signature):
    results = out if isinstance(out, tuple) else (out,)
    if len(cores) > 1 and not isinstance(out, tuple):
        raise TypeError(f"vectorize: the function must return a tuple for the signature {signature!r}")
    if len(results) != len(cores):
        raise TypeError(f"vectorize: the function returns {len(results)} results for the signature {signature!r}")
    for r, names in zip(results, cores):
        if ndim(r) != len(names):
            raise ValueError(f"vectorize: a result of shape {_shape_of(r)} for the core axes {names} of {signature!r}")
        _agree(extents, names, _shape_of(r), "a result", signature)


def vectorize(pyfunc, *, excluded=(), signature=None):
    """Applies pyfunc over the leading axes of its arguments, which broadcast. A signature such as "(n),(n)->()" names
    the core axes that pyfunc itself handles. pyfunc is traced once and batched, and not called for each element.
    """
    a_function(pyfunc, "vectorize: pyfunc")
    excluded = frozenset(excluded)
    for e in excluded:
        if not isinstance(e, (int, str)):
            raise TypeError(f"vectorize: excluded has {e!r}; it may have positions and names of arguments")
        if isinstance(e, int) and e < 0:
            raise ValueError(f"vectorize: excluded has {e}; positions count from 0")
    sides = None if signature is None else _core(signature, "vectorize")

    def call(*args, **kwargs):
        mapped = [i for i in range(len(args)) if i not in excluded]
        if sides is not None and len(sides[0]) != len(mapped):
            raise TypeError(f"vectorize: {len(mapped)} arguments for the signature {signature!r}")
        absent = [k for k, i in enumerate(mapped) if args[i] is None]
        if any(sides is not None and sides[0][k] for k in absent):
            raise ValueError(f"vectorize: None for an argument with core axes in the signature {signature!r}")
        core = [()] * len(mapped) if sides is None else sides[0]
        core = [c for k, c in enumerate(core) if k not in absent]
        mapped = [i for k, i in enumerate(mapped) if k not in absent]
        arrays = [held(args[i]) for i in mapped]
        for a, c in zip(arrays, core):
            if a.ndim < len(c):
                raise ValueError(
                    f"vectorize: an argument with {ndim(a)} axes has too few for the core axes ({','.join(c)})"
                )
        lead = [tuple(a.shape[: a.ndim - len(c)]) for a, c in zip(arrays, core)]
        shape = broadcast_shapes(*lead)
        extents = {}
        for a, c in zip(arrays, core):
            _agree(extents, c, tuple(a.shape[a.ndim - len(c) :]), "an argument", signature)
        arrays = [broadcast_to(a, shape + tuple(a.shape[a.ndim - len(c) :])) for a, c in zip(arrays, core)]

        def one(*parts):
            full = list(args)
            for i, p in zip(mapped, parts):
                full[i] = p
            out = pyfunc(*full, **kwargs)
            if sides is not None:
                _check_results(out, sides[1], dict(extents), signature)
            return out

        f = one
        for _ in shape:
            f = vmap(f)
        if shape:
            return f(*arrays)
        return f(*arrays) if _rlx.tracing() else jit(f)(*arrays)

    call.__name__ = getattr(pyfunc, "__name__", "vectorized")
    call.__doc__ = getattr(pyfunc, "__doc__", None)
    return call


def frompyfunc(func, nin, nout):
    """func of nin numbers as a function of arrays that broadcast; see vectorize."""
    return vectorize(func)
