"""Derivatives of solutions of equations, transposes of linear functions, and functions without captured values."""

import functools
import threading

from . import _rlx, tree
from ._jit import ShapeDtype, cached_live
from ._names import a_function
from ._nodes import filled, node, values_of
from ._transforms import _as_dtype, _is_inexact, _name, vjp

# Rules that call the function whose rules they are use rules again, up to this many nested calls: so the rules give the
# first and second derivative.
_MOST = 2


class _Depth(threading.local):
    now = 0


_depth = _Depth()


def _nested(rule):
    """The rule, in which functions with rules know how deep they are."""

    def call(xs):
        _depth.now += 1
        try:
            return rule(xs)
        finally:
            _depth.now -= 1

    return call


def _stopped(x, name):
    """A captured value that the rules know nothing of, as a constant."""
    return node("stop_gradient", x)


def ruled(name, values, body, *, forward=None, backward=None, jvp=None):
    """body(values) with rules on lists of values; see _rlx.custom_fn. The values that rules capture are constants."""
    if _depth.now >= _MOST:
        return body(values)
    rules = [None if r is None else _nested(r) for r in (forward, backward, jvp)]
    return _rlx.custom_fn(values, body, *rules, name, _stopped)


class _Opened:
    """A function of trees, traced once: call(leaves, captured) gives the leaves of its result for other arguments and
    for other values in the places of those that it captures.
    """

    def __init__(self, fun, args, what):
        leaves, self.treedef = tree.flatten(tuple(args))
        self.values = values_of(leaves)
        self.dtypes = [v.dtype for v in self.values]  # the values are gone when their trace has ended

        def flat(xs):
            outs, self.out_treedef = tree.flatten(fun(*self.treedef.unflatten(xs)))
            self.out_values = [_rlx.value(o) for o in outs]
            self.types = [(o.shape, o.dtype) for o in self.out_values]
            return self.out_values

        flat.__name__ = what
        self.traced = _rlx.fn_open(self.values, flat)
        self.captured = self.traced.captured()

    def call(self, leaves, captured):
        leaves = [_as_dtype(x, dtype) for x, dtype in zip(leaves, self.dtypes)]
        return self.traced.call(leaves, captured)


def _pushed(function, values, tangents):
    """The tangents of function(values), a list; a tangent None: the value does not move."""
    wrt = [i for i, t in enumerate(tangents) if t is not None]
    if not wrt:
        return [filled(o.shape, 0, o.dtype) for o in function(values)]
    return _rlx.fn_jvp(values, function, wrt, [tangents[i] for i in wrt])[1]


def _all_tangents(values, tangents):
    """One tangent for each value; None for those that have none."""
    rest = iter(tangents)
    return [next(rest) if _is_inexact(v) else None for v in values]


def _split(outs, aux):
    """(result, aux) of a solver."""
    if not aux:
        return outs, None
    if not isinstance(outs, tuple) or len(outs) != 2:
        raise TypeError(f"with has_aux a solver returns (solution, aux), got {type(outs).__name__}")
    return outs


def _still(values):
    return [filled(v.shape, 0, v.dtype) for v in values if _is_inexact(v)]


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """solve(f, initial_guess): a root of f, whose derivative by what f captures is that of the implicit function.

    f: a function of a tree like initial_guess, which returns such a tree.
    solve: with has_aux it returns (root, aux).
    tangent_solve: tangent_solve(g, y) returns x with g(x) = y of a linear function g; of numbers y / g(1.0).
    """
    for g in (f, solve, tangent_solve):
        if not callable(g):
            raise TypeError("custom_root(f, initial_guess, solve, tangent_solve): f and both solvers are functions")
    if not _rlx.tracing():
        run = lambda: lambda x: custom_root(f, x, solve, tangent_solve, has_aux)  # noqa: E731
        return cached_live(("custom_root", bool(has_aux)), (f, solve, tangent_solve), run)(initial_guess)
    opened = _Opened(f, (initial_guess,), _name(f))
    leaves, treedef = tree.flatten(initial_guess)
    if opened.out_treedef != treedef or any(v.shape != shape for v, (shape, _) in zip(opened.values, opened.types)):
        raise TypeError(f"custom_root: {_name(f)} must return a tree like its argument, {treedef}")
    n, found = len(leaves), {}

    def body(both):
        guess, captured = both[:n], both[n:]
        function = lambda x: treedef.unflatten(opened.call(tree.leaves(x), captured))  # noqa: E731
        root, aux = _split(solve(function, treedef.unflatten(guess)), has_aux)
        outs, out_treedef = tree.flatten(root)
        if out_treedef != treedef:
            raise TypeError(f"custom_root: solve returns {out_treedef}, the guess is {treedef}")
        more, found["aux"] = tree.flatten(aux)
        return [_as_dtype(o, v.dtype) for o, v in zip(outs, opened.values)] + [_rlx.value(a) for a in more]

    def rule(given):
        both = given[: n + len(opened.captured)]
        captured, moved = both[n:], _all_tangents(both, given[len(both) :])[n:]
        outs = list(ruled("custom_root", both, body, jvp=rule))
        root = outs[:n]
        rest = _pushed(lambda cs: opened.call(root, cs), captured, moved)

        def linear(x):
            return treedef.unflatten(_pushed(lambda xs: opened.call(xs, captured), root, tree.leaves(x)))

        x = tree.leaves(tangent_solve(linear, treedef.unflatten(rest)))
        tangents = [_as_dtype(node("neg", t), r.dtype) for t, r in zip(x, root)]
        return outs + tangents + _still(outs[n:])

    outs = ruled("custom_root", opened.values + opened.captured, body, jvp=rule)
    root = treedef.unflatten(outs[:n])
    return (root, found["aux"].unflatten(outs[n:])) if has_aux else root


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """solve(matvec, b): x with matvec(x) = b of a linear function, whose derivatives are solutions of such systems.

    transpose_solve: transpose_solve(vecmat, b) solves the transposed system, for reverse mode; without it, reverse mode
        goes through the steps of solve.
    symmetric: matvec is its own transpose, and solve is used for both.
    has_aux: solvers return (x, aux).
    """
    if not callable(matvec) or not callable(solve):
        raise TypeError("custom_linear_solve(matvec, b, solve): matvec and solve are functions")
    options = (transpose_solve, bool(symmetric), bool(has_aux))
    if not _rlx.tracing():
        run = lambda: lambda b: custom_linear_solve(matvec, b, solve, *options)  # noqa: E731
        functions = (matvec, solve) if transpose_solve is None else (matvec, solve, transpose_solve)
        return cached_live(("custom_linear_solve", len(functions), *options[1:]), functions, run)(b)
    if symmetric and transpose_solve is None:
        transpose_solve = solve
    opened = _Opened(matvec, (b,), _name(matvec))
    treedef = tree.structure(b)
    if opened.out_treedef != treedef or [v.shape for v in opened.values] != [shape for shape, _ in opened.types]:
        raise TypeError(f"custom_linear_solve: {_name(matvec)} must return a tree like its argument, {treedef}")
    n, found = len(opened.values), {}

    def function(captured):
        return lambda x: treedef.unflatten(opened.call(tree.leaves(x), captured))

    def body(both):
        x, aux = _split(solve(function(both[n:]), treedef.unflatten(both[:n])), has_aux)
        outs, out_treedef = tree.flatten(x)
        if out_treedef != treedef:
            raise TypeError(f"custom_linear_solve: solve returns {out_treedef}, b is {treedef}")
        more, found["aux"] = tree.flatten(aux)
        return [_as_dtype(o, v.dtype) for o, v in zip(outs, opened.values)] + [_rlx.value(a) for a in more]

    def again(both):
        return list(ruled("custom_linear_solve", both, body, **rules))

    def jvp(given):
        both = given[: n + len(opened.captured)]
        moved = _all_tangents(both, given[len(both) :])
        outs = again(both)
        turned = _pushed(lambda cs: opened.call(outs[:n], cs), both[n:], moved[n:])
        rest = [node("neg", t) if d is None else node("sub", d, t) for d, t in zip(moved[:n], turned)]
        return outs + again(rest + both[n:])[:n] + _still(outs[n:])

    def forward(both):
        outs = again(both)
        return outs + outs[:n] + both[n:]

    def backward(given):
        x, captured = given[:n], given[n : n + len(opened.captured)]
        cts = treedef.unflatten(given[n + len(captured) :][:n])
        matvec = function(captured)
        vecmat = matvec if symmetric else lambda y: vjp(matvec, treedef.unflatten(x))[1](y)[0]
        into_b = custom_linear_solve(vecmat, cts, transpose_solve, solve, symmetric, has_aux)
        into_b = into_b[0] if has_aux else into_b
        floats = [i for i, c in enumerate(captured) if _is_inexact(c)]
        if not floats:
            return tree.leaves(into_b)

        def of_captured(*some):
            full = list(captured)
            for i, c in zip(floats, some):
                full[i] = c
            return treedef.unflatten(opened.call(x, full))

        into = vjp(of_captured, *[captured[i] for i in floats])[1](into_b)
        return tree.leaves(into_b) + [node("neg", c) for c in into]

    rules = {"jvp": jvp}
    if transpose_solve is not None:
        rules.update(forward=forward, backward=backward)
    outs = again(opened.values + opened.captured)
    x = treedef.unflatten(outs[:n])
    return (x, found["aux"].unflatten(outs[n:])) if has_aux else x


def closure_convert(fun, *example_args):
    """(converted, consts): converted(*args, *consts) is fun(*args), and consts are the floating traced values that fun
    captures. So a custom rule can give them cotangents.
    """
    a_function(fun, "closure_convert: fun")
    if not _rlx.tracing():
        return (lambda *args: fun(*args[: len(example_args)])), []
    opened = _Opened(fun, example_args, _name(fun))
    floats = [i for i, c in enumerate(opened.captured) if _is_inexact(c)]

    def converted(*args):
        given, consts = args[: len(example_args)], args[len(example_args) :]
        leaves, treedef = tree.flatten(tuple(given))
        if treedef != opened.treedef or len(consts) != len(floats):
            raise TypeError(
                f"closure_convert of {_name(fun)}: it takes {opened.treedef} and {len(floats)} captured values"
            )
        captured = list(opened.captured)
        for i, c in zip(floats, consts):
            captured[i] = c
        return opened.out_treedef.unflatten(opened.call(leaves, captured))

    return converted, [opened.captured[i] for i in floats]


def linear_transpose(fun, *primals, reduce_axes=()):
    """The transpose of a linear function: a function of a cotangent of its result, which returns a tuple with one for
    each argument. Only the shapes and dtypes of primals count.
    """
    if reduce_axes:
        raise NotImplementedError("linear_transpose: reduce_axes is not supported")

    def zeros(x):
        spec = x if isinstance(x, ShapeDtype) else _rlx.value(x) if _rlx.tracing() else x
        if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
            import numpy

            spec = numpy.asarray(spec)
        dtype = _rlx.dtype(spec.dtype)
        if dtype.kind not in "fc":
            raise TypeError(f"linear_transpose of {_name(fun)}: an argument has dtype {dtype.name}, not a floating one")
        return (tuple(spec.shape), dtype)

    specs, treedef = tree.flatten(tuple(primals))
    specs = [zeros(s) for s in specs]

    def pulled(cotangent, number):
        at = treedef.unflatten([filled(shape, number, dtype) for shape, dtype in specs])
        return vjp(fun, *at)[1](cotangent)

    def run(cotangent, number):
        key = ("linear_transpose", tuple(specs), treedef, number)
        return cached_live(key, (fun,), lambda: lambda ct: pulled(ct, number))(cotangent)

    looked_at = False

    def transposed(cotangent):
        nonlocal looked_at
        if _rlx.tracing():
            return pulled(cotangent, 0)
        result = run(cotangent, 0)
        if not looked_at:  # the derivative of a linear function is the same everywhere
            import numpy

            for here, there in zip(tree.leaves(result), tree.leaves(run(cotangent, 2))):
                if not numpy.array_equal(here, there, equal_nan=True):
                    raise TypeError(
                        f"linear_transpose of {_name(fun)}: the function is not linear; rlx.vjp transposes its "
                        "derivative at a place"
                    )
            looked_at = True
        return result

    return transposed


def custom_gradient(fun):
    """A function with its own reverse rule: fun(*args) returns (result, rule), and rule(cotangent of the result) the
    cotangents of the arguments: a tuple, or one alone.
    """
    a_function(fun, "custom_gradient: fun")

    @functools.wraps(fun)
    def wrapped(*args):
        if not _rlx.tracing():
            return cached_live("custom_gradient", (wrapped,), lambda: wrapped)(*args)
        leaves, treedef = tree.flatten(tuple(args))
        values = values_of(leaves)
        found = {}

        def both(xs):
            result = fun(*treedef.unflatten(xs))
            if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
                raise TypeError(f"custom_gradient: {_name(fun)} returns (result, rule)")
            outs, found["out"] = tree.flatten(result[0])
            return [_rlx.value(o) for o in outs], result[1]

        def forward(xs):
            outs, rule = both(xs)
            cts = found["out"].unflatten([filled(o.shape, 0, o.dtype) for o in outs])
            found["rule"] = _Opened(rule, (cts,), _name(fun))
            found["results"] = [(o.shape, o.dtype) for o in outs]
            return outs + found["rule"].captured

        def backward(given):
            opened = found["rule"]
            n = len(opened.captured)
            moved = iter(given[n:])  # results that are no floats have no cotangents
            cts = [next(moved) if d.kind in "fc" else filled(s, 0, d) for s, d in found["results"]]
            result = opened.out_treedef.unflatten(opened.call(cts, given[:n]))
            result = result if isinstance(result, tuple) else (result,)
            cts = tree.leaves(result)
            if len(cts) != len(values):
                raise TypeError(
                    f"custom_gradient: the rule of {_name(fun)} returns {len(cts)} cotangents of {len(values)}"
                )
            return [_as_dtype(c, v.dtype) for c, v in zip(cts, values) if _is_inexact(v)]

        outs = ruled(_name(fun), values, lambda xs: both(xs)[0], forward=forward, backward=backward)
        return found["out"].unflatten(outs)

    return wrapped


def fwd_and_bwd(fun, argnums=0, has_aux=False, jitted=True):
    """(forward, backward): forward(*args) returns (result, residuals), with has_aux (result, residuals, aux);
    backward(residuals, cotangent) the cotangents of the arguments `argnums`. The residuals are the arguments.
    """
    from ._jit import jit

    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def forward(*args):
        if has_aux:
            result, aux = fun(*args)
            return result, args, aux
        return fun(*args), args

    def backward(residuals, cotangent):
        def part(*some):
            full = list(residuals)
            for n, x in zip(nums, some):
                full[n] = x
            return fun(*full)[0] if has_aux else fun(*full)

        cts = vjp(part, *[residuals[n] for n in nums])[1](cotangent)
        return cts[0] if isinstance(argnums, int) else cts

    return (jit(forward), jit(backward)) if jitted else (forward, backward)
