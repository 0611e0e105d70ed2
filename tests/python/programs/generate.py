"""The program of a seed."""

import numpy as np

from oracles import catalogue, dtypes
from oracles.catalogue import Builder, NoFit
from oracles.dice import Dice
from oracles.evaluator import Evaluator

from . import libs, oracle
from .control import CONTROL
from .model import Input, Program, Step

# What a value may reach, so that bf16 and f16 hold sums and products of it.
LARGEST = 300.0
_SEED = 0x5EED


class Generator(Builder):
    """Draws steps and keeps what they give: exact values, and those of a run with errors beside them."""

    def __init__(self, dice, ops, derive, depth=0):
        super().__init__(dice)
        self.ops, self.derive, self.depth = ops, derive, depth
        self.noisy = {}
        self.serial = [0]
        self.coarse = [0.0]
        self.rules = True  # functions with reverse rules of their own may be drawn

    def inner(self):
        """A generator of a body: it sees what there is here, and adds its inputs to the same list."""
        g = Generator(self.dice, self.ops, self.derive, self.depth + 1)
        g.values, g.types, g.noisy = dict(self.values), dict(self.types), dict(self.noisy)
        g.inputs, g.serial, g.coarse = self.inputs, self.serial, self.coarse
        g.reuse, g.rules, g.narrow = 85, self.rules, self.narrow
        return g

    def adopt_inputs(self, known):
        """Inputs that a body made belong to the program."""
        for name, dtype, x, *_ in self.inputs[known:]:
            from oracles.evaluator import wide

            self.values[name], self.types[name], self.noisy[name] = wide(x), dtype, wide(x)

    def name(self):
        self.serial[0] += 1
        return f"v{self.serial[0]}"

    def new(self, *args, **more):
        n = super().new(*args, **more)
        self.noisy[n] = self.values[n]
        return n

    def given(self, *args):
        n = super().given(*args)
        self.noisy[n] = self.values[n]
        return n

    def param(self, dtype, value, noisy):
        n = self.name()
        self.values[n], self.types[n], self.noisy[n] = value, dtype, noisy
        return n

    # -- steps --

    def evaluate(self, step):
        """Results of a step, exact and with errors, and their dtypes; names the results where they have none."""
        reads = list(dict.fromkeys(step.reads()))
        specs = [(self.types[n], self.values[n].shape) for n in reads]
        key = None
        if not step.bodies:
            places = [reads.index(n) for n in step.args], sorted((k, reads.index(n)) for k, n in step.named.items())
            key = repr((step.op, specs, places, sorted(step.attrs.items())))
        found = _traces.get(key)
        if found is None:
            lib = libs.JaxLib()

            def f(*xs):
                return libs.run_step(lib, step, dict(zip(reads, xs)))

            found = oracle.traced(f, specs)
            if key:
                if len(_traces) > 4000:
                    _traces.clear()
                _traces[key] = found
        closed, types = found
        if not step.outs:
            step.outs = [self.name() for _ in types]
        exact = Evaluator().run(closed, *[self.values[n] for n in reads])
        noisy = Evaluator(oracle.AMPLITUDE, self.dice.below(1 << 30)).run(closed, *[self.noisy[n] for n in reads])
        return [np.asarray(v) for v in exact], [np.asarray(v) for v in noisy], types

    def accept(self, step):
        """Keeps a step whose results are finite, not too large, and not decided by rounding."""
        exact, noisy, types = self.evaluate(step)
        for v, n in zip(exact, noisy):
            if v.dtype.kind in "fc":
                if v.size and (not np.all(np.isfinite(v)) or not np.all(np.isfinite(n)) or np.abs(v).max() > LARGEST):
                    return False
                if v.size and np.abs(v - n).max() > 0.25 * np.abs(v).max() + 1e-3:
                    return False
            elif not np.array_equal(v, n):
                return False
        for name, v, n, t in zip(step.outs, exact, noisy, types):
            self.values[name], self.noisy[name], self.types[name] = v, n, t
            self.coarse[0] = max(self.coarse[0], oracle.COARSE.get(t, 0.0))
        return True

    def step(self, allow_control=True):
        """One more step, or None where the draw did not fit."""
        known, held = len(self.inputs), (dict(self.values), dict(self.types), dict(self.noisy))
        try:
            if allow_control and self.depth < 3 and self.dice.chance(12 if self.depth == 0 else 15):
                s = CONTROL[self.dice.pick(sorted(CONTROL))](self)
                if s is None:
                    raise NoFit()
            else:
                op = self.dice.pick(self.ops)
                if self.depth and op.name in _ORDERED:
                    raise NoFit()
                args, named, attrs = op.make(self)
                s = Step([], op.name, args, named, attrs)
            if self.accept(s):
                return s
        except NoFit:
            pass
        del self.inputs[known:]
        self.values, self.types, self.noisy = held
        return None

    def steps(self, count, allow_control=True):
        out = []
        for _ in range(3 * count):
            if len(out) >= count:
                break
            s = self.step(allow_control)
            if s:
                out.append(s)
        return out


# A drawn token has no derivative, and rlx says so where JAX gives one of the probability. A scatter of products JAX
# differentiates for different indices alone (test_ops_derivatives.py has those).
_ORDERED = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute")  # not in branches of a batch
_UNDERIVED = ("sample", "scatter_mul")


def weighted(derived):
    ops = []
    for name in sorted(catalogue.load()):
        op = catalogue.OPS[name]
        if not derived:
            ops += [op] * op.weight
        elif name not in _UNDERIVED:
            ops += [op] * (op.weight * (3 if op.smooth else 1))
    return ops


_lists = {}
_traces = {}  # jaxprs of steps without bodies


def program_of(seed, mode="forward", count=None):
    """The program of a seed. mode: forward, or derived for one with transforms around it."""
    dice = Dice((seed * 2654435761 + _SEED) & ((1 << 63) - 1))
    derived = mode != "forward"
    if derived not in _lists:
        _lists[derived] = weighted(derived)
    plan = dice.pick(_PLANS[mode]) if derived else ()
    g = Generator(dice, _lists[derived], derived)
    own = [k for k in plan if k != "vmap"]
    g.rules = own[:1] != ["jvp"]  # forward mode does not go through a custom_vjp
    g.narrow = not derived or dice.chance(35)
    if not count:  # most are short, as they are cheap; some are long
        count = dice.between(5, 40 if dice.chance(15) else 14) if not derived else dice.between(3, 12)
    steps = g.steps(count)
    made = [n for s in steps for n in s.outs]
    read = {n for s in steps for n in s.reads()}
    outputs = [n for n in made if n not in read]
    rest = [n for n in made if n in read]
    outputs += dice.sample(rest, min(len(rest), dice.below(3)))
    if not outputs:
        return None
    inputs = [Input(n, d, x, fill, low, high) for n, d, x, fill, low, high in g.inputs]
    p = Program(seed, inputs, steps, outputs)
    p.known = [(g.types[n], g.values[n], g.noisy[n]) for n in outputs]
    p.coarse = max([oracle.COARSE.get(t, 0.0) for t in g.types.values()] + [g.coarse[0]])
    if derived:
        p.transforms = draw_transforms(dice, p, plan)
        if p.transforms is None:
            return None
    return p


_PLANS = {
    "grad": (("grad",),),
    "vjp": (("vjp",),),
    "jvp": (("jvp",),),
    "vmap": (("vmap",),),
    "forward": ((),),
    "nested": (
        ("grad", "vmap"),
        ("vmap", "grad"),
        ("vjp", "jvp"),
        ("grad", "jvp"),
        ("grad", "grad"),
        ("jvp", "vmap"),
        ("vmap", "vmap"),
        ("vmap", "vjp"),
        ("vjp", "vmap"),
        ("grad", "jvp", "vmap"),
        ("vmap", "grad", "vmap"),
        ("vmap", "vmap", "grad"),
        ("jvp", "jvp"),
        ("vmap", "jvp"),
        ("grad", "grad", "vmap"),
    ),
}
MODES = ("forward", "grad", "vjp", "jvp", "vmap", "nested")


def draw_transforms(dice, program, plan):
    """The transforms of a plan, with what they need; None where they do not fit."""
    lib = libs.JaxLib()
    out = []
    for kind in plan:
        specs = [(i.dtype, i.value.shape) for i in program.inputs]
        from . import transforms

        f, specs = transforms.apply(lib, libs.function_of(lib, program), specs, out)
        if kind == "vmap":
            axes = [dice.between(0, len(s)) if dice.chance(70) else None for d, s in specs]
            if all(a is None for a in axes):
                if not axes:
                    return None
                axes[0] = 0
            out.append({"kind": "vmap", "in_axes": axes, "batch": dice.pick((1, 2, 2, 3)), "out_axes": 0})
            continue
        types = _results(f, specs)
        floats = [(d, list(s)) for d, s in types if dtypes.is_inexact(d)]
        wrt = [(d, list(s)) for d, s in specs if dtypes.is_inexact(d)]
        if not floats or not wrt:
            return None
        more = wrt if kind == "jvp" else floats
        out.append({"kind": kind, "more": more, "salt": dice.below(17)})
    return out


def _results(f, specs):
    import jax

    args = [jax.ShapeDtypeStruct(tuple(s), dtypes.of(d)) for d, s in specs]
    return [(o.dtype.name, o.shape) for o in jax.eval_shape(f, *args)]
