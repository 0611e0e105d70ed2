"""The real Schur form of real matrices, by the QR algorithm with two shifts at once, written in ops."""

from .. import _control
from ._base import FLOATS, cast, inexact, node, value
from ._creation import arange, eye
from ._eigen import _SWEEPS, each_matrix
from ._products import matmul
from ._reductions import max
from ._shapes import matrix_transpose, reshape
from ._ufuncs import abs, arctan2, cos, sin, sqrt


def _both(*conditions):
    out = conditions[0]
    for c in conditions[1:]:
        out = node("bit_and", out, c)
    return out


def _not(x):
    return node("eq", x, False)


def _last_block(t, k):
    """(trace, determinant, discriminant / 4, the eigenvalue nearer to the last element if they are real) of the rows
    k - 1 and k.
    """
    a, b, c, d = t[k - 1, k - 1], t[k - 1, k], t[k, k - 1], t[k, k]
    half = (a - d) * 0.5
    inside = half * half + b * c
    root = sqrt(node("max", inside, 0))
    sum_ = half + node("where", node("lt", half, 0), node("neg", root), root)
    none = node("eq", sum_, 0)
    near = d - node("where", none, 0, b * c / node("where", none, 1, sum_))
    return a + d, a * d - b * c, inside, near


def real_schur_form(a):
    """(t, z) with a = z t z^T of one real matrix: t has blocks of one row, or of two with complex eigenvalues."""
    n = a.shape[0]
    if n < 2:
        return a, eye(n, dtype=a.dtype)
    small = 2.0 ** -FLOATS[a.dtype.name][0]
    index = arange(n, dtype="int32")
    rows, columns = reshape(index, (n, 1)), reshape(index, (1, n))
    one = eye(n, dtype=a.dtype)
    size = max(abs(a))
    scale = node("where", node("eq", size, 0), 1, size)
    finite = node("eq", node("sub", size, size), 0)

    def unfinished(state):
        _, _, k, sweeps = state
        return _both(node("gt", k, 0), node("lt", sweeps, _SWEEPS * n))

    def step(state):
        t, z, k, sweeps = state
        total, product, inside, near = _last_block(t, k)
        # The rest of row k is negligible, or that of the rows k - 1 and k, whose eigenvalues are complex.
        left = _both(node("eq", rows, k), node("lt", columns, k))
        beside = abs(t[k, k]) + abs(t[k - 1, k - 1])
        bound = small * node("max", beside, 0.01 * small)
        rest = max(node("where", left, abs(t), 0))
        single = node("le", rest, bound)
        left2 = _both(node("ge", rows, k - 1), node("le", rows, k), node("lt", columns, k - 1))
        beside = beside + abs(t[k, k - 1]) + abs(t[k - 1, k])
        pair = _both(node("le", max(node("where", left2, abs(t), 0)), small * beside), node("lt", inside, 0))
        pair = _both(pair, _not(single))
        found = node("bit_or", single, pair)
        block = _both(node("le", rows, k), node("le", columns, k))
        complex_ = node("lt", inside, 0)
        s = node("where", complex_, total, near * 2)
        p = node("where", complex_, product, near * near)
        # Shifts that are not eigenvalues of the last block break cycles.
        odd = node("eq", node("mod", sweeps, 11), 10)
        s = node("where", odd, t[k, k] * 2 + rest * 1.5, s)
        p = node("where", odd, t[k, k] * t[k, k] + rest * rest, p)
        active = node("where", block, t, 0)
        doubled = matmul(active, active) - s * active + p * one
        single_shift = active - near * one
        shifted = node("where", node("bit_or", complex_, odd), doubled, single_shift)
        q, _ = node("qr", node("where", block, shifted, one), full=True)
        q = node("where", found, one, q)
        cleared = node("where", _both(left, single), 0, node("where", _both(left2, pair), 0, t))
        turned = matmul(matrix_transpose(q), matmul(t, q))
        t = node("where", found, cleared, turned)
        done = node("where", pair, 2, cast(single, "int32"))
        return t, matmul(z, q), k - cast(done, "int32"), sweeps + 1

    start = node("where", finite, a / scale, 0)
    k, sweeps = (cast(value(v)._with_weak(False), "int32") for v in (n - 1, 0))
    t, z, _, _ = _control.while_loop(unfinished, step, (start, one, k, sweeps))
    t = node("where", node("le", rows, columns + 1), t, 0)

    def equal_diagonal(state, i):
        # A turn of the rows i and i + 1 after which both elements on the diagonal are equal.
        t, z = state
        a, b, c, d = t[i, i], t[i, i + 1], t[i + 1, i], t[i + 1, i + 1]
        block = node("ne", c, 0)
        angle = node("where", block, 0.5 * arctan2(d - a, b + c), 0)
        angle = node("where", _both(block, node("ne", a, d)), angle, 0)
        x, y = cos(angle), sin(angle)
        first, second = node("eq", index, i), node("eq", index, i + 1)
        turn = lambda row, column: node("bit_and", reshape(row, (n, 1)), reshape(column, (1, n)))  # noqa: E731
        g = node("where", node("bit_or", turn(first, first), turn(second, second)), x, one)
        g = node("where", turn(first, second), -y, node("where", turn(second, first), y, g))
        t = matmul(matrix_transpose(g), matmul(t, g))
        mean = (t[i, i] + t[i + 1, i + 1]) * 0.5
        both = node("bit_or", turn(first, first), turn(second, second))
        t = node("where", _both(both, block), mean, t)
        return (t, matmul(z, g)), None

    (t, z), _ = _control.scan(equal_diagonal, (t, z), index[: n - 1])
    below = _both(node("gt", rows, columns), _not(_both(node("eq", rows, columns + 1), node("ne", t, 0))))
    t = node("where", below, 0, t) * scale
    bad = cast(float("nan"), a.dtype)
    return node("where", finite, t, bad), node("where", finite, z, bad)


def real_schur_of(a, what):
    """(t, z) of the real Schur form of real matrices."""
    a = inexact(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{what} of shape {a.shape}: the last two axes must be equal")
    if a.dtype.name not in ("float32", "float64"):
        raise TypeError(f"{what} of {a.dtype.name}: cast it to float32 first")
    return each_matrix(real_schur_form, a)
