"""Pools, resizes and norms of images beside JAX and NumPy: values, derivatives, NaN, what is refused."""

import jax
import jax.image
import jax.numpy as jnp
import numpy as np
import pytest
import rlx.image
import rlx.nn
import rlx.numpy as rnp
from oracle import normal, same

import rlx

REDUCTIONS = {
    "max": (rlx.nn.max_pool, jax.lax.max, -np.inf),
    "min": (rlx.nn.min_pool, jax.lax.min, np.inf),
    "sum": (rlx.nn.sum_pool, jax.lax.add, 0.0),
    "prod": (rlx.nn.prod_pool, jax.lax.mul, 1.0),
}
GEOMETRIES = [
    ((2, 2), (2, 2), "VALID", 1),
    ((3, 3), (2, 2), "SAME", 1),
    ((3, 2), (1, 2), ((1, 0), (0, 1)), 1),
    ((2, 3), None, "VALID", (2, 1)),
    ((4,), (3,), ((2, 1),), (2,)),
    ((5, 7), (5, 1), "SAME_LOWER", 1),
    ((2, 2, 2), (1, 2, 1), "SAME", 1),
]


def images(dims, channels_last=True, seed=0):
    sizes = [9, 11, 6][:dims]
    return normal(*((2, *sizes, 5) if channels_last else (2, 5, *sizes)), seed=seed)


def by_jax_windows(x, computation, init, window, strides, padding, dilation, channels_last):
    count = len(window)
    strides = strides or (1,) * count
    dilation = dilation if isinstance(dilation, tuple) else (dilation,) * count
    around = (lambda v, one: (one, *v, one)) if channels_last else (lambda v, one: (one, one, *v))
    padding = padding if isinstance(padding, str) else around(padding, (0, 0))
    return jax.lax.reduce_window(
        x, init, computation, around(window, 1), around(strides, 1), padding, window_dilation=around(dilation, 1)
    )


@pytest.mark.rotates(2)
@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("window, strides, padding, dilation", GEOMETRIES)
@pytest.mark.parametrize("kind", list(REDUCTIONS))
def test_pools(kind, window, strides, padding, dilation, channels_last):
    pool, computation, init = REDUCTIONS[kind]
    x = images(len(window), channels_last)
    tell = dict(dilation=dilation, channels_last=channels_last)
    want = by_jax_windows(x, computation, np.float32(init), window, strides, padding, dilation, channels_last)
    got = pool(x, window, strides, padding, **tell)
    same(got, np.asarray(want), ("rel", 0 if kind in ("max", "min") else 2e-5), kind)
    # Derivatives: what each window gives, through a weighted sum; JAX has none of dilated extrema and of products.
    weight = normal(*want.shape, seed=7)
    ours = rlx.grad(lambda v: rnp.sum(pool(v, window, strides, padding, **tell) * weight))(x)
    if kind == "sum" or (kind != "prod" and dilation == 1):
        theirs = jax.grad(
            lambda v: jnp.sum(
                by_jax_windows(v, computation, init, window, strides, padding, dilation, channels_last) * weight
            )
        )(x)
        same(ours, np.asarray(theirs), ("rel", 1e-4), kind + "'s derivative")
    step = normal(*x.shape, seed=8) * np.float32(1e-3)
    along = float(np.sum(np.asarray(ours, np.float64) * step))
    wide = np.asarray(x, np.float64)
    up, down = (pool(rlx.asarray(wide + s * step), window, strides, padding, **tell) for s in (1.0, -1.0))
    measured = float(np.sum((np.asarray(up) - np.asarray(down)) / 2 * weight))
    assert along == pytest.approx(measured, rel=0.05, abs=5e-3)


@pytest.mark.parametrize("include", [True, False])
def test_means(include):
    x = images(2)
    got = rlx.nn.avg_pool(x, (3, 3), (2, 2), "SAME", count_include_pad=include)
    sums = by_jax_windows(x, jax.lax.add, 0.0, (3, 3), (2, 2), "SAME", 1, True)
    ones = by_jax_windows(np.ones_like(x), jax.lax.add, 0.0, (3, 3), (2, 2), "SAME", 1, True)
    same(got, np.asarray(sums) / (9 if include else np.asarray(ones)), ("rel", 2e-6), "avg_pool")


def test_nan_wins_and_gets_the_derivative():
    x = np.array([[1, np.nan, 3, 2, -np.inf, -np.inf]], np.float32)[..., None]
    same(rlx.nn.max_pool(x, (2,), (2,)), np.array([[[np.nan], [3], [-np.inf]]], np.float32), None, "max_pool")
    same(rlx.nn.min_pool(x, (2,), (2,)), np.array([[[np.nan], [2], [-np.inf]]], np.float32), None, "min_pool")
    slope = rlx.vjp(lambda v: rlx.nn.max_pool(v, (2,), (2,)), x)[1](rnp.ones((1, 3, 1)))[0]
    same(slope.reshape(6), np.array([0, 1, 1, 0, 1, 0], np.float32), None, "the derivative goes to NaN")
    ties = np.ones((1, 4, 1), np.float32)
    same(
        rlx.grad(lambda v: rnp.sum(rlx.nn.max_pool(v, (2,), (2,))))(ties).reshape(4),
        np.array([1, 0, 1, 0], np.float32),
        None,
        "the first of equal ones",
    )


def test_indices_and_back():
    x = images(2, False)
    values, indices = rlx.nn.max_pool_with_indices(x, (2, 3), (2, 3), channels_last=False)
    flat = np.asarray(x).reshape(2, 5, -1)
    picked = np.take_along_axis(flat, np.asarray(indices).reshape(2, 5, -1), -1)
    same(values, picked.reshape(values.shape), None, "indices")
    back = rlx.nn.max_unpool(values, indices, x.shape[2:])
    assert back.shape == x.shape
    assert np.count_nonzero(np.asarray(back)) == np.asarray(values).size
    same(
        rlx.nn.max_pool(back, (2, 3), (2, 3), channels_last=False), np.maximum(np.asarray(values), 0), None, "unpooled"
    )


@pytest.mark.parametrize("sizes", [(3, 4), (1, 1), (9, 11), (5, 2)])
def test_adaptive_pools(sizes):
    x = images(2)
    cuts = [[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip((9, 11), sizes)]
    for pool, fn in [(rlx.nn.adaptive_avg_pool, np.mean), (rlx.nn.adaptive_max_pool, np.max)]:
        want = np.stack(
            [np.stack([fn(x[:, a:b, c:d].astype(np.float64), (1, 2)) for c, d in cuts[1]], 1) for a, b in cuts[0]], 1
        )
        same(pool(x, sizes), want.astype(np.float32), ("rel", 2e-5), pool.__name__)


@pytest.mark.rotates(2)
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("shape", [(2, 18, 22, 3), (2, 4, 5, 3), (2, 9, 30, 3), (1, 13, 2, 2), (2, 9, 11, 3)])
@pytest.mark.parametrize("method", ["nearest", "linear", "cubic", "lanczos3", "lanczos5", "cubic-pytorch"])
def test_resize(method, shape, antialias):
    x = normal(2, 9, 11, 3)
    want = jax.image.resize(x, shape, method, antialias)
    got = rlx.image.resize(x, shape, method, antialias)
    same(got, np.asarray(want), ("abs", 3e-6), method)
    weight = normal(*shape, seed=3)
    ours = rlx.grad(lambda v: rnp.sum(rlx.image.resize(v, shape, method, antialias) * weight))(x)
    theirs = jax.grad(lambda v: jnp.sum(jax.image.resize(v, shape, method, antialias) * weight))(x)
    same(ours, np.asarray(theirs), ("abs", 1e-5), method + "'s derivative")


def test_resize_of_integers_and_names():
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert rlx.image.resize(x, (6, 2), "nearest").dtype == rlx.int32
    same(rlx.image.resize(x, (6, 2), "nearest"), np.asarray(jax.image.resize(x, (6, 2), "nearest")), None, "nearest")
    same(
        rlx.image.resize(x, (6, 8), "bilinear"), np.asarray(jax.image.resize(x, (6, 8), "bilinear")), ("abs", 1e-5), ""
    )
    with pytest.raises(ValueError, match="one of nearest"):
        rlx.image.resize(x, (6, 2), "sinc")
    with pytest.raises(ValueError, match="with 2 axes"):
        rlx.image.resize(x, (6,), "linear")


def channel_norm(x, axes, eps, gamma, beta, mean=None, var=None):
    x = np.asarray(x, np.float64)
    dims = [1, -1] + [1] * (x.ndim - 2)
    mean = x.mean(axes, keepdims=True) if mean is None else mean.reshape(dims)
    var = x.var(axes, keepdims=True) if var is None else var.reshape(dims)
    return (x - mean) / np.sqrt(var + eps) * gamma.reshape(dims) + beta.reshape(dims)


@pytest.mark.parametrize("shape", [(2, 6, 5, 7), (3, 6), (2, 6, 300), (1, 6, 2, 3, 4)])
def test_norms(shape):
    x, gamma, beta = normal(*shape) * 3 + 5, normal(6, seed=1), normal(6, seed=2)
    mean, var = normal(6, seed=3), normal(6, seed=4) ** 2
    others = (0, *range(2, len(shape)))
    y, m, v = rlx.nn.batch_norm(x, gamma=gamma, beta=beta)
    same(y, channel_norm(x, others, 1e-5, gamma, beta).astype(np.float32), ("abs", 2e-5), "batch_norm")
    same(m, x.astype(np.float64).mean(others).astype(np.float32), ("rel", 1e-6), "mean")
    same(v, x.astype(np.float64).var(others).astype(np.float32), ("rel", 1e-5), "var")
    got = rlx.nn.batch_norm(x, mean, var, gamma, beta, eps=1e-3)
    same(got, channel_norm(x, None, 1e-3, gamma, beta, mean, var).astype(np.float32), ("rel", 1e-5), "given")
    last = np.moveaxis(x, 1, -1)
    same(
        np.moveaxis(np.asarray(rlx.nn.batch_norm(last, gamma=gamma, beta=beta, axis=-1)[0]), -1, 1),
        y,
        ("abs", 2e-5),
        "",
    )
    parts = x.reshape(shape[0], 3, -1)
    want = channel_norm(parts, (2,), 1e-5, np.ones(3), np.zeros(3)).reshape(shape)
    dims = [1, 6] + [1] * (len(shape) - 2)
    want = want * gamma.reshape(dims) + beta.reshape(dims)
    same(rlx.nn.group_norm(x, 3, gamma, beta), want.astype(np.float32), ("abs", 2e-5), "group_norm")
    if len(shape) > 2:
        places = tuple(range(2, len(shape)))
        want = channel_norm(x, places, 1e-5, gamma, beta).astype(np.float32)
        same(rlx.nn.instance_norm(x, gamma, beta), want, ("abs", 3e-5), "instance_norm")


def test_derivatives_of_norms_are_those_of_their_formula():
    x, gamma, weight = normal(2, 4, 3, 5), normal(4, seed=1), normal(2, 4, 3, 5, seed=2)

    def formula(m, x, gamma, axes, split):
        parts = m.reshape(x, split)
        hat = (parts - m.mean(parts, axes, keepdims=True)) / m.sqrt(m.var(parts, axes, keepdims=True) + 1e-5)
        return m.sum(m.sin(m.reshape(hat, x.shape) * gamma[:, None, None]) * weight)

    cases = [
        (lambda v, s: rlx.nn.group_norm(v, 2, s), (2,), (2, 2, 30)),
        (lambda v, s: rlx.nn.batch_norm(v, gamma=s)[0], (0, 2, 3), (2, 4, 3, 5)),
        (rlx.nn.instance_norm, (2, 3), (2, 4, 3, 5)),
    ]
    for fn, axes, split in cases:
        ours = rlx.grad(lambda v, s: rnp.sum(rnp.sin(fn(v, s)) * weight), (0, 1))(x, gamma)
        theirs = jax.grad(lambda v, s: formula(jnp, v, s, axes, split), (0, 1))(x, gamma)
        for a, b in zip(ours, theirs):
            same(a, np.asarray(b), ("abs", 3e-5), str(axes))


def test_local_response_norm():
    x = normal(2, 7, 3)
    squares = np.pad(x.astype(np.float64) ** 2, ((0, 0), (2, 1), (0, 0)))
    total = sum(squares[:, i : i + 7] for i in range(4))
    want = x / (1.5 + 0.1 / 4 * total) ** 0.75
    same(rlx.nn.local_response_norm(x, 4, 0.1, 0.75, 1.5), want.astype(np.float32), ("rel", 3e-6), "")


def test_batching():
    x = normal(3, 2, 6, 5, 4)
    for fn in (
        lambda v: rlx.nn.max_pool(v, (2, 3), (1, 2), "SAME"),
        lambda v: rlx.nn.max_pool_with_indices(v, (2, 3), (1, 2), "SAME")[1],
        lambda v: rlx.nn.avg_pool(v, (2, 3), (1, 2), "SAME"),
        lambda v: rlx.image.resize(v, (2, 9, 3, 4), "cubic"),
        lambda v: rlx.nn.group_norm(v, 2),
        lambda v: rlx.nn.batch_norm(v)[0],
    ):
        same(rlx.vmap(fn)(x), np.stack([np.asarray(fn(row)) for row in x]), ("abs", 2e-5), "vmap")


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda x: rlx.nn.max_pool(x, (0, 2)), "window 0 is below 1"),
        (lambda x: rlx.nn.max_pool(x, (2, 2), (0, 1)), "strides 0"),
        (lambda x: rlx.nn.max_pool(x, (2, 2), padding="FULL"), "padding 'FULL'"),
        (lambda x: rlx.nn.max_pool(x, (2, 2, 2, 2)), "spatial axes"),
        (lambda x: rlx.nn.avg_pool(x.astype(np.int32), (2, 2)), "float or complex"),
        (lambda x: rlx.nn.lp_pool(x, 0, (2, 2)), "p must be"),
        (lambda x: rlx.nn.group_norm(x, 4), "not a multiple of 4 groups"),
        (lambda x: rlx.nn.batch_norm(x, np.zeros(5, np.float32)), "mean and var, or neither"),
        (lambda x: rlx.nn.batch_norm(x, axis=7), "axis 7"),
        (lambda x: rlx.nn.instance_norm(x[0, 0]), "at least three axes"),
        (lambda x: rlx.nn.group_norm(x.astype(np.complex64), 1), "real floating arrays"),
        (lambda x: rlx.nn.local_response_norm(x, 0), "size must be at least 1, got 0"),
    ],
)
def test_refused(call, why):
    with pytest.raises((ValueError, TypeError, rlx.Error), match=why):
        call(normal(2, 9, 11, 5))
