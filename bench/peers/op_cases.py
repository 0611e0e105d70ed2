"""The cases of bench/ops: operands, an expression for rlx and JAX, one for PyTorch, and the least work of the case.

An expression has its operands as a, b, c, d, and the modules of its engine: np (jax.numpy, rlx.numpy), lax, nn, random,
linalg, fft, image, sp (scipy); torch and F for PyTorch. An engine that lacks an op answers "not built", so a case may
exist before its op. The families are in op_cases_*.py.
"""

from op_cases_elements import elementwise, moves, orders
from op_cases_lines import reductions, contractions
from op_cases_blocks import windows, transforms, linear_algebra, others

FAMILIES = {
    "elementwise": elementwise,
    "moves": moves,
    "orders": orders,
    "reductions": reductions,
    "contractions": contractions,
    "windows": windows,
    "transforms": transforms,
    "linalg": linear_algebra,
    "others": others,
}


def cases(families=None):
    """All cases, or those of some families. Two cases of one name are an error."""
    out = {}
    for name, make in FAMILIES.items():
        for case in make() if not families or name in families else ():
            if case.id in out:
                raise ValueError(f"two cases are called {case.id}")
            out[case.id] = case
    return out
