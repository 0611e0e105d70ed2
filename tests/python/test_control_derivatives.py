"""Derivatives of control flow under vmap: every order of transforms beside the derivatives of each example by itself.

Each function has a branch or an iteration that is not finite for examples that do not take it. Such an example runs
the branch under vmap, and nothing of it may reach a derivative.
"""

import numpy as np
import pytest
import rlx.numpy as rnp
from rlx import lax

import rlx

# -- functions of one example x (a scalar) and of weights w that examples share --


def not_finite(x, w):
    """inf, NaN or 0 / 0 in value or derivative for x <= 0."""
    return rnp.sqrt(x) * w[0] + rnp.log(x) * w[1] + w[2] / x


def cond(x, w):
    return rlx.cond(x > 0, not_finite, lambda x, w: x * w[1], x, w)


def other_branch(x, w):
    return rlx.cond(x <= 0, lambda x, w: w[0] * x * x, not_finite, x, w)


def captured(x, w):
    return rlx.cond(x > 0, lambda: not_finite(x, w), lambda: x * 3)


def safe_norm(x, w):
    v = rnp.stack([x, 2 * x]) * w[:2]
    square = (v * v).sum()
    return rlx.cond(x > 0, lambda v: (v / rnp.sqrt(square)).sum() + rnp.sqrt(square), lambda v: (v * 0).sum(), v)


def switch(x, w):
    place = rnp.where(x > 2, 2, rnp.where(x > 0, 1, 0)).astype("int32")
    branches = [lambda x, w: x * w[0], not_finite, lambda x, w: rnp.arccosh(x) * w[1] + 1 / (x - 1)]
    return lax.switch(place, branches, x, w)


def nested(x, w):
    def inner(x, w):
        return rlx.cond(x > 2, lambda x, w: rnp.log(x - 2) * w[2], lambda x, w: rnp.power(x, w[0]), x, w)

    return rlx.cond(x > 0, inner, lambda x, w: w[1] * x, x, w)


def scan_with_cond(x, w):
    def step(c, row):
        c = rlx.cond(c > 1, lambda c: rnp.sqrt(c - 1) * row, lambda c: c * w[1], c)
        return c, c * w[0]

    last, ys = rlx.scan(step, x, w)
    return last + ys.sum()


def cond_with_scan(x, w):
    def inner(x, w):
        return rlx.scan(lambda c, row: (rnp.sqrt(c) + row, None), x, w)[0]

    return rlx.cond(x > 0, inner, lambda x, w: x * w[0], x, w)


def bounded_while(x, w):
    """Examples end after 0 to 4 iterations; what follows would leave the domain of the square root."""

    def step(c):
        return rnp.sqrt(c - 1) * w[0] + 0.1

    return rlx.while_loop(lambda c: c > 1, step, x, max_iterations=4)


def while_of_weights(x, w):
    """The derivative by the shared weight is not finite for an example that ended."""
    return rlx.while_loop(lambda c: c > 0, lambda c: c - 1 - w[1] * rnp.sqrt(c), x, max_iterations=5)


def while_with_cond(x, w):
    def step(c):
        return rlx.cond(c > 2, lambda c: rnp.log(c - 2) + w[0], lambda c: c - 1.25 * w[1], c)

    return rlx.while_loop(lambda c: c > 0.5, step, x, max_iterations=6)


def checkpointed(x, w):
    return rlx.checkpoint(cond)(x, w) * w[1]


@rlx.custom_vjp
def reverse_root(x):
    return rnp.sqrt(x)


reverse_root.defvjp(lambda x: (rnp.sqrt(x), x), lambda x, ct: (ct * 0.5 / rnp.sqrt(x),))


@rlx.custom_jvp
def forward_root(x):
    return rnp.sqrt(x)


forward_root.defjvp(lambda x, t: (rnp.sqrt(x[0]), t[0] * 0.5 / rnp.sqrt(x[0])))


def custom_reverse(x, w):
    return rlx.cond(x > 0, lambda x, w: reverse_root(x * w[0]), lambda x, w: x * w[1], x, w)


def custom_forward(x, w):
    return rlx.cond(x > 0, lambda x, w: forward_root(x * w[0]), lambda x, w: x * w[1], x, w)


FUNCTIONS = [cond, other_branch, captured, safe_norm, switch, nested, scan_with_cond, cond_with_scan, bounded_while,
             while_of_weights, while_with_cond, checkpointed, custom_reverse, custom_forward]  # fmt: skip
BATCHES = {
    "both": [-1.0, 0.0, 0.7, 1.5, 3.0, 10.0],
    "none": [-1.0, -2.0, 0.0],
    "all": [0.6, 1.7, 4.0],
    "one": [0.0],
}
WEIGHTS = [0.5, 1.25, 0.75]


def of_examples(f, x, w):
    """f of each example by itself, without vmap."""
    rows = [f(v, w) for v in x]
    return rlx.tree.map(lambda *leaves: np.stack([np.asarray(v) for v in leaves]), *rows)


def sums(tree):
    return rlx.tree.map(lambda v: np.asarray(v).sum(0), tree)


def batch(f):
    return rlx.vmap(f, (0, None))


def total(f):
    return lambda x, w: batch(f)(x, w).sum()


def second(f):
    """d/dx and d/dw of sum(df/dx) + sum(df/dw) of one example."""

    def of(x, w):
        dx, dw = rlx.grad(f, (0, 1))(x, w)
        return dx + dw.sum()

    return of


def by_jvp(f):
    """df along (1, 1)."""
    return lambda x, w: rlx.jvp(f, (x, w), (rnp.ones_like(x), rnp.ones_like(w)))[1]


# name: an order of transforms; the same of one example by itself; whether the derivative by w sums over the examples
ORDERS = {
    "grad(vmap)": lambda f: (rlx.grad(total(f), (0, 1)), rlx.grad(f, (0, 1)), "shared"),
    "grad(jit(vmap))": lambda f: (rlx.grad(rlx.jit(total(f)), (0, 1)), rlx.grad(f, (0, 1)), "shared"),
    "jit(grad(vmap))": lambda f: (rlx.jit(rlx.grad(total(f), (0, 1))), rlx.grad(f, (0, 1)), "shared"),
    "vmap(grad)": lambda f: (batch(rlx.grad(f, (0, 1))), rlx.grad(f, (0, 1)), "each"),
    "vmap(value_and_grad)": lambda f: (batch(rlx.value_and_grad(f, (0, 1))), rlx.value_and_grad(f, (0, 1)), "each"),
    "jvp(vmap)": lambda f: (by_jvp(batch(f)), by_jvp(f), "each"),
    "vmap(jvp)": lambda f: (batch(by_jvp(f)), by_jvp(f), "each"),
    "grad(vmap(grad))": lambda f: (rlx.grad(total(second(f)), (0, 1)), rlx.grad(second(f), (0, 1)), "shared"),
    "vmap(grad(grad))": lambda f: (batch(rlx.grad(second(f), (0, 1))), rlx.grad(second(f), (0, 1)), "each"),
    "jvp(vmap(grad))": lambda f: (by_jvp(batch(second(f))), by_jvp(second(f)), "each"),
    "grad(vmap(jvp))": lambda f: (rlx.grad(total(by_jvp(f)), (0, 1)), rlx.grad(by_jvp(f), (0, 1)), "shared"),
    "grad(jvp(vmap))": lambda f: (
        rlx.grad(lambda x, w: by_jvp(batch(f))(x, w).sum(), (0, 1)),
        rlx.grad(by_jvp(f), (0, 1)),
        "shared",
    ),
    "jvp(grad(vmap))": lambda f: (
        lambda x, w: by_jvp(lambda x, w: rlx.grad(total(f))(x, w))(x, w),
        lambda x, w: by_jvp(lambda x, w: rlx.grad(f)(x, w))(x, w),
        "each",
    ),
}
# A custom_vjp has no forward mode.
CASES = [(f, o) for f in FUNCTIONS for o in ORDERS if f is not custom_reverse or "jvp" not in o]


def compare(got, want, what):
    got, want = rlx.tree.leaves(got), rlx.tree.leaves(want)
    assert len(got) == len(want)
    for g, e in zip(got, want):
        g, e = np.asarray(g), np.asarray(e)
        assert g.shape == e.shape, what
        np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-10, err_msg=what)


@pytest.mark.parametrize("f, order", CASES, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_orders_of_transforms(f, order):
    together, alone, weights = ORDERS[order](f)
    w = np.array(WEIGHTS)
    for name, x in BATCHES.items():
        x = np.array(x)
        want = of_examples(alone, x, w)
        if weights == "shared":  # every example adds to the derivative by w
            want = (want[0], sums(want[1]))
        assert all(np.isfinite(v).all() for v in rlx.tree.leaves(want)), f"{name}: the oracle is not finite"
        compare(together(x, w), want, f"{order} of {f.__name__}, batch {name}")


@pytest.mark.parametrize("f", [cond, switch, nested, scan_with_cond, bounded_while], ids=lambda f: f.__name__)
def test_two_batch_axes(f):
    """Batches of batches, and a batch of weights: grad of vmap of vmap."""
    x, ws = np.array(BATCHES["both"]), np.array([WEIGHTS, [1.0, 0.5, 2.0]])
    both = rlx.vmap(rlx.vmap(f, (0, None)), (None, 0))
    got = rlx.grad(lambda x, w: both(x, w).sum(), (0, 1))(x, ws)
    rows = [of_examples(rlx.grad(f, (0, 1)), x, w) for w in ws]
    compare(got, (rows[0][0] + rows[1][0], np.stack([r[1].sum(0) for r in rows])), f.__name__)
    pairs = rlx.grad(lambda x, w: rlx.vmap(f)(x, w).sum(), (0, 1))(x[:2], ws)
    each = [rlx.grad(f, (0, 1))(v, w) for v, w in zip(x, ws)]
    compare(pairs, tuple(np.stack([np.asarray(e[i]) for e in each]) for i in (0, 1)), f.__name__)


def test_examples_of_matrices():
    """A branch with a product of a shared matrix: the derivative by the matrix sums over the examples that take it."""
    m = np.array([[1.0, -0.5], [0.25, 2.0]])
    v = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [1.0, 1.0]])

    def f(v, m):
        def unit(v, m):
            u = m @ v
            return u / rnp.sqrt((u * u).sum())

        return rlx.cond((v * v).sum() > 0, unit, lambda v, m: v * 2, v, m)[0]

    got = rlx.grad(total(f), (0, 1))(v, m)
    want = of_examples(rlx.grad(f, (0, 1)), v, m)
    compare(got, (want[0], want[1].sum(0)), "unit vectors")


def test_batches_without_examples():
    got = rlx.grad(total(cond), (0, 1))(np.zeros(0), np.array(WEIGHTS))
    assert got[0].shape == (0,) and not np.asarray(got[1]).any()


def test_batches_of_a_symbolic_extent():
    """One program for every number of examples, also for none, with a branch that reads an integer and a flag."""

    def f(x, w, k, flag):
        def root(x, w, k, flag):
            return rnp.sqrt(x) * w[k] + rnp.where(flag, x, 0)

        return rlx.cond(x > 0, root, lambda x, w, k, flag: x * w[0], x, w, k, flag)

    def gradients(x, w, k, flag):
        return rlx.grad(lambda x, w: rlx.vmap(f, (0, None, 0, 0))(x, w, k, flag).sum(), (0, 1))(x, w)

    together = rlx.jit(gradients, dims={"x": ("n",), "k": ("n",), "flag": ("n",)})
    w = np.array(WEIGHTS)
    for x in ([-1.0, 4.0, 0.25, 0.0], [-1.0], [], [9.0, 1.0]):
        x = np.array(x)
        k, flag = (np.arange(len(x)) % 3).astype(np.int32), np.arange(len(x)) % 2 == 0
        dx, dw = together(x, w, k, flag)
        of = [rlx.grad(lambda x, w: f(x, w, i, b), (0, 1))(v, w) for v, i, b in zip(x, k, flag)]
        want = sum((np.asarray(d) for _, d in of), np.zeros(3))
        compare((dx, dw), (np.array([float(d) for d, _ in of]), want), f"{len(x)} examples")


def test_piecewise():
    """Each function counts where its condition is the last that holds."""

    def f(x):
        parts = [lambda x: x * 0, rnp.sqrt, lambda x: rnp.log(x - 2) + 1 / x, rnp.arccosh]
        return rnp.piecewise(x, [x <= 0, x > 0, x > 2.5], parts)

    x = np.array([-1.0, 0, 0.25, 1, 4])
    first = np.array([0, 0, 1, 0.5, 0.5 - 1 / 16])
    second = np.array([0, 0, -2, -0.25, -0.25 + 1 / 32])
    compare(rlx.grad(lambda x: f(x).sum())(x), first, "reverse")
    compare(rlx.jvp(f, (x,), (np.ones(5),))[1], first, "forward")
    compare(rlx.vmap(rlx.grad(f))(x), first, "vmap")
    compare(rlx.grad(lambda x: rlx.grad(lambda x: f(x).sum())(x).sum())(x), second, "second")


def test_a_loop_behind_stop_gradient_needs_no_bound():
    """A loop whose body reads what the derivative is with respect to, and whose result is a constant."""

    def settle(v):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, rnp.tanh(c[1]) * v), (0, v))[1]

    def f(v):
        return rnp.sum(lax.stop_gradient(settle(v)) * v)

    v = np.array([0.4, -0.9, 1.3])
    want = np.asarray(settle(v))
    for slope in (rlx.grad(f), rlx.jit(rlx.grad(f)), rlx.grad(rlx.checkpoint(f)), rlx.jacrev(f)):
        np.testing.assert_allclose(slope(v), want, rtol=1e-12)
    np.testing.assert_allclose(rlx.vmap(rlx.grad(f))(np.stack([v, v]))[1], want, rtol=1e-12)
