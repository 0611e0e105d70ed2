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

    def inner(self):
        """A generator of a body: it sees what there is here, and adds its inputs to the same list."""
        g = Generator(self.dice, self.ops, self.derive, self.depth + 1)
        g.values, g.types, g.noisy = dict(self.values), dict(self.types), dict(self.noisy)
        g.inputs, g.serial = self.inputs, self.serial
        g.reuse = 85
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
        """Results of a step, exact and with errors, and their dtypes."""
        reads = list(dict.fromkeys(step.reads()))
        lib = libs.JaxLib()

        def f(*xs):
            env = libs.run_steps(lib, [step], dict(zip(reads, xs)))
            return tuple(env[n] for n in step.outs)

        closed, types = oracle.traced(f, [(self.types[n], self.values[n].shape) for n in reads])
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
        return True

    def results_of(self, op, args, named, attrs):
        """How many results a call has."""
        step = Step(["r0"], op, args, named, attrs)
        import jax

        lib = libs.JaxLib()
        reads = list(dict.fromkeys(step.reads()))

        def f(*xs):
            env = dict(zip(reads, xs))
            out = lib.op(catalogue.OPS[op], [env[n] for n in args], {k: env[n] for k, n in named.items()}, attrs)
            return out if isinstance(out, (tuple, list)) else (out,)

        specs = [jax.ShapeDtypeStruct(self.values[n].shape, dtypes.of(self.types[n])) for n in reads]
        return len(jax.eval_shape(f, *specs))

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
                args, named, attrs = op.make(self)
                s = Step([self.name() for _ in range(self.results_of(op.name, args, named, attrs))], op.name, args,
                         named, attrs)
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


def weighted(smooth_only=False):
    ops = []
    for name in sorted(catalogue.load()):
        op = catalogue.OPS[name]
        if not smooth_only or op.smooth:
            ops += [op] * op.weight
    return ops


_lists = {}


def program_of(seed, mode="forward", count=None):
    """The program of a seed. mode: forward, or derived for one with transforms around it."""
    dice = Dice((seed * 2654435761 + _SEED) & ((1 << 63) - 1))
    derived = mode != "forward"
    if derived not in _lists:
        _lists[derived] = weighted() if not derived else weighted() + 2 * weighted(True)
    g = Generator(dice, _lists[derived], derived)
    steps = g.steps(count or (dice.between(5, 40) if not derived else dice.between(3, 14)))
    made = [n for s in steps for n in s.outs]
    read = {n for s in steps for n in s.reads()}
    outputs = [n for n in made if n not in read]
    rest = [n for n in made if n in read]
    outputs += dice.sample(rest, min(len(rest), dice.below(3)))
    if not outputs:
        return None
    inputs = [Input(n, d, x, fill, low, high) for n, d, x, fill, low, high in g.inputs]
    p = Program(seed, inputs, steps, outputs)
    if derived:
        p.transforms = draw_transforms(dice, p, mode)
        if p.transforms is None:
            return None
    return p


_PLANS = {
    "grad": (("grad",),), "vjp": (("vjp",),), "jvp": (("jvp",),), "vmap": (("vmap",),),
    "nested": (("grad", "vmap"), ("vmap", "grad"), ("vjp", "jvp"), ("grad", "jvp"), ("grad", "grad"), ("jvp", "vmap"),
               ("vmap", "vmap"), ("vmap", "vjp"), ("vjp", "vmap"), ("grad", "jvp", "vmap"), ("vmap", "grad", "vmap"),
               ("vmap", "vmap", "grad"), ("jvp", "jvp"), ("vmap", "jvp"), ("grad", "grad", "vmap")),
}
MODES = ("forward", "grad", "vjp", "jvp", "vmap", "nested")


def draw_transforms(dice, program, mode):
    """The transforms of a mode, with what they need; None where they do not fit."""
    lib = libs.JaxLib()
    out = []
    for kind in dice.pick(_PLANS[mode]):
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
