# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from .. import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

bernoulli: Any
beta: Any
betabinom: Any
binom: Any
cauchy: Any
chi2: Any
dirichlet: Any
expon: Any
gamma: Any
gaussian_kde: Any
gennorm: Any
geom: Any
gumbel_l: Any
gumbel_r: Any
laplace: Any
logistic: Any
def mode(a: ArrayLike, axis: Axis = 0, nan_policy: Any = 'propagate', keepdims: bool = False) -> Array: ...
multinomial: Any
multivariate_normal: Any
nbinom: Any
norm: Any
pareto: Any
poisson: Any
def rankdata(a: ArrayLike, method: Any = 'average', *, axis: Axis = None, nan_policy: Any = 'propagate') -> Array: ...
def sem(
    a: ArrayLike,
    axis: Axis = 0,
    ddof: Any = 1,
    nan_policy: Any = 'propagate',
    *,
    keepdims: bool = False,
) -> Array: ...
t: Any
truncnorm: Any
uniform: Any
vonmises: Any
wrapcauchy: Any
