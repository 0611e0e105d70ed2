"""Steps with bodies: branches, loops, checkpoints, functions with derivatives of their own, transforms inside."""

import numpy as np

from oracles import dtypes
from oracles.catalogue import NoFit

from .model import Body, Step

CONTROL = {}
F = dtypes.FLOATS


def control(f):
    CONTROL[f.__name__] = f
    return f


def _params(g, inner, names):
    return [inner.param(g.types[n], g.values[n], g.noisy[n]) for n in names]


def _grow(g, inner, params, most=4):
    known = len(inner.inputs)
    steps = inner.steps(1 + g.dice.below(most), g.depth < 2)
    g.adopt_inputs(known)
    del params
    return steps


def _fresh(inner, steps, params):
    """Values that the body made and that depend on what it made or was given."""
    return [n for s in steps for n in s.outs] + list(params)


def _back_to(inner, steps, params, like):
    """A value of the body of the type of `like`, kept within bounds: what a loop carries on."""
    dtype, shape = inner.types[like], inner.shape(like)
    found = [n for n in _fresh(inner, steps, params) if inner.types[n] == dtype and inner.shape(n) == shape]
    n = found[max(len(found) - 1 - inner.dice.below(2), 0)] if found else like
    if dtypes.kind(dtype) != "f":
        return n
    s = Step([inner.name()], inner.dice.pick(("tanh", "sin", "sigmoid")), [n])
    if not inner.accept(s):
        raise NoFit()
    steps.append(s)
    return s.outs[0]


def _pick_some(g, types=F, most=2, high_rank=3):
    return [g.pick(types, 0, high_rank) for _ in range(g.dice.between(1, most))]


def _outs(g, count):
    return [g.name() for _ in range(count)]


@control
def cond(g):
    pred = g.pick(("bool",), 0, 0)
    xs = _pick_some(g, F + ("int32",))
    bodies, types = {}, None
    for which in ("then", "else"):
        inner = g.inner()
        params = _params(g, inner, xs)
        steps = _grow(g, inner, params)
        results = [_back_to(inner, steps, params, p) for p in params]
        bodies[which] = Body(params, steps, results)
    del types
    return Step(_outs(g, len(xs)), "control.cond", [pred, *xs], bodies=bodies)


@control
def switch(g):
    index = g.new("int32", (), "whole", -1, 3)
    xs = _pick_some(g, F)
    bodies = {}
    for k in range(g.dice.between(1, 3)):
        inner = g.inner()
        params = _params(g, inner, xs)
        steps = _grow(g, inner, params, 2)
        bodies[f"b{k}"] = Body(params, steps, [_back_to(inner, steps, params, p) for p in params])
    return Step(_outs(g, len(xs)), "control.switch", [index, *xs], bodies=bodies)


def _loop_body(g, xs, lead=(), most=4):
    """A body of leading params (type, value) and carries like xs."""
    inner = g.inner()
    first = [inner.param(t, v, v) for t, v in lead]
    params = _params(g, inner, xs)
    steps = _grow(g, inner, params, most)
    results = [_back_to(inner, steps, params, p) for p in params]
    return inner, Body(first + params, steps, results)


@control
def while_(g):
    limit = g.new("int32", (), "whole", 0, 4)
    xs = _pick_some(g, F)
    _, body = _loop_body(g, xs, [("int32", np.asarray(0, np.int32))])
    attrs = {"max_trips": g.dice.between(1, 5)}
    if g.dice.chance(30):
        attrs["bound"] = g.dice.pick((0.5, 2.0, 7.0))
    return Step(_outs(g, 1 + len(xs)), "control.while_", [limit, *xs], attrs=attrs, bodies={"body": body})


@control
def fori(g):
    xs = _pick_some(g, F)
    limit = g.new("int32", (), "whole", 0, 3)
    lower = g.dice.below(3)
    attrs = {"bounds": [lower, lower + g.dice.below(4)]}
    if not g.derive and not g.depth and g.dice.chance(40):  # reverse mode needs to know how many trips there are
        attrs = {"bounds": [0, 3], "dynamic": True}
    _, body = _loop_body(g, xs, [("int32", np.asarray(lower, np.int32))])
    return Step(_outs(g, len(xs)), "control.fori", [limit, *xs], attrs=attrs, bodies={"body": body})


@control
def scan(g):
    d = g.dice
    carries = _pick_some(g, F, 2, 2)
    length = d.pick((0, 1, 2, 3, 4))
    rows = []
    for _ in range(d.below(3)):
        kind = d.pick(F + ("int32",))
        rows.append(g.pick((kind,), 0, 9, shape=(length, *g.shape_of(0, 2))))
    inner = g.inner()
    params = _params(g, inner, carries)
    row_params = []
    for n in rows:
        v, w = g.values[n], g.noisy[n]
        zero = np.zeros(v.shape[1:], v.dtype)
        row_params.append(inner.param(g.types[n], v[0] if length else zero, w[0] if length else zero))
    steps = _grow(g, inner, params, 5)
    results = [_back_to(inner, steps, params, p) for p in params]
    fresh = _fresh(inner, steps, params + row_params)
    ys = [d.pick(fresh) for _ in range(d.below(3))]
    attrs = {"carries": len(carries), "length": length, "reverse": d.chance(30), "checkpoint": d.chance(30)}
    body = Body(params + row_params, steps, results + ys)
    return Step(_outs(g, len(results) + len(ys)), "control.scan", carries + rows, attrs=attrs, bodies={"body": body})


@control
def map_(g):
    d = g.dice
    length = d.pick((1, 2, 3))
    rows = [g.pick(F, 0, 9, shape=(length, *g.shape_of(0, 2))) for _ in range(d.between(1, 2))]
    inner = g.inner()
    params = [inner.param(g.types[n], g.values[n][0], g.noisy[n][0]) for n in rows]
    steps = _grow(g, inner, params)
    if not steps:
        raise NoFit()
    return Step(_outs(g, 1), "control.map", rows, bodies={"body": Body(params, steps, [steps[-1].outs[0]])})


def _plain_body(g, xs, most=4):
    inner = g.inner()
    params = _params(g, inner, xs)
    steps = _grow(g, inner, params, most)
    if not steps:
        raise NoFit()
    return inner, params, steps


@control
def checkpoint(g):
    xs = _pick_some(g, F + ("int32",))
    inner, params, steps = _plain_body(g, xs)
    body = Body(params, steps, list(steps[-1].outs))
    return Step(
        _outs(g, len(body.results)),
        "control.checkpoint",
        xs,
        attrs={"keep_dots": g.dice.chance(40)},
        bodies={"body": body},
    )


@control
def call(g):
    xs = _pick_some(g, F + ("int32",))
    inner, params, steps = _plain_body(g, xs)
    body = Body(params, steps, list(steps[-1].outs))
    return Step(_outs(g, len(body.results)), "control.call", xs, bodies={"body": body})


def _closed(body, params):
    """Whether a body reads nothing but its params: what has rules of its own captures nothing."""
    probe = Step([], "control.call", [], bodies={"body": body})
    return not probe.reads()


def _closed_body(g, xs):
    """A body that captures nothing, with one floating result."""
    inner = g.inner()
    inner.values, inner.types, inner.noisy = {}, {}, {}
    inner.allow_inputs = False
    params = _params(g, inner, xs)
    steps = inner.steps(1 + g.dice.below(3), False)
    floats = [n for s in steps for n in s.outs if dtypes.kind(inner.types[n]) == "f"]
    if not floats:
        raise NoFit()
    return Body(params, steps, [floats[-1]])


def _own_rule(kind):
    def make(g):
        if kind == "custom_vjp" and not g.rules:
            raise NoFit()
        xs = _pick_some(g, F)
        body = _closed_body(g, xs)
        return Step(
            _outs(g, 1), f"control.{kind}", xs, attrs={"factor": g.dice.pick((2.0, 0.5, -1.0))}, bodies={"body": body}
        )

    make.__name__ = kind
    return control(make)


_own_rule("custom_vjp")
_own_rule("custom_jvp")


@control
def vmap(g):
    d = g.dice
    batch = d.pick((1, 2, 3))
    xs, axes, params = [], [], []
    inner = g.inner()
    for k in range(d.between(1, 2)):
        own = list(g.shape_of(0, 2))
        axis = d.between(0, len(own)) if k == 0 or d.chance(70) else None
        full = own if axis is None else own[:axis] + [batch] + own[axis:]
        n = g.pick((d.pick(F),), 0, 9, shape=tuple(full))
        xs.append(n)
        axes.append(axis)
        row = (lambda v: v) if axis is None else (lambda v, axis=axis: np.take(v, 0, axis))
        params.append((g.types[n], row(g.values[n]), row(g.noisy[n])))
    inner.values, inner.types, inner.noisy = dict(g.values), dict(g.types), dict(g.noisy)
    params = [inner.param(*p) for p in params]
    steps = _grow(g, inner, params)
    if not steps:
        raise NoFit()
    body = Body(params, steps, list(steps[-1].outs))
    return Step(_outs(g, len(body.results)), "control.vmap", xs, attrs={"in_axes": axes}, bodies={"body": body})


def _scalar_body(g, xs):
    """A body with one real scalar: the mean of what it made."""
    inner, params, steps = _plain_body(g, xs)
    floats = [n for s in steps for n in s.outs if dtypes.kind(inner.types[n]) == "f" and inner.values[n].size]
    if not floats:
        raise NoFit()
    n = floats[-1]
    if inner.rank(n):
        s = Step([inner.name()], "reduce_mean", [n], attrs={"axes": list(range(inner.rank(n))), "keep_dims": False})
        if not inner.accept(s):
            raise NoFit()
        steps.append(s)
        n = s.outs[0]
    return Body(params, steps, [n])


@control
def grad(g):
    xs = _pick_some(g, F)
    body = _scalar_body(g, xs)
    wrt = g.dice.between(1, len(xs))
    return Step(_outs(g, wrt), "control.grad", xs, attrs={"wrt": wrt}, bodies={"body": body})


@control
def jvp(g):
    xs = _pick_some(g, F)
    ts = [g.like(x) for x in xs]
    held, g.rules = g.rules, False
    try:
        inner, params, steps = _plain_body(g, xs)
    finally:
        g.rules = held
    floats = [n for n in steps[-1].outs if dtypes.kind(inner.types[n]) == "f"]
    if not floats:
        raise NoFit()
    body = Body(params, steps, floats)
    return Step(_outs(g, 2 * len(floats)), "control.jvp", xs + ts, bodies={"body": body})
