"""The real Schur form of real matrices, by the QR algorithm with two shifts at once, and the complex one from it."""

from .. import _control
from ._base import cast, inexact, node
from ._complex import conj
from ._creation import arange, eye
from ._joining import concatenate
from ._qr_sweeps import deflated, each_matrix, turned
from ._shapes import matrix_transpose, reshape
from ._ufuncs import abs, arctan2, cos, hypot, sin, sqrt


def _both(*conditions):
    out = conditions[0]
    for c in conditions[1:]:
        out = node("bit_and", out, c)
    return out


def _not(x):
    return node("eq", x, False)


def _start(t, low, last, odd):
    """The first column, but for a factor, of the active rows times themselves after both shifts."""
    x, y = t[last, last], t[last - 1, last - 1]
    w = t[last, last - 1] * t[last - 1, last]
    beside = abs(t[last, last - 1]) + abs(t[last - 1, last - 2])
    # Shifts that are not eigenvalues of the last block break cycles.
    x = node("where", odd, x + 0.75 * beside, x)
    y = node("where", odd, x, y)
    w = node("where", odd, -0.4375 * beside * beside, w)
    a, below = t[low, low], t[low + 1, low]
    first = ((x - a) * (y - a) - w) / below + t[low, low + 1]
    return [first, t[low + 1, low + 1] - a - (x - a) - (y - a), t[low + 2, low + 1]]


def real_schur_form(a):
    """(t, z) with a = z t z^T of one real matrix: t has blocks of one row, or of two with complex eigenvalues."""
    n = a.shape[0]
    if n < 2:
        return a, eye(n, dtype=a.dtype)
    index = arange(n, dtype="int32")
    rows, columns = reshape(index, (n, 1)), reshape(index, (1, n))
    t, z, scale, finite = deflated(a, 3, _start)

    def separated(state, i):
        # A turn of the rows i and i + 1: to an upper triangle if their eigenvalues are real, else to equal elements on
        # the diagonal.
        t, zt = state
        a, b, c, d = t[i, i], t[i, i + 1], t[i + 1, i], t[i + 1, i + 1]
        block = node("ne", c, 0)
        half = (a - d) * 0.5
        size = node("where", block, node("max", abs(half), node("max", abs(b), abs(c))), 1)
        p, q, r = half / size, b / size, c / size
        inside = p * p + q * r
        real = _both(block, node("ge", inside, 0))
        # An eigenvector of the block, of the eigenvalue that does not cancel.
        above = node("gt", inside, 0)
        root = node("where", above, sqrt(node("where", above, inside, 1)), 0)
        far = p + node("where", node("lt", p, 0), node("neg", root), root)
        turn = _both(block, node("ne", a, d))
        equal = 0.5 * arctan2(node("where", turn, d - a, 0), node("where", turn, b + c, 1))
        angle = node("where", real, arctan2(node("where", real, r, 0), node("where", real, far, 1)), equal)
        x, y = (reshape(v, (1,)) for v in (cos(angle), sin(angle)))
        g = reshape(concatenate([x, y, node("neg", y), x]), (2, 2))
        t, zt = turned(t, zt, g, i)
        pair = _both(block, node("lt", inside, 0))
        mean = (t[i, i] + t[i + 1, i + 1]) * 0.5
        t = t.at[i, i].set(node("where", pair, mean, t[i, i]))
        t = t.at[i + 1, i + 1].set(node("where", pair, mean, t[i + 1, i + 1]))
        return (t.at[i + 1, i].set(node("where", pair, t[i + 1, i], 0)), zt), None

    (t, zt), _ = _control.scan(separated, (t, matrix_transpose(z)), index[: n - 1])
    z = matrix_transpose(zt)
    below = _both(node("gt", rows, columns), _not(_both(node("eq", rows, columns + 1), node("ne", t, 0))))
    t = node("where", below, 0, t) * scale
    bad = cast(float("nan"), a.dtype)
    return node("where", finite, t, bad), node("where", finite, z, bad)


def complex_form(t, z):
    """The complex Schur form from the real one in a complex dtype, by turns of two rows from the last pair upwards."""
    n = t.shape[0]

    def step(state, m):
        t, zt = state
        a, b, c, d = t[m - 1, m - 1], t[m - 1, m], t[m, m - 1], t[m, m]
        idle = node("eq", c, 0)
        half = (a - d) * 0.5
        size = node("max", abs(half), node("max", abs(b), abs(c)))
        size = cast(node("where", idle, 1, size), t.dtype)
        inside = (half / size) * (half / size) + (b / size) * (c / size)
        none = node("eq", inside, 0)
        root = node("where", none, 0, sqrt(node("where", none, 1, inside)))
        mu, c = half / size + root, c / size  # an eigenvalue of the block, less its last element
        values = d + half + root * size, d + half - root * size  # of blocks of a real form exact conjugates
        length = cast(hypot(abs(node("where", idle, 1, mu)), abs(node("where", idle, 1, c))), t.dtype)
        x, y = node("where", idle, 1, mu / length), node("where", idle, 0, c / length)
        parts = [conj(x), conj(y), node("neg", y), x]
        t, zt = turned(t, zt, reshape(concatenate([reshape(v, (1,)) for v in parts]), (2, 2)), m - 1)
        t = t.at[m - 1, m - 1].set(node("where", idle, t[m - 1, m - 1], values[0]))
        t = t.at[m, m].set(node("where", idle, t[m, m], values[1]))
        return (t.at[m, m - 1].set(0), zt), None

    if n < 2:
        return t, z
    index = arange(1, n, dtype="int32")
    t, zt = _control.scan(step, (t, matrix_transpose(z)), index, reverse=True)[0]
    return t, matrix_transpose(zt)
