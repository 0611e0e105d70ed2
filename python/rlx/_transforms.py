"""Derivatives and batching of functions. Each transform traces its function and transforms the graph.

Outside of a trace they run at once, compiled and cached. Inside a trace they become part of the program.
"""

from . import _rlx, tree
from ._axes import Axis
from ._gradients import gradient_of
from ._jit import ShapeDtype, cached_live, live, recorded
from ._nodes import counted, diagonal_ones, filled, node, plain_int, values_of


def _name(fun):
    return getattr(fun, "__name__", type(fun).__name__)


def _is_inexact(leaf):
    return leaf.dtype.kind in "fc"


def _transform(fun, inner, kind, made_by):
    """The function inner(*args). Outside of a trace it runs compiled.

    made_by: (transform, its arguments), which pickles hold.
    """
    for attribute in ("__module__", "__qualname__", "__doc__"):
        if hasattr(fun, attribute):
            setattr(inner, attribute, getattr(fun, attribute))
    inner.__wrapped__ = fun
    inner.__name__ = f"{kind}({_name(fun)})"
    out = live(inner)
    out.made_by = made_by
    return out


def _fixed(argnums):
    """argnums as it is now: a list could be written later."""
    return argnums if isinstance(argnums, int) else tuple(argnums)


def _argnums(argnums, args, kind, fun):
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    out = []
    for n in nums:
        if not isinstance(n, int) or not -len(args) <= n < len(args):
            raise ValueError(
                f"{kind} of {_name(fun)}: argnums {argnums} for a call with {len(args)} positional arguments"
            )
        out.append(n % len(args))
    if len(set(out)) != len(out):
        raise ValueError(f"{kind} of {_name(fun)}: argnums {argnums} name an argument twice")
    return out


def _float_leaves(nums, args, kwargs, kind, fun):
    """(values, treedef) of the arguments to differentiate with respect to. All of them must be floating or complex."""
    leaves, treedef = tree.flatten(tuple(args[n] for n in nums))
    values = values_of(leaves, tree.leaves((args, kwargs)))
    for v in values:
        if not _is_inexact(v):
            raise TypeError(
                f"{kind} of {_name(fun)}: an argument has dtype {v.dtype.name}; derivatives need floating or "
                "complex arguments: pass 2.0 for 2, or x.astype(rlx.float32)"
            )
    return values, treedef


def _scalar(value, kind, fun):
    if value.shape != ():
        raise TypeError(
            f"{kind} of {_name(fun)}: it returns an array of shape {value.shape}, and a gradient needs a scalar: "
            "sum it, or use rlx.vjp or rlx.jacrev"
        )
    if value.dtype.kind != "f":
        raise TypeError(
            f"{kind} of {_name(fun)}: it returns {value.dtype.name}, and a gradient needs a real floating scalar"
        )


def value_and_grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """A function that returns (the value of fun, its gradient with respect to the arguments `argnums`).

    has_aux: fun returns (value, aux), and the result is ((value, aux), gradient).
    holomorphic: fun is a holomorphic function of complex numbers, and the gradient is its complex derivative.
    allow_int: integer arguments are taken; their gradient is 0.
    """
    if isinstance(fun, _rlx.Graph):
        return fun.value_and_grad(argnums)
    if not callable(fun):
        raise TypeError(f"value_and_grad takes a function, got an object of type {type(fun).__name__}")
    argnums = _fixed(argnums)
    options = (argnums, has_aux, holomorphic, allow_int)
    made_by = value_and_grad, (fun, *options)
    if holomorphic or allow_int:
        return _transform(fun, gradient_of(fun, _name(fun), *options, _argnums, _Opened), "value_and_grad", made_by)

    def inner(*args, **kwargs):
        nums = _argnums(argnums, args, "grad", fun)
        values, treedef = _float_leaves(nums, args, kwargs, "grad", fun)
        aux_treedef = None

        def flat(leaves):
            nonlocal aux_treedef
            new = list(args)
            for n, part in zip(nums, treedef.unflatten(leaves)):
                new[n] = part
            result = fun(*new, **kwargs)
            aux = None
            if has_aux:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise TypeError(
                        f"grad of {_name(fun)}: with has_aux it returns (value, aux), got {type(result).__name__}"
                    )
                result, aux = result
            if isinstance(result, (tuple, list, dict)) or result is None:
                raise TypeError(
                    f"grad of {_name(fun)}: it returns a {type(result).__name__}, and a gradient needs one scalar"
                )
            loss = _rlx.value(result)
            _scalar(loss, "grad", fun)
            aux_leaves, aux_treedef = tree.flatten(aux)
            return [loss, *aux_leaves]

        loss, grads, aux = _rlx.fn_value_and_grad(values, flat, list(range(len(values))))
        grads = treedef.unflatten(grads)
        grads = grads[0] if isinstance(argnums, int) else grads
        value = (loss, aux_treedef.unflatten(aux)) if has_aux else loss
        return value, grads

    return _transform(fun, inner, "value_and_grad", made_by)


def grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """The gradient of fun, which returns a scalar, with respect to the arguments `argnums`; with has_aux (gradient,
    aux). holomorphic and allow_int are those of value_and_grad.
    """
    if isinstance(fun, _rlx.Graph):
        return fun.grad(argnums)
    if not callable(fun):
        raise TypeError(f"grad takes a function, got an object of type {type(fun).__name__}")
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    def inner(*args, **kwargs):
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return _transform(fun, inner, "grad", (grad, (fun, argnums, has_aux, holomorphic, allow_int)))


def _with_aux(result, kind):
    """(result, aux) of a function with has_aux."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"{kind}: with has_aux it returns (result, aux), got {type(result).__name__}")
    return result


class _Opened:
    """A function traced once inside another trace: its results, and its derivatives in both modes, at any later time
    of the outer trace. What it captures is read now. has_aux: it returns (result, aux).
    """

    def __init__(self, fun, primals, name=None, has_aux=False, kind="vjp"):
        self.what = f"{kind} of {name or _name(fun)}"
        leaves, self.treedef = tree.flatten(tuple(primals))
        self.values = values_of(leaves)
        self.types, self.weak = [], []

        def flat(xs):
            result = fun(*self.treedef.unflatten(xs))
            result, aux = _with_aux(result, self.what) if has_aux else (result, None)
            outs, self.out_treedef = tree.flatten(result)
            outs = [_rlx.value(o) for o in outs]
            self.types = [(o.shape, o.dtype) for o in outs]
            self.aux_leaves, self.aux_treedef = tree.flatten(aux)
            self.aux_values = [i for i, x in enumerate(self.aux_leaves) if _rlx.is_array_leaf(x)]
            outs += [_rlx.value(self.aux_leaves[i]) for i in self.aux_values]
            self.weak = [o.weak_type for o in outs]
            return outs

        self.traced = _rlx.fn_open(self.values, flat)

    def _results(self):
        return [v._with_weak(w) for v, w in zip(self.traced.results(), self.weak)]

    def results(self):
        return self.out_treedef.unflatten(self._results()[: len(self.types)])

    def aux(self):
        leaves = list(self.aux_leaves)
        for i, v in zip(self.aux_values, self._results()[len(self.types) :]):
            leaves[i] = v
        return self.aux_treedef.unflatten(leaves)

    def _again(self, xs):
        return self.traced.call(xs, self.traced.captured())[: len(self.types)]

    def push(self, tangents):
        """The tangents of the result, as its tree."""
        again = lambda *xs: self.out_treedef.unflatten(self._again(tree.leaves(xs)))  # noqa: E731
        primals = self.treedef.unflatten(map(_rlx.value, self.values))
        return _jvp_inner(again, primals, tangents, self.what.partition(" of ")[2])[1]

    def push_leaves(self, *tangents):
        """The leaves of the tangents of the result, for tangents of all leaves of the primals."""
        return _rlx.fn_jvp(self.values, self._again, list(range(len(self.values))), list(tangents))[1]

    def pull(self, cotangents):
        leaves, treedef = tree.flatten(cotangents)
        if treedef != self.out_treedef:
            raise TypeError(
                f"{self.what}: the cotangents {treedef} do not have the structure of the result {self.out_treedef}"
            )
        cts = []
        for ct, (shape, dtype) in zip(map(_rlx.value, leaves), self.types):
            if ct.shape != shape:
                raise ValueError(
                    f"{self.what}: a cotangent of shape {ct.shape} must have the shape {shape} of its result"
                )
            cts.append(_as_dtype(ct, dtype) if dtype.kind in "fc" else None)
        values = [
            _rlx.value(v) for v in self.values
        ]  # a value whose trace has ended raises an error that names its line
        wrt = [i for i, v in enumerate(values) if _is_inexact(v)]
        by_leaf = dict(zip(wrt, self.traced.vjp(wrt, cts)))
        full = [by_leaf[i] if i in by_leaf else filled(v.shape, 0, "float32") for i, v in enumerate(values)]
        return self.treedef.unflatten(full)


def _as_dtype(x, dtype):
    x = _rlx.value(x)
    return x if x.dtype == dtype else _rlx.add_node("cast", (x,), {"to": dtype})


def vjp(fun, *primals, has_aux=False):
    """(fun(*primals), f_vjp): f_vjp takes cotangents of the result and returns the cotangents of the primals, a
    tuple.
    """

    if _rlx.tracing():
        opened = _Opened(fun, primals, has_aux=has_aux)
        return (opened.results(), opened.pull, opened.aux()) if has_aux else (opened.results(), opened.pull)
    result, record = recorded(fun, primals)
    outs, aux = result if has_aux else (result, None)
    backward = record.derive(_backward, _name(fun), has_aux)

    def pull(cotangents):
        return backward(primals, cotangents)

    return (outs, pull, aux) if has_aux else (outs, pull)


def _backward(record, name, has_aux):
    part = (lambda *xs: record(*xs)[0]) if has_aux else record
    return lambda xs, ct: _Opened(part, xs, name).pull(ct)


def _forward(record, name):
    return lambda p, t: _jvp_inner(record, p, t, name)[1]


def _jvp_inner(fun, primals, tangents, name=None):
    name = name or _name(fun)
    leaves, treedef = tree.flatten(tuple(primals))
    t_leaves, t_treedef = tree.flatten(tuple(tangents))
    if treedef != t_treedef:
        raise TypeError(f"jvp of {name}: tangents {t_treedef} do not have the structure of the primals {treedef}")
    values = values_of(leaves, t_leaves)
    wrt, ts = [], []
    for i, (v, t) in enumerate(zip(values, t_leaves)):
        if not _is_inexact(v):
            if _rlx.value(t).dtype.kind in "iu":
                raise TypeError(
                    f"jvp of {name}: a primal has dtype {v.dtype.name}; derivatives need floating or complex "
                    "arguments: pass 2.0 for 2, or x.astype(rlx.float32)"
                )
            continue
        t = _as_dtype(t, v.dtype)
        if t.shape != v.shape:
            raise ValueError(f"jvp of {name}: a tangent of shape {t.shape} must have the shape {v.shape} of its primal")
        wrt.append(i)
        ts.append(t)
    out_treedef = None

    def flat(xs):
        nonlocal out_treedef
        outs, out_treedef = tree.flatten(fun(*treedef.unflatten(xs)))
        return outs or [_rlx.value(0.0)]  # a graph needs a result

    outs, tangents_out = _rlx.fn_jvp(values, flat, wrt, ts)
    n = out_treedef.num_leaves
    return out_treedef.unflatten(outs[:n]), out_treedef.unflatten(tangents_out[:n])


def jvp(fun, primals, tangents, has_aux=False):
    """(fun(*primals), the derivative in the direction `tangents`). Both arguments are tuples like the arguments of
    fun. has_aux: fun returns (result, aux), and aux is the third result.
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp takes a tuple of primals and a tuple of tangents: jvp(f, (x,), (v,))")
    if has_aux:
        (outs, aux), (moved, _) = jvp(fun, primals, tangents)
        return outs, moved, aux
    if _rlx.tracing():
        return _jvp_inner(fun, tuple(primals), tuple(tangents))
    run = cached_live("jvp", (fun,), lambda: lambda p, t: _jvp_inner(fun, p, t))
    return run(tuple(primals), tuple(tangents))


def linearize(fun, *primals, has_aux=False):
    """(fun(*primals), f_jvp): f_jvp of tangents is the derivative at the primals, which is linear in the tangents.
    has_aux: fun returns (result, aux), and aux is the third result.
    """

    if _rlx.tracing():
        opened = _Opened(fun, primals, has_aux=has_aux, kind="linearize")
        push = lambda *tangents: opened.push(tangents)  # noqa: E731
        return (opened.results(), push, opened.aux()) if has_aux else (opened.results(), push)
    outs, record = recorded(fun, primals)
    forward = record.derive(_forward, _name(fun))
    shapes = [getattr(x, "shape", ()) for x in tree.leaves(primals)]

    def push(*tangents):
        given = [getattr(x, "shape", ()) for x in tree.leaves(tangents)]
        if given != shapes:
            raise ValueError(
                f"linearize of {_name(fun)}: tangents of shapes {given}; those of the primals are {shapes}"
            )
        moved = forward(primals, tangents)
        return moved[0] if has_aux else moved

    return (outs[0], push, outs[1]) if has_aux else (outs, push)


def hvp(fun, primals, tangents):
    """(gradient of fun at the primals, Hessian times the vector `tangents`)."""
    primals, tangents = tuple(primals), tuple(tangents)
    nums = tuple(range(len(primals)))
    run = lambda p, t: jvp(grad(fun, nums), p, t)  # noqa: E731
    return (run if _rlx.tracing() else cached_live(("hvp", nums), (fun,), lambda: run))(primals, tangents)


def _basis(values):
    """For each value, its part of the identity matrix over all elements of all values: [total, *shape]."""
    total = sum(int(v.size) for v in values)
    out, at = [], 0
    for v in values:
        n = int(v.size)
        rows = diagonal_ones(total, n, -at, v.dtype)
        out.append(_rlx.reshape([rows], (total, *v.shape)))
        at += n
    return out, total


def _split_rows(rows, values):
    """Cuts [total, *rest] into one block for each value, [*shape, *rest]."""
    out, at = [], 0
    for v in values:
        n = int(v.size)
        out.append(_rlx.reshape([rows[at : at + n]], (*v.shape, *rows.shape[1:])))
        at += n
    return out


def _axes_last(x, count):
    """x with its first `count` axes moved to the end."""
    return node("transpose", x, perm=[*range(count, x.ndim), *range(count)])


def _jacobian(fun, argnums, forward, has_aux, holomorphic):
    kind = "jacfwd" if forward else "jacrev"
    argnums = _fixed(argnums)

    def inner(*args, **kwargs):
        nums = _argnums(argnums, args, kind, fun)
        values, treedef = _float_leaves(nums, args, kwargs, kind, fun)
        if holomorphic and any(v.dtype.kind != "c" for v in values):
            raise TypeError(f"{kind} of {_name(fun)}: holomorphic=True needs complex arguments")

        def replaced(*parts):
            new = list(args)
            for n, part in zip(nums, parts):
                new[n] = part
            return fun(*new, **kwargs)

        opened = _Opened(replaced, treedef.unflatten(values), _name(fun), has_aux, kind)
        shapes = [ShapeDtype(*t) for t in opened.types]
        if forward:
            directions, total = _basis(values)
            columns = vmap(opened.push_leaves)(*directions)  # of each output [total, *out]
            blocks = []
            for c in columns:
                per = _split_rows(c, values)  # [*in, *out] of each input
                blocks.append([_axes_last(b, v.ndim) if v.ndim else b for b, v in zip(per, values)])
        else:
            for s in shapes:
                if s.dtype.kind not in "fc":
                    raise TypeError(f"jacrev of {_name(fun)}: a result has dtype {s.dtype.name}")
            directions, total = _basis(shapes)
            pull = lambda *cts: opened.traced.vjp(list(range(len(values))), list(cts))  # noqa: E731
            rows = vmap(pull)(*directions)  # of each input [total, *in]
            per_input = [_split_rows(r, shapes) for r in rows]  # [input][output] -> [*out, *in]
            blocks = [[per_input[i][o] for i in range(len(values))] for o in range(len(shapes))]
        results = []
        for b in blocks:
            parts = treedef.unflatten(b)
            results.append(parts[0] if isinstance(argnums, int) else parts)
        jac = opened.out_treedef.unflatten(results)
        return (jac, opened.aux()) if has_aux else jac

    maker = jacfwd if forward else jacrev
    return _transform(fun, inner, kind, (maker, (fun, argnums, has_aux, holomorphic)))


def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False):
    """The Jacobian in forward mode, with one pass for each element of the argument: [*result.shape,
    *argument.shape].
    """
    return _jacobian(fun, argnums, True, has_aux, holomorphic)


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False):
    """The Jacobian in reverse mode, with one pass for each element of the result: [*result.shape, *argument.shape]."""
    return _jacobian(fun, argnums, False, has_aux, holomorphic)


def hessian(fun, argnums=0, has_aux=False, holomorphic=False):
    """The second derivatives of a scalar function: the forward-mode Jacobian of its gradient."""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _copied(axes):
    """A tree of axes as it is now."""
    if type(axes) is dict:
        return {k: _copied(v) for k, v in axes.items()}
    return type(axes)(map(_copied, axes)) if type(axes) in (list, tuple) else axes


def vmap(fun, in_axes=0, out_axes=0, axis_size=None, axis_name=None):
    """fun over a batch. in_axes gives the batch axis of each argument (None: the argument is shared), out_axes that of
    each result. Both are one int or None for all, or trees like the arguments and the result. With an axis_name fun can
    call rlx.lax.psum(x, axis_name) and the other operations over named axes.
    """
    if not callable(fun):
        raise TypeError(f"vmap takes a function, got an object of type {type(fun).__name__}")
    in_axes = tuple(map(plain_int, in_axes)) if isinstance(in_axes, (list, tuple)) else plain_int(in_axes)
    in_axes, out_axes = _copied(in_axes), _copied(out_axes)
    axis_size = plain_int(axis_size)
    if not isinstance(axis_size, (int, _rlx.Dim, type(None))) or isinstance(axis_size, int) and axis_size < 0:
        raise ValueError(f"vmap of {_name(fun)}: axis_size must be the extent of the batch axis, got {axis_size!r}")
    if isinstance(in_axes, bool) or not (in_axes is None or isinstance(in_axes, (int, tuple, dict))):
        raise TypeError(f"vmap of {_name(fun)}: in_axes must be an int, None or a tuple of them, got {in_axes!r}")

    def inner(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(f"vmap of {_name(fun)}: in_axes {in_axes} for {len(args)} positional arguments")
        leaves, treedef = tree.flatten(args)
        axes = tree.spread(in_axes, treedef, f"vmap of {_name(fun)}: in_axes")
        k_leaves, k_treedef = tree.flatten(kwargs)
        axes = axes + [0] * len(k_leaves)
        everything = leaves + k_leaves
        batch, first = None, None
        mapped = []
        for i, (x, axis) in enumerate(zip(everything, axes)):
            if axis is None or not _rlx.is_array_leaf(x):
                if axis is not None and not _rlx.is_array_leaf(x):
                    raise TypeError(
                        f"vmap of {_name(fun)}: an argument of type {type(x).__name__} cannot be mapped; "
                        "give it in_axes None"
                    )
                continue
            shape = x.shape if hasattr(x, "shape") else ()
            if not -len(shape) <= axis < len(shape):
                raise ValueError(
                    f"vmap of {_name(fun)}: axis {axis} of an argument of shape {tuple(shape)}; "
                    "give arguments that are not mapped in_axes None"
                )
            n = shape[axis]
            if batch is None:
                batch, first = n, i
            elif n != batch:
                raise ValueError(
                    f"vmap of {_name(fun)}: mapped axes have {batch} entries (argument leaf {first}) and {n} (leaf {i})"
                )
            mapped.append(i)
        if batch is None:
            batch = axis_size
        if batch is None:
            raise ValueError(f"vmap of {_name(fun)}: no argument is mapped; in_axes {in_axes}")
        if axis_size is not None and batch != axis_size:
            raise ValueError(f"vmap of {_name(fun)}: axis_size {axis_size}, but mapped axes have {batch} entries")
        out_treedef, axis = None, None

        def flat(values):
            nonlocal out_treedef
            if axis is not None:
                *values, axis.index = values
            full = list(everything)
            for i, v in zip(mapped, values):
                full[i] = v
            result = fun(*treedef.unflatten(full[: len(leaves)]), **k_treedef.unflatten(full[len(leaves) :]))
            outs, out_treedef = tree.flatten(result)
            return outs

        def places(_):
            return tree.spread(out_axes, out_treedef, f"vmap of {_name(fun)}: out_axes")

        values, places_in = [_rlx.value(everything[i]) for i in mapped], [axes[i] for i in mapped]
        with Axis(axis_name, batch) as opened:
            if axis_name is not None:
                axis = opened
                values, places_in = [*values, counted(batch, "int32")], [*places_in, 0]
            outs = _rlx.fn_vmap(values, flat, places_in, batch, places)
        return out_treedef.unflatten(outs)

    return _transform(fun, inner, "vmap", (vmap, (fun, in_axes, out_axes, axis_size, axis_name)))


def stop_gradient(x):
    """x, with derivative zero."""
    if not _rlx.tracing() and not any(isinstance(v, _rlx.Value) for v in tree.leaves(x)):
        return x
    return tree.map(lambda v: _rlx.add_node("stop_gradient", (v,), {}), x)
