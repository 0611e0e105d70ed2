"""The QR algorithm with implicit shifts on Hessenberg matrices, written in ops: O(n^2) for a sweep."""

from .. import _control
from .._transforms import vmap
from ._base import FLOATS, cast, float_of, node, value
from ._complex import conj, imag, real
from ._creation import eye
from ._joining import concatenate, pad
from ._products import matmul
from ._reductions import max, sum
from ._shapes import diagonal, matrix_transpose, reshape
from ._ufuncs import abs, sqrt, square

# Sweeps for each eigenvalue; the algorithm needs two or three.
_SWEEPS = 40


def each_matrix(f, *arrays):
    """f of each matrix of the leading axes."""
    for _ in range(arrays[0].ndim - 2):
        f = vmap(f)
    return f(*arrays)


def magnitude(x):
    """The sum of the magnitudes of both parts: enough to compare sizes, without overflow."""
    return abs(real(x)) + abs(imag(x)) if x.dtype.kind == "c" else abs(x)


def _squares(x):
    return square(real(x)) + square(imag(x)) if x.dtype.kind == "c" else square(x)


def _iota(n):
    return node("iota", dims=(n,), dtype="int32", axis=0)


def _starts(at):
    return concatenate([reshape(cast(value(i), "int32"), (1,)) for i in at])


def _window(x, at, sizes):
    return node("dynamic_slice", x, _starts(at), sizes=sizes)


def _with_window(x, part, at):
    return node("dynamic_update_slice", x, part, _starts(at))


def turned(t, zt, g, k, clear=None):
    """(g t g^H, the transpose of z g^H) for a unitary g of the rows from k on. clear: elements of the rows that the
    turn makes 0.
    """
    width, n = g.shape[0], t.shape[0]
    above = matmul(g, _window(t, (k, 0), (width, n)))
    t = _with_window(t, above if clear is None else node("where", clear, 0, above), (k, 0))
    t = _with_window(t, matmul(_window(t, (0, k), (n, width)), conj(matrix_transpose(g))), (0, k))
    return t, _with_window(zt, matmul(conj(g), _window(zt, (k, 0), (width, zt.shape[1]))), (k, 0))


def _reflection(x, first):
    """(v, s): the reflection 1 - s v v^H of a vector to a multiple of the unit vector of the mask `first`; s is 0 for
    the vector 0.
    """
    size = max(magnitude(x))
    idle = node("eq", size, 0)
    x = x / cast(node("where", idle, 1, size), x.dtype)
    length = sqrt(node("where", idle, 1, sum(_squares(x))))
    head = sum(node("where", first, x, 0))
    if x.dtype.kind == "c":
        none = node("eq", head, 0)
        some = node("where", none, 1, head)
        phase = some / cast(abs(some), x.dtype)
        far = phase * cast(length, x.dtype)
    else:
        far = node("where", node("lt", head, 0), node("neg", length), length)
    v = x + node("where", first, far, 0)
    total = sum(_squares(v))
    return v, node("where", idle, 0, 2 / node("where", idle, 1, total))


def _off_rows(m, v, s):
    """(1 - s v v^H) m."""
    left = sum(reshape(conj(v), (-1, 1)) * m, 0, keepdims=True)
    return m - reshape(v * cast(s, v.dtype), (-1, 1)) * left


def _off_columns(m, v, s):
    """m (1 - s v v^H)."""
    right = sum(m * reshape(v, (1, -1)), 1, keepdims=True)
    return m - right * reshape(conj(v) * cast(s, v.dtype), (1, -1))


def _hessenberg(a):
    """(h, q) with a = q h q^H and zeros below the second diagonal of h."""
    n = a.shape[0]
    index = _iota(n)

    def step(state, k):
        h, q = state
        v, s = _reflection(node("where", node("gt", index, k), h[:, k], 0), node("eq", index, k + 1))
        h = _off_columns(_off_rows(h, v, s), v, s)
        done = node("bit_and", reshape(node("gt", index, k + 1), (n, 1)), reshape(node("eq", index, k), (1, n)))
        return (node("where", done, 0, h), _off_columns(q, v, s)), None

    start = (a, eye(n, dtype=a.dtype))
    return _control.scan(step, start, _iota(n - 2))[0] if n > 2 else start


def deflated(a, width, start):
    """(t, z, scale, finite) with a = scale z t z^H of one matrix: z is unitary and t upper triangular but for blocks of
    up to width - 1 rows on its diagonal. Where a is not finite t is 0.

    A sweep moves a bulge of `width` rows down the diagonal; start(t, low, last, odd) is the first column, `width`
    numbers, of the shifted rows low to last. odd: shifts that are not eigenvalues, which break cycles.
    """
    n = a.shape[0]
    size = max(magnitude(a))
    scale = node("where", node("eq", size, 0), 1, size)
    finite = node("eq", node("sub", size, size), 0)
    t, z = _hessenberg(node("where", finite, a / cast(scale, a.dtype), 0))
    if n < width:
        return t, z, scale, finite
    small = 2.0 ** -FLOATS[float_of(a.dtype)][0]
    rows = n + width - 2  # those of a bulge at the end
    index, across = _iota(n), reshape(_iota(rows), (1, rows))
    bulge = _iota(width)
    first, one = node("eq", bulge, 0), eye(width, dtype=a.dtype)
    second = reshape(node("gt", bulge, 0), (width, 1))
    t = pad(t, [(0, rows - n)] * 2)
    zt = pad(matrix_transpose(z), [(0, rows - n), (0, 0)])  # turns of rows are faster than those of columns

    def split(t):
        """(t without its negligible elements, the first and the last row of the last block that is too large)"""
        d, below = magnitude(diagonal(t)[:n]), magnitude(diagonal(t, -1)[: n - 1])
        beside = d[1:] + d[:-1]
        cut = node("le", below, small * node("max", beside, 0.01 * small))
        yes, no = node("eq", _iota(1), 0), node("ne", _iota(1), 0)
        at = concatenate([yes, cut])  # at[i]: a block starts in row i
        joined = node("eq", at, False)
        if width == 3:
            joined = node("bit_and", joined, concatenate([no, joined[:-1]]))
        last = max(node("where", joined, index, 0))
        low = max(node("where", node("bit_and", at, node("le", index, last)), index, 0))
        gone = concatenate([at[1:], *[no] * (rows + 1 - n)])
        beneath = node("eq", reshape(_iota(rows), (rows, 1)), across + 1)
        return node("where", node("bit_and", beneath, reshape(gone, (1, rows))), 0, t), low, last

    def unfinished(state):
        _, _, _, last, _, sweeps = state
        return node("bit_and", node("gt", last, 0), node("lt", sweeps, _SWEEPS * n))

    def sweep(state):
        zt, t, low, last, tries, sweeps = state
        odd = node("eq", node("mod", tries, 10), 9)
        begin = concatenate([reshape(x, (1,)) for x in start(t, low, last, odd)])

        def move(state, k):
            t, zt = state
            active = node("bit_and", node("ge", k, low), node("lt", k, last))
            front = reshape(_window(t, (k, node("max", k - 1, 0)), (width, 1)), (width,))
            x = node("where", node("eq", k, low), begin, front)
            v, s = _reflection(node("where", node("le", bulge + k, last), x, 0), first)
            v, s = reshape(v, (width, 1)), cast(node("where", active, s, 0), a.dtype)
            turn = one - (v * s) * reshape(conj(v), (1, width))
            inside = node("bit_and", active, node("gt", k, low))
            clear = node("bit_and", node("bit_and", node("eq", across, k - 1), second), inside)
            return turned(t, zt, turn, k, clear), None

        t, zt = _control.scan(move, (t, zt), _iota(n - 1))[0]
        t, low, end = split(t)
        return zt, t, low, end, node("where", node("eq", end, last), tries + 1, 0), sweeps + 1

    none = cast(value(0)._with_weak(False), "int32")
    zt, t, *_ = _control.while_loop(unfinished, sweep, (zt, *split(t), none, none))
    return t[:n, :n], matrix_transpose(zt[:n]), scale, finite
