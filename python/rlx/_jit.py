"""Tracing functions to graphs, and compiling them once for each signature."""

import functools
import math
import operator
import os
import threading
import types
import weakref

from . import _captures, _program_file, _rlx, tree
from ._faults import looked_at
from ._names import guess, renamed_arguments
from ._nodes import with_leaves, with_wide_numbers


def _extent(n):
    if type(n) is int and n >= 0 or isinstance(n, _rlx.Dim):
        return n
    try:
        size = operator.index(n)
    except TypeError:
        raise TypeError(f"ShapeDtype: an extent must be an integer, got {n!r}") from None
    if size < 0:
        raise ValueError(f"ShapeDtype: an extent must not be negative, got {size}")
    return size


class ShapeDtype:
    """The shape and dtype of an array without its elements: for eval_shape, trace and lowered programs."""

    __slots__ = ("shape", "dtype", "weak_type")

    def __init__(self, shape, dtype="float32", weak_type=False):
        self.shape = tuple(map(_extent, shape))
        self.dtype = _rlx.dtype(dtype)
        self.weak_type = weak_type

    @classmethod
    def like(cls, x):
        """That of an array, a number or another ShapeDtype."""
        if isinstance(x, cls) or hasattr(x, "shape") and hasattr(x, "dtype"):
            return cls(x.shape, x.dtype, getattr(x, "weak_type", False))
        found = _rlx.array_from(x)
        return cls(found.shape, found.dtype, found.weak_type)

    @property
    def ndim(self):
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """The number of elements."""
        return math.prod(self.shape)

    def __repr__(self):
        return f"ShapeDtype({self.shape}, {self.dtype.name})"

    def __eq__(self, other):
        return isinstance(other, ShapeDtype) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self):
        return hash((self.shape, self.dtype))


@functools.lru_cache(maxsize=64)
def session(device, threads, isa, precision, matmul_precision, trace=None, device_options=()):
    return _rlx.Session(
        device,
        threads=threads,
        isa=isa,
        precision=precision,
        matmul_precision=matmul_precision,
        trace=trace,
        device_options=dict(device_options),
    )


def _options_key(device_options):
    """The device options as a hashable tuple."""
    if device_options is not None and not isinstance(device_options, dict):
        raise TypeError(f"device_options must be a dict of texts, got {device_options!r}")
    return tuple(sorted((k, str(v)) for k, v in (device_options or {}).items()))


def _device_of(leaves):
    """The device of the first leaf that is on one, else the host. A run refuses arrays of two devices."""
    for leaf in leaves:
        if not isinstance(leaf, _rlx.Array) and hasattr(leaf, "__dlpack_device__"):
            leaf = _rlx.array_from(leaf)
        if isinstance(leaf, _rlx.Array) and leaf.device != "cpu":
            return leaf.device
    return "cpu"


def spec_of(leaf, what):
    """The shape and dtype of a leaf of the arguments."""
    if isinstance(leaf, ShapeDtype):
        return leaf
    if isinstance(leaf, (_rlx.Array, _rlx.Value)):
        return ShapeDtype(leaf.shape, leaf.dtype, leaf.weak_type)
    if not _rlx.is_array_leaf(leaf):
        raise TypeError(
            f"{what}: an argument of type {type(leaf).__name__} is not an array, a number, or a tree of them; "
            "name it in static_argnames"
        )
    a = _rlx.array_from(leaf)
    return ShapeDtype(a.shape, a.dtype, a.weak_type)


def with_arrays(args, kwargs, static_places=(), static_names=()):
    """The arguments of a call with arrays of rlx where they have numbers and arrays of other libraries."""

    def array(x):
        if isinstance(x, (_rlx.Array, _rlx.Value)) or not _rlx.is_array_leaf(x):
            return x
        return _rlx.array_from(x, None, True)  # copied: the caller may write to it later

    change = lambda leaves: [array(x) for x in with_wide_numbers(leaves)]  # noqa: E731
    return with_leaves(args, kwargs, static_places, static_names, change)


def _paths(tree_, name, out):
    """Names of the leaves, for messages and reports: "params.w", "layers.0"."""
    if isinstance(tree_, dict):
        for k in sorted(tree_):
            _paths(tree_[k], f"{name}.{k}", out)
    elif isinstance(tree_, (tuple, list)):
        fields = getattr(tree_, "_fields", None)
        for i, t in enumerate(tree_):
            _paths(t, f"{name}.{fields[i] if fields else i}", out)
    elif tree_ is not None:
        leaves = tree.leaves(tree_)
        if len(leaves) == 1 and leaves[0] is tree_:
            out.append(name)
        else:
            out.extend(f"{name}.{i}" for i in range(len(leaves)))
    return out


def _unique(names):
    seen = {}
    out = []
    for n in names:
        k = seen.get(n, 0)
        seen[n] = k + 1
        out.append(n if k == 0 else f"{n}#{k}")
    return out


class Traced:
    """A function as a graph. Inputs are the leaves of the arguments, outputs the leaves of the result."""

    def __init__(self, graph, in_specs, in_names, out_tree, out_weak, keeps=()):
        self.graph, self.in_specs, self.in_names = graph, in_specs, in_names
        self.out_tree, self.out_weak = out_tree, out_weak
        self.keeps = keeps  # Python functions that the program calls


def output_leaf(leaf, what):
    if isinstance(leaf, (_rlx.Value, _rlx.Array)) or _rlx.is_array_leaf(leaf):
        return _rlx.value(leaf)
    raise TypeError(
        f"{what} returns an object of type {type(leaf).__name__}, which is not an array, a number, or a tree of them"
    )


def trace_leaves(call, specs, names, what, bounds=None):
    """Traces call(values) on a new graph with one input per spec."""
    graph = _rlx.Graph(what)
    for name, (low, high, divisor) in (bounds or {}).items():
        graph.symbol(name, min=low, max=high, divisor=divisor)

    def body():
        values = [graph.input(n, s.shape, s.dtype)._with_weak(s.weak_type) for n, s in zip(names, specs)]
        result, out_tree = tree.flatten(call(values))
        outs = [output_leaf(leaf, what) for leaf in result]
        graph.set_outputs(outs)
        return out_tree, [o.weak_type for o in outs]

    before, keeping.list = getattr(keeping, "list", None), []
    try:
        out_tree, weak = _rlx.trace(graph, body)
        return Traced(graph, specs, names, out_tree, weak, keeping.list)
    finally:
        keeping.list = before


# For each thread: the objects that the function under trace must keep alive.
keeping = threading.local()
# Objects that graphs of users call. They live forever, because the life of such graphs and of their programs is
# unknown.
kept_forever = []


class _Arguments:
    """The static arguments, by position and by name. The signature is looked at when a name is needed."""

    def __init__(self, fun, static_argnums, static_argnames):
        self.fun = fun
        self.nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums or ())
        self.names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames or ())
        if self.nums or self.names:
            self._resolve()
        else:
            self.names = frozenset()

    @functools.cached_property
    def _all(self):
        import inspect

        try:
            return list(inspect.signature(self.fun).parameters.values())
        except (TypeError, ValueError):
            return []

    @functools.cached_property
    def parameters(self):
        return [p.name for p in self._all]

    @functools.cached_property
    def positional(self):
        return [p.name for p in self._all if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    @property
    def variadic(self):
        return any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in self._all)

    @property
    def what(self):
        return getattr(self.fun, "__name__", type(self.fun).__name__)

    def _resolve(self):
        fun, parameters, positional = self.fun, self._all, self.positional
        variadic = any(p.kind is p.VAR_KEYWORD for p in parameters)
        for n in self.names:
            if parameters and n not in self.parameters and not variadic:
                raise ValueError(
                    f"static_argnames: {getattr(fun, '__name__', fun)} has no argument {n!r}; it has {self.parameters}"
                )
        nums = set()
        for n in self.nums:
            if (
                parameters
                and not -len(positional) <= n < len(positional)
                and not any(p.kind is p.VAR_POSITIONAL for p in parameters)
            ):
                raise ValueError(f"static_argnums: {getattr(fun, '__name__', fun)} has no positional argument {n}")
            n = n + len(positional) if n < 0 else n
            if n >= 0:  # of *args, a place before the first is none
                nums.add(n)
        nums |= {positional.index(n) for n in self.names if n in positional}
        self.nums = tuple(sorted(nums))
        self.names = frozenset(self.names) | {positional[n] for n in nums if n < len(positional)}

    def check(self, donated):
        """Raises an error for positions and names that the function does not have."""
        for n in donated if donated and self.parameters and not self.variadic else ():
            if isinstance(n, int) and not -len(self.positional) <= n < len(self.positional):
                raise ValueError(f"donate_argnums: {self.what} has no positional argument {n}")
            if isinstance(n, str) and n not in self.parameters:
                raise ValueError(f"donate_argnames: {self.what} has no argument {n!r}; it has {self.parameters}")

    def name(self, place):
        return self.positional[place] if place < len(self.positional) else f"arg{place}"


def _is_static(leaf):
    return not isinstance(leaf, ShapeDtype) and not _rlx.is_array_leaf(leaf)


def _briefly(method):
    """The method; its errors have tracebacks of the frames of other code, unless the fault is one of ours."""

    @functools.wraps(method)
    def call(self, *args):
        try:
            return method(self, *args)
        except _rlx.InternalError:
            raise
        except Exception as e:
            looked_at(e)
            raise

    return call


class _Wrapped:
    """The Python side of a compiled function: it traces a call and compiles the trace."""

    def __init__(self, fun, arguments, options):
        self.fun, self.arguments = fun, arguments
        self.any_static = options.pop("any_static")
        self.closed, self.records = options.pop("closed", False), options.pop("records", False)
        self.donate = options.pop("donate")
        self.session = options.pop("session")
        self.dims = options.pop("dims")
        self.options = options
        self.what = getattr(fun, "__name__", type(fun).__name__)
        self.of_user = False

    def split(self, args, kwargs, named=True):
        """(leaves of arrays, their names, call of values). named: the names tell the paths to the leaves."""
        a = self.arguments
        parts, names = [], []
        for i, arg in enumerate(args):
            if i not in a.nums:
                parts.append((i, arg))
        for k in sorted(kwargs):
            if k not in a.names:
                parts.append((k, kwargs[k]))
        leaves, treedefs = [], []
        for key, part in parts:
            ls, treedef = tree.flatten(part)
            mine = [not (self.any_static and _is_static(x)) for x in ls]
            if named:
                label = a.name(key) if isinstance(key, int) else key
                names += (path for path, dynamic in zip(_paths(part, label, []), mine) if dynamic)
            leaves += (x for x, dynamic in zip(ls, mine) if dynamic) if self.any_static else ls
            treedefs.append((key, treedef, ls, mine))

        def call(values):
            it = iter(values)
            new_args, new_kwargs = list(args), dict(kwargs)
            for key, treedef, ls, mine in treedefs:
                full = treedef.unflatten([next(it) if dynamic else x for x, dynamic in zip(ls, mine)])
                if isinstance(key, int):
                    new_args[key] = full
                else:
                    new_kwargs[key] = full
            return self.fun(*new_args, **new_kwargs)

        return leaves, _unique(names) if named else [f"x{i}" for i in range(len(leaves))], call

    @_briefly
    def trace(self, args, kwargs, parts=None):
        leaves, names, call = parts or self.split(args, kwargs)
        specs = [spec_of(x, self.what) for x in leaves]
        if any(s.dtype.name in ("float64", "complex128") and not s.weak_type for s in specs):
            wide = {float: "float64", complex: "complex128"}  # as in a call: Python numbers keep all their digits
            specs = [ShapeDtype((), wide[type(x)], True) if type(x) in wide else s for x, s in zip(leaves, specs)]
        bounds = None
        if self.dims:
            specs, bounds = self.dims.apply(specs, names)
        return trace_leaves(call, specs, names, self.what, bounds)

    def donations(self, traced, args, kwargs):
        """(for each output the donated input that it reuses, or -1; these pairs by name; all donated inputs)."""
        over = [-1] * len(traced.graph.outputs)
        if not self.donate:
            return over, {}, []
        wanted = set()
        for place_or_name in self.donate:
            name = self.arguments.name(place_or_name) if isinstance(place_or_name, int) else place_or_name
            wanted |= {i for i, n in enumerate(traced.in_names) if n == name or n.startswith(name + ".")}
        pairs = {}
        outputs = [(v.shape, v.dtype) for v in traced.graph.outputs]
        for i in sorted(wanted):
            spec = traced.in_specs[i]
            for o, out in enumerate(outputs):
                if over[o] < 0 and out == (spec.shape, spec.dtype):
                    over[o] = i
                    pairs[traced.in_names[i]] = o
                    break
        return over, pairs, sorted(wanted)

    def session_for(self, args, kwargs, parts=None):
        """The session of the stated device, or else of the device that holds the arguments."""
        device, *rest = self.session
        if device is None:
            device = _device_of((parts or self.split(args, kwargs))[0])
        return session(device, *rest)

    @_briefly
    def compile(self, args, kwargs):
        traced = self.trace(args, kwargs)
        over, pairs, donated = self.donations(traced, args, kwargs)
        options = dict(self.options)
        if pairs:
            options["donate"] = pairs
        compiled = self.session_for(args, kwargs).compile(traced.graph, **options)
        return compiled, traced.out_tree, traced.out_weak, over, donated, traced.keeps

    @_briefly
    def live(self, args, kwargs, look):
        """Traces a call, and looks up the program of its graph or compiles it. `look`: whether to look for guards."""
        parts = self.split(args, kwargs, named=False)
        traced = self.trace(args, kwargs, parts)
        on = self.session_for(args, kwargs, parts)
        program, arrays, fresh = _rlx.program_of(on, traced.graph, self.options, traced.out_weak, traced.keeps)
        guards = [] if self.closed else self.guards(args, kwargs) if look else None
        return program, arrays, traced.out_tree, guards, fresh, Record(traced) if self.records else None

    def guards(self, args, kwargs):
        """What must be as it is now for the program of this call to stay right; None if that cannot be told."""
        static = []
        for key, part in (*enumerate(args), *kwargs.items()):
            if key in (self.arguments.names if isinstance(key, str) else self.arguments.nums):
                static.append(part)
                continue
            leaves, treedef = tree.flatten(part)
            if not treedef._plain:
                return None
            static += filter(_is_static, leaves) if self.any_static else ()
        return _captures.guards(self.fun, static)

    def inlined(self, args, kwargs):
        """A call inside another trace: fun gets arrays where it would in a call of its own."""
        if self.any_static or not self.of_user:
            return self.fun(*args, **kwargs)
        args, kwargs = with_arrays(args, kwargs, self.arguments.nums, self.arguments.names)
        return self.fun(*args, **kwargs)


class _Dims:
    """Symbolic extents of arguments: {"x": ("batch", 3)}, with bounds {"batch": (1, 64)}."""

    def __init__(self, dims, bounds):
        self.dims = {k: (v,) if isinstance(v, (str, int)) or v is None else tuple(v) for k, v in dims.items()}
        self.bounds = bounds or {}
        for name, bound in self.bounds.items():
            if not isinstance(bound, (tuple, list)) or not 1 <= len(bound) <= 3:
                raise TypeError(
                    f"bounds: {name!r} must be (least, largest) or (least, largest, divisor), got {bound!r}"
                )

    def apply(self, specs, names):
        used, out = {}, []
        unknown = set(self.dims) - set(names)
        if unknown:
            raise ValueError(f"dims: there is no array argument {sorted(unknown)[0]!r}; there are {names}")
        scratch = _rlx.Graph("dims")
        for spec, name in zip(specs, names):
            if name not in self.dims:
                out.append(spec)
                continue
            shape = list(spec.shape)
            if len(self.dims[name]) > len(shape):
                raise ValueError(f"dims: {name!r} has {len(shape)} axes, {self.dims[name]} names more")
            for axis, d in enumerate(self.dims[name]):
                if isinstance(d, str):
                    low, high, divisor = (tuple(self.bounds.get(d, ())) + (None, None, None))[:3]
                    used[d] = (low, high, divisor)
                    shape[axis] = scratch.symbol(d)
                elif d is not None and d != shape[axis]:
                    raise ValueError(f"dims: axis {axis} of {name!r} is {shape[axis]}, declared {d}")
            out.append(ShapeDtype(shape, spec.dtype, spec.weak_type))
        unused = set(self.bounds) - set(used)
        if unused:
            raise ValueError(f"bounds: no extent in dims is named {sorted(unused)[0]!r}; there are {sorted(used)}")
        return out, used


@renamed_arguments(products="matmul_precision")
def jit(
    fun=None,
    *,
    static_argnums=(),
    static_argnames=(),
    donate_argnums=(),
    donate_argnames=(),
    dims=None,
    bounds=None,
    device=None,
    threads=0,
    isa="",
    precision="",
    matmul_precision="",
    trace=None,
    device_options=None,
    cache_size=256,
    **options,
):
    """Compiles a function of arrays once for each signature of its arguments: shapes, dtypes, trees, static values.

    fun runs once, on traced values, and the operations on them become the program. Arguments are arrays (of any library
    with the buffer protocol or DLPack), numbers, and trees of them.

    static_argnums, static_argnames: arguments that stay Python values. They are compared by hash and ==; a new value
        gives a new program.
    donate_argnums, donate_argnames: arrays whose memory the results may reuse. They cannot be used after the call.
    dims: {"x": ("batch", None)}: symbolic extents, so that one program serves all of their values; bounds: {"batch":
        (least, largest)}; symbol_modes: {"batch": "runtime"} plans for the largest.
    device: the device of the run, as of rlx.Session; None: that of the arguments. Arrays on the host are copied to it.
    threads, isa, precision, matmul_precision, device_options: as of rlx.Session.
    trace: an rlx.Trace that records compiles and runs.
    cache_size: the number of programs that are kept; the least recently used one is dropped first.

    Further keywords are compile options, as of Session.compile.

    The compiled function has these methods, with arguments like those of fun: lower(...) gives the graph before it is
    compiled, and its compile() a program that can be saved; trace(...), eval_shape(...), inspect(...), a report of the
    compile; run_async(...), for await. `misses` counts compiles, and `programs` lists the compiled programs.
    """
    settings = {k: v for k, v in locals().items() if k not in ("fun", "options")} | options
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            dims=dims,
            bounds=bounds,
            device=device,
            threads=threads,
            isa=isa,
            precision=precision,
            matmul_precision=matmul_precision,
            trace=trace,
            device_options=device_options,
            cache_size=cache_size,
            **options,
        )
    for name in options:  # those that are none at all are compile options, which the compiler checks
        if advice := guess(name, sorted(settings.keys() - options.keys())):
            raise TypeError(f"jit has no option {name!r}: {advice}")
    if not isinstance(cache_size, int) or not 0 < cache_size < 1 << 31:
        raise ValueError(f"jit: cache_size must be 1 or more, got {cache_size!r}")
    for name, x in (("dims", dims), ("bounds", bounds)):
        if x is not None and not isinstance(x, dict):
            raise TypeError(f"jit: {name} must be a dict, got {x!r}")
    if bounds and not dims:
        raise ValueError("jit: bounds needs dims, which names the symbolic extents")
    if not callable(fun):
        raise TypeError(f"jit takes a function, got an object of type {type(fun).__name__}")
    any_static = options.pop("any_static", False)
    options.pop(
        "inline", None
    )  # an option of JAX; a function that is called during a trace always becomes a part of it
    arguments = _Arguments(fun, static_argnums, static_argnames)
    donate = tuple((donate_argnums,) if isinstance(donate_argnums, int) else donate_argnums) + tuple(
        (donate_argnames,) if isinstance(donate_argnames, str) else donate_argnames
    )
    arguments.check(donate)
    places = len(arguments.positional) if arguments.names and donate else 0
    named = {a if isinstance(a, str) else arguments.name(a) for a in donate if isinstance(a, str) or -places <= a}
    if both := named & arguments.names:
        raise ValueError(f"jit: {sorted(both)} cannot be static and donated: static arguments have no memory")
    wrapped = _Wrapped(
        fun,
        arguments,
        dict(
            options,
            any_static=any_static,
            donate=donate,
            session=(device, threads, isa, precision, matmul_precision, trace, _options_key(device_options)),
            dims=_Dims(dims, bounds) if dims else None,
        ),
    )
    compiled = _compiled(wrapped, None, cache_size)
    compiled.of_user = not any_static and not (getattr(fun, "__module__", None) or "").startswith("rlx.")
    wrapped.of_user = compiled.of_user
    compiled.settings = settings
    return compiled


def _compiled(wrapped, live, cache_size):
    fun, arguments = wrapped.fun, wrapped.arguments
    compiled = _rlx.JitFunction(
        wrapped.compile,
        wrapped.inlined,
        live,
        wrapped.what,
        list(arguments.nums),
        arguments.names,
        cache_size,
        bool(wrapped.dims),
        wrapped.any_static,
    )
    compiled._wrapped, compiled.of_user = wrapped, False
    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        if hasattr(fun, attribute):
            setattr(compiled, attribute, getattr(fun, attribute))
    compiled.__wrapped__ = fun
    return compiled


def _set_methods():
    """The methods of compiled functions that need a trace."""

    def trace(self, *args, **kwargs):
        """The trace of a call with arguments like these, and its graph as `.graph`."""
        return self._wrapped.trace(args, kwargs)

    def lower(self, *args, **kwargs):
        """The graph of a call before it is compiled: `.as_text()`, `.graph`, `.compile()`."""
        return Lowered(self._wrapped, args, kwargs)

    def inspect(self, *args, **kwargs):
        """A report of the compile and of a timed run on these arguments."""
        return _inspected(self._wrapped, args, kwargs)

    def eval_shape(self, *args, **kwargs):
        """The shapes and dtypes of the result, as a tree of ShapeDtype. Nothing is computed."""
        return _shapes(self._wrapped.trace(args, kwargs))

    for method in (trace, lower, inspect, eval_shape):
        setattr(_rlx.JitFunction, method.__name__, method)


_set_methods()


def _pickled(self):
    """A function of a module that rlx.jit or a transform decorates is pickled by its name, others with the function
    that they wrap.
    """
    import sys

    found = sys.modules.get(getattr(self, "__module__", None))
    for part in getattr(self, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    if found is self:
        return self.__qualname__
    if hasattr(self, "made_by"):
        return self.made_by
    return _unpickled, (self.__wrapped__, self.settings)


def _unpickled(fun, settings):
    return jit(fun, **settings)


_rlx.JitFunction.__reduce__ = _pickled


def _inspected(wrapped, args, kwargs):
    """The report of the program of a function for these arguments, with every pass and the time of each kernel."""
    program = Lowered(wrapped, args, kwargs).compile(keep_stages=True)
    leaves = wrapped.split(args, kwargs)[0]
    return program.compiled.inspect(*[_rlx.array_from(x) for x in leaves], title=wrapped.what)


class Lowered:
    """A traced function that is not compiled yet."""

    def __init__(self, wrapped, args, kwargs):
        self._wrapped, self._args, self._kwargs = wrapped, args, kwargs
        self._traced = wrapped.trace(args, kwargs)

    def as_text(self):
        """The graph as text."""
        return self._traced.graph.text()

    @property
    def graph(self):
        """The graph of the function. compile() compiles a copy of it."""
        kept_forever.extend(self._traced.keeps)
        return self._traced.graph

    def compile(self, **options):
        """Compiles a program for these arguments alone. Keywords are compile options."""
        t = self._traced
        _, pairs, _ = self._wrapped.donations(t, self._args, self._kwargs)
        merged = dict(self._wrapped.options, **options)
        if pairs:
            merged["donate"] = pairs
        compiled = self._wrapped.session_for(self._args, self._kwargs).compile(t.graph.copy(), **merged)
        return Program(compiled, t, self._wrapped.what)


class Program(_rlx.ProgramCall):
    """A compiled function with one signature, which can be saved."""

    def __init__(self, compiled, traced, what):
        super().__init__(compiled, traced.out_tree, [bool(w) for w in traced.out_weak])
        self.compiled, self._traced, self._what = compiled, traced, what

    # C++ runs a call if all leaves are arrays that match the program; other calls come here.
    def _run_tree(self, *args, **kwargs):
        """Runs the program on a tree of arguments, with its leaves in the order in which it was compiled."""
        leaves = tree.leaves((args, dict(sorted(kwargs.items()))))
        if len(leaves) != len(self._traced.in_names):
            raise TypeError(f"{self._what} was compiled for {len(self._traced.in_names)} arrays, got {len(leaves)}")
        outs = self.compiled.run(*[x if _rlx.is_array_leaf(x) else _rlx.array_from(x) for x in leaves])
        outs = [o._with_weak(w) for o, w in zip(outs, self._traced.out_weak)]
        return self._traced.out_tree.unflatten(outs)

    def save(self, path):
        """Writes the graph and the trees of the arguments and results to a file. rlx.load compiles the file again, in
        milliseconds.
        """
        os.fspath(path)  # its error says what a path is
        t = self._traced
        if t.keeps:
            raise _rlx.Unsupported(
                f"{self._what} calls {', '.join(sorted({k.label for k in t.keeps}))}, a Python function, which a file "
                "cannot hold: an op of rlx.custom_op can be saved, and is registered again before rlx.load"
            )
        _program_file.write(path, self._what, t.graph, t.in_names, t.in_specs, t.out_tree, t.out_weak)


@renamed_arguments(products="matmul_precision")
def load(path, device="cpu", *, threads=0, isa="", precision="", matmul_precision="", device_options=None, **options):
    """Loads a file of Program.save and compiles it for a device of this machine."""
    name, graph, names, types, treedef, weak = _program_file.read(path)
    traced = Traced(graph, [ShapeDtype(*t) for t in types], names, treedef, weak)
    on = session(device, threads, isa, precision, matmul_precision, device_options=_options_key(device_options))
    compiled = on.compile(graph.copy(), **options)
    return Program(compiled, traced, name)


def _shapes(traced):
    return traced.out_tree.unflatten(
        [ShapeDtype(v.shape, v.dtype, w) for v, w in zip(traced.graph.outputs, traced.out_weak)]
    )


def eval_shape(fun, *args, **kwargs):
    """The shapes and dtypes of the result of fun, as a tree of ShapeDtype. Nothing is computed."""
    wrapped = _Wrapped(fun, _Arguments(fun, (), ()), dict(any_static=True, donate=(), session=None, dims=None))
    return _shapes(wrapped.trace(args, kwargs))


def trace(fun, *args, **kwargs):
    """The graph of fun for arguments like these (arrays or ShapeDtype)."""
    wrapped = _Wrapped(fun, _Arguments(fun, (), ()), dict(any_static=True, donate=(), session=None, dims=None))
    traced = wrapped.trace(args, kwargs)
    kept_forever.extend(traced.keeps)
    return traced.graph


_spare = {}
_seen = weakref.WeakSet()


def _kept(key, make):
    found = _spare.get(key)
    if found is None:
        if len(_spare) > 512:
            _spare.clear()
        found = _spare[key] = make()
    return found


def cached_jit(key, make):
    """The compiled function of `key`, made at first use. A few hundred are kept."""
    try:
        return _kept(key, lambda: jit(make(), any_static=True))
    except TypeError:  # a part of the key is not hashable
        return jit(make(), any_static=True)


def clear_caches():
    """Drops all programs that functions outside of `jit` share. Compiled functions keep theirs: f.cache_clear()."""
    _spare.clear()
    _rlx.clear_programs()


class Record:
    """A function as it was at one call: its trace, with all that it captured then."""

    def __init__(self, traced):
        self.traced, self.derived = traced, {}

    def __call__(self, *args):
        values = map(_rlx.value, tree.leaves(args))
        specs = self.traced.in_specs
        inputs = [
            v if v.dtype == s.dtype else _rlx.add_node("cast", (v,), {"to": s.dtype}) for v, s in zip(values, specs)
        ]
        return self.traced.out_tree.unflatten(_rlx.insert_graph(self.traced.graph, inputs))

    def derive(self, make, *options):
        """The compiled function make(self, *options), made at first use."""
        found = self.derived.get((make, options))
        if found is None:
            found = self.derived[make, options] = live(make(self, *options), closed=True)
        return found


_HERE = (None, 0, "", "", "", None, ())


def live(inner, static_argnums=(), closed=False, records=False):
    """`inner` outside of a trace: what the function would give now. It is traced at each call, unless nothing that it
    captures can have changed; graphs that differ in constants alone share a program. closed: it captures nothing.
    """
    options = {"any_static": True, "closed": closed, "records": records, "donate": (), "session": _HERE, "dims": None}
    wrapped = _Wrapped(inner, _Arguments(inner, static_argnums, ()), options)
    return _compiled(wrapped, wrapped.live, 256)


def cached_live(key, functions, make, **options):
    """The live function of a key and of functions of the user. It is kept from the second call on if they are plain
    functions: others may be equal and yet differ, and most functions are passed once.
    """
    try:
        found = _spare.get((key, functions))
    except TypeError:  # a part of the key is not hashable
        return live(make(), **options)
    if found is None:
        found = live(make(), **options)
        if all(type(f) in (types.FunctionType, _rlx.JitFunction) for f in functions):
            if all(f in _seen for f in functions):
                return _kept((key, functions), lambda: found)
            _seen.update(functions)
    return found


def recorded(fun, args):
    """(fun(*args), the Record of the call)."""
    return cached_live("call", (fun,), lambda: fun, records=True)._recorded(*args)
