"""Special matrices of scipy.linalg."""

import math as _math

from .. import _rlx
from .._nodes import as_index, cast, node
from .._op import op
from ..numpy import abs, arange, array, broadcast_shapes, broadcast_to, concatenate, conj, expand_dims, eye
from ..numpy import flip, reshape, result_type, take, where, zeros
from ..numpy._base import int_static


def _fixed(rows, dtype="float32"):
    """A matrix of known numbers, computed in double precision or with integers."""
    import numpy

    return array(numpy.asarray(rows, dtype=None if rows else "float64").reshape(len(rows), len(rows)), dtype)


def _order(n, what, least=0):
    n = int_static(n, f"{what}: n")
    if n < least:
        raise ValueError(f"{what}: n = {n}; it must be a {'positive' if least else 'non-negative'} integer")
    if n > 2**16:
        raise ValueError(f"{what}: n = {n}; a matrix of more than {2**16} rows is not made here")
    return n


def _vector(a, what, least=1):
    a = _rlx.value(a)
    a = reshape(a, (1,)) if a.ndim == 0 else a
    if a.shape[-1] < least:
        raise ValueError(f"{what}: {a.shape[-1]} entries along the last axis; there must be at least {least}")
    return a


def _grid(n, m):
    return expand_dims(arange(n), 1), expand_dims(arange(m), 0)


@op("c", "r")
def toeplitz(c, r=None):
    """The matrix with first column c and first row r (the conjugate of c), whose diagonals are constant. Leading axes
    are batches, which broadcast.
    """
    c = _rlx.value(c)
    c = reshape(c, (1,)) if c.ndim == 0 else c
    r = conj(c) if r is None else _rlx.value(r)
    r = reshape(r, (1,)) if r.ndim == 0 else r
    dtype, batch = result_type(c, r), broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = (broadcast_to(cast(x, dtype), (*batch, x.shape[-1])) for x in (c, r))
    n, m = c.shape[-1], r.shape[-1]
    if n == 0 or m == 0:
        return zeros((*batch, n, m), dtype)
    both = concatenate([flip(c, -1), r[..., 1:]], -1)  # from the last row to the last column
    rows, columns = _grid(n, m)
    return take(both, as_index(n - 1 - rows + columns), axis=-1)


@op("c", "r")
def hankel(c, r=None):
    """The matrix with first column c and last row r (zeros), whose antidiagonals are constant. r[0] is not read.
    Leading axes are batches, which broadcast.
    """
    c = _vector(c, "hankel", 0)
    r = c * 0 if r is None else _vector(r, "hankel", 0)
    dtype, batch = result_type(c, r), broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = (broadcast_to(cast(x, dtype), (*batch, x.shape[-1])) for x in (c, r))
    n, m = c.shape[-1], r.shape[-1]
    if n == 0 or m == 0:
        return zeros((*batch, n, m), dtype)
    rows, columns = _grid(n, m)
    return take(concatenate([c, r[..., 1:]], -1), as_index(rows + columns), axis=-1)


@op("c")
def circulant(c):
    """The matrix with first column c, each of whose columns is the one before, moved round by one."""
    c = _vector(c, "circulant", 0)
    n = c.shape[-1]
    if n == 0:
        return zeros((*c.shape, 0), c.dtype)
    rows, columns = _grid(n, n)
    return take(c, as_index((rows - columns + n) % n), axis=-1)


@op("f", "s")
def leslie(f, s):
    """The matrix of Leslie's model: the fecundities f in the first row, the survivals s below the diagonal."""
    f, s = _rlx.value(f), _rlx.value(s)
    if f.ndim == 0 or f.shape[-1] < 2:
        raise ValueError("leslie: the length of f along the last axis must be at least 2")
    if s.ndim == 0 or s.shape[-1] != f.shape[-1] - 1:
        raise ValueError(f"leslie: Incorrect lengths for f and s: s must have {f.shape[-1] - 1} entries")
    dtype, batch, n = result_type(f, s), broadcast_shapes(f.shape[:-1], s.shape[:-1]), f.shape[-1]
    f, s = (broadcast_to(cast(x, dtype), (*batch, x.shape[-1])) for x in (f, s))
    below = concatenate([s, zeros((*batch, 1), dtype)], -1)
    rows, columns = _grid(n - 1, n)
    return concatenate([expand_dims(f, -2), where(rows == columns, expand_dims(below, -2), cast(0, dtype))], -2)


@op("a")
def companion(a):
    """The companion matrix of the polynomial with coefficients a, the highest power first."""
    a = _rlx.value(a)
    if a.ndim == 0 or a.shape[-1] < 2:
        raise ValueError("companion: the length of `a` along the last axis must be at least 2")
    first = node("neg", a[..., 1:] / a[..., :1])
    n = first.shape[-1]
    lower = broadcast_to(eye(n - 1, n, dtype=first.dtype), (*first.shape[:-1], n - 1, n))
    return concatenate([expand_dims(first, -2), lower], -2)


@op("a")
def fiedler(a):
    """The matrix of the distances between the entries of a."""
    a = _vector(a, "fiedler", 0)
    return abs(expand_dims(a, -1) - expand_dims(a, -2))


@op("a")
def fiedler_companion(a):
    """The companion matrix with five diagonals of the polynomial with coefficients a, the highest power first."""
    a = _vector(a, "fiedler_companion", 0)
    if a.shape[-1] == 0:
        raise ValueError("fiedler_companion: a needs a nonzero number of coefficients")
    n = a.shape[-1] - 1
    a = a / a[..., :1]
    if n == 0:
        return zeros((*a.shape[:-1], 0, 0), a.dtype)
    if n == 1:
        return expand_dims(node("neg", a[..., 1:]), -1)
    source = [[None] * n for _ in range(n)]
    for i in range(0, n - 2, 2):
        source[i][i + 2] = "one"
    for i in range(3, n, 2):
        source[i][i - 2] = "one"
    for i in range(0, n - 1, 2):
        source[i][i + 1] = i + 2
    for i in range(2, n, 2):
        source[i][i - 1] = i + 1
    source[0][0], source[1][0] = 1, "one"
    return _from(a, source)


def _from(a, source):
    """The matrix of ones and of negated coefficients, by their places."""
    rows = []
    for row in source:
        cells = [a[..., 0] * 0 if s is None else a[..., 0] * 0 + 1 if s == "one" else -a[..., s] for s in row]
        rows.append(concatenate([expand_dims(c, -1) for c in cells], -1))
    return concatenate([expand_dims(r, -2) for r in rows], -2)


@op("a")
def convolution_matrix(a, n, mode="full"):
    """The matrix whose product with a vector of n entries is its convolution with a: "full", "valid" or "same"."""
    a, n = _rlx.value(a), _order(n, "convolution_matrix", 1)
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolution_matrix: mode {mode!r}; mode must be one of full, valid and same")
    if a.ndim == 0:
        raise ValueError("convolution_matrix: a must be at least 1-dimensional")
    m = a.shape[-1]
    if m == 0:
        raise ValueError("convolution_matrix: len(a) must be at least 1")
    start, stop = 0, n + m - 1
    if mode == "valid":
        start, stop = min(m, n) - 1, n + m - min(m, n)
    elif mode == "same":
        start = (min(m, n) - 1) // 2
        stop = start + max(m, n)
    rows, columns = expand_dims(arange(start, stop), 1), expand_dims(arange(n), 0)
    k = rows - columns
    inside = (k >= 0) & (k < m)
    return where(inside, take(a, as_index(where(inside, k, 0)), axis=-1), cast(0, a.dtype))


def hadamard(n, dtype="int32"):
    """Sylvester's matrix of 1 and -1 with orthogonal rows; n is a positive power of 2."""
    n = _order(n, "hadamard", 1)
    if n & (n - 1):
        raise ValueError(f"hadamard: n = {n}; it must be a positive power of 2")
    signs = [[1]]
    while len(signs) < n:
        signs = [[*row, *row] for row in signs] + [[*row, *(-x for x in row)] for row in signs]
    return _fixed(signs, "int32" if dtype is int else dtype)


def helmert(n, full=False):
    """The matrix of orthonormal contrasts of n numbers, [n - 1, n]; full: with the row of their mean first."""
    n = _order(n, "helmert", 1)
    rows = [[n**-0.5] * n]
    for k in range(1, n):
        unit = (k * (k + 1)) ** -0.5
        rows.append([unit] * k + [-k * unit] + [0.0] * (n - k - 1))
    out = _fixed(rows)
    return out if full else out[1:]


def invhilbert(n):
    """The inverse of hilbert(n), whose entries are integers."""
    n = _order(n, "invhilbert")
    binomial = _math.comb

    def entry(i, j):
        sign = -1 if (i + j) % 2 else 1
        first = binomial(n + i, n - j - 1) * binomial(n + j, n - i - 1)
        return float(sign * (i + j + 1) * first * binomial(i + j, i) ** 2)

    return _fixed([[entry(i, j) for j in range(n)] for i in range(n)])


def _kind(kind, what):
    kind = "symmetric" if kind is None else kind
    if kind not in ("symmetric", "lower", "upper"):
        raise ValueError(f"{what}: Expected kind to be one of symmetric, lower and upper, got {kind!r}")
    return kind


def _pascal(n, kind, signed):
    lower = [[_math.comb(i, j) * (-1 if signed and (i + j) % 2 else 1) for j in range(n)] for i in range(n)]
    if kind == "lower":
        rows = lower
    elif kind == "upper":
        rows = [list(r) for r in zip(*lower)]
    elif signed:  # the inverse of L L^T
        rows = [[sum(lower[k][i] * lower[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
    else:
        rows = [[_math.comb(i + j, i) for j in range(n)] for i in range(n)]
    return _fixed([[float(x) for x in r] for r in rows])


def pascal(n, kind=None):
    """Pascal's matrix of binomial coefficients: "symmetric", or its triangular factor, "lower" or "upper"."""
    return _pascal(_order(n, "pascal"), _kind(kind, "pascal"), False)


def invpascal(n, kind=None):
    """The inverse of pascal(n, kind)."""
    return _pascal(_order(n, "invpascal"), _kind(kind, "invpascal"), True)


def dft(n, scale=None, *, dtype=None):
    """The matrix of the discrete Fourier transform of n numbers. scale: None, "sqrtn" (unitary) or "n"."""
    n = _order(n, "dft")
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale {scale!r}; scale must be None, 'sqrtn' or 'n'")
    dtype = _rlx.dtype("complex64" if dtype is None else dtype)
    if dtype.kind != "c":
        raise ValueError(f"dft: the dtype is {dtype.name}; dtype must be complex")
    size = {None: 1.0, "sqrtn": n**0.5, "n": float(n)}[scale] or 1.0
    turns = [[(i * j % n) / n for j in range(n)] for i in range(n)] if n else []
    rows = [[complex(_math.cos(2 * _math.pi * t), -_math.sin(2 * _math.pi * t)) / size for t in r] for r in turns]
    return _fixed(rows, dtype)


__all__ = """circulant companion convolution_matrix dft fiedler fiedler_companion hadamard hankel helmert invhilbert
invpascal leslie pascal toeplitz""".split()
