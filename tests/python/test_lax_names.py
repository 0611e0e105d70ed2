"""Rarer functions of jax.lax, against JAX: bitwise reductions, narrow floats, ragged products, local convolutions."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import rlx
import rlx.numpy as rnp
from rlx import lax

RNG = np.random.default_rng(0)
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def integers(dtype, shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", [*INTEGERS, np.bool_])
@pytest.mark.parametrize("name", ["reduce_and", "reduce_or", "reduce_xor"])
def test_bitwise_reductions(name, dtype):
    ufunc = {"reduce_and": np.bitwise_and, "reduce_or": np.bitwise_or, "reduce_xor": np.bitwise_xor}[name]
    for shape in ((3, 5, 4), (1, 1, 1), (2, 0, 3), (7, 2, 8)):
        x = integers(dtype, shape) if dtype is not np.bool_ else RNG.random(shape) < 0.7
        for axes in ((0,), (1,), (2, 0), (0, 1, 2), ()):
            got = getattr(lax, name)(x, axes)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, ufunc.reduce(x, axis=axes))
    np.testing.assert_array_equal(rlx.vmap(lambda v: getattr(lax, name)(v, (0,)))(x), ufunc.reduce(x, axis=1))
    with pytest.raises(TypeError, match="float32"):
        getattr(lax, name)(np.ones(3, np.float32), (0,))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_mulhi(dtype):
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max], dtype)
    x, y = (
        v.ravel()
        for v in np.meshgrid(np.concatenate([edges, integers(dtype, 20)]), np.concatenate([edges, integers(dtype, 20)]))
    )
    want = [int(a) * int(b) >> info.bits for a, b in zip(x, y)]
    assert np.asarray(lax.mulhi(x, y)).tolist() == want


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("bits", [(8, 23), (5, 10), (8, 7), (4, 3), (5, 2), (2, 0), (11, 52), (3, 30)])
def test_reduce_precision(bits, dtype):
    i = ml_dtypes.finfo(dtype)
    x = np.concatenate(
        [RNG.standard_normal(400) * 10.0 ** RNG.uniform(-9, 9, 400), [0, -0.0, 1, 1.5, np.inf, -np.inf, np.nan]]
    )
    x = np.concatenate(
        [x, [float(i.max), float(i.tiny), float(i.smallest_subnormal), 65504, 65519, 65520, 448, 464, 480]]
    )
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    own = {np.float32: 8, np.float64: 11, np.float16: 5}.get(dtype, 8)
    if bits[0] >= own and dtype in (np.float16, ml_dtypes.bfloat16):
        pytest.skip("JAX widens halves")
    want = np.asarray(jax.lax.reduce_precision(x, *bits))
    got = np.asarray(lax.reduce_precision(x, *bits))
    assert got.dtype == dtype
    tiny = np.abs(x.astype(np.float64)) < float(i.tiny)  # XLA flushes subnormal numbers of the CPU
    np.testing.assert_array_equal(got[~tiny].astype(np.float64), want[~tiny].astype(np.float64))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_derivatives_of_reduce_precision():
    f = lambda m: lambda x: m.lax.reduce_precision(x * 1.1, 5, 3)  # noqa: E731
    x = np.float32(1.7)
    assert float(rlx.grad(f(rlx))(x)) == float(jax.grad(f(jax))(x))
    assert float(rlx.jvp(f(rlx), (x,), (x,))[1]) == float(jax.jvp(f(jax), (x,), (x,))[1])
    with pytest.raises(ValueError, match="exponent_bits"):
        lax.reduce_precision(x, 0, 3)


# -- ragged products --

M, K, N, G = 11, 4, 3, 4
LHS, RHS = RNG.standard_normal((M, K)), RNG.standard_normal((G, K, N))
SIZES = [np.array(s, np.int32) for s in ([3, 0, 5, 3], [2, 2, 2, 2], [0, 0, 0, 11], [0, 0, 0, 0])]


@pytest.mark.parametrize("sizes", SIZES, ids=range(len(SIZES)))
def test_ragged_dot(sizes):
    want = jax.lax.ragged_dot(LHS, RHS, sizes)
    np.testing.assert_allclose(lax.ragged_dot(LHS, RHS, sizes), want, atol=1e-12)
    np.testing.assert_allclose(rlx.jit(lax.ragged_dot)(LHS, RHS, sizes), want, atol=1e-12)
    for k in (0, 1):
        f = lambda m, k=k: lambda a, b: (m.lax.ragged_dot(a, b, sizes) ** 2).sum()  # noqa: E731
        np.testing.assert_allclose(rlx.grad(f(rlx), k)(LHS, RHS), jax.grad(f(jax), k)(LHS, RHS), atol=1e-10)
    low = lax.ragged_dot(
        LHS.astype(ml_dtypes.bfloat16), RHS.astype(ml_dtypes.bfloat16), sizes, preferred_element_type="float32"
    )
    assert low.dtype == np.float32
    many = rlx.vmap(lax.ragged_dot, in_axes=(0, None, None))(np.stack([LHS, 2 * LHS]), RHS, sizes)
    np.testing.assert_allclose(many[1], 2 * np.asarray(want), atol=1e-12)


def test_ragged_dot_general():
    sizes = SIZES[0]
    make = lambda m: m.lax.RaggedDotDimensionNumbers  # noqa: E731
    cases = [
        (LHS, RNG.standard_normal((M, N)), ((((0,), (0,)), ((), ()))), [0], []),
        (LHS.T, RHS.transpose(1, 0, 2), ((((0,), (0,)), ((), ()))), [1], [1]),
        (np.stack([LHS, -LHS]), np.stack([RHS, RHS]), ((((2,), (2,)), ((0,), (0,)))), [1], [1]),
    ]
    for a, b, numbers, ragged, groups in cases:
        got = lax.ragged_dot_general(a, b, sizes, make(rlx)(numbers, ragged, groups))
        wide = np.stack([sizes, sizes]) if a.ndim == 3 else sizes
        want = jax.lax.ragged_dot_general(a, b, wide, make(jax)(numbers, ragged, groups))
        np.testing.assert_allclose(got, want, atol=1e-12)
    with pytest.raises(ValueError, match="rhs_group_dimensions"):
        lax.ragged_dot_general(LHS, RHS[0], sizes, make(rlx)((((1,), (0,)), ((), ())), [0], []))
    with pytest.raises(ValueError, match="groups of rhs"):
        lax.ragged_dot(LHS, RHS, sizes[:2])


# -- others --


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 0), (0, 2)]])
def test_local_convolutions(padding):
    x = RNG.standard_normal((2, 3, 6, 5))
    options = dict(window_strides=(2, 1), padding=padding, filter_shape=(2, 3), rhs_dilation=(1, 1))
    places = jax.lax.conv_general_dilated_patches(x, (2, 3), (2, 1), padding).shape
    w = RNG.standard_normal((4, *places[1:]))
    want = jax.lax.conv_general_dilated_local(x, w, **options)
    np.testing.assert_allclose(lax.conv_general_dilated_local(x, w, **options), want, atol=1e-12)
    layout = ("NHWC", "HWIO", "NHWC")
    last = lax.conv_general_dilated_local(
        x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), dimension_numbers=layout, **options
    )
    np.testing.assert_allclose(np.asarray(last).transpose(0, 3, 1, 2), want, atol=1e-12)
    with pytest.raises(ValueError, match="rhs of shape"):
        lax.conv_general_dilated_local(x, w[:, :-1], **options)


def test_named_axes():
    x = RNG.standard_normal((4, 4, 3))
    for f in (
        lambda m: lambda v: m.lax.psum_scatter(v, "i"),
        lambda m: lambda v: m.lax.psum_scatter(v, "i", scatter_dimension=0, tiled=True),
        lambda m: lambda v: m.lax.pswapaxes(v, "i", 0),
        lambda m: lambda v: m.lax.all_gather(v, "i"),
    ):
        want = jax.vmap(f(jax), axis_name="i")(x)
        np.testing.assert_allclose(rlx.vmap(f(rlx), axis_name="i")(x), want, rtol=1e-12)
    got = rlx.vmap(lambda v: lax.pbroadcast(v, "i", 2), axis_name="i")(x)
    np.testing.assert_array_equal(got, np.broadcast_to(x[2], x.shape))


def test_gathers_and_scatters():
    x = RNG.standard_normal((5, 3, 4))
    i, j = np.array([0, 4, -1]), np.array([3, 0, 2])
    for idxs, axes in (((i,), (0,)), ((i, j), (0, 2)), ((j,), (2,))):
        np.testing.assert_array_equal(lax.index_take(x, idxs, axes), jax.lax.index_take(x, idxs, axes))
    numbers = ((1, 2), (0,), (0,))
    ours, theirs = lax.ScatterDimensionNumbers(*numbers), jax.lax.ScatterDimensionNumbers(*numbers)
    at = np.array([[1], [3]])
    want = jax.lax.scatter_apply(jnp.array(x), at, jnp.sin, theirs, update_shape=(2, 3, 4))
    np.testing.assert_allclose(lax.scatter_apply(x, at, rnp.sin, ours, update_shape=(2, 3, 4)), want, rtol=1e-12)


def test_special_functions():
    x = np.linspace(-5, 5, 11)
    for name in ("bessel_i0e", "bessel_i1e"):
        np.testing.assert_allclose(getattr(lax, name)(x), getattr(jax.lax, name)(x), rtol=1e-12)
    a, q = np.meshgrid([0.3, 1.0, 2.5, 40.0], [0.1, 1.0, 3.0, 35.0])
    np.testing.assert_allclose(lax.zeta(a + 1, q), jax.lax.zeta(a + 1, q), rtol=1e-10)
    got = lax.random_gamma_grad(a, q)
    np.testing.assert_allclose(got, jax.lax.random_gamma_grad(a, q), rtol=1e-7)


def test_short_ones():
    x = RNG.standard_normal((3, 7))
    for name in ("approx_max_k", "approx_min_k"):
        got, want = getattr(lax, name)(x, 2), getattr(jax.lax, name)(x, 2)
        np.testing.assert_array_equal(got[0], want[0])
        np.testing.assert_array_equal(got[1], want[1])
    np.testing.assert_array_equal(lax.broadcast_like(x[0], x), np.broadcast_to(x[0], x.shape))
    assert lax.dtype(x) == rlx.float64 and lax.shape_as_value((2, 3)).tolist() == [2, 3]
    assert float(lax.composite(lambda x: x * 2, "my.double")(3.0)) == 6
    assert lax.platform_dependent(2, cpu=lambda x: x + 1, default=lambda x: x) == 3
    assert lax.fft(x + 0j, lax.FftType.FFT, (7,)).shape == (3, 7)
    assert lax.dot(x, x.T, precision=lax.Precision.HIGHEST).shape == (3, 3)
