"""Parts of complex numbers, by the ops that rlx has: the cast to a real dtype, which keeps the real part, and products.

The imaginary part is the real part of -i x. Where the other part is infinite or NaN that product is NaN, so it is where
the imaginary part would be a number; a -0 there comes out as 0.
"""

from .. import _rlx
from ._base import cast, constant, float_of, node, op, value
from ._ufuncs import arctan2, hypot


def _imaginary_unit(x, sign=1):
    return constant(sign * 1j, x.dtype)


@op("x")
def real(x):
    """The real part."""
    x = value(x)
    return x if x.dtype.kind != "c" else cast(x, float_of(x.dtype))


@op("x")
def imag(x):
    """The imaginary part; NaN where the real part is infinite or NaN."""
    x = value(x)
    if x.dtype.kind != "c":
        return cast(node("ne", x, x), x.dtype) if x.dtype.kind != "f" else _zeros(x)
    return cast(node("mul", x, _imaginary_unit(x, -1)), float_of(x.dtype))


def _zeros(x):
    return _rlx.expand([constant(0, x.dtype)], x.shape)


def parts(x):
    """(real part, imaginary part)."""
    return real(x), imag(x)


def joined(re, im, dtype):
    """The complex numbers of two parts."""
    im = cast(im, dtype)
    return node("add", cast(re, dtype), node("mul", im, _imaginary_unit(im)))


def by_parts(f, x):
    """f of both parts."""
    re, im = parts(x)
    return joined(f(re), f(im), x.dtype)


@op("x")
def conj(x):
    """The complex conjugate; NaN where a part is infinite or NaN."""
    x = value(x)
    if x.dtype.kind != "c":
        return x
    re, im = parts(x)
    return joined(re, node("neg", im), x.dtype)


conjugate = conj


def magnitude(x):
    """abs of complex values; its derivative at 0 is 0."""
    return hypot(*parts(x))


@op("x")
def angle(x, deg=False):
    """The angle of complex numbers, from -pi to pi; of real ones 0 or pi."""
    x = value(x)
    if x.dtype.kind != "c":
        x = x if x.dtype.kind == "f" else cast(x, "float32")
        out = arctan2(_zeros(x), x)
    else:
        re, im = parts(x)
        out = arctan2(im, re)
    return node("mul", out, 180 / 3.141592653589793) if deg else out


@op("x")
def isreal(x):
    """True where the imaginary part is 0."""
    return node("eq", imag(x), 0)


@op("x")
def iscomplex(x):
    """True where the imaginary part is not 0."""
    return node("ne", imag(x), 0)


def iscomplexobj(x):
    """Whether the dtype of x is complex."""
    return _rlx.result_type(x)[0].kind == "c"


def isrealobj(x):
    """Whether the dtype of x is not complex."""
    return not iscomplexobj(x)
