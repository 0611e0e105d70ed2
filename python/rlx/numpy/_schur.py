"""Schur forms of matrices and their derivatives."""

from .. import _control
from .._control import custom_jvp
from ._base import cast, node
from ._complex import conj, real
from ._creation import eye
from ._eigen import eps_of, schur_form, square_matrix
from ._joining import pad
from ._products import matmul
from ._qr_sweeps import each_matrix, magnitude
from ._real_schur import complex_form, real_schur_form
from ._reductions import max
from ._shapes import broadcast_to, diagonal, matrix_transpose, reshape


def _adjoint(x):
    return conj(matrix_transpose(x))


def _grid(n):
    index = node("iota", dims=(n,), dtype="int32", axis=0)
    return index, reshape(index, (n, 1)), reshape(index, (1, n))


def _turned_by(t, m):
    """The strictly lower x for which x t - t x and m agree below the diagonal, of an upper triangular t. Infinite or
    NaN where eigenvalues are equal up to rounding.
    """
    n = t.shape[0]
    index, rows, columns = _grid(n)
    d = diagonal(t)
    least = max(magnitude(t), initial=0) * (8 * n * eps_of(t.dtype))
    options = dict(lower=False, transpose=False, conjugate=False, unit_diagonal=False)

    def step(x, j):
        # Column j: (t[j, j] - t) x[:, j] = m[:, j] - x[:, :j] t[:j, j], in the rows below j.
        below = node("gt", index, j)
        right = m[:, j] - matmul(x, node("where", node("lt", index, j), t[:, j], 0))
        gaps = d[j] - d
        gaps = node("where", node("le", magnitude(gaps), least), 0, gaps)
        pivots = node("where", below, gaps, 1)
        strict = node("bit_and", node("lt", rows, columns), reshape(below, (n, 1)))
        system = node("where", strict, node("neg", t), 0)
        system = node("where", node("eq", rows, columns), reshape(pivots, (n, 1)), system)
        column = node("triangular_solve", system, reshape(node("where", below, right, 0), (n, 1)), **options)
        return node("where", node("eq", columns, j), node("where", reshape(below, (n, 1)), column, 0), x), None

    return _control.scan(step, node("where", node("eq", rows, columns), 0, m * 0), index)[0] if n else m


@custom_jvp
def _complex_schur(a):
    return each_matrix(schur_form, a)


@_complex_schur.defjvp
def _complex_rule(primals, tangents):
    t, z = _complex_schur(primals[0])
    n = t.shape[-1]
    _, rows, columns = _grid(n)
    m = matmul(_adjoint(z), matmul(cast(tangents[0], z.dtype), z))
    x = each_matrix(_turned_by, t, m)
    w = x - _adjoint(x)
    dt = node("where", node("le", rows, columns), m - matmul(w, t) + matmul(t, w), 0)
    return (t, z), (dt, matmul(z, w))


@custom_jvp
def _real_schur(a):
    return each_matrix(real_schur_form, a)


@_real_schur.defjvp
def _real_rule(primals, tangents):
    t, z = _real_schur(primals[0])
    n = t.shape[-1]
    _, rows, columns = _grid(n)
    m = matmul(matrix_transpose(z), matmul(tangents[0], z))
    wide = "complex128" if t.dtype.name == "float64" else "complex64"
    one = broadcast_to(eye(n, dtype=wide), t.shape)
    tc, g = each_matrix(complex_form, cast(t, wide), one)
    x = each_matrix(_turned_by, tc, matmul(_adjoint(g), matmul(cast(m, wide), g)))
    beside = node("eq", rows, columns + 1)
    pair = node("bit_and", beside, node("ne", t, 0))  # the lower element of a block of two rows
    below = node("bit_and", node("gt", rows, columns), node("eq", pair, False))
    x = node("where", below, real(matmul(g, matmul(x, _adjoint(g)))), 0)
    w = x - matrix_transpose(x)
    dt = m - matmul(w, t) + matmul(t, w)
    if n > 1:  # turns inside of the blocks keep their elements on the diagonal equal
        d, upper, lower = diagonal(dt, 0, -2, -1), diagonal(t, 1, -2, -1), diagonal(t, -1, -2, -1)
        block = node("ne", lower, 0)
        angle = (d[..., 1:] - d[..., :-1]) * 0.5 / node("where", block, upper + lower, 1)
        angle = reshape(node("where", block, angle, 0), (*lower.shape[:-1], 1, n - 1))
        padded = node("where", beside, broadcast_to(pad(angle, [(0, 0)] * (t.ndim - 1) + [(0, 1)]), t.shape), 0)
        turn = padded - matrix_transpose(padded)
        w = w + turn
        dt = dt - matmul(turn, t) + matmul(t, turn)
    kept = node("bit_or", node("le", rows, columns), pair)
    return (t, z), (node("where", kept, dt, 0), matmul(z, w))


def schur_of(a, what):
    """(t, u) of the complex Schur form of general matrices."""
    return tuple(_complex_schur(square_matrix(a, what)))


def real_schur_of(a, what):
    """(t, z) of the real Schur form of real matrices."""
    return tuple(_real_schur(square_matrix(a, what)))
