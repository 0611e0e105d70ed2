"""Every function of rlx.numpy against NumPy and JAX: at once, under rlx.jit, its derivative, batched."""

import cases_products
import cases_reductions
import cases_shapes
import cases_ufuncs
import pytest
from sampling import EVERYTHING

CASES = list(cases_ufuncs.CASES)
for table in (cases_shapes, cases_reductions, cases_products):
    named = set()
    for number, case in enumerate(table.CASES):  # a sample has the first case of each function and every eighth one
        if EVERYTHING or case.name not in named or number % 8 == 0:
            CASES.append(case)
        named.add(case.name)


def _params(cases):
    seen, out = {}, []
    for c in cases:
        seen[c.id] = seen.get(c.id, 0) + 1
        out.append(pytest.param(c, id=c.id if seen[c.id] == 1 else f"{c.id}-{seen[c.id]}"))
    return out


@pytest.mark.parametrize("case", _params(CASES))
def test_forward(case):
    case.check_forward()


@pytest.mark.rotates(3)
@pytest.mark.parametrize("case", _params([c for c in CASES if c.grad]))
def test_grad(case):
    case.check_grad()


@pytest.mark.parametrize("case", _params([c for c in CASES if c.vmap and c.arrays]))
def test_vmap(case):
    case.check_vmap()
