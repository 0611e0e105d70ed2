"""What random programs found in rlx, each the smallest way to it."""

import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

X = np.arange(9, dtype=np.float32).reshape(3, 3) / 4


def with_rules(body):
    g = rlx.custom_vjp(body)
    g.defvjp(lambda x: (body(x), x), lambda x, ct: (3.0 * ct,))
    return g


@pytest.mark.parametrize(
    "body",
    [
        lambda x: rnp.triu(x, -3),
        lambda x: x * np.ones(3, np.float32),
        lambda x: x + rnp.zeros((3,)),
    ],
)
def test_constants_lie_inside_functions_with_rules(body):
    """A constant array went to the graph around, which such a function may not read."""
    g = with_rules(body)
    assert np.array_equal(rlx.jit(lambda x: g(x))(X), X)
    assert np.array_equal(rlx.grad(lambda x: rnp.sum(g(x)))(X), np.full((3, 3), 3.0))
    inside = rlx.jit(lambda x: rlx.grad(lambda y: rnp.sum(g(y)))(x))
    assert np.array_equal(inside(X), np.full((3, 3), 3.0))


def test_mask_of_attention_by_name():
    """The mask is an operand and an attribute of one name: a text is the attribute, an array the operand."""
    q = np.random.default_rng(1).normal(size=(1, 3, 4)).astype(np.float32)
    heads = dict(num_heads=2, kv_heads=2, head_dim=2)
    causal = np.asarray(rlx.ops.attention(q, q, q, mask="causal", **heads)[0])
    below = np.tril(np.ones((3, 3), bool))
    assert np.allclose(rlx.ops.attention(q, q, q, mask=below, **heads)[0], causal, atol=1e-6)
    assert np.allclose(rlx.ops.attention(q, q, q, below, mask="custom", **heads)[0], causal, atol=1e-6)
    bias = np.where(below, 0, -np.inf).astype(np.float32)
    assert np.allclose(rlx.ops.attention(q, q, q, mask=bias, **heads)[0], causal, atol=1e-6)
    assert not np.allclose(rlx.ops.attention(q, q, q, **heads)[0], causal, atol=1e-3)


def test_shapes_stand_for_arrays():
    """trace and eval_shape took a ShapeDtype for a static value."""
    spec = rlx.ShapeDtype((2, 3), "float32")
    assert rlx.eval_shape(lambda x: x.T, spec).shape == (3, 2)
    graph = rlx.trace(lambda x, y: x + y, spec, spec)
    assert [tuple(v.shape) for v in graph.outputs] == [(2, 3)]


def test_a_graph_that_is_given_is_built_on():
    """Inside a trace, an op with graph=g was added to the graph under trace."""

    def f(x):
        g = rlx.Graph("inner")
        g.set_outputs([g.tanh(g.input("a", (3,), "float32"))])
        return rlx.ops.elementwise_region(x, body=g)

    assert np.allclose(rlx.jit(f)(X[0]), np.tanh(X[0]))


def test_forward_mode_over_a_reverse_rule():
    """vjp under a trace also computes its function's value; forward mode asked it for a rule where nobody read it."""
    g = with_rules(lambda x: x * x)
    pulled = lambda x: rlx.vjp(g, x)[1](2.0 * x)[0]  # noqa: E731
    out, tangent = rlx.jvp(pulled, (X,), (np.ones_like(X),))
    assert np.allclose(out, 6 * X) and np.allclose(tangent, np.full((3, 3), 6.0))


def test_a_permutation_of_a_range():
    key = rlx.random.key(0)
    drawn = np.asarray(rlx.random.permutation(key, 10))
    assert sorted(drawn.tolist()) == list(range(10))
    np.testing.assert_array_equal(drawn, rlx.jit(lambda k: rlx.random.permutation(k, 10))(key))
    np.testing.assert_array_equal(drawn, rlx.random.permutation(key, np.arange(10)))
