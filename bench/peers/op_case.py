"""A case of bench/ops, as op_cases.py declares it."""

import dataclasses
import math

BYTES = {
    "f8": 8,
    "f4": 4,
    "f2": 2,
    "bf16": 2,
    "i1": 1,
    "u1": 1,
    "i2": 2,
    "i4": 4,
    "i8": 8,
    "u4": 4,
    "bool": 1,
    "c8": 8,
    "c16": 16,
}
GOAL = 1.05  # the largest passing ratio to the faster peer


@dataclasses.dataclass
class Arg:
    """An operand. fill: normal, positive, unit, one, ascending, spd (a positive definite matrix); of integers small,
    count (1 to 7), wide (all there are), or indices below a number."""

    shape: tuple
    dtype: str = "f4"
    fill: object = "normal"

    def bytes(self):
        return math.prod(self.shape) * BYTES[self.dtype]


@dataclasses.dataclass
class Case:
    op: str
    name: str
    args: list
    expr: str
    torch: str = None  # None: PyTorch has no such op
    out_bytes: int = 0
    flops: float = 0
    peak: str = None  # the dtype of the FMA peak for the floor: "f4", "f8"
    tolerance: float = 1e-3  # of the values of results; None: they are not compared
    jax: str = None  # the expression for JAX if it differs from that of rlx
    held: str = ""  # the operands, by letter, that the function holds as a network holds its weights
    distribution: str = None  # of random numbers, which differ by engine: "bits", "uniform" or "normal"

    @property
    def id(self):
        return f"{self.op} {self.name}"

    def floor_bytes(self):
        return sum(a.bytes() for a in self.args) + self.out_bytes


def label(shape, dtype):
    return f"{'x'.join(map(str, shape))} {dtype}"


def loose(dtype):
    return {"f2": 2e-2, "bf16": 1e-1}.get(dtype, 1e-3)
