"""Programs of a single call, whose shapes hypothesis draws: what the tests of one op run."""

from hypothesis import strategies as st

from programs.model import Input, Program, Step

from . import catalogue, dtypes
from .dice import Dice

_EXTENTS = st.sampled_from((2, 1, 3, 0, 4, 7, 8, 16, 33))


class CallBuilder(catalogue.Builder):
    """Every operand is a new input. dtype: the one that is wanted where an op takes it."""

    def __init__(self, data, seed, dtype=None):
        super().__init__(Dice(seed), reuse=0, most=600)
        self.data, self.wanted, self.used = data, dtype, False

    def extent(self):
        return self.data.draw(_EXTENTS) if self.data else super().extent()

    def shape_of(self, low=0, high=3):
        if not self.data:
            return super().shape_of(low, high)
        shape = self.data.draw(st.lists(_EXTENTS, min_size=low, max_size=high))
        while catalogue._size(shape) > self.most:
            shape[shape.index(max(shape))] = 2
        return tuple(shape)

    def kind(self, types):
        if self.wanted in types:
            self.used = True
            return self.wanted
        return super().kind(types)

    def pick(self, types, *args, **more):
        if self.wanted in types and not self.used:
            self.used = True
            types = (self.wanted,)
        return super().pick(types, *args, **more)


def call_of(op, data, seed, dtype=None, tries=20):
    """A program that calls op once, with an operand of this dtype; None where no draw fits."""
    for k in range(tries):
        b = CallBuilder(data if k == 0 else None, seed + 977 * k, dtype)
        try:
            args, named, attrs = op.make(b)
        except catalogue.NoFit:
            continue
        if dtype and not b.used:
            return None
        from programs import libs, oracle

        step = Step([], op.name, args, named, attrs)
        reads = list(dict.fromkeys(step.reads()))
        lib = libs.JaxLib()
        _, types = oracle.traced(
            lambda *xs: libs.run_step(lib, step, dict(zip(reads, xs))), [(b.types[n], b.values[n].shape) for n in reads]
        )
        step.outs = [f"v{i}" for i in range(len(types))]
        inputs = [Input(n, d, x, fill, low, high) for n, d, x, fill, low, high in b.inputs]
        return Program(seed, inputs, [step], list(step.outs))
    return None


def dtypes_of(op):
    """The dtypes that an op of the catalogue takes in the place that decides."""
    import rlx

    if not op.table:
        return []
    name = op.name.rstrip("_") if op.name == "not_" else op.name
    taken = rlx._rlx.op_example(name)[0]
    return [t for t in taken if t not in dtypes.STORAGE]
