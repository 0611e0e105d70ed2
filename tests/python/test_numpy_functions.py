"""Every function of rlx.numpy against NumPy and JAX: at once, under rlx.jit, its derivative, batched."""

import os

import cases_products
import cases_reductions
import cases_shapes
import cases_ufuncs
import pytest

CASES = list(cases_ufuncs.CASES)
if os.environ.get("RLX_ALL_CASES"):  # minutes, and some thirty of them are not right yet (ROADMAP.md)
    CASES += cases_shapes.CASES + cases_reductions.CASES + cases_products.CASES


def _params(cases):
    seen, out = {}, []
    for c in cases:
        seen[c.id] = seen.get(c.id, 0) + 1
        out.append(pytest.param(c, id=c.id if seen[c.id] == 1 else f"{c.id}-{seen[c.id]}"))
    return out


@pytest.mark.parametrize("case", _params(CASES))
def test_forward(case):
    case.check_forward()


@pytest.mark.parametrize("case", _params([c for c in CASES if c.grad]))
def test_grad(case):
    case.check_grad()


@pytest.mark.parametrize("case", _params([c for c in CASES if c.vmap and c.arrays]))
def test_vmap(case):
    case.check_vmap()
