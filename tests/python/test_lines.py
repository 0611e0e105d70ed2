"""Errors of functions that are made of many ops name the line of the call, not lines of rlx itself."""

import numpy as np
import pytest

import rlx
import rlx.numpy as rnp
from rlx.scipy import linalg as scipy_linalg
from rlx.scipy import special

V3, V4 = np.zeros(3, np.float32), np.zeros(4, np.float32)
M3, HALVES = np.eye(3, dtype=np.float32), np.zeros((3, 3), np.float16)
CALLS = {
    "prelu": lambda: rlx.nn.prelu(V3, V4),
    "copysign": lambda: rnp.copysign(V3, V4),
    "nextafter": lambda: rnp.nextafter(V3, V4),
    "ldexp": lambda: rnp.ldexp(V3, rnp.zeros(4, "int32")),
    "betainc": lambda: special.betainc(V3, V3, V4),
    "solve": lambda: rnp.linalg.solve(M3, V4),
    "lstsq": lambda: rnp.linalg.lstsq(M3, V4),
    "pinv": lambda: rnp.linalg.pinv(V3),
    "matrix_rank of halves": lambda: rnp.linalg.matrix_rank(HALVES),
    "cond of halves": lambda: rnp.linalg.cond(HALVES),
    "expm": lambda: scipy_linalg.expm(V3),
    "lu_solve": lambda: scipy_linalg.lu_solve((V3, V3), V3),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors_name_the_line_of_the_call(name):
    call = CALLS[name]
    with pytest.raises(rlx.Error) as caught:
        rlx.jit(call)()
    assert caught.value.where.endswith(f"built at {__file__}:{call.__code__.co_firstlineno}")


def test_a_flow_names_the_line_of_the_call():
    g = rlx.Graph()
    flow = rlx.models.Flow(g, {"w.weight": M3})
    with pytest.raises(rlx.Error) as caught:
        flow.embed("w.weight", g.input("ids", (2,)), 3, 3)
    assert f"{__file__}:" in caught.value.where
