"""A failing program made smaller: fewer outputs, transforms, steps, and simpler values, as long as it fails alike."""

import numpy as np

from oracles import dtypes

from . import libs, run
from .model import Body, Input, Step


def kind_of(error):
    """What has to stay: a wrong number, or the first words of an error."""
    text = str(error).split(": ", 1)[-1]
    return "number" if text.startswith("result") else text.split(":")[0]


def types_of(program):
    """dtype and shape of every value, those of bodies among them."""
    import jax

    seen = {}
    lib = libs.JaxLib()
    plain = libs.run_steps

    def watched(lib, steps, env):
        for s in steps:
            plain(lib, [s], env)
            for n in s.outs:
                seen[n] = (env[n].dtype.name, tuple(env[n].shape))
        return env

    def f(*xs):
        env = dict(zip((i.name for i in program.inputs), xs))
        watched(lib, program.steps, env)
        return ()

    libs.run_steps = watched
    try:
        jax.eval_shape(f, *[jax.ShapeDtypeStruct(i.value.shape, dtypes.of(i.dtype)) for i in program.inputs])
    finally:
        libs.run_steps = plain
    return seen


def shrink(program, devices=("cpu",), ways=None, tries=400, check=None):
    """The smaller program and its error; the program has to fail."""
    check = check or (lambda p: run.check(p, devices, ways))
    try:
        check(program)
        raise ValueError("the program does not fail")
    except run.Mismatch as e:
        error = e
    if ways is None and "/" in error.way and not check.__defaults__:
        ways = {k: v for k, v in run.WAYS.items() if k == error.way.split("/")[1]} or None
        check = lambda p: run.check(p, devices, ways)  # noqa: E731
    wanted, left = kind_of(error), [tries]

    def fails(p):
        if left[0] <= 0:
            return None
        left[0] -= 1
        try:
            check(p)
        except run.Mismatch as e:
            return e if kind_of(e) == wanted else None
        except Exception:  # noqa: BLE001  no program for JAX any more
            return None
        return None

    changed = True
    while changed and left[0] > 0:
        changed = False
        for candidates in (
            _fewer_transforms,
            _one_output,
            _cut_steps,
            _fewer_inputs,
            _inner_steps,
            _inlined,
            _simpler_values,
        ):
            again = True
            while again and left[0] > 0:
                again = False
                for p in candidates(program):
                    e = fails(p)
                    if e is not None:
                        program, error, again, changed = p, e, True, True
                        break
    return program, error


def _refit(q):
    """Whether the transforms fit the program again: what each takes depends on those before it."""
    from . import transforms
    from .generate import _results

    lib, done = libs.JaxLib(), []
    for t in q.transforms:
        specs = [(i.dtype, i.value.shape) for i in q.inputs]
        f, specs = transforms.apply(lib, libs.function_of(lib, q), specs, done)
        if t["kind"] == "vmap":
            t["in_axes"] = (t["in_axes"] + [None] * len(specs))[: len(specs)]
            t["in_axes"] = [None if a is None else min(a, len(s)) for a, (d, s) in zip(t["in_axes"], specs)]
            if all(a is None for a in t["in_axes"]):
                return False
        else:
            more = _results(f, specs) if t["kind"] != "jvp" else specs
            t["more"] = [(d, list(s)) for d, s in more if dtypes.is_inexact(d)]
            if not t["more"]:
                return False
        done.append(t)
    return True


def _fewer_transforms(p):
    for k in range(len(p.transforms)):
        q = p.copy()
        del q.transforms[k]
        if _refit(q):
            yield q


def _one_output(p):
    if len(p.outputs) > 1:
        for n in p.outputs:
            q = p.copy()
            q.outputs = [n]
            q = q.dead_removed()
            if _refit(q):
                yield q
        for k in range(len(p.outputs)):
            q = p.copy()
            del q.outputs[k]
            q = q.dead_removed()
            if _refit(q):
                yield q
    q = p.dead_removed()
    if len(q.steps) < len(p.steps) and _refit(q):
        yield q
    for s in p.steps:  # what an output is made of, in its place
        if len(p.outputs) == 1 and p.outputs[0] in s.outs:
            for n in s.args:
                if any(n in r.outs for r in p.steps):
                    q = p.copy()
                    q.outputs = [n]
                    q = q.dead_removed()
                    if _refit(q):
                        yield q


def _values(p):
    from oracles.evaluator import Evaluator

    from . import oracle

    lib = libs.JaxLib()
    names = [i.name for i in p.inputs]
    outs = [n for s in p.steps for n in s.outs]

    def f(*xs):
        env = libs.run_steps(lib, p.steps, dict(zip(names, xs)))
        return tuple(env[n] for n in outs)

    closed, types = oracle.traced(f, [(i.dtype, i.value.shape) for i in p.inputs])
    from oracles.evaluator import wide

    values = Evaluator().run(closed, *[wide(i.value) for i in p.inputs])
    return {n: (t, np.asarray(v).astype(dtypes.of(t))) for n, t, v in zip(outs, types, values)}


def _cut_steps(p):
    """A step's results as inputs."""
    values = _values(p)
    for k in range(len(p.steps)):
        s = p.steps[k]
        if set(s.outs) & set(p.outputs):
            continue
        q = p.copy()
        del q.steps[k]
        q.inputs += [Input(n, values[n][0], values[n][1]) for n in s.outs]
        q = q.dead_removed()
        if _refit(q):
            yield q


def _fewer_inputs(p):
    """No inputs that no step reads; without them tangents and axes that the transforms have for them."""
    read = set(p.outputs).union(*(s.reads() for s in p.steps))
    live = [i.name in read for i in p.inputs]
    if all(live) or not any(live):
        return
    q = p.copy()
    q.inputs = [i for i, stays in zip(q.inputs, live) if stays]
    dtypes_now = [i.dtype for i in p.inputs]
    for t in q.transforms:
        if t["kind"] == "vmap":
            t["in_axes"] = [a for a, stays in zip(t["in_axes"], live) if stays]
            if all(a is None for a in t["in_axes"]):
                return
            continue
        further = [True] * len(t["more"])
        if t["kind"] == "jvp":
            further = [stays for d, stays in zip(dtypes_now, live) if dtypes.is_inexact(d)]
        dtypes_now += [d for d, _ in t["more"]]
        t["more"] = [m for m, stays in zip(t["more"], further) if stays]
        live += further
        if not t["more"]:
            return
    yield q


def _bodies(steps):
    for s in steps:
        for b in s.bodies.values():
            yield b
            yield from _bodies(b.steps)


def _renamed(steps, old, new):
    for s in steps:
        s.args = [new if n == old else n for n in s.args]
        s.named = {k: new if n == old else n for k, n in s.named.items()}
        for b in s.bodies.values():
            _renamed(b.steps, old, new)
            b.results = [new if n == old else n for n in b.results]


def _inner_steps(p):
    """A step of a body gone: what reads it reads a param or an input of its type."""
    types = types_of(p)
    for i in p.inputs:
        types[i.name] = (i.dtype, tuple(i.value.shape))
    count = len(list(_bodies(p.steps)))
    for k in range(count):
        n_steps = len(list(_bodies(p.steps))[k].steps)
        for j in reversed(range(n_steps)):
            q = p.copy()
            b = list(_bodies(q.steps))[k]
            s = b.steps.pop(j)
            good = True
            for o in s.outs:
                options = [n for n in [*s.args, *b.params, *(i.name for i in q.inputs)] if types.get(n) == types.get(o)]
                if not options:
                    used = any(o in r.reads() for r in b.steps) or o in b.results
                    good = good and not used
                    continue
                _renamed(b.steps, o, options[0])
                b.results = [options[0] if n == o else n for n in b.results]
            if good:
                yield q


def _inlined(p):
    """A step with bodies as the steps of one of them."""
    for k, s in enumerate(p.steps):
        skip = {"control.cond": 1, "control.switch": 1}.get(s.op, 0)
        if s.op not in ("control.cond", "control.switch", "control.checkpoint", "control.call", "control.custom_vjp"):
            continue
        for name in s.bodies:
            q = p.copy()
            t = q.steps.pop(k)
            b = t.bodies[name]
            holder = Step([], "control.call", [], bodies={"b": Body([], b.steps, b.results)})
            for param, arg in zip(b.params, t.args[skip:]):
                _renamed([holder], param, arg)
            body = holder.bodies["b"]
            q.steps[k:k] = body.steps
            for o, r in zip(t.outs, body.results):
                _renamed(q.steps, o, r)
                q.outputs = [r if n == o else n for n in q.outputs]
            yield q


def _simpler_values(p):
    for k, i in enumerate(p.inputs):
        if dtypes.kind(i.dtype) not in "fc" or i.value.size == 0:
            continue
        wide = i.value.astype(np.complex128 if dtypes.kind(i.dtype) == "c" else np.float64)
        for simple in (np.ones_like(wide), np.round(wide), np.round(wide * 4) / 4):
            simple = simple.astype(i.value.dtype)
            if not np.array_equal(simple, i.value):
                q = p.copy()
                q.inputs[k].value = simple
                yield q
                break
