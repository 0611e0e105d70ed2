"""Products over long contractions: the error grows with the block and the number of blocks, not with k."""

import math

import numpy as np
import pytest

import rlx
import rlx.lax as lax
import rlx.numpy as rnp
from sampling import EVERYTHING

BLOCK, PAIR_BLOCK = 512, 4096
LENGTHS = [1, 7, 511, 512, 513, 1025, 4097, 9000, 65_536, 65_537, 1_048_576]
LENGTHS = [*LENGTHS, 1_000_003, 20_000_000] if EVERYTHING else LENGTHS[2::2]
DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]
# (rows, columns, whether x and w are transposed): each takes another kernel where k is long.
SHAPES = [(1, 1, 0, 0), (1, 1, 1, 1), (1, 70, 0, 0), (1, 70, 0, 1), (3, 5, 0, 0), (3, 5, 1, 1)]
SHAPES += [(9, 70, 0, 0), (9, 70, 1, 1), (40, 3, 0, 1), (17, 33, 0, 0)]
MOST_ELEMENTS = 5_000_000 if EVERYTHING else 150_000


def draw(kind, rng, shape, complex_numbers):
    if kind == "equal":
        return np.full(shape, 33, np.complex128 if complex_numbers else np.float64)
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if complex_numbers else x


def array_of(x, dtype):
    """The array of rlx, and the numbers that it holds."""
    narrow = rnp.asarray(x.astype("float32") if dtype == "bfloat16" else x.astype(dtype)).astype(dtype)
    return narrow, np.asarray(narrow.astype("float32") if dtype in ("float16", "bfloat16") else narrow)


def exact(x, w):
    """x [m, k] times w [k, n] and the sums of the magnitudes of the terms, with 11 bits more than f64 has."""
    wide = np.clongdouble if np.iscomplexobj(x) else np.longdouble
    sums = np.empty((x.shape[0], w.shape[1]), wide)
    terms = np.empty(sums.shape)
    for i in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            one = x[i].astype(wide) * w[:, j].astype(wide)
            sums[i, j] = one.sum()  # by pairs
            terms[i, j] = float(np.sum(np.abs(x[i]) * np.abs(w[:, j]), dtype=np.float64))
    return sums, terms


def allowed(k, dtype):
    """The error of an element by the sum of the magnitudes of its terms: rounding errors that are as often up as down
    add like a random walk, here four deviations of it.
    """
    unit = 2.0**-53 if dtype in ("float64", "complex128") else 2.0**-24
    block = PAIR_BLOCK if dtype == "bfloat16" else BLOCK
    steps = min(k, block) + math.ceil(k / block)
    return 4 * math.sqrt(steps + 2) * unit


def check(got, x, w, dtype, k, kind):
    sums, terms = exact(x, w)
    gap = np.abs(np.asarray(got).astype(sums.dtype) - sums)
    if kind == "equal" and k % BLOCK == 0:
        assert not gap.any()  # sums of whole blocks are 1089 times a power of 2 times a small number
    else:
        assert float(np.max(gap / terms)) <= allowed(k, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["equal", "squares", "random", "cancelling"])
def test_matmuls(dtype, kind):
    rng = np.random.default_rng(7)
    seen = 0
    for k in LENGTHS:
        for rows, columns, x_turned, w_turned in SHAPES:
            if kind == "squares" and rows != columns:
                continue
            if k * (rows + columns) > MOST_ELEMENTS and rows * columns > 1 or k > 100_000 and x_turned:
                continue
            if dtype.startswith("complex") and k > 100_000 and not EVERYTHING:
                continue
            x = draw(kind, rng, (rows, k), dtype.startswith("complex"))
            w = draw(kind, rng, (k, columns), dtype.startswith("complex"))
            if kind == "squares":
                w = x.conj().T
            if kind == "cancelling":  # the second half takes the first away, but for its last bits
                half = k // 2
                x[:, k - half :] = -x[:, :half] * (1 + 2.0**-9)
                w[k - half :] = w[:half]
            a, x = array_of(x.T if x_turned else x, dtype)
            b, w = array_of(w.T if w_turned else w, dtype)
            contracted = (((0 if x_turned else 1,), (1 if w_turned else 0,)), ((), ()))
            to = "float32" if dtype in ("float16", "bfloat16") else dtype
            got = rlx.jit(lambda a, b: lax.dot_general(a, b, contracted, preferred_element_type=to))(a, b)
            check(got, x.T if x_turned else x, w.T if w_turned else w, dtype, k, kind)
            seen += 1
    assert seen >= len(LENGTHS)


def test_entry_points():
    """dot, vdot, einsum over several axes, a batch, and a weight that is packed."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(1_500_000).astype(np.float32)
    want = float(np.dot(x.astype(np.float64), x.astype(np.float64)))
    cube = x.reshape(100, 150, 100)
    batch = np.stack([x, x]).reshape(2, 1, -1)
    bound = allowed(x.size, "float32") * want
    for got in (
        rnp.dot(x, x),
        rnp.vdot(x, x),
        rnp.inner(x, x),
        rnp.einsum("i,i->", x, x),
        rnp.einsum("ijk,ijk->", cube, cube),
        rnp.tensordot(cube, cube, 3),
        rlx.jit(lambda a: rnp.matmul(a, np.swapaxes(batch, 1, 2)))(batch)[1, 0, 0],
        rlx.jit(lambda a: a @ x[:, None])(x[None])[0, 0],
    ):
        assert abs(float(got) - want) <= bound


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolutions(layout, dtype):
    """A window of many steps, and the filter's gradient, which sums over batch and positions."""
    rng = np.random.default_rng(5)
    last = layout == "NHWC"

    def conv(x, w, padding):
        numbers = ("NHWC", "HWIO", "NHWC") if last else ("NCHW", "OIHW", "NCHW")
        return lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=numbers)

    x = np.abs(rng.standard_normal((1, 700, 4, 5)))  # of one sign, as after a relu: rounding errors do not cancel
    w = np.abs(rng.standard_normal((6, 700, 3, 3)))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = np.stack([padded[0, :, i : i + 4, j : j + 5] for i in range(3) for j in range(3)])  # [9, 700, 4, 5]
    columns = taps.reshape(9 * 700, 20).astype(dtype)
    rows = w.transpose(0, 2, 3, 1).reshape(6, 9 * 700).astype(dtype)
    turned = ((0, 2, 3, 1), (2, 3, 1, 0)) if last else ((0, 1, 2, 3), (0, 1, 2, 3))
    a, b = x.astype(dtype).transpose(turned[0]), w.astype(dtype).transpose(turned[1])
    got = np.asarray(rlx.jit(lambda a, b: conv(a, b, "SAME"))(a, b))
    several = np.concatenate([rng.standard_normal(a.shape).astype(dtype), a, a[::-1]])
    for threads in (1, 2):
        among = np.asarray(rlx.jit(lambda a, b: conv(a, b, "SAME"), threads=threads)(several, b))
        assert np.array_equal(among[1], got[0]) and np.array_equal(among[2], got[0])
    got = (got.transpose(0, 3, 1, 2) if last else got).reshape(6, 20)
    check(got, rows, columns, dtype, rows.shape[1], "random")

    x = np.abs(rng.standard_normal((4, 3, 120, 130))).astype(dtype)
    d = np.abs(rng.standard_normal((4, 2, 118, 128))).astype(dtype)
    a = x.transpose(turned[0])
    dy = d.transpose(turned[0])
    zeros = np.zeros((2, 3, 3, 3), dtype).transpose(turned[1])
    grad = rlx.jit(rlx.grad(lambda w: rnp.sum(conv(rnp.asarray(a), w, "VALID") * dy)))(zeros)
    got = np.asarray(grad)
    got = (got.transpose(3, 2, 0, 1) if last else got).reshape(2, 27)
    taps = np.stack([x[:, :, i : i + 118, j : j + 128] for i in range(3) for j in range(3)])  # [9, n, c, h, w]
    columns = taps.transpose(1, 3, 4, 2, 0).reshape(-1, 27)
    rows = d.transpose(1, 0, 2, 3).reshape(2, -1)
    check(got, rows, columns, dtype, rows.shape[1], "random")


def test_long_products_have_one_order():
    """A row alone, in a batch, with other columns beside its own, and with more threads: the same bits."""
    rng = np.random.default_rng(11)
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        x, w = rng.standard_normal((13, 9001)), rng.standard_normal((9001, 33))
        a, _ = array_of(x, dtype)
        b, _ = array_of(w, dtype)
        whole = np.asarray(rlx.jit(rnp.matmul, threads=1)(a, b).astype("float64"))
        assert np.array_equal(np.asarray(rlx.jit(rnp.matmul, threads=2)(a, b).astype("float64")), whole)
        for i in (0, 12):
            row = np.asarray(rlx.jit(rnp.matmul)(a[i : i + 1], b).astype("float64"))
            assert np.array_equal(row[0], whole[i])
            one = np.asarray(rlx.jit(rnp.matmul)(a[i : i + 1], b[:, 5:6]).astype("float64"))
            assert one[0, 0] == whole[i, 5]
