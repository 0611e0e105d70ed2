"""Kernels that depend on shapes, values and addresses, beside NumPy: what the cases of single ops do not reach."""

import ml_dtypes
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

BF16 = ml_dtypes.bfloat16


def normal(shape, dtype="f4", scale=1.0, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype)


@pytest.mark.parametrize("n", [1, 5, 1000, 4097, 100_001])
@pytest.mark.parametrize("low, high, dtype", [(-128, 127, "int8"), (0, 255, "uint8"), (-100, 100, "int8")])
def test_chains_end_in_bytes(n, low, high, dtype):
    x = normal(n, scale=4)
    x[: min(n, 4)] = [np.nan, np.inf, -np.inf, 1e30][: min(n, 4)]
    got = np.asarray(rlx.jit(lambda a: jnp.clip(jnp.round(a / 0.05) + 3, low, high).astype(dtype))(x))
    want = np.clip(np.round(x / np.float32(0.05)) + 3, low, high)
    want[np.isnan(want)] = 0
    assert np.array_equal(got, want.astype(dtype))
    again = np.asarray(rlx.jit(lambda a: (a * 30).astype(dtype).astype("float32") * 0.5)(x))  # bounded, then read
    limits = np.iinfo(dtype)
    whole = np.clip(np.trunc(x * np.float32(30)), limits.min, limits.max)
    whole[np.isnan(whole)] = 0
    assert np.array_equal(again, whole * np.float32(0.5))


CHAINS = {
    "add": lambda a, c, r: a + c,
    "sub": lambda a, c, r: c - a,
    "div": lambda a, c, r: a / c,
    "joined": lambda a, c, r: (a - c) * r + c,
    "both": lambda a, c, r: c * c + a * c,
    "where": lambda a, c, r: jnp.where(a > c, c, r),
    "function": lambda a, c, r: jnp.arctan2(c, a) + jnp.exp(c),
}


@pytest.mark.parametrize("shape", [(1024, 1024), (7, 1000), (3, 5000), (300, 257), (5, 1)])
@pytest.mark.parametrize("name", CHAINS)
def test_one_element_of_a_row(name, shape):
    a, c, r = normal(shape), normal((shape[0], 1), seed=1), normal((1, shape[1]), seed=2)
    whole = [np.ascontiguousarray(np.broadcast_to(v, shape)) for v in (a, c, r)]
    f = rlx.jit(CHAINS[name])
    assert np.array_equal(np.asarray(f(a, c, r)), np.asarray(f(*whole)))


@pytest.mark.parametrize("n", [1, 3, 7, 129, 40_001])
def test_complex_products(n):
    a, b = normal(n) + 1j * normal(n, seed=1), normal(n, seed=2) + 1j * normal(n, seed=3)
    a, b = a.astype("c8"), b.astype("c8")
    for p, q in ((a, b), (a, b[:1]), (a[:1], b)):
        exact = p.astype("c16") * q.astype("c16")
        got = np.asarray(rlx.jit(lambda u, v: u * v)(p, q))
        assert np.array_equal(got, exact.astype("c8"))
    a[0], b[0] = complex(np.inf, np.nan), 1
    assert np.isinf(np.asarray(rlx.jit(lambda u, v: u * v)(a, b))[0])  # as C has it


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", BF16])
@pytest.mark.parametrize("shape", [(5,), (63,), (1024, 65), (3, 130, 64), (1, 4096), (600, 300), (2, 700, 33)])
def test_extremes_keep_nan(dtype, shape):
    x = normal(shape, dtype, 20)
    for y in (x, np.where(np.arange(x.size).reshape(shape) == x.size // 2, np.nan, x).astype(dtype)):
        for axis in range(len(shape)):
            for name in ("max", "min"):
                got = np.asarray(rlx.jit(lambda a: getattr(jnp, name)(a, axis=axis))(y)).astype("f8")
                assert np.array_equal(got, getattr(np, name)(y.astype("f8"), axis=axis), equal_nan=True)


@pytest.mark.parametrize("dtype, tolerance", [("f4", 1e-5), ("f8", 1e-13), ("f2", 2e-3), (BF16, 1.6e-2)])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_few_rows_by_columns_that_lie_anywhere(dtype, tolerance, rows):
    for k in (1, 16, 33, 100, 1024):
        for n in (1, 16, 17, 130):
            a, b = normal((rows, k), dtype), normal((n + 1, k), dtype, seed=1)
            for columns in (b[:n], b[1:]):
                got = np.asarray(rlx.jit(lambda u, v: u @ v.T)(a, columns)).astype("f8")
                want = a.astype("f8") @ columns.astype("f8").T
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=4 * tolerance * np.sqrt(k))


CONVS = [
    (1, 9, 9, 32, 32, 3, 1, 1),
    (2, 14, 13, 64, 48, 3, 2, 1),
    (1, 8, 8, 64, 64, 1, 1, 1),
    (2, 7, 7, 64, 64, 3, 1, 2),
]


@pytest.mark.parametrize("batch, height, width, depth, features, taps, stride, groups", CONVS)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_bf16_convolutions(batch, height, width, depth, features, taps, stride, groups, layout):
    x, w = normal((batch, height, width, depth), BF16), normal((taps, taps, depth // groups, features), BF16, 0.1, 1)
    filters = "HWIO" if layout == "NHWC" else "OIHW"
    if layout == "NCHW":
        x, w = np.ascontiguousarray(x.transpose(0, 3, 1, 2)), np.ascontiguousarray(w.transpose(3, 2, 0, 1))

    def conv(x, w):
        dims = (layout, filters, layout)
        return rlx.lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=dims, feature_group_count=groups
        )

    got = np.asarray(rlx.jit(conv)(x, w)).astype("f4")
    want = np.asarray(rlx.jit(conv)(x.astype("f4"), w.astype("f4")))
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype, tolerance", [("f4", 1e-5), ("f8", 1e-13)])
@pytest.mark.parametrize("m, n", [(1, 1), (8, 8), (5, 8), (8, 5), (16, 16), (32, 16), (17, 17), (33, 4)])
def test_lu_of_small_matrices(dtype, tolerance, m, n):
    a = normal((6, m, n), dtype)
    a[1], a[2, :, n // 2] = 0, a[2, :, 0]
    lu, _, order = (np.asarray(v) for v in rlx.jit(rlx.lax.linalg.lu)(a))
    k = min(m, n)
    lower = np.tril(lu, -1)[:, :, :k] + np.eye(m, k)
    product = lower @ np.triu(lu)[:, :k]
    want = np.take_along_axis(a, order[:, :, None].astype("i8"), 1)
    np.testing.assert_allclose(product, want, atol=tolerance * max(m, n), rtol=0)
    assert np.abs(np.tril(lu, -1)).max(initial=0) <= 1
    a[3, m // 2, n // 2] = np.nan
    assert np.isnan(np.asarray(rlx.jit(rlx.lax.linalg.lu)(a)[0])[3]).any()
