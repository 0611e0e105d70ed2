"""Polynomials as vectors of coefficients, the highest power first."""

from .. import _rlx
from ._base import cast, common, constant, filled, inexact, node, op, value
from ._calculus import convolve
from ._joining import concatenate


def _coefficients(p, what):
    p = value(p)
    p = _rlx.reshape([p], (1,)) if p.ndim == 0 else p
    if p.ndim != 1:
        raise ValueError(f"{what}: coefficients with {p.ndim} axes; they must be a vector")
    return cast(p, "int32") if p.dtype.kind == "b" else p


@op("p", "x")
def polyval(p, x):
    """The polynomial p at x by Horner's rule: p[0] * x**(n-1) + ... + p[n-1]. Coefficients p[k] that are arrays
    broadcast with x.
    """
    p = value(p)
    x = value(x)
    dtype, _ = _rlx.result_type(p, x)
    if p.ndim == 0:
        p = _rlx.reshape([p], (1,))
    p, x = cast(p, dtype), cast(x, dtype)
    out = node("mul", x, 0) if dtype.kind != "f" else node("where", node("eq", x, x), 0, x)
    for k in range(p.shape[0]):
        out = p[k] + out * x if k else p[k] + out
    return out


def _sum(a, b, what, sign):
    a, b = common([_coefficients(a, what), _coefficients(b, what)], what)
    n = max(a.shape[0], b.shape[0])
    a, b = (concatenate([filled((n - v.shape[0],), 0, v.dtype), v]) if v.shape[0] < n else v for v in (a, b))
    return node(sign, a, b)


@op("a", "b")
def polyadd(a, b):
    """The sum of two polynomials."""
    return _sum(a, b, "polyadd", "add")


@op("a", "b")
def polysub(a, b):
    """The difference of two polynomials."""
    return _sum(a, b, "polysub", "sub")


@op("a", "b")
def polymul(a, b):
    """The product of two polynomials. Leading zeros stay."""
    return convolve(_coefficients(a, "polymul"), _coefficients(b, "polymul"))


@op("u", "v")
def polydiv(u, v):
    """(quotient, remainder) of two polynomials. v[0] must not be zero; leading zeros of the remainder stay."""
    u, v = common([inexact(_coefficients(u, "polydiv")), inexact(_coefficients(v, "polydiv"))], "polydiv")
    n, m = u.shape[0], v.shape[0]
    if m == 0:
        raise ValueError("polydiv: the divisor has no coefficients")
    if n < m:
        return filled((1,), 0, u.dtype), u
    scale, quotient, rest = node("div", 1.0, v[0]), [], u
    for k in range(n - m + 1):
        q = node("mul", rest[k : k + 1], scale)
        quotient.append(q)
        rest = concatenate([rest[:k], node("sub", rest[k : k + m], node("mul", q, v)), rest[k + m :]])
    return concatenate(quotient), rest


@op("p")
def polyder(p, m=1):
    """The m-th derivative of a polynomial."""
    if m < 0:
        raise ValueError(f"polyder: m = {m} is negative")
    p = inexact(_coefficients(p, "polyder"))
    for _ in range(m):
        n = p.shape[0]
        if n <= 1:
            return filled((0,), 0, p.dtype)
        p = node("mul", p[:-1], constant(list(range(n - 1, 0, -1)), p.dtype))
    return p


@op("p", "k")
def polyint(p, m=1, k=None):
    """The m-th integral of a polynomial, with integration constants k (0)."""
    if m < 0:
        raise ValueError(f"polyint: m = {m} is negative")
    p = inexact(_coefficients(p, "polyint"))
    constants = filled((m,), 0, p.dtype) if k is None else cast(k, p.dtype)
    if constants.ndim == 0 or constants.shape[0] == 1 and m > 1:
        constants = _rlx.expand([constants], (m,))
    if constants.shape[0] != m:
        raise ValueError(f"polyint: k must have m = {m} constants, got {constants.shape[0]}")
    for i in range(m):
        n = p.shape[0]
        p = node("div", p, constant(list(range(n, 0, -1)), p.dtype)) if n else p
        p = concatenate([p, constants[i : i + 1]])
    return p


@op("seq_of_zeros")
def poly(seq_of_zeros):
    """The coefficients of the polynomial with these zeros, with leading coefficient 1."""
    zeros_ = inexact(_coefficients(seq_of_zeros, "poly"))
    out = filled((1,), 1, zeros_.dtype)
    for k in range(zeros_.shape[0]):
        factor = concatenate([filled((1,), 1, zeros_.dtype), node("neg", zeros_[k : k + 1])])
        out = convolve(out, factor)
    return out
