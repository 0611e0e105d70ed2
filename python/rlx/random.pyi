# Written by scripts/python_stubs.py: do not edit.
from collections.abc import Callable, Sequence
from typing import Any

from . import Array, ArrayLike, Axis, DTypeLike, Dim, ShapeLike, Value, dtype as dtype

def PRNGKey(seed: Any, *, impl: Any = None) -> Array: ...
def ball(key: ArrayLike, d: Any, p: Any = 2, shape: ShapeLike = (), dtype: DTypeLike | None = 'float32') -> Array: ...
def bernoulli(key: ArrayLike, p: Any = 0.5, shape: ShapeLike | None = None, mode: str = 'low') -> Array: ...
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
    *,
    method: Any = None,
) -> Array: ...
def binomial(
    key: ArrayLike,
    n: Any,
    p: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
) -> Array: ...
def bits(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = 'uint32') -> Array: ...
def categorical(
    key: ArrayLike,
    logits: Any,
    axis: Axis = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array: ...
def cauchy(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = 'float32') -> Array: ...
def chisquare(
    key: ArrayLike,
    df: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
    *,
    method: Any = None,
) -> Array: ...
def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: Any = None,
    axis: Axis = 0,
    mode: str | None = None,
) -> Array: ...
def clone(key: ArrayLike) -> Array: ...
def dirichlet(
    key: ArrayLike,
    alpha: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
    *,
    method: Any = None,
) -> Array: ...
def double_sided_maxwell(
    key: ArrayLike,
    loc: Any,
    scale: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = 'float32',
) -> Array: ...
def exponential(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = 'float32') -> Array: ...
def f(
    key: ArrayLike,
    dfnum: Any,
    dfden: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
) -> Array: ...
def fold_in(key: ArrayLike, data: Any) -> Array: ...
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
    *,
    method: Any = None,
) -> Array: ...
def generalized_normal(key: ArrayLike, p: Any, shape: ShapeLike = (), dtype: DTypeLike | None = 'float32') -> Array: ...
def geometric(key: ArrayLike, p: Any, shape: ShapeLike | None = None, dtype: DTypeLike | None = 'int32') -> Array: ...
def gumbel(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = 'float32',
    mode: str | None = None,
) -> Array: ...
def key(seed: Any, *, impl: Any = None) -> Array: ...
def key_data(keys: Any) -> Array: ...
def key_impl(keys: Any) -> str: ...
def laplace(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = 'float32') -> Array: ...
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
    *,
    method: Any = None,
) -> Array: ...
def logistic(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = 'float32') -> Array: ...
def lognormal(
    key: ArrayLike,
    sigma: Any = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
) -> Array: ...
def maxwell(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = 'float32') -> Array: ...
def multinomial(
    key: ArrayLike,
    n: Any,
    p: Any,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    unroll: Any = 1,
) -> Array: ...
def multivariate_normal(
    key: ArrayLike,
    mean: Any,
    cov: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    method: Any = 'cholesky',
) -> Array: ...
def normal(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = 'float32') -> Array: ...
def orthogonal(
    key: ArrayLike,
    n: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = 'float32',
    m: Any = None,
) -> Array: ...
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
) -> Array: ...
def permutation(key: ArrayLike, x: ArrayLike, axis: Axis = 0, independent: bool = False) -> Array: ...
def philox_bits(key: ArrayLike, shape: ShapeLike = ()) -> Array: ...
def poisson(
    key: ArrayLike,
    lam: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'int32',
    *,
    method: Any = None,
) -> Array: ...
def rademacher(key: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike | None = 'int32') -> Array: ...
def randint(key: ArrayLike, shape: ShapeLike, minval: Any, maxval: Any, dtype: DTypeLike | None = 'int32') -> Array: ...
def rayleigh(
    key: ArrayLike,
    scale: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
) -> Array: ...
def split(key: ArrayLike, num: Any = 2) -> Array: ...
def t(key: ArrayLike, df: Any, shape: ShapeLike = (), dtype: DTypeLike | None = 'float32') -> Array: ...
def triangular(
    key: ArrayLike,
    left: Any,
    mode: str,
    right: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
) -> Array: ...
def truncated_normal(
    key: ArrayLike,
    lower: Any,
    upper: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = 'float32',
) -> Array: ...
def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = 'float32',
    minval: Any = 0.0,
    maxval: Any = 1.0,
) -> Array: ...
def wald(key: ArrayLike, mean: Any, shape: ShapeLike | None = None, dtype: DTypeLike | None = 'float32') -> Array: ...
def weibull_min(
    key: ArrayLike,
    scale: Any,
    concentration: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = 'float32',
) -> Array: ...
def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> Array: ...
