"""Every function of rlx.lax beside jax.lax's: values, dtypes, derivatives of those that have rules of their own."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlx.numpy as rnp
from oracle import Table, by_jax, integers, normal, same, uniform

import rlx

X, Y, HALF = normal(3, 4, seed=1), normal(3, 4, seed=2), uniform(3, 4, low=0.1, high=0.9, seed=3)
INTS, OTHERS = np.array([7, -7, 8, -8, 0], np.int32), np.array([2, 2, -3, -3, 5], np.int32)
BYTES, SHIFTS = np.array([-100, 5, 100, 7], np.int8), np.array([1, 31, 32, 33, -1], np.int32)
COMPLEX = (X + 1j * Y).astype(np.complex64)

TABLE = Table("lax")
exact = functools.partial(TABLE.add, tol=None)


def on(name, *args, **kwargs):
    """lax.name(*args): NumPy's arrays as arrays of the module's own."""
    return lambda m, np_: getattr(m, name)(
        *(np_.asarray(a) if isinstance(a, np.ndarray) else a for a in args), **kwargs
    )


# -- elementwise --

for name in [
    "abs",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "neg",
    "reciprocal",
    "round",
    "sign",
    "sin",
    "sinh",
    "square",
    "tan",
    "tanh",
]:
    TABLE.add(name, on(name, X))
for name in [
    "acos",
    "asin",
    "atan",
    "atanh",
    "asinh",
    "cbrt",
    "erf",
    "erf_inv",
    "log",
    "log1p",
    "logistic",
    "rsqrt",
    "sqrt",
]:
    TABLE.add(name, on(name, HALF))
TABLE.add("acosh", on("acosh", HALF + 1))
ENDS = np.array([0, 1, -1, -2.5, np.inf, -np.inf, np.nan, 1e-30, 40], np.float32)
TABLE.add("erfc", on("erfc", X * 3), on("erfc", ENDS), tol=("rel", 2e-6))
TABLE.add("lgamma", on("lgamma", X * 3), on("lgamma", HALF * 40), on("lgamma", ENDS), tol=("rel", 4e-6))
TABLE.add("digamma", on("digamma", X * 3), on("digamma", HALF * 40), on("digamma", ENDS[1:]), tol=("rel", 1e-5))
for order in (0, 1, 2, 5):
    points = HALF * 9 if order else X * 3
    TABLE.add(
        "polygamma",
        lambda m, np_, n=order, x=points: m.polygamma(n if m is rlx.lax else np.full(x.shape, n, np.float32), x),
        tol=("rel", 1e-5),
    )
FIRSTS, SECONDS = HALF * 12, HALF[::-1] * 12
for name in ["igamma", "igammac", "igamma_grad_a"]:
    TABLE.add(name, on(name, FIRSTS, SECONDS), on(name, np.float32(0.5), SECONDS), tol=("rel", 2e-5))
DOMAIN = np.meshgrid(np.array([0, 1, 2.5, -1, np.nan], np.float32), np.array([0, 2, -1, np.inf, np.nan], np.float32))
for name in ["igamma", "igammac"]:
    TABLE.add(name, on(name, *DOMAIN), tol=("rel", 2e-5))
TABLE.add("betainc", on("betainc", FIRSTS, SECONDS, HALF), on("betainc", 2.0, np.float32(0.5), HALF), tol=("rel", 2e-5))
exact("bitcast_convert_type", *(on("bitcast_convert_type", X, t) for t in ("int32", "uint8", "float16", "float32")))
exact("bitcast_convert_type", on("bitcast_convert_type", np.arange(24, dtype=np.int8).reshape(3, 2, 4), "float32"))
for name in ["add", "atan2", "div", "eq", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "nextafter", "rem", "sub"]:
    TABLE.add(name, on(name, X, Y), on(name, X, 0.5) if name != "nextafter" else on(name, X, X + 1))
TABLE.add("pow", on("pow", HALF, Y), on("pow", X, 3))
exact("integer_pow", *(on("integer_pow", INTS, n) for n in (0, 1, 5)))
TABLE.add("integer_pow", on("integer_pow", X, -3))
for name in ["div", "rem", "max", "min", "mul"]:
    exact(name, on(name, INTS, OTHERS))
exact("div", on("div", BYTES, np.array([3, -2, 7, -1], np.int8)))
ROUNDED = np.array([0.5, 1.5, -2.5, 0.49999997, -0.2, 1e20, 8388609, np.inf, np.nan], np.float32)
exact("round", on("round", ROUNDED), lambda m, np_: m.round(np_.asarray(ROUNDED), m.RoundingMethod.TO_NEAREST_EVEN))
exact("RoundingMethod", lambda m, np_: np_.asarray(int(m.RoundingMethod.TO_NEAREST_EVEN)))
exact("is_finite", on("is_finite", ROUNDED))
exact("sign", on("sign", INTS))
for name in ["bitwise_and", "bitwise_or", "bitwise_xor"]:
    exact(name, on(name, INTS, OTHERS))
exact("bitwise_not", on("bitwise_not", INTS), on("bitwise_not", INTS > 0))
for name in ["shift_left", "shift_right_arithmetic", "shift_right_logical"]:
    exact(name, on(name, INTS, SHIFTS), on(name, BYTES, np.array([1, 2, 8, 3], np.int8)))
exact("population_count", *(on("population_count", x) for x in (INTS, BYTES, INTS.astype(np.uint32))))
exact("clz", *(on("clz", x) for x in (abs(INTS), abs(BYTES), INTS.astype(np.uint32))))  # XLA folds others wrongly
exact("clamp", on("clamp", np.float32(-0.5), X, np.float32(0.5)), on("clamp", -Y * Y, X, Y * Y))
exact("select", on("select", X > 0, X, Y))
exact(
    "select_n",
    on("select_n", X > 0, X, Y),
    on("select_n", np.array([0, 1, 2], np.int32), *(integers(3, seed=i) for i in range(3))),
)
exact("complex", on("complex", X, Y))
for name in ["real", "imag", "conj"]:
    exact(name, on(name, COMPLEX))

# -- shapes and windows --

exact("iota", on("iota", "float32", 4))
exact("broadcasted_iota", on("broadcasted_iota", "int32", (2, 3), 1))
exact("full", on("full", (2, 3), 1.5), on("full", (2,), 1, "int8"))
exact("full_like", on("full_like", X, 2), on("full_like", X, 2, "int32", (2,)))
exact("empty", lambda m, np_: m.empty((2, 3), "float32") * 0)
exact("convert_element_type", on("convert_element_type", X * 300, "int8"), on("convert_element_type", INTS, "bool"))
exact("reshape", on("reshape", X, (2, 6)), on("reshape", X, (2, 6), (1, 0)))
exact("transpose", on("transpose", X, (1, 0)))
exact("expand_dims", on("expand_dims", X, (0, 2)), on("expand_dims", X, (-1,)))
exact("squeeze", on("squeeze", X[:, None], (1,)))
exact("collapse", on("collapse", X.reshape(3, 2, 2), 0, 2), on("collapse", X.reshape(3, 2, 2), -2))
exact("broadcast", on("broadcast", X, (2, 1)))
exact(
    "broadcast_in_dim",
    on("broadcast_in_dim", X, (2, 3, 5, 4), (1, 3)),
    on("broadcast_in_dim", X[:, :1], (3, 4), (0, 1)),
)
exact("broadcast_shapes", lambda m, np_: np_.zeros(m.broadcast_shapes((2, 1), (3,))))
exact("broadcast_to_rank", on("broadcast_to_rank", X, 4))
exact("tile", on("tile", X, (2, 1)))
exact("rev", on("rev", X, (0, 1)))
exact("concatenate", on("concatenate", [X, Y], 1), on("concatenate", (X, Y), dimension=0))
exact("stack", on("stack", [X, Y], 1))
exact("unstack", on("unstack", X, 1))
exact("split", on("split", X, (1, 3), 1))
exact("pad", on("pad", X, np.float32(9), ((1, -1, 2), (0, 2, 0))), on("pad", np.float32(3), np.float32(0), ()))
exact("slice", on("slice", X, (1, 0), (3, 4), (1, 2)), on("slice", X, (0, 1), (2, 2)))
exact("slice_in_dim", on("slice_in_dim", X, 1, -1, 2, axis=1), on("slice_in_dim", X, None, 2))
exact("index_in_dim", on("index_in_dim", X, -1), on("index_in_dim", X, 1, 1, False))
exact(
    "dynamic_slice",
    on("dynamic_slice", X, (-2, 9), (2, 2)),
    on("dynamic_slice", X, np.array([-2, -9]), (2, 2)),
    on("dynamic_slice", X, (1, 1), slice_sizes=(2, 2), allow_negative_indices=False),
)
exact("dynamic_slice_in_dim", on("dynamic_slice_in_dim", X, -2, 2, 1), on("dynamic_slice_in_dim", X, 2, 2))
exact("dynamic_index_in_dim", on("dynamic_index_in_dim", X, 5), on("dynamic_index_in_dim", X, -1, 1, False))
exact("dynamic_update_slice", on("dynamic_update_slice", X, Y[:2, :2], (5, -2)))
exact("dynamic_update_slice_in_dim", on("dynamic_update_slice_in_dim", X, Y[:, :2], -2, 1))
exact(
    "dynamic_update_index_in_dim",
    on("dynamic_update_index_in_dim", X, Y[0], -1, 0),
    on("dynamic_update_index_in_dim", X, Y[:, :1], 2, axis=1),
)

# -- reductions and sorts --

for name in ["reduce_max", "reduce_min", "reduce_sum", "reduce_prod"]:
    TABLE.add(name, on(name, X, (0,)), on(name, X, (0, 1)), on(name, X, ()), on(name, BYTES, (0,)))
for name in ["reduce_and", "reduce_or"]:
    exact(name, on(name, X > 0, (0,)), on(name, X > 0, (0, 1)))
for name in ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]:
    TABLE.add(name, on(name, X), on(name, X, 1, reverse=True), tol=("rel", 1e-6))
exact("cumsum", on("cumsum", BYTES))
for name in ["argmax", "argmin"]:
    exact(name, on(name, X, 1, "int32"), on(name, BYTES, axis=0, index_dtype="uint8"))
exact("top_k", on("top_k", np.array([3, 1, 3, 2, 3], np.float32), 3), on("top_k", X, 2, axis=0))
exact(
    "sort",
    on("sort", X),
    on("sort", X, 0),
    lambda m, np_: m.sort((np_.asarray(INTS // 3), np_.asarray(OTHERS), np_.arange(5)), num_keys=2),
)
exact("sort_key_val", on("sort_key_val", OTHERS, INTS))
TABLE.add(
    "reduce",
    lambda m, np_: m.reduce(np_.asarray(X), np.float32(0), m.add, (0,)),
    lambda m, np_: m.reduce(np_.asarray(X), np.float32(1), m.mul, (0, 1)),
    lambda m, np_: m.reduce(
        (np_.asarray(X), np_.asarray(Y)),
        (np.float32(1), np.float32(2)),
        lambda a, b: (m.max(a[0], b[0]), m.min(a[1], b[1])),
        (1,),
    ),
    tol=("rel", 1e-6),
)
TABLE.add(
    "reduce_window",
    lambda m, np_: m.reduce_window(np_.asarray(X), -np.inf, m.max, (2, 2), (1, 2), "SAME"),
    lambda m, np_: m.reduce_window(np_.asarray(X), 0.0, m.add, (2, 3), (1, 1), padding="SAME_LOWER"),
    lambda m, np_: m.reduce_window(np_.asarray(X), 0.0, m.add, (2, 2), (1, 1), ((1, 0), (0, 2)), (1, 2), (2, 1)),
    tol=("rel", 1e-6),
)

# -- products --

A, B = normal(2, 3, 4, seed=5), normal(2, 4, 5, seed=6)
NUMBERS = (((2,), (1,)), ((0,), (0,)))
TABLE.add("dot", on("dot", X, Y.T), on("dot", X[0], Y[0]), on("dot", X, Y[0]), tol=("rel", 1e-6))
exact(
    "dot", on("dot", BYTES, BYTES), *(on("dot", BYTES, BYTES, preferred_element_type=t) for t in ("int32", "float32"))
)
TABLE.add("dot_general", on("dot_general", A, B, NUMBERS), tol=("rel", 1e-6))
TABLE.add("dot_general", on("dot_general", A, B, (((2, 0), (1, 0)), ((), ()))), tol=("rel", 1e-6))
TABLE.add("batch_matmul", on("batch_matmul", A, B), tol=("rel", 1e-6))
IMAGE, KERNEL = normal(2, 3, 6, 7, seed=7), normal(4, 3, 3, 2, seed=8)
LAST, LAST_KERNEL = normal(2, 6, 7, 4, seed=9), normal(3, 2, 2, 6, seed=10)
LAYOUT = ("NHWC", "HWIO", "NHWC")
CONVOLUTIONS = [
    ((IMAGE, KERNEL, (1, 1), "SAME"), {}),
    ((IMAGE, KERNEL, (2, 1), ((1, 2), (0, -1))), {"rhs_dilation": (1, 2)}),
    ((IMAGE, KERNEL, (1, 1), ((0, 1), (2, 0))), {"lhs_dilation": (2, 3)}),
    ((LAST, LAST_KERNEL, (2, 1), "SAME"), {"dimension_numbers": LAYOUT, "feature_group_count": 2}),
    ((IMAGE[:, :, 0], KERNEL[:, :, 0], (3,), "SAME_LOWER"), {}),
    ((IMAGE, KERNEL, (2, 1), ((1, 2), (0, 1))), {"batch_group_count": 2, "rhs_dilation": (1, 2)}),
    ((IMAGE, KERNEL[:3, :1], (1, 2), ((-1, 2), (3, -2))), {"lhs_dilation": (1, 2), "feature_group_count": 3}),
    ((IMAGE[:, :, 0, 0], KERNEL[:, :, 0, 0], (), "VALID"), {}),
    ((IMAGE, normal(4, 3, 9, 2, seed=11), (1, 1), "VALID"), {}),
    ((normal(1, 2, 3, 4, 5, seed=12), normal(3, 2, 2, 2, 3, seed=13), (1, 2, 1), "SAME"), {}),
]
TABLE.add("conv_general_dilated", *(on("conv_general_dilated", *a, **kw) for a, kw in CONVOLUTIONS), tol=("rel", 2e-6))
TABLE.add("conv", on("conv", IMAGE, KERNEL, (1, 2), "VALID"), tol=("rel", 2e-6))
CODES = np.arange(24, dtype=np.int8).reshape(1, 2, 3, 4) * 5
CODED = np.arange(16, dtype=np.int8).reshape(2, 2, 2, 2) - 8
exact(
    "conv_general_dilated",
    on("conv_general_dilated", CODES, CODED, (1, 1), "SAME", preferred_element_type="int32"),
    on("conv_general_dilated", CODES.astype(np.int32), CODED.astype(np.int32), (1, 1), "SAME"),
)
exact(
    "conv_dimension_numbers",
    lambda m, np_: np_.asarray([list(s) for s in m.conv_dimension_numbers(LAST.shape, LAST_KERNEL.shape, LAYOUT)]),
)
exact("ConvDimensionNumbers", lambda m, np_: np_.asarray(m.ConvDimensionNumbers((0, 1, 2), (1, 0, 2), (2, 1, 0))))
TRANSPOSES = [
    ((LAST, LAST_KERNEL[:, :, :, :4].repeat(2, 2), (2, 3), "SAME"), {}),
    ((LAST, LAST_KERNEL[:, :, :, :4].repeat(2, 2), (2, 1), "VALID", (1, 2)), {}),
    ((LAST, LAST_KERNEL[:, :, :, :4].repeat(2, 2), (1, 2), ((1, 0), (2, 1))), {"transpose_kernel": True}),
    ((LAST, LAST_KERNEL[:, :, :, :4].repeat(2, 2), (1, 2), ((1, 0), (0, 1))), {"use_consistent_padding": True}),
]
TABLE.add("conv_transpose", *(on("conv_transpose", *a, **kw) for a, kw in TRANSPOSES), tol=("rel", 2e-6))
PATCHES = [
    ((IMAGE, (3, 2), (1, 2), "SAME"), {}),
    ((IMAGE, (2, 2), (2, 1), ((1, 0), (0, 2)), (1, 2), (2, 1)), {}),
    ((LAST, (2, 3), (1, 1), "VALID"), {"dimension_numbers": LAYOUT}),
]
exact("conv_general_dilated_patches", *(on("conv_general_dilated_patches", *a, **kw) for a, kw in PATCHES))
GENERAL = (IMAGE, KERNEL, (1, 1), [(1, 1), (0, 2)], (1, 2), (2, 1))
TABLE.add("conv_with_general_padding", on("conv_with_general_padding", *GENERAL), tol=("rel", 2e-6))

# -- transforms; test_fft_functions.py has their lengths and axes --

WAVES = (X + 1j * Y).astype(np.complex64)
for kind, x in (("fft", WAVES), ("ifft", WAVES), ("rfft", X), ("irfft", WAVES)):
    TABLE.add(
        "fft",
        lambda m, np_, kind=kind, x=x: m.fft(np_.asarray(x), kind, (6,) if kind == "irfft" else (4,)),
        tol=("rel", 2e-6),
    )

# -- windows at index vectors; test_lax_indexed.py draws their axes --

ROWS = np.array([[1], [2], [7], [-1]], np.int32)


def windows_of(m, np_, mode=None):
    return m.gather(np_.asarray(X), np_.asarray(ROWS), m.GatherDimensionNumbers((1,), (0,), (0,)), (1, 3), mode=mode)


for mode in ("clip", "fill"):
    exact("gather", lambda m, np_, mode=mode: windows_of(m, np_, mode))
for name in ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]:
    exact(
        name,
        lambda m, np_, name=name: getattr(m, name)(
            np_.asarray(X),
            np_.asarray(ROWS),
            np_.asarray(X[:, :3][[0, 1, 2, 0]]),
            m.ScatterDimensionNumbers((1,), (0,), (0,)),
        ),
    )
exact("GatherDimensionNumbers", lambda m, np_: np_.asarray(m.GatherDimensionNumbers((1,), (0,), (0,)).offset_dims[0]))
exact(
    "ScatterDimensionNumbers",
    lambda m, np_: np_.asarray(m.ScatterDimensionNumbers((1,), (0,), ()).inserted_window_dims[0]),
)
exact("GatherScatterMode", lambda m, np_: np_.asarray(m.GatherScatterMode.from_any("clip") == m.GatherScatterMode.CLIP))

# -- control flow --

exact("stop_gradient", on("stop_gradient", X))
exact("optimization_barrier", lambda m, np_: m.optimization_barrier({"a": np_.asarray(X), "b": (np_.asarray(INTS),)}))
exact("cond", lambda m, np_: m.cond(True, lambda x: x + 1, lambda x: x * 2, np_.asarray(X)))
exact("switch", lambda m, np_: m.switch(5, [lambda x: x, lambda x: -x], np_.asarray(X)))
TABLE.add("map", lambda m, np_: m.map(lambda row: row * 2, np_.asarray(X)))
TABLE.add(
    "scan",
    lambda m, np_: m.scan(lambda c, x: (c + x, c * x), np_.zeros(4), np_.asarray(X), unroll=2),
    lambda m, np_: m.scan(lambda c, _: (c * 2, c), np_.ones(2), None, length=3, reverse=True),
    tol=("rel", 1e-6),
)
exact("while_loop", lambda m, np_: m.while_loop(lambda c: c < 9, lambda c: c * 2, init_val=np_.asarray(np.float32(1))))
exact("fori_loop", lambda m, np_: m.fori_loop(1, 5, lambda i, c: c * i, np_.asarray(np.int32(1)), unroll=True))
for rows in (1, 2, 5, 8):
    steps = normal(rows, 3, seed=rows)
    TABLE.add("associative_scan", lambda m, np_, s=steps: m.associative_scan(m.add, np_.asarray(s)), tol=("rel", 1e-6))
TABLE.add(
    "associative_scan",
    lambda m, np_: m.associative_scan(
        lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (np_.asarray(X), np_.asarray(Y)), axis=1, reverse=True
    ),
    tol=("rel", 2e-6),
)


@pytest.mark.parametrize("i", TABLE.params())
def test_values(i):
    TABLE.check(i)


# Tried in test_transform_options.py: they need a vmap with axis_name.
NAMED_AXES = "all_gather all_to_all axis_index axis_size pmax pmean pmin ppermute pshuffle psum".split()

# In test_lax_names.py.
ELSEWHERE = """FftType Precision RaggedDotDimensionNumbers approx_max_k approx_min_k bessel_i0e bessel_i1e
broadcast_like composite conv_general_dilated_local custom_linear_solve custom_root dtype index_take mulhi
padtype_to_pads pbroadcast platform_dependent psum_scatter pswapaxes ragged_dot ragged_dot_general random_gamma_grad
reduce_precision reduce_xor scatter_apply shape_as_value zeta""".split()


def test_every_function_is_tried():
    assert TABLE.forgotten() == sorted(NAMED_AXES + ELSEWHERE)


TIES = np.array([-2, -1, 0, 1, 2], np.float32)
SLOPES = {
    "clamp": (TIES, lambda m, np_, v: m.clamp(np.float32(-1), v, np.float32(1))),
    "max": (TIES, lambda m, np_, v: m.max(v, np_.ones(5, "float32"))),
    "round": (TIES, lambda m, np_, v: m.round(v * 1.3)),
    "integer_pow": (TIES, lambda m, np_, v: m.integer_pow(v, 3)),
    "reduce_prod": (X, lambda m, np_, v: m.reduce_prod(v, (1,))),
    "cumlogsumexp": (X, lambda m, np_, v: m.cumlogsumexp(v, 1)),
    "associative_scan": (X, lambda m, np_, v: m.associative_scan(m.mul, v)),
    "dynamic_update_slice": (X, lambda m, np_, v: m.dynamic_update_slice(v, v[:2, :2] * 3, (1, 1))),
    "top_k": (X, lambda m, np_, v: m.top_k(v, 2)[0]),
    "reduce_window": (X, lambda m, np_, v: m.reduce_window(v, -np.inf, m.max, (2, 2))),
    "cond": (X, lambda m, np_, v: m.cond(True, lambda x: np_.sin(x), lambda x: x, v)),
    **{
        f"conv_general_dilated-{i}": (a[0], lambda m, np_, v, a=a, kw=kw: m.conv_general_dilated(v, *a[1:], **kw))
        for i, (a, kw) in enumerate(CONVOLUTIONS)
    },
    "kernel": (KERNEL, lambda m, np_, v: m.conv_general_dilated(IMAGE, v, (1, 2), "SAME")),
}


def slope(m, np_, x, call):
    return m.grad(lambda v: np_.sum(np_.sin(call(m.lax, np_, v))))(np_.asarray(x))


@functools.cache
def slopes_by_jax():
    return dict(zip(SLOPES, by_jax([lambda a=a: slope(jax, jnp, *a) for a in SLOPES.values()])))


@pytest.mark.parametrize("what", SLOPES)
def test_derivatives(what):
    same(slope(rlx, rnp, *SLOPES[what]), slopes_by_jax()[what], ("rel", 1e-5), what)


@pytest.mark.parametrize("what", ["cumlogsumexp", "dynamic_update_slice", "top_k", "reduce_window", "kernel"])
def test_batches(what):
    x, call = SLOPES[what]
    batch = np.stack([x, x[::-1]])
    want = np.stack([call(rlx.lax, rnp, rnp.asarray(row)) for row in batch])
    same(rlx.vmap(lambda v: call(rlx.lax, rnp, v))(batch), want, ("rel", 1e-6), what)


REFUSED = {
    "windows": (ValueError, lambda m: m.dynamic_slice(X, (0,), (1, 1))),
    "axes": (ValueError, lambda m: m.broadcast_in_dim(X, (3, 4), (1, 0))),
    "sizes": (ValueError, lambda m: m.split(X, (1, 1))),
    "many": (ValueError, lambda m: m.top_k(X, 9)),
    "features": (ValueError, lambda m: m.conv(IMAGE, KERNEL[:, :2], (1, 1), "SAME")),
    "batches": (ValueError, lambda m: m.conv_general_dilated(IMAGE, KERNEL, (1, 1), "SAME", batch_group_count=3)),
    "padding and dilation": (ValueError, lambda m: m.conv_general_dilated(IMAGE, KERNEL, (1, 1), "SAME", (2, 1))),
    "padding": (ValueError, lambda m: m.conv(IMAGE, KERNEL, (1, 1), "FULL")),
    "exponent": (TypeError, lambda m: m.integer_pow(X, 0.5)),
    "cases": (ValueError, lambda m: m.select_n(X > 0, X, X, X)),
    "rows": (ValueError, lambda m: m.associative_scan(m.add, (X, X[:2]))),
    "layout": (
        ValueError,
        lambda m: m.conv_general_dilated(LAST, KERNEL, (1, 1), "SAME", None, None, ("NHWD", "HWIO", "NHWC")),
    ),
    "pads": (ValueError, lambda m: m.pad(X, np.float32(0), ((0, 0, 0),))),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refuses(what):
    error, call = REFUSED[what]
    with pytest.raises(error):
        call(rlx.lax)
