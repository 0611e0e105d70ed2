"""Polynomials as vectors of coefficients, the highest power first."""

from .. import _rlx
from ._base import FLOATS, cast, common, constant, filled, float_of, held, inexact, int_static, node, op
from ._base import refuse_shape, value
from ._calculus import convolve
from ._complex import conj, real
from ._creation import eye, vander, zeros
from ._eigen import eigenvalues
from ._joining import concatenate
from ._products import matmul, outer
from ._reductions import sum
from ._search import nonzero
from ._shapes import reshape, transpose
from ._ufuncs import abs, sqrt, square


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
    if p.shape[0] <= _FEW or dtype.kind not in "fc":
        return _horner(p, x)
    from .._control import custom_jvp

    # The derivative by x would store the values after each coefficient.
    long = custom_jvp(_horner)

    @long.defjvp
    def _(primals, tangents):
        (p, x), (dp, dx) = primals, tangents
        powers = constant(list(range(p.shape[0] - 1, 0, -1)), p.dtype)
        slope = _horner(p[:-1] * _rlx.reshape([powers], (p.shape[0] - 1,) + (1,) * (p.ndim - 1)), x)
        return _horner(p, x), slope * dx + _horner(dp, x)

    return long(p, x)


_FEW = 32  # coefficients, or zeros


def _horner(p, x):
    out = node("mul", x, 0) if x.dtype.kind != "f" else node("where", node("eq", x, x), 0, x)
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


def polymul(a, b, *, trim_leading_zeros=False):
    """The product of two polynomials. Leading zeros of a and b stay, unless trim_leading_zeros."""
    if trim_leading_zeros:
        a, b = (_trimmed(held(p), "polymul") for p in (a, b))
    return _polymul(a, b)


@op("a", "b")
def _polymul(a, b):
    return convolve(_coefficients(a, "polymul"), _coefficients(b, "polymul"))


def _trimmed(p, what):
    """The coefficients p without leading zeros; [0] if all are zero. Their number depends on values."""
    if _rlx.tracing() or isinstance(p, _rlx.Value):
        refuse_shape(what, "trim_leading_zeros=False")
    (places,) = nonzero(p)
    return p[int(places[0]) :] if places.shape[0] else p[:1] * 0


def polydiv(u, v, *, trim_leading_zeros=False):
    """(quotient, remainder) of two polynomials. v[0] must not be zero; leading zeros of the remainder stay, unless
    trim_leading_zeros.
    """
    quotient, rest = _polydiv(u, v)
    return quotient, _trimmed(rest, "polydiv") if trim_leading_zeros else rest


@op("u", "v")
def _polydiv(u, v):
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
    constants = filled((m,), 0, p.dtype) if k is None or m == 0 else cast(k, p.dtype)
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
    """The coefficients of the polynomial with these zeros, with leading coefficient 1; of a square matrix, of its
    characteristic polynomial.
    """
    given = value(seq_of_zeros)
    if given.ndim == 2 and given.shape[0] == given.shape[1] > 0:
        roots_ = eigenvalues(given, "poly")
        out = _with_zeros(roots_)
        return out if given.dtype.kind == "c" else real(out)
    zeros_ = inexact(_coefficients(seq_of_zeros, "poly"))
    return _with_zeros(zeros_)


def _with_zeros(z):
    """The polynomial with zeros z, of many from two halves: derivatives store the factors."""
    n = z.shape[0]
    if n > _FEW:
        return convolve(_with_zeros(z[: n // 2]), _with_zeros(z[n // 2 :]))
    out = filled((1,), 1, z.dtype)
    for k in range(n):
        out = convolve(out, concatenate([filled((1,), 1, z.dtype), node("neg", z[k : k + 1])]))
    return out


@op("x", "y", "w")
def _fit(x, y, w, deg, rcond):
    x, y = inexact(x), inexact(y)
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0] or x.shape[0] == 0:
        raise ValueError(f"polyfit: x of shape {x.shape} and y of shape {y.shape}; x is a vector, y has as many rows")
    dtype = _rlx.result_type(x, y)[0]
    x, y = cast(x, dtype), cast(y, dtype)
    powers = vander(x, deg + 1)
    if w is not None:
        w = cast(inexact(w), dtype)
        if w.shape != x.shape:
            raise ValueError(f"polyfit: weights of shape {w.shape} for x of shape {x.shape}")
        powers = powers * w[:, None]
        y = y * (w[:, None] if y.ndim == 2 else w)
    size = sqrt(sum(square(abs(powers)), 0))
    size = node("where", node("eq", size, 0), 1, size)
    rcond = x.shape[0] * 2.0 ** -FLOATS[float_of(dtype)][0] if rcond is None else rcond
    c, residuals, rank, s = _linalg().lstsq(powers / size, y, rcond)
    return c / (size[:, None] if y.ndim == 2 else size), residuals, rank, s, powers, size


def _linalg():
    from . import linalg

    return linalg


def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """The polynomial of degree deg that fits y at x with the least squares, highest power first; y may have columns.
    full: also (residuals, rank, singular values, rcond); cov: also the covariance of the coefficients, not scaled for
    "unscaled". w: weights of the residuals.
    """
    deg = int_static(deg, "polyfit: deg")
    if deg < 0:
        raise ValueError(f"polyfit: deg = {deg} is negative")
    c, residuals, rank, s, powers, size = _fit(x, y, w, deg, rcond)
    if full:
        bits = FLOATS[float_of(_rlx.result_type(c)[0])][0]
        return c, residuals, rank, s, powers.shape[0] * 2.0**-bits if rcond is None else rcond
    if not cov:
        return c
    scaled = powers / size
    base = _linalg().inv(_adjoint_product(scaled)) / outer(size, size)
    if cov == "unscaled":
        return c, base
    n = powers.shape[0]
    if n <= deg + 1:
        raise ValueError(f"polyfit: cov needs more than {deg + 1} points, got {n}; cov='unscaled' does not")
    y = held(y)
    if w is not None:
        y = y * (held(w)[:, None] if y.ndim == 2 else held(w))
    off = y - matmul(powers, c)
    spread = sum(square(abs(off)), 0) / (n - deg - 1)
    return c, base * spread if y.ndim == 1 else base[:, :, None] * spread


@op("x")
def _adjoint_product(x):
    return matmul(conj(transpose(x)), x)


def roots(p, *, strip_zeros=True):
    """The zeros of a polynomial, highest power first, as complex numbers: the eigenvalues of its companion matrix.
    Leading and trailing zeros are stripped; inside compiled functions strip_zeros=False is needed.
    """
    p = held(p)
    if p.ndim != 1:
        raise ValueError(f"roots: coefficients with {p.ndim} axes; they must be a vector")
    behind = 0
    if strip_zeros:
        if isinstance(p, _rlx.Value) or _rlx.tracing():
            refuse_shape("roots", "strip_zeros=False")
        (places,) = nonzero(p)
        if places.size == 0:
            return filled_array((0,), p.dtype)
        first, last = int(places[0]), int(places[-1])
        behind = p.shape[0] - 1 - last
        p = p[first : last + 1]
    found = _roots(p)
    return concatenate([found, filled_array((behind,), found.dtype)]) if behind else found


def filled_array(shape, dtype):
    """Zeros of the complex dtype of another one."""
    return zeros(shape, "complex128" if dtype.name in ("float64", "complex128") else "complex64")


@op("p")
def _roots(p):
    p = inexact(p)
    n = p.shape[0]
    if n < 2:
        return filled_array((0,), p.dtype)
    top = reshape(node("neg", p[1:] / p[0]), (1, n - 1))
    return _linalg().eigvals(concatenate([top, eye(n - 2, n - 1, dtype=p.dtype)], 0) if n > 2 else top)
