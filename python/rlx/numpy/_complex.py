"""Complex numbers and their parts."""

from .. import _rlx
from ._base import cast, constant, float_of, node, op, value


@op("x")
def real(x):
    """The real part."""
    x = value(x)
    return x if x.dtype.kind != "c" else node("complex_part", x, imag=False)


@op("x")
def imag(x):
    """The imaginary part."""
    x = value(x)
    return _zeros(x) if x.dtype.kind != "c" else node("complex_part", x, imag=True)


def _zeros(x):
    return _rlx.expand([constant(0, x.dtype)], x.shape)


def parts(x):
    """(real part, imaginary part)."""
    return real(x), imag(x)


def joined(re, im, dtype):
    """Complex numbers from their parts."""
    part = float_of(_rlx.dtype(dtype))
    return node("complex", cast(re, part), cast(im, part))


def by_parts(f, x):
    """f of both parts."""
    re, im = parts(x)
    return joined(f(re), f(im), x.dtype)


@op("x")
def conj(x):
    """The complex conjugate."""
    return _rlx.conj([value(x)])


conjugate = conj


def magnitude(x):
    """abs of complex values, with derivative 0 at 0."""
    return node("hypot", *parts(x))


@op("x")
def angle(x, deg=False):
    """The angle of complex numbers, from -pi to pi. For real numbers 0 or pi."""
    x = value(x)
    if x.dtype.kind != "c":
        x = x if x.dtype.kind == "f" else cast(x, "float32")
        out = node("atan2", _zeros(x), x)
    else:
        re, im = parts(x)
        out = node("atan2", im, re)
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
    """True if the dtype of x is complex."""
    dtype = x.dtype if isinstance(x, (_rlx.Array, _rlx.Value)) else _rlx.result_type(x)[0]
    return dtype.kind == "c"


def isrealobj(x):
    """True if the dtype of x is not complex."""
    return not iscomplexobj(x)
