"""The ops of rlx with their meaning in JAX, and how calls of them are drawn."""

from . import dtypes

OPS = {}


class Op:
    """One op: its name in rlx.ops (or of a function given as `rlx`), how to draw a call, what it means in JAX.

    make(b) draws a call with the builder b and gives (args, named, attrs): names of values by place and by keyword,
    and attributes; None where nothing fits. jax(args, named, attrs) gives the result, or a tuple of results.
    """

    def __init__(self, name, table, make, jax, rlx=None, weight=10, smooth=True, exact=False, places=4):
        self.name, self.table, self.make, self.jax, self.rlx = name, table, make, jax, rlx
        self.weight = weight  # how often in random programs
        self.smooth = smooth  # derivatives reach its operands
        self.exact = exact  # results are exact whatever the operands
        self.places = places  # of a single call: units of the last place that the result may be off

    def run_rlx(self, args, named, attrs):
        if self.rlx:
            return self.rlx(args, named, attrs)
        import rlx

        return getattr(rlx.ops, self.name)(*args, **named, **attrs)


def add(name, table, make, jax, **more):
    OPS[name] = Op(name, table, make, jax, **more)


class Builder:
    """What drawing a call needs: values to choose from, and new inputs.

    `values` maps names to arrays (floats as float64); `types` to dtype names. A call may take any of them whose dtype,
    shape and range fit, or a new input.
    """

    FILLS = {
        "normal": lambda d: 4 * d.unit() - 2,
        "positive": lambda d: 0.5 + 1.5 * d.unit(),
        "unit": lambda d: 1.8 * d.unit() - 0.9,
        "above_one": lambda d: 1.25 + 1.75 * d.unit(),
        "small": lambda d: 0.25 * (2 * d.unit() - 1),
        "angle": lambda d: 2.4 * d.unit() - 1.2,
    }
    RANGES = {
        "normal": (-30.0, 30.0),
        "positive": (0.05, 60.0),
        "unit": (-0.95, 0.95),
        "above_one": (1.1, 60.0),
        "small": (-0.5, 0.5),
        "angle": (-1.3, 1.3),
    }

    def __init__(self, dice, reuse=70, most=120):
        self.dice, self.reuse, self.most = dice, reuse, most
        self.values, self.types = {}, {}
        self.inputs = []  # (name, dtype, array of its dtype, fill, low, high)
        self.allow_inputs = True
        self.narrow = True  # bf16 and f16 may be drawn

    # -- shapes --

    def extent(self):
        # A few extents make most shapes: JAX traces each new one again.
        return self.dice.pick((1, 2, 3, 4) if self.dice.chance(85) else (0, 5, 7, 8, 9, 16))

    def shape_of(self, low=0, high=3):
        rank = self.dice.between(low, high)
        shape = [self.extent() for _ in range(rank)]
        while _size(shape) > self.most:
            shape[shape.index(max(shape))] = 2
        return tuple(shape)

    def shape(self, name):
        return self.values[name].shape

    def rank(self, name):
        return self.values[name].ndim

    def dtype(self, name):
        return self.types[name]

    def kind(self, types):
        """One of these dtypes."""
        if not self.narrow:
            types = [t for t in types if t not in ("bfloat16", "float16")] or types
        return self.dice.pick(types)

    # -- values --

    def draw(self, dtype, shape, fill, low, high):
        import numpy as np

        d, n = self.dice, _size(shape)
        kind = dtypes.kind(dtype)
        if kind == "b":
            flat = [d.chance(50) for _ in range(n)]
        elif kind in "iu" or fill == "whole":
            flat = [d.between(low, high) for _ in range(n)]
        elif fill == "apart":  # different numbers, far from each other
            flat = d.shuffled([0.25 * (i - n // 2) + 0.125 for i in range(n)])
        elif kind == "c":
            flat = [complex(self.FILLS[fill](d), self.FILLS[fill](d)) for _ in range(n)]
        else:
            flat = [self.FILLS[fill](d) for _ in range(n)]
        return np.array(flat, dtype=np.float64 if kind == "f" else None).reshape(shape).astype(dtypes.of(dtype))

    def new(self, dtype, shape, fill="normal", low=-3, high=3):
        """A new input."""
        from .evaluator import wide

        if not self.allow_inputs:
            raise NoFit()
        if dtypes.kind(dtype) == "u":
            low = max(low, 0)
        x = self.draw(dtype, shape, fill, low, high)
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, dtype, x, fill, low, high))
        self.values[name], self.types[name] = wide(x), dtype
        return name

    def given(self, dtype, values):
        """A new input of these whole numbers, which stay as they are."""
        import numpy as np

        if not self.allow_inputs:
            raise NoFit()
        x = np.array(values).astype(dtypes.of(dtype))
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, dtype, x, "given", 0, 0))
        self.values[name], self.types[name] = x, dtype
        return name

    def fits(self, name, fill, low, high):
        import numpy as np

        v = self.values[name]
        kind = dtypes.kind(self.types[name])
        if v.size == 0 or kind == "b":
            return True
        if kind in "iu" or fill == "whole":
            return bool(np.all((v >= low) & (v <= high) & (v == np.round(v))))
        if fill == "apart":
            return False
        a, b = self.RANGES[fill]
        if kind == "c":
            return bool(np.all(np.abs(v) <= b))
        return bool(np.all((v >= a) & (v <= b)))

    def pick(self, types, low_rank=0, high_rank=3, fill="normal", low=-3, high=3, shape=None, least=0):
        """A value of one of these dtypes: one that is there, or a new input. least: of each extent."""
        d = self.dice
        if not self.narrow:
            types = [t for t in types if t not in ("bfloat16", "float16")] or types
        found = [
            n
            for n, t in self.types.items()
            if t in types
            and low_rank <= self.rank(n) <= high_rank
            and (shape is None or self.shape(n) == shape)
            and all(e >= least for e in self.shape(n))
        ]
        if found and (d.chance(self.reuse) or not self.allow_inputs):
            # Late ones first: programs grow deep.
            for _ in range(4):
                n = found[-1 - min(d.below(len(found)), d.below(len(found)))]
                if self.fits(n, fill, low, high):
                    return n
        dtype = self.kind(types)
        own = shape if shape is not None else self.shape_of(low_rank, high_rank)
        own = tuple(max(e, least) for e in own)
        return self.new(dtype, own, fill, low, high)

    def like(self, name, fill="normal", shape=None, low=-3, high=3):
        """A value of the same dtype and the same (or the given) shape."""
        own = self.shape(name) if shape is None else tuple(shape)
        return self.pick((self.dtype(name),), 0, 9, fill, low, high, own)

    def partner(self, name, fill="normal", low=-3, high=3):
        """A value of the same dtype that broadcasts with it."""
        shape = list(self.shape(name))
        d = self.dice
        if d.chance(45):
            for k in range(len(shape)):
                if d.chance(30):
                    shape[k] = 1
            shape = shape[d.below(len(shape) + 1) :]
        return self.like(name, fill, shape, low, high)

    def axis(self, name):
        return self.dice.below(self.rank(name))

    def axes(self, name, least=0):
        r = self.rank(name)
        return self.dice.sample(list(range(r)), self.dice.between(min(least, r), r))

    def index(self, shape, count, wide=None):
        """Integers in [0, count); now and then outside."""
        d = self.dice
        low, high = (0, max(count - 1, 0)) if not d.chance(20) else (-2, count + 1)
        return self.new(d.pick(("int32", "int64")), shape, "whole", low, high)


class NoFit(Exception):
    """The call cannot be drawn from what is there."""


def _size(shape):
    n = 1
    for e in shape:
        n *= e
    return n


def table_names():
    """Every op of the table by the name it has in rlx.ops: {name: table name}."""
    import rlx

    out = {}
    for record in rlx._rlx.op_table():
        for n in record["names"]:
            out[n + "_" if n in ("if", "while", "not", "and", "or") else n] = record["name"]
    return out


def load():
    """The catalogue with everything in it."""
    from . import (  # noqa: F401
        ops_attention,
        ops_blocks,
        ops_elementwise,
        ops_fourier,
        ops_indexing,
        ops_losses,
        ops_moves,
        ops_norms,
        ops_numpy,
        ops_products,
        ops_quantized,
        ops_random,
        ops_reductions,
        ops_sequence,
    )

    return OPS
