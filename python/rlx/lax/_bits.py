"""Bitwise reductions, products of integers in full, and floats of fewer bits."""

import functools

from .. import _rlx
from .. import numpy as rnp
from .._implicit import ruled
from .._transforms import _as_dtype
from .._nodes import axes_of, cast, node
from .._op import op
from ..numpy._base import FLOATS, named


def _folded(x, how, neutral):
    """The reduction of axis 0, in a number of steps that is logarithmic in its extent."""
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        joined = node(how, x[:half], x[half : 2 * half])
        x = rnp.concatenate([joined, x[2 * half :]]) if x.shape[0] % 2 else joined
    return x[0] if x.shape[0] else rnp.full(x.shape[1:], neutral, x.dtype)


def _reduction(name, how, text, of_truth):
    @op("operand")
    def reduction(operand, axes):
        x = _rlx.value(operand)
        if x.dtype.kind not in "biu":
            raise TypeError(f"{name} takes bool and integers, not {x.dtype.name}")
        axes = axes_of(tuple(axes), x.ndim, name)
        if not axes:
            return x
        if x.dtype.kind == "b" and of_truth is not None:
            return of_truth(x, tuple(axes))
        if x.dtype.kind == "b":
            return node("ne", node("bit_and", rnp.sum(cast(x, "int32"), tuple(axes)), 1), 0)
        if not all(isinstance(x.shape[a], int) for a in axes):
            raise NotImplementedError(f"{name} of integers over an axis of symbolic extent {x.shape}")
        x = rnp.moveaxis(x, tuple(axes), tuple(range(len(axes))))
        rows = 1
        for n in x.shape[: len(axes)]:
            rows *= n
        neutral = (-1 if x.dtype.kind == "i" else 2**x.dtype.bits - 1) if how == "bit_and" else 0
        return _folded(rnp.reshape(x, (rows, *x.shape[len(axes) :])), how, neutral)

    return named(reduction, name, text)


reduce_and = _reduction(
    "reduce_and", "bit_and", "The bitwise and over axes; of bool, true where all elements are.", rnp.all
)
reduce_or = _reduction("reduce_or", "bit_or", "The bitwise or over axes; of bool, true where one element is.", rnp.any)
reduce_xor = _reduction("reduce_xor", "bit_xor", "The bitwise exclusive or over axes.", None)


@op("x", "y")
def mulhi(x, y):
    """The upper half of the bits of the products of integers."""
    dtype, _ = _rlx.result_type(x, y)
    if dtype.kind not in "iu":
        raise TypeError(f"mulhi takes integers, not {dtype.name}")
    x, y = cast(x, dtype), cast(y, dtype)
    bits = dtype.itemsize * 8
    if bits < 64:
        wide = f"{'u' * (dtype.kind == 'u')}int64"
        return cast(node("shr", node("mul", cast(x, wide), cast(y, wide)), bits), dtype)
    # Of 64 bits by halves: the lower ones without sign, the upper ones with that of the dtype.
    low = lambda v: cast(node("bit_and", v, 2**32 - 1), dtype)  # noqa: E731
    x0, y0, x1, y1 = low(x), low(y), node("shr", x, 32), node("shr", y, 32)
    unsigned = lambda v: cast(v, "uint64")  # noqa: E731
    carry = cast(node("shr", node("mul", unsigned(x0), unsigned(y0)), 32), dtype)
    middle = node("add", node("mul", x1, y0), carry)
    other = node("add", node("mul", x0, y1), low(middle))
    return node("add", node("mul", x1, y1), node("add", node("shr", middle, 32), node("shr", other, 32)))


# -- floats of fewer bits --


def _reduced(x, exponent_bits, mantissa_bits):
    dtype = x.dtype
    fraction, _, _ = FLOATS[dtype.name]
    width = dtype.itemsize * 8
    kind = f"uint{width}"
    bits = node("bitcast", x, to=_rlx.dtype(kind))
    one = lambda n: _rlx.value(_rlx.array_from(n, kind))._with_weak(False)  # noqa: E731
    sign = node("bit_and", bits, one(1 << (width - 1)))
    size = node("bit_and", bits, one((1 << (width - 1)) - 1))
    cut = fraction - mantissa_bits
    if cut > 0:  # to the nearest, halves to the even neighbour
        last = node("bit_and", node("shr", size, one(cut)), one(1))
        up = node("add", one((1 << (cut - 1)) - 1), last)
        size = node("bit_and", node("add", size, up), one((1 << (width - 1)) - (1 << cut)))
    own = width - 1 - fraction
    endless = ((1 << own) - 1) << fraction
    if exponent_bits < own:
        bias, small = (1 << (own - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        top, bottom = (bias + small) << fraction, (bias - small + 1) << fraction
        size = node("where", node("ge", size, one(top + (1 << fraction))), one(endless), size)
        size = node("where", node("lt", size, one(bottom)), one(0), size)
    out = node("bitcast", node("bit_or", sign, size), to=dtype)
    # The rounding of a NaN may have cleared its bits, and that of the largest number gives an infinity by itself.
    return node("where", node("ne", x, x), x, out)


@op("operand")
def reduce_precision(operand, exponent_bits, mantissa_bits):
    """operand rounded to floats with so many bits of exponent and mantissa, in its own dtype. What is too large becomes
    infinite, what is below their normal numbers 0. Derivatives are rounded too.
    """
    x = _rlx.value(operand)
    if x.dtype.kind != "f" or x.dtype.name not in FLOATS:
        raise TypeError(f"reduce_precision takes floats, not {x.dtype.name}")
    for name, bits, least in (("exponent_bits", exponent_bits, 1), ("mantissa_bits", mantissa_bits, 0)):
        if not isinstance(bits, int) or bits < least:
            raise ValueError(f"reduce_precision: {name} {bits!r}; it must be an integer from {least} on")
    function = functools.partial(_reduced, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)

    def again(v):
        return ruled("reduce_precision", [v], lambda xs: [function(xs[0])], **rules)[0]

    rules = {
        "jvp": lambda xs: [again(xs[0]), again(xs[1])],
        "forward": lambda xs: [again(xs[0])],
        "backward": lambda xs: [again(_as_dtype(xs[0], x.dtype))],
    }
    return again(x)
