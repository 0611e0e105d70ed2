"""Derivatives under vmap of every function in the table of edges, at the points where formulas break: they are those of
the whole array, which test_edges.py compares with mpmath.
"""

import numpy as np
import pytest
from edge_functions import TABLE
from test_edges import grid, kinds, transform

import rlx


def of_numbers(function, orders, mode):
    """The derivative as a function of numbers."""
    places = [i for i, n in enumerate(orders) for _ in range(n)]

    def along(f, i):
        return lambda *xs: rlx.jvp(lambda x: f(*xs[:i], x, *xs[i + 1 :]), (xs[i],), (rlx.numpy.ones_like(xs[i]),))[1]

    if mode == "forward":
        return along(function.call, places[0])
    first = rlx.grad(function.call, places[0])
    return first if mode == "reverse" else along(first, places[1])


@pytest.mark.rotates(8)
@pytest.mark.parametrize("name", [f.name for f in TABLE])
def test_derivatives(name, full):
    function = next(f for f in TABLE if f.name == name)
    for dtype in ("float64", "float32"):
        arrays = [rlx.array(x[:: 1 if full or function.arity == 1 else 7], dtype) for x in grid(function, dtype)]
        for orders in kinds(function):
            whole = transform(function, orders)
            for mode in whole.keys() & {"reverse", "forward", "forward over reverse"}:
                want = np.asarray(rlx.jit(whole[mode])(*arrays))
                got = np.asarray(rlx.jit(rlx.vmap(of_numbers(function, orders, mode)))(*arrays))
                same = (got == want) | (np.isnan(got) & np.isnan(want))
                with np.errstate(all="ignore"):
                    same |= np.abs(got - want) <= 4 * np.finfo(dtype).eps * np.abs(want)
                worst = np.argmin(same)
                at = [float(np.asarray(x)[worst]) for x in arrays]
                assert same.all(), f"{name} {dtype} {orders} {mode} at {at}: {want[worst]}, under vmap {got[worst]}"
