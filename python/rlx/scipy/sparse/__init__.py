"""scipy.sparse: iterative solvers in rlx.scipy.sparse.linalg."""

from . import linalg  # noqa: F401

__all__ = ["linalg"]
