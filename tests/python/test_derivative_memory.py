"""The memory of derivatives: at most a constant times operands, results and what the function itself needs.

Every public function that takes one or two arrays is planned, not run, with tall, wide and long arrays, in which a
matrix that a rule should not make is a thousand times larger than the operands.
"""

import importlib
import inspect
import math

import numpy as np
import pytest
import rlx.numpy as rnp
from sampling import some

import rlx

LONG = 3000
SHAPES = [
    ((LONG, 2),), ((2, LONG),), ((LONG,),), ((LONG, 2), (LONG,)), ((LONG, 2), (LONG, 2)), ((2, LONG), (2, LONG)),
    ((LONG,), (LONG,)), ((LONG, 2), (2, 2)), ((2, 2), (2, LONG)), ((LONG, 1), (LONG, 1)),
]  # fmt: skip
MODULES = "numpy numpy.linalg numpy.fft lax lax.linalg nn nn.losses scipy.linalg scipy.special signal image".split()
LARGEST = 60  # bytes of the derivative's memory for each byte of operands, results and the function's own memory
EFFECTS = {"save", "savez", "load", "fromfile", "genfromtxt", "loadtxt", "savetxt"}


def public():
    """Names and functions of the modules, each function once."""
    seen = set()
    for module in MODULES:
        try:
            of = importlib.import_module("rlx." + module)
        except ImportError:
            continue
        for name, f in sorted(vars(of).items()):
            if name[0] == "_" or name in EFFECTS or inspect.isclass(f) or not callable(f) or f in seen:
                continue
            if not getattr(f, "__module__", "").startswith("rlx"):
                continue
            seen.add(f)
            yield f"{module}.{name}", f


FUNCTIONS = dict(public())


def operands(shapes):
    return [(np.cos(np.arange(math.prod(s))) * 0.4 + 0.5).reshape(s).astype(np.float32) for s in shapes]


def loss_of(f):
    def loss(*arrays):
        outs = [o for o in rlx.tree.leaves(f(*arrays)) if o.dtype.kind in "fc"]
        if not outs:
            raise TypeError("no result has a derivative")
        return sum(rnp.real(o).sum() for o in outs)

    return loss


def planned(f, *arrays):
    return rlx.jit(f).lower(*arrays).compile().compiled.arena_bytes


def bytes_of(tree):
    return sum(math.prod(o.shape) * o.dtype.itemsize for o in rlx.tree.leaves(tree))


def growth(f, shapes):
    """Memory of the derivatives in both modes for each byte that the function needs; None where it takes other
    operands.
    """
    arrays = operands(shapes)
    every = tuple(range(len(arrays)))
    results = lambda *x: [o for o in rlx.tree.leaves(f(*x)) if hasattr(o, "dtype")]  # noqa: E731
    try:
        out = rlx.eval_shape(results, *arrays)
        own = planned(results, *arrays) + bytes_of(out) + sum(a.nbytes for a in arrays)
        backward = planned(rlx.grad(loss_of(f), every), *arrays)
        forward = planned(lambda *x: rlx.jvp(loss_of(f), x, x)[1], *arrays)
    except (TypeError, ValueError, NotImplementedError, AttributeError, IndexError, NameError, rlx.Error):
        return None
    return max(backward, forward) / own


@pytest.mark.parametrize("name", some(FUNCTIONS, 25))
def test_derivatives_need_no_more_memory(name):
    for shapes in SHAPES:
        found = growth(FUNCTIONS[name], shapes)
        assert found is None or found <= LARGEST, f"{name} of {shapes}: {found:.0f} times the memory of the function"


LINEAR_ALGEBRA = {
    "pinv": lambda a: rnp.linalg.pinv(a),
    "lstsq": lambda a: rnp.linalg.lstsq(a, np.ones(len(a), np.float32))[0],
    "svd": lambda a: rnp.linalg.svd(a, full_matrices=False),
    "svdvals": lambda a: rnp.linalg.svdvals(a),
    "qr": lambda a: rnp.linalg.qr(a),
    "nuclear norm": lambda a: rnp.linalg.norm(a, "nuc"),
    "matrix_rank": lambda a: rnp.linalg.cond(a),
    "inner products": lambda a: a.T @ a if len(a) > a.shape[1] else a @ a.T,
    "cov": lambda a: rnp.cov(a, rowvar=len(a) < a.shape[1]),
}


@pytest.mark.parametrize("name", LINEAR_ALGEBRA)
def test_linear_algebra_of_tall_and_wide_matrices(name):
    found = [growth(LINEAR_ALGEBRA[name], (shape,)) for shape in ((6000, 3), (3, 6000), (6000, 1))]
    assert any(v is not None for v in found) and all(v is None or v <= LARGEST for v in found), found


def test_second_derivatives_of_tall_matrices():
    a = operands([(6000, 3)])[0]
    b = np.ones(6000, np.float32)
    for f in (lambda a: rnp.linalg.pinv(a).sum(), lambda a: rnp.linalg.lstsq(a, b)[0].sum()):
        assert planned(rlx.grad(f), a) < 40 * a.nbytes
        assert planned(rlx.grad(lambda x: (rlx.grad(f)(x) * x).sum()), a) < 200 * a.nbytes


def test_derivatives_of_long_polynomials():
    """polyval and poly of many coefficients beside those of few, whose rules store every step."""
    g = np.random.default_rng(0)
    p, x = g.standard_normal(70), g.uniform(-1, 1, 5)

    def halves(p, x):
        return rnp.polyval(p[:30], x) * x**40 + rnp.polyval(p[30:58], x) * x**12 + rnp.polyval(p[58:], x)

    for f in (lambda h: rlx.grad(lambda p, x: (h(p, x) * x).sum(), (0, 1)), lambda h: rlx.jacfwd(h, (0, 1))):
        for got, want in zip(f(rnp.polyval)(p, x), f(halves)(p, x)):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    second = lambda h: rlx.jvp(rlx.grad(lambda p, x: (h(p, x) * x).sum(), (0, 1)), (p, x), (p, x))[1]  # noqa: E731
    for got, want in zip(second(rnp.polyval), second(halves)):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(rnp.polyval(p, x), np.polyval(p, x), rtol=1e-12)
    zeros = g.uniform(-1, 1, 50)
    np.testing.assert_allclose(rnp.poly(zeros), np.poly(zeros), rtol=1e-9, atol=1e-12)
    t = g.standard_normal(50)
    slope = rlx.jvp(rnp.poly, (zeros,), (t,))[1]
    step = 1e-6
    near = (np.poly(zeros + step * t) - np.poly(zeros - step * t)) / (2 * step)
    np.testing.assert_allclose(slope, near, rtol=1e-5, atol=1e-5 * np.abs(near).max())
    assert growth(rnp.polyval, ((600,), (600,))) < 10 and growth(rnp.poly, ((1000,),)) < LARGEST
