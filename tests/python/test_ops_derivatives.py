"""Every op that has derivatives or works on batches: vjp, jvp, vmap and two of them nested, against JAX."""

import zlib

import jax
import jax.extend  # noqa: F401
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from oracles import catalogue, dtypes, single
from oracles.dice import Dice
from programs import generate, run

import rlx

OPS = catalogue.load()
# What rlx says has no derivative, or none of this kind, and why it is not asked for one.
NO_DERIVATIVE = {"sample": "a drawn token", "rng_bits": "random bits"}
NO_PLAN = {("scatter_mul", k): "JAX differentiates it for different indices alone" for k in ("vjp", "jvp", "grad_jvp")}
PLANS = {
    "vjp": ("vjp",),
    "jvp": ("jvp",),
    "vmap": ("vmap",),
    "vmap_grad": ("grad", "vmap"),
    "grad_jvp": ("grad", "jvp"),
}


def _cases():
    for name, op in sorted(OPS.items()):
        taken = [t for t in single.dtypes_of(op) if dtypes.is_inexact(t)]
        for plan in PLANS:
            if plan != "vmap" and (not op.smooth or name in NO_DERIVATIVE):
                continue
            for dtype in [t for t in ("float32", "float64", "complex64", "bfloat16") if t in taken] or [None]:
                yield pytest.param(name, plan, dtype, id=f"{name}-{plan}-{dtype}" if dtype else f"{name}-{plan}")


def _sampled(name, plan, dtype, full):
    """A sample takes one dtype and two plans of each op."""
    if full:
        return True
    at = zlib.crc32(name.encode())
    return dtype in (None, "float32") and plan in (("vjp", "vmap") if at % 2 else ("jvp", "vmap_grad"))


@pytest.mark.parametrize("name,plan,dtype", list(_cases()))
def test_transformed(name, plan, dtype, device, full):
    if not _sampled(name, plan, dtype, full):
        pytest.skip("in the full run")
    if (name, plan) in NO_PLAN:
        pytest.skip(NO_PLAN[name, plan])
    op = OPS[name]
    number = zlib.crc32(f"{name} {plan} {dtype}".encode())
    many = full and device == "cpu"  # elsewhere a call takes a tenth of a second to compile

    @settings(max_examples=max(2, settings.default.max_examples // 50) if many else 1)
    @given(st.data(), st.integers(0, 1 << 30))
    def check(data, salt):
        program = single.call_of(op, data, number + salt, dtype)
        if program is None:
            return
        program.transforms = generate.draw_transforms(Dice(number + salt), program, PLANS[plan])
        if program.transforms is None:
            return
        try:
            run.check(program, (device,), None if many else {"default": {}})
        except run.Mismatch as e:
            raise AssertionError(f"{e}\n{program.text()}") from None

    seed(number)(check)()


# -- ties and kinks, where JAX is followed to the letter --


def _grad_of(op, args, attrs, device):
    f = lambda x: rlx.numpy.sum(getattr(rlx.ops, op)(x, *args, **attrs))  # noqa: E731
    return np.asarray(rlx.jit(rlx.grad(f), device=device)(np.array([0.0, -1.0, 1.0, 2.0], np.float32)))


@pytest.mark.parametrize(
    "op",
    [
        "abs",
        "relu",
        "elu",
        "sign",
        "round",
        "floor",
        "ceil",
        "trunc",
        "hard_sigmoid",
        "softsign",
        "square",
        "silu",
        "hard_swish",
    ],
)
def test_kinks(op, device):
    x = jnp.array([0.0, -1.0, 1.0, 2.0], jnp.float32)
    want = np.array(jax.grad(lambda v: jnp.sum(OPS[op].jax([v], {}, {})))(x))
    if op == "abs":
        want[0] = 0.0  # docs/numerics.md; JAX takes 1
    assert np.allclose(_grad_of(op, [], {}, device), want, atol=2e-6), op


@pytest.mark.parametrize("op", ["max", "min"])
def test_ties_of_two(op, device):
    x = np.array([1.0, 2.0, 2.0], np.float32)
    y = np.array([1.0, 2.0, 3.0], np.float32)
    f = lambda a, b: rlx.numpy.sum(getattr(rlx.ops, op)(a, b))  # noqa: E731
    got = rlx.jit(rlx.grad(f, (0, 1)), device=device)(x, y)
    want = jax.grad(lambda a, b: jnp.sum(OPS[op].jax([a, b], {}, {})), (0, 1))(x, y)
    for g, w in zip(got, want):
        assert np.array_equal(np.asarray(g), np.asarray(w))


@pytest.mark.parametrize("op", ["reduce_max", "reduce_min"])
def test_ties_of_many(op, device):
    x = np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], np.float32)
    got = rlx.jit(rlx.grad(lambda a: rlx.numpy.sum(getattr(rlx.ops, op)(a, axes=[1]))), device=device)(x)
    want = jax.grad(lambda a: jnp.sum(OPS[op].jax([a], {}, {"axes": [1], "keep_dims": False})))(x)
    assert np.allclose(np.asarray(got), want, atol=1e-7)


def test_scatter_of_products(device):
    """JAX's derivative where it has one: indices that differ."""
    x = np.array([1.0, 2.0, 3.0], np.float32)
    u = np.array([4.0, 5.0], np.float32)
    i = np.array([2, 0], np.int32)
    w = np.array([1, 2, 3], np.float32)
    f = lambda a, b: rlx.numpy.sum(rlx.ops.scatter_mul(a, i, b, axes=[0]) * w)  # noqa: E731
    got = rlx.jit(rlx.grad(f, (0, 1)), device=device)(x, u)
    g = lambda a, b: jnp.sum(a.at[i].multiply(b, unique_indices=True) * w)  # noqa: E731
    for a, b in zip(got, jax.grad(g, (0, 1))(x, u)):
        assert np.allclose(np.asarray(a), b, rtol=1e-6)
