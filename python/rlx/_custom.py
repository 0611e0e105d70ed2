"""Custom ops: rules in Python, a kernel in Python or C."""

import itertools
import json
import weakref

from . import _rlx, tree
from ._jit import ShapeDtype, cached_jit, keeping, kept_forever, trace_leaves

_ops = {}


class CustomOp:
    """An op registered by custom_op. Call it on arrays, or on traced values inside compiled functions."""

    def __init__(self, name, what):
        self.name, self.__doc__ = name, what

    def __call__(self, *operands, **attrs):
        try:
            text = json.dumps(attrs, sort_keys=True) if attrs else ""
        except TypeError:
            raise TypeError(
                f"{self.name}: attributes must be numbers, strings, and lists of them, got {attrs!r}"
            ) from None
        if _rlx.tracing() or any(isinstance(x, _rlx.Value) for x in operands):
            return _rlx.add_custom(self.name, operands, text)
        run = cached_jit(("custom", self.name, text), lambda: lambda *xs: _rlx.add_custom(self.name, xs, text))
        return run(*operands)

    def __repr__(self):
        return f"<rlx op {self.name}>"


def custom_op(
    name, *, kernel=None, shape=None, vjp=None, jvp=None, batch=None, decompose=None, ordered=False, operands=-1, doc=""
):
    """Registers an op for the life of the process and returns a function that applies it.

    name: at least two words of a-z, 0-9, _ joined by dots: "acme.soft_clip".
    kernel: kernel(*numpy_arrays, **attrs) returns the results, NumPy arrays with the shapes and dtypes that `shape`
        gives. Or the address (an int, or an object that ctypes casts to c_void_p) of a C function `int32_t f(void**
        buffers, const int64_t* const* dims, const char* attrs_json)`: operands come before results, and 0 means
        success. The kernel gets copies of the operands, which it may keep.
    shape: shape(*ShapeDtype, **attrs) returns the ShapeDtype of the result, or a tuple of them; by default the result
        is like the first operand.
    vjp: vjp(cotangents, operands, results, **attrs) returns one cotangent (or None) for each operand.
    jvp: jvp(operands, tangents, results, **attrs) returns one tangent for each result.
    batch: "broadcast" if the kernel accepts a leading axis on all operands, or batch(operands, batched, size, **attrs).
    decompose: decompose(*values, **attrs) computes the op with other ops; rules that are not given follow from it.
    ordered: the op has side effects: it runs once for each call, in order, and is never removed or moved.
    """
    if kernel is None and decompose is None:
        raise TypeError(f"custom_op {name!r}: give a kernel or a decomposition")
    address = 0
    if kernel is not None and not callable(kernel) or hasattr(kernel, "argtypes"):
        address = _address_of(kernel, name)
        kernel = None
    for what, f in (("kernel", kernel), ("shape", shape), ("vjp", vjp), ("jvp", jvp), ("decompose", decompose)):
        if f is not None and not callable(f):
            raise TypeError(f"custom_op {name!r}: {what} is not a function")
    if batch is not None and batch != "broadcast" and not callable(batch):
        raise TypeError(f'custom_op {name!r}: batch must be "broadcast" or a function, got {batch!r}')
    if shape is None:
        if decompose is not None:
            shape = _shape_of(decompose)
        else:

            def shape(*specs, **attrs):
                if not specs:
                    raise TypeError(f"{name}: an op without operands needs a shape rule")
                return specs[0]

    what = doc or (kernel or decompose).__doc__ if (kernel or decompose) else doc
    rule = lambda *operands, **attrs: shape(*(ShapeDtype(*x) for x in operands), **attrs)  # noqa: E731
    _rlx.register_op(name, what or name, operands, rule, kernel, address, vjp, jvp, batch, decompose, ordered)
    _ops[name] = CustomOp(name, what)
    return _ops[name]


def _shape_of(decompose):
    def shape(*specs, **attrs):
        names = [f"x{i}" for i in range(len(specs))]
        t = trace_leaves(lambda values: decompose(*values, **attrs), list(specs), names, "decompose")
        return tuple(ShapeDtype(v.shape, v.dtype) for v in t.graph.outputs)

    return shape


def _address_of(kernel, name):
    if isinstance(kernel, int):
        address = kernel
    else:
        import ctypes

        try:
            address = ctypes.cast(kernel, ctypes.c_void_p).value
        except (ctypes.ArgumentError, TypeError):
            raise TypeError(f"custom_op {name!r}: the kernel is neither a function nor an address") from None
    if not address:
        raise ValueError(f"custom_op {name!r}: the kernel's address is 0")
    return address


class _Callback:
    """A Python function that programs call. Programs and traces hold it; the op that calls it has its number."""

    __slots__ = ("fn", "specs", "label", "number", "__weakref__")
    living, numbers = weakref.WeakValueDictionary(), itertools.count()
    by_function = weakref.WeakValueDictionary()  # two traces of one function get one number, and so one program

    def __init__(self, fn, specs):
        self.fn, self.specs = fn, specs
        self.label = getattr(fn, "__name__", type(fn).__name__)
        self.number = next(self.numbers)
        self.living[self.number] = self

    @classmethod
    def of(cls, fn, specs):
        """The callback of a function and of its results."""
        key = (id(fn), tuple(specs))
        found = cls.by_function.get(key)
        if found is None or found.fn is not fn:
            found = cls.by_function[key] = cls(fn, specs)
        return found

    def __call__(self, arrays, levels):
        """The results for arrays with batch axes. `levels` has for each batch axis its extent, and which arrays have
        it.
        """
        import numpy as np

        if not levels:
            outs = tree.leaves(self.fn(*arrays))
            if len(outs) != len(self.specs):
                raise TypeError(
                    f"the callback {self.label} returns {len(outs)} arrays, its result_shape has {len(self.specs)}"
                )
            return [_of_spec(o, s, self.label) for o, s in zip(outs, self.specs)]
        (size, mapped), inner = levels[0], levels[1:]
        rows = [self([a[k] if m else a for a, m in zip(arrays, mapped)], inner) for k in range(size)]
        if rows:
            return [np.stack(column) for column in zip(*rows)]
        extents = tuple(n for n, _ in levels)
        return [np.zeros(extents + tuple(s.shape), s.dtype.dtype) for s in self.specs]


def _call_back(*arrays, number, levels, results):
    called = _Callback.living.get(number)
    if called is None:
        raise RuntimeError(
            "the Python function that this program calls was deleted: keep a reference to the traced function"
        )
    import numpy as np

    return tuple(called(arrays, levels)) or np.zeros([n for n, _ in levels], np.bool_)


def _call_back_shapes(*specs, number, levels, results):
    extents = tuple(n for n, _ in levels)
    return tuple(ShapeDtype(extents + tuple(s), d) for s, d in results) or ShapeDtype(extents, "bool")


def _call_back_rows(operands, batched, size, *, number, levels, results, ordered=False):
    if not isinstance(size, int):
        raise NotImplementedError(f"a callback cannot run for each row of a batch of symbolic extent {size}")
    return _callback_op(ordered)(*operands, number=number, levels=[[size, list(batched)], *levels], results=results)


def _call_back_rows_in_order(operands, batched, size, *, number, levels, results):
    return _call_back_rows(operands, batched, size, number=number, levels=levels, results=results, ordered="debug")


def _callback_op(ordered):
    name = {True: "callback.io", False: "callback.pure", "debug": "callback.debug"}[ordered]
    batches = {True: None, False: _call_back_rows, "debug": _call_back_rows_in_order}
    return _ops.get(name) or custom_op(
        name,
        kernel=_call_back,
        shape=_call_back_shapes,
        batch=batches[ordered],
        ordered=bool(ordered),
        doc="A call of a Python function.",
    )


def _callback(fn, result_shape, operands, ordered):
    if not callable(fn):
        raise TypeError(f"a callback must be a function, got {fn!r}")
    specs, treedef = tree.flatten(tree.map(_as_spec, result_shape))
    if not _rlx.tracing() and not any(isinstance(x, _rlx.Value) for x in operands):
        key = ("callback", _Callback.of(fn, specs), treedef, ordered)
        return cached_jit(key, lambda: lambda *xs: _callback(fn, result_shape, xs, ordered))(*operands)
    called = _Callback.of(fn, specs)
    kept = getattr(keeping, "list", None)
    (kept_forever if kept is None else kept).append(called)
    results = [[list(s.shape), s.dtype.name] for s in specs]
    outs = _callback_op(ordered)(*operands, number=called.number, levels=[], results=results)
    if not specs:
        return treedef.unflatten([])
    return treedef.unflatten(list(outs) if isinstance(outs, (tuple, list)) else [outs])


def _of_spec(x, spec, label):
    """The result of a callback as an array of the announced dtype, if that dtype holds its values."""
    import numpy as np

    a, wanted = np.asarray(x), spec.dtype.dtype
    if a.dtype == wanted:
        return a
    order = "biufc"
    given = "f" if a.dtype.kind == "V" else a.dtype.kind  # dtypes of ml_dtypes
    if given in order and order.index(given) <= order.index(spec.dtype.kind):
        with np.errstate(all="ignore"):
            out = a.astype(wanted)
        if spec.dtype.kind not in "iu" or np.array_equal(out, a):
            return out
    raise TypeError(
        f"the callback {label} returns {a.dtype}{list(a.shape)}, its result_shape is {spec.dtype.name}"
        f"{list(spec.shape)}, which cannot hold its values: cast them in the callback"
    )


def _as_spec(s):
    if isinstance(s, ShapeDtype):
        return s
    if hasattr(s, "shape") and hasattr(s, "dtype"):
        return ShapeDtype(s.shape, s.dtype)
    raise TypeError(f"result_shape: {s!r} is not an rlx.ShapeDtype")


def pure_callback(fn, result_shape, *operands, vmap_method=None):
    """Calls fn(*numpy_arrays) inside a compiled function. It may be called any number of times. Under vmap it is called
    for each row, which is vmap_method "sequential".
    """
    if vmap_method not in (None, "sequential"):
        raise NotImplementedError(f"pure_callback: vmap_method {vmap_method!r}; under vmap it is called for each row")
    return _callback(fn, result_shape, operands, False)


def io_callback(fn, result_shape, *operands):
    """The same for a function with side effects: each call runs once, in order."""
    return _callback(fn, result_shape, operands, True)


def debug_callback(fn, operands):
    """The same without results, also under vmap, where it runs for each row."""
    return _callback(fn, (), operands, "debug")
