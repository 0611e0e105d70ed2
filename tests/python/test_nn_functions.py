"""Every function of rlx.nn and rlx.nn.initializers beside jax.nn's: values, derivatives at ties too, dtypes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlx.numpy as rnp
from oracle import Table, by_jax, normal, rng, same

import rlx

TABLE, FIRST = Table("nn"), Table("nn.initializers")
POINTS = np.array([-6, -3, -1, -0.5, 0, 1, 3, 6, -100, 100, 0.25, 2.5], np.float32)
X = normal(2, 3, seed=1)
MASK = np.array([[True, False, True], [True, True, True]])
ALPHA = np.array([0.5, 2, 1], np.float32)
NONE = {
    "erf": "jax.lax.erf",
    "layer_norm": "of rlx",
    "rms_norm": "of rlx",
    **dict.fromkeys(("prelu", "shrink", "tanh_shrink", "thresholded_relu"), "test_special_functions.py"),
}
NONE |= {f"conv{t}{d}d": "after PyTorch" for t in ("", "_transpose") for d in (1, 2, 3)}
IMAGES = """adaptive_avg_pool adaptive_max_pool avg_pool batch_norm group_norm instance_norm local_response_norm lp_pool
max_pool max_pool_with_indices max_unpool min_pool prod_pool sum_pool"""  # test_images.py
NONE.update(dict.fromkeys(IMAGES.split(), "of rlx"))
NONE |= dict.fromkeys(
    "lstm gru rnn lstm_cell gru_cell rnn_cell selective_scan mamba2 gated_delta_net causal_conv1d".split(),
    "of rlx: test_sequence.py",
)

ACTIVATIONS = [
    "celu",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "tanh",
    "log1mexp",
]
for name in ACTIVATIONS:
    TABLE.add(name, lambda n, np_, name=name: getattr(n, name)(points(name)), tol=("rel", 1e-6))
    if name not in ("gelu", "sigmoid", "silu", "log_sigmoid", "log1mexp"):  # JAX refuses integers there
        TABLE.add(name, lambda n, np_, name=name: getattr(n, name)(np_.arange(-2, 3)), tol=("rel", 1e-6))


def points(name):
    return POINTS if name != "log1mexp" else np.array([0.1, 0.5, 0.7, 1, 5, 50], np.float32)


for name, *args in [("elu", 2.0), ("elu", ALPHA), ("celu", 2.0), ("celu", ALPHA), ("leaky_relu", 0.3)]:
    TABLE.add(name, lambda n, np_, name=name, args=args: getattr(n, name)(X, *args))
TABLE.add("squareplus", lambda n, np_: n.squareplus(X, 1.0))
TABLE.add("gelu", lambda n, np_: n.gelu(X, False), lambda n, np_: n.gelu(X, approximate=True))
TABLE.add("glu", lambda n, np_: n.glu(X, 0), lambda n, np_: n.glu(normal(3, 4)))
ONE_HOT = np.array([0, 2, 5, -1], np.int32)
TABLE.add(
    "one_hot",
    *(lambda n, np_, a=a: n.one_hot(ONE_HOT, 3, **a) for a in [{}, {"axis": 0}, {"dtype": "int32"}]),
    lambda n, np_: n.one_hot(ONE_HOT.reshape(2, 2), 3, axis=1),
    lambda n, np_: n.one_hot(3, 4),
    tol=None,
)
REDUCTIONS = {
    "softmax": [{}, {"axis": 0}, {"axis": None}, {"where": MASK}, {"axis": (0, 1), "where": MASK}],
    "log_softmax": [{}, {"axis": (0, 1)}, {"where": MASK}, {"axis": None, "where": MASK}],
    "logsumexp": [
        {},
        {"axis": 0, "where": MASK},
        {"axis": 1, "b": ALPHA, "keepdims": True},
        {"axis": 1, "b": -ALPHA, "return_sign": True},
    ],
    "logmeanexp": [{}, {"axis": 1, "where": MASK, "keepdims": True}],
    "standardize": [
        {},
        {"axis": (0, 1)},
        {"algorithm": "stable"},
        {"axis": 1, "where": MASK, "algorithm": "stable"},
        {"variance": 2.0},
    ],
}
SMOOTH = [(name, kw) for name, each in REDUCTIONS.items() for kw in each if not kw.get("return_sign")]
for name, each in REDUCTIONS.items():
    for kw in each:
        TABLE.add(name, lambda n, np_, name=name, kw=kw: getattr(n, name)(X, **kw), tol=("rel", 3e-6))
TABLE.add("logsumexp", lambda n, np_: n.logsumexp(-np_.inf), lambda n, np_: n.logsumexp(np_.array([np_.inf, 1])))
TABLE.add("softmax", lambda n, np_: n.softmax(X, where=MASK & False))

Q, K, V = normal(2, 5, 4, 8, seed=2), normal(2, 7, 2, 8, seed=3), normal(2, 7, 2, 8, seed=4)
BIAS, SEEN = normal(1, 4, 5, 7, seed=5), rng(6).random((2, 1, 5, 7)) > 0.4
SEEN[..., 0] = True
COUNTS = np.array([3, 5], np.int32), np.array([7, 2], np.int32)
ATTENTIONS = [
    {},
    {"square": True, "is_causal": True},
    {"is_causal": True},
    {"bias": BIAS},
    {"bias": BIAS, "mask": SEEN},
    {"mask": SEEN, "scale": 0.3},
    {"bias": BIAS, "mask": SEEN, "is_causal": True},
    {"key_value_seq_lengths": COUNTS[1]},
    {"query_seq_lengths": COUNTS[0], "key_value_seq_lengths": COUNTS[1]},
    {"square": True, "local_window_size": 2},
    {"square": True, "local_window_size": (1, 0), "is_causal": True},
    {"return_residual": True},
]


def attend(n, q=Q, k=K, v=V, square=False, **kw):
    return n.dot_product_attention(q, *((k[:, :5], v[:, :5]) if square else (k, v)), **kw)


TABLE.add(
    "dot_product_attention",
    *(lambda n, np_, kw=kw: attend(n, **kw) for kw in ATTENTIONS),
    lambda n, np_: attend(n, Q[0], K[0], V[0]),
    tol=("rel", 3e-6),
)

WEIGHTS = np.array([0, 7], np.uint32)
FIRST.add("zeros", lambda i, np_: i.zeros(WEIGHTS, (2, 3)))
FIRST.add("ones", lambda i, np_: i.ones(WEIGHTS, (2, 3), "float16"))
FIRST.add("constant", lambda i, np_: i.constant(3)(WEIGHTS, (2,)), lambda i, np_: i.constant(ALPHA)(WEIGHTS, (2, 3)))
FIRST.add("uniform", lambda i, np_: i.uniform(0.3)(WEIGHTS, (20,)))
FIRST.add("normal", lambda i, np_: i.normal(0.3)(WEIGHTS, (20,)), tol=("rel", 3e-6))
FIRST.add("truncated_normal", lambda i, np_: i.truncated_normal(0.3, upper=1.0)(WEIGHTS, (20,)), tol=("rel", 3e-6))
for name in ("glorot", "xavier", "lecun", "he", "kaiming"):
    for kind in ("normal", "uniform"):
        made = f"{name}_{kind}"
        FIRST.add(made, lambda i, np_, made=made: getattr(i, made)()(WEIGHTS, (4, 5, 6)), tol=("rel", 3e-6))
for shape, axis in (((4, 3), -1), ((3, 4), -1), ((2, 3, 4), 1), ((5, 5), 0)):

    def orthogonal(i, np_, shape=shape, axis=axis):
        return i.orthogonal(2.0, axis)(WEIGHTS, shape, "float32")

    FIRST.add("orthogonal", orthogonal, tol=("rel", 3e-5))
FIRST.add("delta_orthogonal", lambda i, np_: i.delta_orthogonal()(WEIGHTS, (3, 3, 2, 4), "float32"), tol=("rel", 3e-5))
for mode in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg"):
    for kind in ("normal", "uniform", "truncated_normal"):

        def scaled(i, np_, mode=mode, kind=kind):
            return i.variance_scaling(2.0, mode, kind, 0, (1, 2), 3)(WEIGHTS, (4, 5, 6, 2))

        FIRST.add("variance_scaling", scaled, tol=("rel", 3e-6))


@pytest.mark.parametrize("i", TABLE.params())
def test_values(i):
    TABLE.check(i)


@pytest.mark.parametrize("i", FIRST.params())
def test_initializers(i):
    FIRST.check(i, jit=False)


def test_every_function_is_tried():
    losses = {n for n, f in vars(rlx.nn).items() if getattr(f, "__module__", "") == "rlx.nn._losses"}  # test_losses.py
    assert sorted(set(TABLE.forgotten()) - set(NONE) - losses) == [] == FIRST.forgotten()
    same(rlx.nn.erf(POINTS), jax.lax.erf(POINTS), ("ulp", 8), "erf")


def slope(m, n, np_, name):
    return m.vmap(m.grad(getattr(n, name)))(np_.asarray(points(name)))


def slope_of_reduction(m, n, np_, name, kw):
    weights = np.cos(np.arange(6, dtype=np.float32)).reshape(2, 3)
    return m.grad(lambda x: np_.sum(np_.where(MASK, getattr(n, name)(x, **kw), 0) * weights))(np_.asarray(X))


def slope_of_attention(m, n, np_, kw):
    return m.grad(lambda q, k, v: np_.sum(np_.sin(attend(n, q, k, v, **kw))), (0, 1, 2))(*map(np_.asarray, (Q, K, V)))


SLOPES = {
    **{name: (slope, name) for name in ACTIVATIONS},
    **{f"{name}-{'-'.join(kw)}": (slope_of_reduction, name, kw) for name, kw in SMOOTH},
    **{"-".join(("attention", *kw)): (slope_of_attention, kw) for kw in ATTENTIONS if "return_residual" not in kw},
}


@functools.cache
def slopes_by_jax():
    return dict(zip(SLOPES, by_jax([lambda f=f, a=a: f(jax, jax.nn, jnp, *a) for f, *a in SLOPES.values()])))


@pytest.mark.parametrize("what", SLOPES)
def test_derivatives(what):
    f, *args = SLOPES[what]
    same(f(rlx, rlx.nn, rnp, *args), slopes_by_jax()[what], ("rel", 1e-5), what)


def test_batches_of_attention():
    one = lambda q, k, v: rlx.nn.dot_product_attention(q, k, v, mask=SEEN[0])  # noqa: E731
    want = np.stack([one(*row) for row in zip(Q, K, V)])
    same(rlx.vmap(one)(Q, K, V), want, ("rel", 1e-6), "attention")


def test_refuses():
    with pytest.raises(ValueError, match="odd extent"):
        rlx.nn.glu(np.ones(3, np.float32))
    with pytest.raises(TypeError, match="it must be bool"):
        attend(rlx.nn, mask=BIAS)
    with pytest.raises(ValueError, match="K divides N"):
        attend(rlx.nn, Q[:, :, :3])
    with pytest.raises(ValueError, match="two axes"):
        rlx.nn.initializers.glorot_normal()(WEIGHTS, (3,))
    with pytest.raises(ValueError, match="fan_in"):
        rlx.nn.initializers.variance_scaling(1.0, "fan", "normal")


# -- convolutions, whose arguments are PyTorch's: beside lax's convolution and its derivative --

CONVOLUTIONS = {
    "line": (1, (2, 4, 9), (6, 2, 3), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
    "plane": (2, (2, 3, 6, 7), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0)}),
    "depthwise": (2, (1, 5, 8, 9), (5, 1, 3, 3), {"padding": 1, "groups": 5}),
    "volume": (3, (1, 2, 4, 5, 6), (3, 2, 2, 3, 1), {"padding": (1, 1, 0)}),
}


def convolution(x, w, stride=1, padding=0, dilation=1, groups=1):
    space = x.ndim - 2
    each = lambda a: tuple(a) if isinstance(a, tuple) else (a,) * space  # noqa: E731
    pads = [(p, p) for p in each(padding)]
    return jax.lax.conv_general_dilated(
        x, w, each(stride), pads, rhs_dilation=each(dilation), feature_group_count=groups
    )


@pytest.mark.parametrize("what", CONVOLUTIONS)
def test_convolutions(what):
    space, x, w, options = CONVOLUTIONS[what]
    x, w, bias = normal(*x, seed=1), normal(*w, seed=2), normal(w[0], seed=3)
    want = convolution(jnp.asarray(x), jnp.asarray(w), **options) + bias.reshape(-1, *(1,) * space)
    same(getattr(rlx.nn, f"conv{space}d")(x, w, bias, **options), np.asarray(want), ("rel", 1e-5), what)
    # The transpose is the derivative by x; output_padding says which x of those that give the same extents.
    y, pull = jax.vjp(lambda v: convolution(v, jnp.asarray(w), **options), jnp.asarray(x))
    ct = normal(*y.shape, seed=4)
    each = lambda a: a if isinstance(a, tuple) else (a,) * space  # noqa: E731
    stride, padding, dilation = (each(options.get(k, d)) for k, d in (("stride", 1), ("padding", 0), ("dilation", 1)))
    least = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, s, p, d, k in zip(y.shape[2:], stride, padding, dilation, w.shape[2:])
    ]
    more = tuple(n - m for n, m in zip(x.shape[2:], least))
    got = getattr(rlx.nn, f"conv_transpose{space}d")(ct, w, output_padding=more, **options)
    same(got, np.asarray(pull(jnp.asarray(ct))[0]), ("rel", 1e-5), what)


def test_convolutions_pad_by_name():
    x, w = normal(1, 2, 7, seed=1), normal(3, 2, 4, seed=2)
    want = jax.lax.conv_general_dilated(x, w, (1,), "SAME")
    same(rlx.nn.conv1d(x, w, padding="same"), np.asarray(want), ("rel", 1e-5), "same")
    assert rlx.nn.conv1d(x, w, padding="valid").shape == (1, 3, 4)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rlx.nn.conv1d(normal(1, 2, 7), normal(3, 2, 4), stride=2, padding="same"),
        lambda: rlx.nn.conv2d(normal(1, 2, 7, 7), normal(3, 2, 4, 4), stride=(1, 1, 1)),
        lambda: rlx.nn.conv_transpose1d(normal(1, 2, 7), normal(2, 3, 4), output_padding=1),
        lambda: rlx.nn.conv_transpose1d(normal(1, 2, 7), normal(2, 3, 4), groups=3),
    ],
)
def test_convolutions_refuse(call):
    with pytest.raises(ValueError):
        call()


def test_standardize_takes_any_epsilon():
    x = np.arange(6, dtype="f4").reshape(2, 3)
    want = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    for epsilon in (1e-50, 1e-12):  # the first is 0 in f32, which a layer norm refuses
        np.testing.assert_allclose(np.asarray(rlx.nn.standardize(x, epsilon=epsilon)), want, rtol=1e-5)
