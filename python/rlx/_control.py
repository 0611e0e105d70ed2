"""Control flow inside programs: branches, loops, checkpoints, and functions with custom derivatives."""

import functools
import threading

from . import _rlx, tree
from ._closed_over import closed_over
from ._jit import cached_live, live, with_arrays
from ._names import a_function, renamed_arguments
from ._nodes import counted, extent_value, filled, is_wide, number, plain_int, values_of, wide_number
from ._op import refuse_traced
from ._primals import with_primals
from ._transforms import _as_dtype, _is_inexact, _name, vmap


def _run_eagerly(key, functions, make, *args):
    return cached_live(key, functions, make)(*args)


def _run_loop(key, functions, make, init, *args):
    """make(numbers)(init, *args), a loop outside of a trace. The Python numbers of its carry, the leaves `numbers`,
    come in as weak float64: the dtype that the body gives them is known only after its trace.
    """
    leaves, treedef = tree.flatten(init)
    wide = [wide_number(x) for x in leaves]
    numbers = tuple(i for i, (x, w) in enumerate(zip(leaves, wide)) if w is not x)
    return _run_eagerly((key, numbers), functions, lambda: make(numbers), treedef.unflatten(wide), *args)


def cond(pred, true_fun, false_fun, *operands):
    """true_fun(*operands) if the scalar pred is true, else false_fun(*operands). Only one of them runs."""
    if not callable(true_fun) or not callable(false_fun):
        raise TypeError("cond(pred, true_fun, false_fun, *operands): both branches must be functions")
    if not _rlx.tracing():
        run = lambda: lambda p, *xs: cond(p, true_fun, false_fun, *xs)  # noqa: E731
        return _run_eagerly("cond", (true_fun, false_fun), run, pred, *operands)
    p = _rlx.value(pred)
    if p.shape != ():
        raise TypeError(
            f"cond: pred has shape {p.shape}, it must be a scalar; rlx.numpy.where selects element by element"
        )
    if p.dtype != _rlx.bool_:
        p = _rlx.add_node("ne", (p, 0), {})
    names = (f"the true branch {_name(true_fun)}", f"the false branch {_name(false_fun)}")
    return _branches(p, (true_fun, false_fun), operands, "cond", names)


class _Again(Exception):
    """Raised during the trace of a body whose operands or results need other dtypes; the body is traced again."""


def _branches(p, functions, operands, what, names):
    leaves, treedef = tree.flatten(operands)
    values = values_of(leaves)
    types, shapes, treedefs = None, [None, None], [None, None]

    def branch(k):
        def run(xs):
            nonlocal types
            given, treedefs[k] = tree.flatten(functions[k](*treedef.unflatten(xs)))
            outs = shapes[k] = [_rlx.value(o) for o in given] or [_rlx.value(0)]  # a branch needs a result
            if types is None and k == 1:
                joined = _join_types(shapes, treedefs, what, names)
                if joined != [o.dtype for o in shapes[0]]:
                    types = joined
                    raise _Again
                return [_number_or_cast(x, o, t) for x, o, t in zip(given or outs, outs, joined)]
            return outs if types is None else [_number_or_cast(x, o, t) for x, o, t in zip(given or outs, outs, types)]

        return run

    try:
        outs = _rlx.cond(p, values, branch(0), branch(1))
    except _Again:
        outs = _rlx.cond(p, values, branch(0), branch(1))
    return treedefs[0].unflatten(outs[: treedefs[0].num_leaves])


def _number_or_cast(leaf, value, dtype):
    """The value of a leaf as dtype. A Python number is rounded once, to that dtype."""
    if type(leaf) in (int, float, complex) and value.dtype != dtype:
        return _rlx.value(number(leaf, dtype))
    return _as_dtype(value, dtype)


def _join_types(shapes, treedefs, what, names):
    """The dtypes of the results of two branches. They must be equal, or one is weak and takes the dtype of the
    other.
    """
    _same_structures(shapes, treedefs, what, names)
    out = []
    for x, y in zip(*shapes):
        out.append(y.dtype if x.weak_type and _takes(y, x) else x.dtype)
    return out


def _takes(x, weak):
    """True if a weak value may take the dtype of x: an integer may become a float, but not the reverse."""
    rank = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    return weak.weak_type and rank[weak.dtype.kind] <= rank[x.dtype.kind]


def _same_structures(shapes, treedefs, what, names):
    if treedefs[0] != treedefs[1]:
        raise TypeError(f"{what}: {names[0]} returns {treedefs[0]}, {names[1]} returns {treedefs[1]}")
    for i, (x, y) in enumerate(zip(*shapes)):
        if (
            x.shape != y.shape
            or x.dtype != y.dtype
            and not (_takes(x, y) or _takes(y, x) or x.weak_type and y.weak_type)
        ):
            raise TypeError(
                f"{what}: leaf {i} is {x.dtype.name}{list(x.shape)} from {names[0]} and "
                f"{y.dtype.name}{list(y.shape)} from {names[1]}"
            )


def switch(index, branches, *operands):
    """branches[index](*operands), with the index clamped to the list. Only one branch runs."""
    branches = list(branches)
    if not branches or not all(callable(b) for b in branches):
        raise TypeError("switch(index, branches, *operands): branches must be a list of functions and not empty")
    if not _rlx.tracing():
        run = lambda: lambda i, *xs: switch(i, branches, *xs)  # noqa: E731
        return _run_eagerly("switch", tuple(branches), run, index, *operands)
    index = _rlx.value(index)
    if index.shape != () or index.dtype.kind not in "iu":
        raise TypeError(f"switch: the index is {index.dtype.name}{list(index.shape)}, it must be an integer scalar")

    def choose(low, high):
        if high - low == 1:
            return lambda *xs: branches[low](*xs)
        middle = (low + high) // 2

        def run(*xs):
            below = _rlx.add_node("lt", (index, middle), {})
            names = [f"branch {k} {_name(branches[k])}" for k in (low, middle)]
            return _branches(below, (choose(low, middle), choose(middle, high)), xs, "switch", names)

        return run

    return choose(0, len(branches))(*operands)


def _settled(init, what, draw, beside=(), numbers=()):
    """Calls draw(values, treedef, check) with the values of the carry. The body passes its new carry to check, which
    returns it as a list of values. If a weak carry changes its dtype or its weakness there, its initial value is cast
    and the body is traced again. numbers: leaves of the carry that are Python numbers as weak float64.
    """
    leaves, treedef = tree.flatten(init)
    values = values_of(leaves, beside)
    if numbers and not any(is_wide(x) for x in (*values, *beside)):
        for i in numbers:
            narrow = "float32" if values[i].dtype.kind == "f" else "complex64"
            values[i] = _as_dtype(values[i], _rlx.dtype(narrow))._with_weak(True)
    tries, changes = 0, {}

    def check(carry):
        outs, out_treedef = tree.flatten(carry)
        if out_treedef != treedef:
            raise TypeError(f"{what}: the carry is {treedef}, the body returns {out_treedef}")
        outs = [_rlx.value(o) for o in outs]
        for i, (v, o) in enumerate(zip(values, outs)):
            if _takes(o, v) and (v.dtype != o.dtype or not o.weak_type) and tries < 3:
                changes[i] = (o.dtype, o.weak_type)
        if changes:
            raise _Again
        for i, (v, o) in enumerate(zip(values, outs)):
            if v.shape != o.shape or v.dtype != o.dtype and not _takes(v, o):
                raise TypeError(
                    f"{what}: leaf {i} of the carry goes in as {v.dtype.name}{list(v.shape)} and comes out as "
                    f"{o.dtype.name}{list(o.shape)}; a loop keeps shapes and dtypes: cast or reshape one of them"
                )
        return [_as_dtype(o, v.dtype) for v, o in zip(values, outs)]

    while True:
        try:
            return draw(values, treedef, check)
        except _Again:
            tries += 1
            for i, (dtype, weak) in changes.items():
                values[i] = _number_or_cast(leaves[i], leaves[i] if i in numbers else values[i], dtype)._with_weak(weak)
            changes.clear()


def scan(f, init, xs=None, length=None, reverse=False, checkpoint=False):
    """Runs f(carry, x) -> (carry, y) for every row x of xs. Returns (the last carry, the stacked ys).

    checkpoint: reverse mode stores only the carries and recomputes the rest of each step.
    """
    if not callable(f):
        raise TypeError("scan(f, init, xs): f is a function of (carry, x)")
    reverse, checkpoint = bool(reverse), bool(checkpoint)
    if isinstance(length, _rlx.Value):
        refuse_traced(length, "scan: length")
    length = plain_int(length)
    if length is not None and not isinstance(length, (int, _rlx.Dim)):
        raise TypeError(f"scan: length must be an integer, got {length!r}")
    if not _rlx.tracing():
        run = lambda numbers: lambda c, x: _scan(f, c, x, length, reverse, checkpoint, numbers)  # noqa: E731
        return _run_loop(("scan", length, reverse, checkpoint), (f,), run, init, xs)
    return _scan(f, init, xs, length, reverse, checkpoint)


def _scan(f, init, xs, length=None, reverse=False, checkpoint=False, numbers=()):
    x_leaves, x_treedef = tree.flatten(xs)
    x_values = [_rlx.value(x) for x in x_leaves]
    for v in x_values:
        if v.ndim == 0:
            raise TypeError("scan: a scalar in xs has no rows: capture it in f, and every step can read it")
    lengths = {str(v.shape[0]) for v in x_values}
    if len(lengths) > 1:
        raise ValueError(f"scan: xs have {' and '.join(sorted(lengths))} rows")
    if x_values and length is not None and x_values[0].shape[0] != length:
        raise ValueError(f"scan: length {length}, xs have {x_values[0].shape[0]} rows")
    if not x_values and length is None:
        raise ValueError("scan: length is needed without xs")
    y_treedef = None

    def draw(values, treedef, check):
        def body(carry_values, row_values):
            nonlocal y_treedef
            carry = treedef.unflatten([c._with_weak(v.weak_type) for c, v in zip(carry_values, values)])
            x = x_treedef.unflatten([r._with_weak(v.weak_type) for r, v in zip(row_values, x_values)])
            result = f(carry, x)
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError(f"scan: {_name(f)} must return (carry, y), got {type(result).__name__}")
            carries = check(result[0])
            ys, y_treedef = tree.flatten(result[1])
            return carries, [_rlx.value(v) for v in ys]

        carries, ys = _rlx.scan(values, x_values, body, length, reverse, checkpoint, _name(f))
        return treedef.unflatten(carries), y_treedef.unflatten(ys)

    return _settled(init, f"scan of {_name(f)}", draw, x_values, numbers)


@renamed_arguments(max_trips="max_iterations")
def while_loop(cond_fun, body_fun, init, max_iterations=None):
    """Runs carry = body_fun(carry) while cond_fun(carry) is true, beginning with init. Returns the last carry.

    max_iterations: the loop stops after this many iterations. Reverse mode needs it.
    """
    if not callable(cond_fun) or not callable(body_fun):
        raise TypeError("while_loop(cond_fun, body_fun, init): both are functions of the carry")
    if max_iterations is not None and (not isinstance(max_iterations, int) or not 0 <= max_iterations < 1 << 63):
        raise TypeError(f"while_loop: max_iterations must be an integer, 0 or more, got {max_iterations!r}")
    if not _rlx.tracing():
        run = lambda numbers: lambda c: _while_loop(cond_fun, body_fun, c, max_iterations, numbers)  # noqa: E731
        return _run_loop(("while", max_iterations), (cond_fun, body_fun), run, init)
    return _while_loop(cond_fun, body_fun, init, max_iterations)


def _while_loop(cond_fun, body_fun, init, max_iterations=None, numbers=()):
    def draw(values, treedef, check):
        def carry(xs):
            return treedef.unflatten([x._with_weak(v.weak_type) for x, v in zip(xs, values)])

        def again(xs):
            p = _rlx.value(cond_fun(carry(xs)))
            if p.shape != ():
                raise TypeError(
                    f"while_loop: {_name(cond_fun)} returns an array of shape {p.shape}, it must return a scalar"
                )
            return p if p.dtype == _rlx.bool_ else _rlx.add_node("ne", (p, 0), {})

        return treedef.unflatten(_rlx.while_loop(values, again, lambda xs: check(body_fun(carry(xs))), max_iterations))

    return _settled(init, f"while_loop of {_name(body_fun)}", draw, (), numbers)


def _known(bound):
    """The integer of a bound that is an array, so that the loop becomes a scan; other bounds unchanged."""
    known = not isinstance(bound, (int, _rlx.Value)) and getattr(bound, "shape", None) == ()
    return int(bound) if known and _rlx.dtype(bound.dtype).kind in "iu" else bound


def fori_loop(lower, upper, body_fun, init):
    """Runs carry = body_fun(i, carry) for i from lower to upper - 1. With known bounds the loop is a scan, which has
    reverse mode. With traced bounds it is a while_loop. The index has the dtype of bounds that are not Python integers.
    """
    if not callable(body_fun):
        raise TypeError("fori_loop(lower, upper, body_fun, init): body_fun is a function of (i, carry)")
    typed = [b for b in (lower, upper) if hasattr(b, "dtype")]
    dtype = _rlx.result_type(*typed)[0] if typed else _rlx.dtype("int32")
    if dtype.name == "int64" and isinstance(_known(upper), int) and _known(upper) < 2**31:
        dtype = _rlx.dtype("int32")  # NumPy makes int64 of what Python calls an integer
    lower, upper = (extent_value(b) if isinstance(b, _rlx.Dim) else _known(b) for b in (lower, upper))
    if isinstance(lower, int) and isinstance(upper, int):

        def step(carry, i):
            return body_fun(i, carry), None

        step.__name__ = _name(body_fun)

        def counted_loop(numbers):
            return lambda c: _scan(step, c, counted(max(upper - lower, 0), dtype, lower), numbers=numbers)[0]

        if not _rlx.tracing():
            return _run_loop(("fori", lower, upper, dtype), (body_fun,), counted_loop, init)
        return counted_loop(())(init)

    def go(state):
        return _rlx.add_node("lt", (state[0], state[1]), {})

    def step(state):
        i, end, carry = state
        return _rlx.add_node("add", (i, 1), {}), end, body_fun(i, carry)

    def open_loop(numbers):
        def run(carry, low, high):
            low, high = _rlx.value(low), _rlx.value(high)
            for bound in (low, high):
                if bound.shape != () or bound.dtype.kind not in "iu":
                    raise TypeError(
                        f"fori_loop: a bound is {bound.dtype.name}{list(bound.shape)}, it must be an integer scalar"
                    )
            dtype, _ = _rlx.result_type(low, high)
            state = (_as_dtype(low, dtype), _as_dtype(high, dtype), carry)
            return _while_loop(go, step, state, numbers=[2 + i for i in numbers])[2]

        return run

    if not _rlx.tracing():
        return _run_loop("fori", (body_fun,), open_loop, init, lower, upper)
    return open_loop(())(init, lower, upper)


def map(f, xs, *, batch_size=None):
    """f of every row of xs, one after the other, stacked. vmap computes all rows together. batch_size: so many rows
    are computed together.
    """
    batch_size = plain_int(batch_size)
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
        raise ValueError(f"map: batch_size must be a positive integer, got {batch_size!r}")
    if not _rlx.tracing():
        return _run_eagerly(("map", batch_size), (f,), lambda: lambda x: map(f, x, batch_size=batch_size), xs)
    if batch_size is None:
        return scan(_mapped(f), (), xs)[1]
    leaves, treedef = tree.flatten(xs)
    values = [_rlx.value(x) for x in leaves]
    if not values or any(v.ndim == 0 for v in values):
        raise TypeError("map: xs needs arrays with rows")
    whole = values[0].shape[0] // batch_size * batch_size
    parts, rows = [], vmap(f)
    if whole:
        head = [_rlx.reshape([v[:whole]], (whole // batch_size, batch_size, *v.shape[1:])) for v in values]
        out = scan(_mapped(rows), (), treedef.unflatten(head))[1]
        parts.append(tree.map(lambda y: _rlx.reshape([y], (whole, *y.shape[2:])), out))
    if whole < values[0].shape[0] or not whole:
        parts.append(rows(treedef.unflatten([v[whole:] for v in values])))
    return tree.map(lambda *ys: _rlx.add_node("concat", ys, {"axis": 0}), *parts) if len(parts) > 1 else parts[0]


def _mapped(f):
    def step(carry, x):
        return carry, f(x)

    step.__name__ = _name(f)
    return step


class checkpoint_policies:
    """What reverse mode stores of a function in rlx.checkpoint, by the names of JAX."""

    nothing_saveable = "nothing_saveable"
    everything_saveable = "everything_saveable"
    dots_saveable = checkpoint_dots = "dots_saveable"
    known = (None, nothing_saveable, everything_saveable, dots_saveable)


def checkpoint(fun=None, *, keep_dots=False, policy=None, static_argnums=(), prevent_cse=True):
    """fun with rematerialization: reverse mode stores only its arguments and recomputes the rest. keep_dots: it also
    stores the results of matmuls. policy: one of rlx.checkpoint_policies instead. static_argnums: arguments that stay
    Python values. prevent_cse has no effect: recomputed values are never merged with the original ones.
    """
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    if policy not in checkpoint_policies.known:
        raise ValueError(
            f"checkpoint: policy {getattr(policy, '__name__', policy)!r}; rlx.checkpoint_policies has "
            "nothing_saveable, everything_saveable and dots_saveable"
        )
    if fun is None:
        return functools.partial(checkpoint, keep_dots=keep_dots, policy=policy, static_argnums=static)
    a_function(fun, "checkpoint: fun")
    if policy == checkpoint_policies.everything_saveable:
        return functools.wraps(fun)(lambda *args, **kwargs: fun(*args, **kwargs))
    keep_dots = keep_dots or policy == checkpoint_policies.dots_saveable

    @functools.wraps(fun)
    def wrapped(*args, **kwargs):
        for n in static:
            if not -len(args) <= n < len(args):
                raise ValueError(
                    f"checkpoint of {_name(fun)}: static_argnums {n} for a call with {len(args)} positional arguments"
                )
        fixed = {n % len(args) for n in static}
        if not _rlx.tracing():
            args, kwargs = with_arrays(args, kwargs, fixed)
            return fun(*args, **kwargs)
        leaves, treedef = tree.flatten(([None if n in fixed else a for n, a in enumerate(args)], kwargs))
        dynamic = [i for i, x in enumerate(leaves) if _rlx.is_array_leaf(x)]
        out_treedef = None

        def body(values):
            nonlocal out_treedef
            full = list(leaves)
            for i, v in zip(dynamic, values):
                full[i] = v._with_weak(originals[i].weak_type)
            a, k = treedef.unflatten(full)
            outs, out_treedef = tree.flatten(fun(*[args[n] if n in fixed else x for n, x in enumerate(a)], **k))
            return [_rlx.value(o) for o in outs]

        originals = dict(zip(dynamic, values_of([leaves[i] for i in dynamic])))
        outs = _rlx.checkpoint([originals[i] for i in dynamic], body, keep_dots)
        return out_treedef.unflatten(outs)

    return wrapped


class _Ruled:
    """A function with custom derivative rules. A rule may call the function. Such a call uses the rules too, until
    `_most` nested calls; then the function itself is traced. So the rules give the first and the second derivative.
    """

    _most = 2
    _captured = ()  # attributes that a program depends on

    def __init__(self, fun, nondiff_argnums, nondiff_argnames=()):
        a_function(fun, f"{type(self).__name__}: fun")
        nondiff = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        if nondiff_argnames:
            nondiff = tuple(sorted({*nondiff, *self._places(fun, nondiff_argnames)}))
        if not all(isinstance(n, int) for n in nondiff):
            raise TypeError(
                f"{type(self).__name__}: nondiff_argnums must be positions of arguments, got {nondiff_argnums!r}"
            )
        self.nondiff = nondiff
        self.fun, self.depth, self.signature = fun, threading.local(), None
        functools.update_wrapper(self, fun)
        eager = lambda *args: self._traced(*args)  # noqa: E731
        eager.__name__ = _name(fun)
        self._eager = live(eager, static_argnums=nondiff)

    def __deepcopy__(self, memo):
        return self  # as a function

    def _places(self, fun, names):
        import inspect

        names, known = (names,) if isinstance(names, str) else names, list(inspect.signature(fun).parameters)
        for name in names:
            if name not in known:
                raise ValueError(f"{type(self).__name__}: {_name(fun)} has no argument {name!r}; it has {known}")
        return [known.index(name) for name in names]

    def _call(self, args):
        if not _rlx.tracing():
            return self._eager(*args)
        return self.fun(*args) if self._depth() >= self._most else self._traced(*args)

    def _positional(self, args, kwargs):
        """All arguments by position, with defaults, as the rules get them."""
        if self.signature is None:
            import inspect

            try:
                self.signature = inspect.signature(self.fun)
            except (TypeError, ValueError):
                self.signature = False
        if not self.signature:
            return args
        bound = self.signature.bind(*args, **kwargs)
        given = bound.kwargs
        bound.apply_defaults()
        if given:
            raise TypeError(f"{_name(self.fun)}: a function with custom derivatives cannot have keyword-only arguments")
        return bound.args

    def _checked(self, args):
        for n in self.nondiff:
            if not 0 <= n < len(args):
                raise ValueError(
                    f"{type(self).__name__} {_name(self.fun)}: nondiff_argnums {n} of {len(args)} arguments"
                )
        return args

    def _merged(self, static, others):
        """All arguments in order: those of nondiff_argnums and the others."""
        out, others = list(others), iter(others)
        fixed = dict(zip(self.nondiff, static))
        return [fixed[i] if i in fixed else next(others) for i in range(len(out) + len(fixed))]

    def _depth(self):
        return getattr(self.depth, "now", 0)

    def _rule(self, rule, *args):
        self.depth.now = self._depth() + 1
        try:
            return rule(*args)
        finally:
            self.depth.now -= 1


def _cotangent_leaves(ct, part):
    """The leaves of a tree of cotangents, which may have None for a subtree of its argument."""
    if ct is None:
        return [None] * tree.structure(part).num_leaves
    cts, ct_treedef = tree.flatten(ct, is_leaf=lambda x: x is not ct)
    parts, treedef = tree.flatten(part, is_leaf=lambda x: x is not part)
    if ct_treedef != treedef or treedef.num_leaves == 1 and parts[0] is part:
        return tree.leaves(ct)
    return [leaf for c, p in zip(cts, parts) for leaf in _cotangent_leaves(c, p)]


class custom_vjp(_Ruled):
    """A function with a custom reverse rule.

        @rlx.custom_vjp
        def f(x, y): ...
        f.defvjp(forward, backward)     # forward(x, y) -> (result, residuals); backward(residuals, ct) -> (ct_x, ct_y)

    nondiff_argnums: arguments that are Python values. forward gets them in their places, backward gets them first.
    nondiff_argnames names them.

    Rules may call f. The first and second derivatives use the rules; higher derivatives differentiate through f itself.
    """

    _captured = ("fun", "forward", "backward")

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.forward = self.backward = None

    def defvjp(self, forward, backward, symbolic_zeros=False, optimize_remat=False):
        """Sets the rules; see the class. symbolic_zeros: forward gets each value as an object with `value` and
        `perturbed`, which is always True. optimize_remat has no effect.
        """
        a_function(forward, "defvjp: forward")
        a_function(backward, "defvjp: backward")
        if symbolic_zeros:
            forward = with_primals(forward, self.nondiff)
        self.forward, self.backward = forward, backward

    def __get__(self, obj, cls=None):
        return self if obj is None else functools.partial(self, obj)

    def __call__(self, *args, **kwargs):
        if self.forward is None:
            raise TypeError(f"custom_vjp {_name(self.fun)} has no rules yet: call defvjp(forward, backward)")
        return self._call(self._checked(self._positional(args, kwargs)))

    def _traced(self, *args):
        fun, name = self.fun, _name(self.fun)
        static = [args[i] for i in self.nondiff]
        given = [a for i, a in enumerate(args) if i not in self.nondiff]
        leaves, treedef = tree.flatten(tuple(given))
        values = values_of(leaves)
        found = {}

        def arguments(xs):
            it = iter(treedef.unflatten([x._with_weak(v.weak_type) for x, v in zip(xs, values)]))
            return [args[i] if i in self.nondiff else next(it) for i in range(len(args))]

        def body(xs):
            outs, found["out"] = tree.flatten(fun(*arguments(xs)))
            outs = [_rlx.value(o) for o in outs]
            found["kinds"] = [o.dtype.kind for o in outs]
            return outs

        def forward(xs):
            both = self._rule(self.forward, *arguments(xs))
            if not isinstance(both, tuple) or len(both) != 2:
                raise TypeError(f"custom_vjp {name}: forward returns (result, residuals), got {type(both).__name__}")
            outs, out_treedef = tree.flatten(both[0])
            if out_treedef != found["out"]:
                raise TypeError(
                    f"custom_vjp {name}: forward returns the result {out_treedef}, the function {found['out']}"
                )
            residuals, found["residuals"] = tree.flatten(both[1])
            outs = [_rlx.value(o) for o in outs]
            found["outs"] = outs
            return outs + [_rlx.value(r) for r in residuals]

        def backward(xs):
            n = found["residuals"].num_leaves
            residuals = found["residuals"].unflatten(xs[:n])
            cts = iter(xs[n:])
            full = [next(cts) if kind in "fc" else filled((), 0, "float32") for kind in found["kinds"]]
            result = self._rule(self.backward, *static, residuals, found["out"].unflatten(full))
            if not isinstance(result, (tuple, list)) or len(result) != len(given):
                raise TypeError(
                    f"custom_vjp {name}: backward returns a tuple of {len(given)} cotangents, one for each argument"
                )
            out = []
            for ct, part in zip(result, treedef.unflatten(values)):
                part_leaves = tree.leaves(part)
                ct_leaves = _cotangent_leaves(ct, part)
                if len(ct_leaves) != len(part_leaves):
                    raise TypeError(
                        f"custom_vjp {name}: a cotangent has {len(ct_leaves)} leaves, its argument {len(part_leaves)}"
                    )
                for c, p in zip(ct_leaves, part_leaves):
                    if not _is_inexact(p):
                        continue
                    c = filled(p.shape, 0, p.dtype) if c is None else _as_dtype(c, p.dtype)
                    if c.shape != p.shape:
                        raise ValueError(
                            f"custom_vjp {name}: a cotangent of shape {c.shape} for an argument of shape {p.shape}"
                        )
                    out.append(c)
            return out

        outs = _rlx.custom_fn(values, body, forward, backward, None, name, closed_over)
        return found["out"].unflatten(outs)


class custom_jvp(_Ruled):
    """A function with a custom forward rule.

        @rlx.custom_jvp
        def f(x): ...
        @f.defjvp
        def rule(primals, tangents): ...     # -> (result, tangent of the result)

    Reverse mode transposes the rule, which must be linear in the tangents. The rule may call f, as with custom_vjp.
    nondiff_argnums: arguments that are Python values. The rule gets them first: rule(mode, primals, tangents).
    nondiff_argnames names them.
    """

    _captured = ("fun", "rule")

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.rule = None

    def defjvp(self, rule, symbolic_zeros=False):
        """Sets the rule; see the class. symbolic_zeros has no effect: all tangents are arrays, zeros among them."""
        self.rule = a_function(rule, "defjvp: the rule")
        return rule

    def defjvps(self, *rules):
        """Sets a rule for each argument, rule(tangent, result, *arguments); None for an argument without a
        derivative.
        """

        def rule(*given):
            static, (primals, tangents) = given[:-2], given[-2:]
            result = self(*self._merged(static, primals))
            moved = [r(t, result, *primals) for r, t in zip(rules, tangents) if r is not None]
            if not moved:
                return result, tree.map(lambda x: filled(x.shape, 0, x.dtype), result)
            total = moved[0]
            for m in moved[1:]:
                total = tree.map(lambda a, b: a + b, total, m)
            return result, total

        self.defjvp(rule)

    def __call__(self, *args, **kwargs):
        if self.rule is None:
            raise TypeError(f"custom_jvp {_name(self.fun)} has no rule yet: use @f.defjvp")
        return self._call(self._checked(self._positional(args, kwargs)))

    def _traced(self, *args):
        name = _name(self.fun)
        static = [args[i] for i in self.nondiff]
        leaves, treedef = tree.flatten(tuple(a for i, a in enumerate(args) if i not in self.nondiff))
        values = values_of(leaves)
        found = {}

        def body(xs):
            outs, found["out"] = tree.flatten(self.fun(*self._merged(static, treedef.unflatten(xs))))
            return [_rlx.value(o) for o in outs]

        def rule(xs):
            n = len(values)
            tangents = iter(xs[n:])
            full = [next(tangents) if _is_inexact(v) else filled(v.shape, 0, "float32") for v in values]
            both = self._rule(self.rule, *static, treedef.unflatten(xs[:n]), treedef.unflatten(full))
            if not isinstance(both, tuple) or len(both) != 2:
                raise TypeError(f"custom_jvp {name}: the rule must return (result, tangent), got {type(both).__name__}")
            outs, ts = tree.leaves(both[0]), tree.leaves(both[1])
            if len(outs) != len(ts):
                raise TypeError(f"custom_jvp {name}: the rule returns {len(outs)} results, but {len(ts)} tangents")
            outs = [_rlx.value(o) for o in outs]
            return outs + [_as_dtype(t, o.dtype) for o, t in zip(outs, ts) if _is_inexact(o)]

        outs = _rlx.custom_fn(values, body, None, None, rule, name, closed_over)
        return found["out"].unflatten(outs)
