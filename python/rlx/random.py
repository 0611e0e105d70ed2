"""Random numbers with explicit keys: key = rlx.random.key(0); a, b = rlx.random.split(key); rlx.random.normal(a, (3,)).

The same key gives the same bits on every device and thread count, and they are those of jax.random with threefry2x32:
integers, uniform numbers and choices are JAX's, what a function of a uniform number is (normal, gumbel) to rounding;
what is drawn by rejection (gamma, poisson) has the same distribution.
"""

import math as _math
import operator as _operator

from . import _rlx
from . import numpy as _rnp
from ._op import axes_of as _axes_of
from ._op import _has_value
from ._op import cast as _cast
from ._op import creator as _creator
from ._op import inexact as _inexact
from ._op import op as _op
from ._op import refuse_traced as _refuse_traced
from .numpy._base import int_static as _int_static


def _dims(shape):
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def _float_dtype(dtype, what):
    dtype = _rlx.dtype(dtype)
    if dtype.kind != "f":
        raise TypeError(f"{what} makes floating numbers, not {dtype.name}; rlx.random.randint and bits make integers")
    return dtype


def _low_mode(mode, what):
    if mode not in (None, "low"):
        raise NotImplementedError(f"{what}: mode {mode!r} is not there; leave it out, or say 'low'")


def _single(key, what):
    key = _rlx.value(key)
    if key.shape != (2,):
        raise TypeError(f"{what}: the key has shape {key.shape}, one key is uint32 [2]; rlx.vmap goes over several")
    return key


def _shape_of(shape, parameters, what):
    """`shape`, or the one that the parameters broadcast to; they have to broadcast to it."""
    own = _rnp.broadcast_shapes(*(_rlx.value(p).shape for p in parameters))
    if shape is None:
        return own
    shape = _dims(shape)
    if _rnp.broadcast_shapes(own, shape) != shape:
        raise ValueError(f"{what}: parameters of shape {own} do not broadcast to the shape {shape}")
    return shape


@_creator
def _key_of(seed):
    return _rlx.rng_key(seed)


@_op("seed")
def _key_of_array(seed):
    seed = _rlx.value(seed)
    if seed.ndim or seed.dtype.kind not in "iu":
        raise TypeError(f"key: the seed is {seed.dtype.name}{list(seed.shape)}, it is one integer; see rlx.vmap")
    high = seed >> 32 if seed.dtype.itemsize == 8 else 0
    return _rnp.stack([_cast(high, "uint32"), _cast(seed, "uint32")])


def key(seed):
    """The key of an integer seed, uint32 [2]."""
    if isinstance(seed, int):
        return _key_of(seed % 2**64 if not -(2**31) <= seed < 0 else seed % 2**32)
    return _key_of_array(seed)


PRNGKey = key


@_op("key")
def split(key, num=2):
    """Keys made of one: uint32 [num, 2], or [*num, 2] where num is a shape."""
    shape = tuple(_int_static(n, "split: num") for n in _dims(num))
    if any(n < 0 for n in shape):
        raise ValueError(f"split: {num} keys")
    return _rnp.reshape(_rlx.rng_split([_single(key, "split")], _math.prod(shape)), (*shape, 2))


@_op("key", "data")
def fold_in(key, data):
    """The key of a key and an integer."""
    return _rlx.rng_fold_in([key, data])


@_op("key")
def bits(key, shape=(), dtype="uint32"):
    """Random unsigned integers, all bits of them."""
    return _rlx.rng_bits([key], _dims(shape), dtype)


@_op("key", "minval", "maxval")
def uniform(key, shape=(), dtype="float32", minval=0.0, maxval=1.0):
    """Numbers in [minval, maxval); the bounds broadcast to the shape."""
    dtype, shape = _float_dtype(dtype, "uniform"), _shape_of(shape, (minval, maxval), "uniform")
    if isinstance(minval, float) and isinstance(maxval, float) and (minval, maxval) == (0.0, 1.0):
        return _rlx.rng_uniform([key], shape, dtype, 0.0, 1.0)
    return _rlx.draw("uniform", [key, _cast(minval, dtype), _cast(maxval, dtype)], shape, dtype)


@_op("key")
def normal(key, shape=(), dtype="float32"):
    """Numbers of the normal distribution, mean 0 and variance 1."""
    return _rlx.rng_normal([key], _dims(shape), _float_dtype(dtype, "normal"))


@_op("key", "p")
def bernoulli(key, p=0.5, shape=None, mode="low"):
    """True with probability p, of p's shape where none is given."""
    _low_mode(mode, "bernoulli")
    p = _rlx.value(p)
    if p.dtype.kind != "f":
        raise TypeError(f"bernoulli: p is a floating number, got {p.dtype.name}")
    return _rnp.less(uniform(key, _shape_of(shape, (p,), "bernoulli"), p.dtype), p)


# -- integers --


@_op("key", "minval", "maxval")
def randint(key, shape, minval, maxval, dtype="int32"):
    """Integers in [minval, maxval); of spans that are no power of two some are a little likelier."""
    dtype = _rlx.dtype(dtype)
    if dtype.kind not in "iu" or dtype.itemsize * 8 != dtype.bits:
        raise TypeError(f"randint makes integers of whole bytes, not {dtype.name}; rlx.random.uniform makes floats")
    shape = _shape_of(shape, (minval, maxval), "randint")
    for name, bound in (("minval", minval), ("maxval", maxval)):
        if (bound := _rlx.value(bound)).dtype.kind not in "iu":
            raise TypeError(f"randint: {name} is an integer, got {bound.dtype.name}")
    return _rlx.draw("randint", [_single(key, "randint"), minval, maxval], shape, dtype)


@_op("key")
def rademacher(key, shape=(), dtype="int32"):
    """-1 or 1, each with probability 1/2."""
    return _rlx.draw("rademacher", [key], _dims(shape), dtype)


@_op("key", "p")
def geometric(key, p, shape=None, dtype="int32"):
    """How many trials, each of which succeeds with probability p, there are up to the first success: 1, 2, ..."""
    p = _inexact(p)
    u = uniform(key, _shape_of(shape, (p,), "geometric"), p.dtype, float(_rnp.finfo(p.dtype).eps))
    return _cast(_rnp.floor(_rnp.log(u) / _rnp.log1p(-p)) + 1, dtype)


# -- orders and choices --


@_op("key", "x")
def _permuted(key, x, axis, independent):
    x = _rlx.value(x)
    (axis,) = _axes_of(axis, x.ndim, "permutation")
    return _rlx.draw_shuffle([key, x], axis, independent)


def _range_or_array(x, what):
    """range(x) of an integer; an array with axes as it is."""
    if not isinstance(x, (list, tuple)) and not getattr(x, "shape", ()):
        if isinstance(x, _rlx.Value):
            _refuse_traced(x, f"{what}: the integer")
        try:
            count = _operator.index(x)
        except TypeError:
            raise TypeError(f"{what} takes an integer or an array with at least one axis, got {x!r}") from None
        return _rnp.arange(max(count, 0))
    return x


def permutation(key, x, axis=0, independent=False):
    """The rows of x (or range(x)) in a random order; independent: each row of the other axes in an order of its own."""
    return _permuted(key, _range_or_array(x, "permutation"), axis, independent)


@_op("key", "a", "p")
def _chosen(key, a, shape, replace, p, axis):
    a, key = _rlx.value(a), _single(key, "choice")
    (axis,) = _axes_of(axis, a.ndim, "choice")
    among, wanted = a.shape[axis], _math.prod(shape)
    if wanted and not among:
        raise ValueError(f"choice: axis {axis} of an array of shape {a.shape} has nothing to choose from")
    if not replace and wanted > among:
        raise ValueError(f"choice: {wanted} of {among} without replacement; draw fewer, or say replace=True")
    if p is None:
        if replace:
            return _rnp.take(a, randint(key, shape, 0, among), axis)
        places = _rlx.draw_permutation([key], among)[:wanted]
    else:
        p = _inexact(p)
        if p.shape != (among,):
            raise ValueError(
                f"choice: p has shape {p.shape}, one probability for each of {among} entries is ({among},)"
            )
        if replace:
            total = _rnp.cumsum(p)
            places = _rnp.searchsorted(total, total[-1] * (1 - uniform(key, shape, p.dtype)))
        else:
            places = _rnp.argsort(-gumbel(key, (among,), p.dtype) - _rnp.log(p))[:wanted]
    return _rnp.take(a, _rnp.reshape(places, shape), axis)


def choice(key, a, shape=(), replace=True, p=None, axis=0, mode=None):
    """Entries of a (or of range(a)) along an axis, drawn with probabilities p, with or without replacement.

    Results have `shape` in place of that axis.
    """
    _low_mode(mode, "choice")
    return _chosen(key, _range_or_array(a, "choice"), _dims(shape), replace, p, axis)


@_op("key", "logits")
def categorical(key, logits, axis=-1, shape=None, replace=True, mode=None):
    """Indices drawn by their logits along an axis, int32.

    shape: that of the result, which ends with the other axes of the logits (or what they broadcast to) and has the
    axes of independent draws in front; without replacement these are different indices.
    """
    _low_mode(mode, "categorical")
    logits = _inexact(logits)
    (axis,) = _axes_of(axis, logits.ndim, "categorical")
    rows = logits.shape[:axis] + logits.shape[axis + 1 :]
    shape = _shape_of(shape, (_rnp.empty(rows),), "categorical")
    draws, rows = shape[: len(shape) - len(rows)], shape[len(shape) - len(rows) :]
    logits = _rnp.broadcast_to(logits, (*rows[:axis], logits.shape[axis], *rows[axis:]))
    if replace:
        return _rlx.draw_categorical([key, logits], axis, draws)
    count = _math.prod(draws)
    if count > logits.shape[axis]:
        raise ValueError(
            f"categorical: {count} of {logits.shape[axis]} indices without replacement; draw fewer, or say replace=True"
        )
    return _rnp.reshape(_rlx.draw_categorical_distinct([key, logits], count, axis), shape)


# -- functions of uniform and of normal numbers --


@_op("key")
def gumbel(key, shape=(), dtype="float32", mode=None):
    """Numbers of the Gumbel distribution: the largest of logits plus such numbers is a draw by the logits."""
    _low_mode(mode, "gumbel")
    return _rlx.draw("gumbel", [key], _dims(shape), _float_dtype(dtype, "gumbel"))


@_op("key")
def exponential(key, shape=(), dtype="float32"):
    """Numbers of the exponential distribution, mean 1."""
    return _rlx.draw("exponential", [key], _dims(shape), _float_dtype(dtype, "exponential"))


@_op("key")
def laplace(key, shape=(), dtype="float32"):
    """Numbers of the Laplace distribution, mean 0 and scale 1."""
    return _rlx.draw("laplace", [key], _dims(shape), _float_dtype(dtype, "laplace"))


@_op("key")
def logistic(key, shape=(), dtype="float32"):
    """Numbers of the logistic distribution, mean 0 and scale 1."""
    return _rlx.draw("logistic", [key], _dims(shape), _float_dtype(dtype, "logistic"))


@_op("key")
def cauchy(key, shape=(), dtype="float32"):
    """Numbers of the Cauchy distribution, around 0 with scale 1."""
    return _rlx.draw("cauchy", [key], _dims(shape), _float_dtype(dtype, "cauchy"))


@_op("key", "scale")
def rayleigh(key, scale, shape=None, dtype="float32"):
    """Numbers of the Rayleigh distribution with a scale, the length of a vector of two normal numbers."""
    shape = _shape_of(shape, (scale,), "rayleigh")
    u = uniform(key, shape, dtype, float(_rnp.finfo(_float_dtype(dtype, "rayleigh")).tiny))
    return _rnp.sqrt(-2 * _rnp.log(u)) * _cast(scale, dtype)


@_op("key", "scale", "concentration")
def weibull_min(key, scale, concentration, shape=(), dtype="float32"):
    """Numbers of the Weibull distribution: scale * e^(1 / concentration) of exponential numbers e."""
    shape = _shape_of(shape, (scale, concentration), "weibull_min")
    return _rlx.draw("weibull", [key, _cast(scale, dtype), _cast(concentration, dtype)], shape, dtype)


@_op("key", "b")
def pareto(key, b, shape=None, dtype="float32"):
    """Numbers of the Pareto distribution, at least 1 and above x with probability x^-b."""
    return _rlx.draw("pareto", [key, _cast(b, dtype)], _shape_of(shape, (b,), "pareto"), dtype)


@_op("key", "left", "mode", "right")
def triangular(key, left, mode, right, shape=None, dtype="float32"):
    """Numbers of the triangular distribution, between left and right and likeliest at mode."""
    shape = _shape_of(shape, (left, mode, right), "triangular")
    left, mode, right = (_cast(v, dtype) for v in (left, mode, right))
    u = uniform(key, shape, dtype)
    rising = left + _rnp.sqrt(u * (right - left) * (mode - left))
    falling = right - _rnp.sqrt((1 - u) * (right - left) * (right - mode))
    return _rnp.where(_rnp.less(u, (mode - left) / (right - left)), rising, falling)


@_op("key", "sigma")
def lognormal(key, sigma=1.0, shape=None, dtype="float32"):
    """exp(sigma * z) of normal numbers z."""
    return _rnp.exp(normal(key, _shape_of(shape, (sigma,), "lognormal"), dtype) * _cast(sigma, dtype))


@_op("key")
def maxwell(key, shape=(), dtype="float32"):
    """Lengths of vectors of three normal numbers."""
    return _rnp.linalg.norm(normal(key, (*_dims(shape), 3), dtype), axis=-1)


@_op("key", "lower", "upper")
def truncated_normal(key, lower, upper, shape=None, dtype="float32"):
    """Numbers of the normal distribution that lie between lower and upper."""
    shape = _shape_of(shape, (lower, upper), "truncated_normal")
    dtype = _float_dtype(dtype, "truncated_normal")
    return _rlx.draw("truncated_normal", [key, _cast(lower, dtype), _cast(upper, dtype)], shape, dtype)


@_op("key", "mean", "cov")
def multivariate_normal(key, mean, cov, shape=None, dtype=None, method="cholesky"):
    """Vectors [*shape, n] of the normal distribution with mean [.., n] and covariance [.., n, n].

    shape: what the leading axes of both broadcast to unless given. method: the factor of cov, by "cholesky", "eigh" or
    "svd"; the last two take matrices that are only semidefinite too.
    """
    mean, cov = _inexact(mean), _inexact(cov)
    dtype = _float_dtype(dtype or _rlx.result_type(mean, cov)[0], "multivariate_normal")
    mean, cov = _cast(mean, dtype), _cast(cov, dtype)
    if not mean.ndim or cov.ndim < 2 or cov.shape[-2:] != mean.shape[-1:] * 2:
        raise ValueError(f"multivariate_normal: mean {mean.shape} is [.., n] and cov {cov.shape} [.., n, n]")
    shape = _shape_of(shape, (_rnp.empty(mean.shape[:-1]), _rnp.empty(cov.shape[:-2])), "multivariate_normal")
    if method == "cholesky":
        factor = _rnp.linalg.cholesky(cov)
    elif method == "eigh":
        values, vectors = _rnp.linalg.eigh(cov)
        factor = vectors * _rnp.sqrt(_rnp.maximum(values, 0))[..., None, :]
    elif method == "svd":
        u, values, _ = _rnp.linalg.svd(cov)
        factor = u * _rnp.sqrt(values)[..., None, :]
    else:
        raise ValueError(f"multivariate_normal: method {method!r}; there are cholesky, eigh and svd")
    return mean + _rnp.einsum("...ij,...j->...i", factor, normal(key, (*shape, mean.shape[-1]), dtype))


@_op("key")
def orthogonal(key, n, shape=(), dtype="float32", m=None):
    """Matrices [*shape, n, m] with orthonormal columns, or rows where n < m; square ones without m, uniform."""
    dtype = _float_dtype(dtype, "orthogonal")
    n, m = _operator.index(n), _operator.index(n if m is None else m)
    if n < 0 or m < 0:
        raise ValueError(f"orthogonal: a matrix of {n} by {m}")
    q, r = _rnp.linalg.qr(normal(key, (*_dims(shape), max(n, m), min(n, m)), dtype))
    d = _rnp.diagonal(r, 0, -2, -1)[..., None, :]
    q = q * _rnp.where(d < 0, -1, 1)
    return _rnp.swapaxes(q, -2, -1) if n < m else q


# -- drawn by rejection: the numbers are not JAX's, their distributions are; derivatives by the parameters are 0 --


def _drawn(name, what, key, parameters, shape, dtype):
    dtype = _float_dtype(dtype, what)
    shape = _shape_of(shape, parameters, what)
    return _rlx.draw(name, [_single(key, what), *(_cast(p, dtype) for p in parameters)], shape, dtype)


@_op("key", "a")
def gamma(key, a, shape=None, dtype="float32"):
    """Numbers of the gamma distribution with shape a and scale 1."""
    return _drawn("gamma", "gamma", key, (a,), shape, dtype)


@_op("key", "a")
def loggamma(key, a, shape=None, dtype="float32"):
    """Logarithms of gamma numbers, which a small a does not round to that of 0."""
    return _drawn("log_gamma", "loggamma", key, (a,), shape, dtype)


@_op("key", "a", "b")
def beta(key, a, b, shape=None, dtype="float32"):
    """Numbers of the beta distribution, x / (x + y) of gamma numbers."""
    return _drawn("beta", "beta", key, (a, b), shape, dtype)


@_op("key", "df")
def chisquare(key, df, shape=None, dtype="float32"):
    """Sums of df squares of normal numbers."""
    return _drawn("chisquare", "chisquare", key, (df,), shape, dtype)


@_op("key", "df")
def t(key, df, shape=(), dtype="float32"):
    """Numbers of Student's distribution with df degrees of freedom."""
    return _drawn("student_t", "t", key, (df,), shape, dtype)


@_op("key", "dfnum", "dfden")
def f(key, dfnum, dfden, shape=None, dtype="float32"):
    """Numbers of the F distribution: the ratio of two means of squares."""
    shape, keys = _shape_of(shape, (dfnum, dfden), "f"), split(key)
    over = chisquare(keys[0], dfnum, shape, dtype) / _cast(dfnum, dtype)
    return over / (chisquare(keys[1], dfden, shape, dtype) / _cast(dfden, dtype))


@_op("key", "alpha")
def dirichlet(key, alpha, shape=None, dtype="float32"):
    """Vectors of positive numbers that add up to 1: [*shape, K] of alpha [.., K]."""
    dtype = _float_dtype(dtype, "dirichlet")
    alpha = _cast(alpha, dtype)
    if not alpha.ndim:
        raise ValueError("dirichlet: alpha has no axes, the last one is that of the vectors")
    shape = _shape_of(shape, (_rnp.empty(alpha.shape[:-1]),), "dirichlet")
    return _rlx.draw("dirichlet", [_single(key, "dirichlet"), alpha], shape, dtype)


@_op("key", "lam")
def poisson(key, lam, shape=None, dtype="int32"):
    """How often something happens whose rate is lam: integers; -1 for a rate that is none."""
    shape = _shape_of(shape, (lam,), "poisson")
    return _rlx.draw("poisson", [_single(key, "poisson"), _cast(lam, "float32")], shape, dtype)


@_op("key", "n", "p")
def binomial(key, n, p, shape=None, dtype="float32"):
    """How many of n trials succeed, each with probability p, as floating numbers."""
    return _drawn("binomial", "binomial", key, (n, p), shape, dtype)


def multinomial(key, n, p, *, shape=None, dtype=None, unroll=1):
    """How often each of K outcomes comes in n trials of probabilities p [.., K], as floating numbers [.., K].

    shape: that of the result, K its last; what n and the leading axes of p broadcast to unless given. The
    probabilities are taken over their sum; unroll is a hint that nothing follows. A NaN among them is refused where
    they are known; of traced ones the counts mean nothing then.
    """
    if not _has_value(p):
        import numpy

        known = numpy.asarray(p)
        if (known != known).any():
            raise ValueError("multinomial: a probability is NaN")
    return _multinomial(key, n, p, shape=shape, dtype=dtype)


@_op("key", "n", "p")
def _multinomial(key, n, p, *, shape=None, dtype=None):
    from ._control import scan

    p = _inexact(p)
    dtype = _float_dtype(dtype or p.dtype, "multinomial")
    n, p = _cast(n, dtype), _cast(p, dtype)
    if not p.ndim:
        raise ValueError("multinomial: p is a number, it must be [.., K]")
    if shape is not None and tuple(shape)[-1:] != p.shape[-1:]:
        raise ValueError(f"multinomial: shape {tuple(shape)} must end with the {p.shape[-1]} outcomes of p {p.shape}")
    leading = None if shape is None else tuple(shape)[:-1]
    shape = _shape_of(leading, (n, _rnp.empty(p.shape[:-1])), "multinomial")
    p = _rnp.moveaxis(_rnp.broadcast_to(p, (*shape, p.shape[-1])), -1, 0)
    # Outcome i against those behind it, of the trials that are left.
    behind = _rnp.flip(_rnp.cumsum(_rnp.flip(p, 0), 0), 0)
    chance = _rnp.where(behind > 0, _rnp.minimum(p / _rnp.where(behind > 0, behind, 1), 1), 0)

    def outcome(left, x):
        one, own = x
        count = binomial(own, left, one, shape, dtype)
        return left - count, count

    _, counts = scan(outcome, _rnp.broadcast_to(n, shape), (chance, split(key, p.shape[0])))
    return _rnp.moveaxis(counts, 0, -1)


@_op("key")
def ball(key, d, p=2, shape=(), dtype="float32"):
    """Points [*shape, d] of the unit ball of the norm p, uniform."""
    dtype = _float_dtype(dtype, "ball")
    return _rlx.draw_ball([_single(key, "ball")], d, float(p), _dims(shape), dtype)


@_op("key", "p")
def generalized_normal(key, p, shape=(), dtype="float32"):
    """Numbers of density exp(-|x|^p) times a constant."""
    p, keys, shape = _cast(p, dtype), split(key), _shape_of(shape, (p,), "generalized_normal")
    return rademacher(keys[1], shape, dtype) * _rnp.power(gamma(keys[0], 1 / p, shape, dtype), 1 / p)


@_op("key", "loc", "scale")
def double_sided_maxwell(key, loc, scale, shape=(), dtype="float32"):
    """loc plus scale times a number of the Maxwell distribution with either sign."""
    shape, keys = _shape_of(shape, (loc, scale), "double_sided_maxwell"), split(key)
    sized = maxwell(keys[0], shape, dtype) * rademacher(keys[1], shape, dtype)
    return sized * _cast(scale, dtype) + _cast(loc, dtype)


@_op("key", "mean")
def wald(key, mean, shape=None, dtype="float32"):
    """Numbers of the inverse normal distribution with a mean, and the scale 1."""
    shape, keys, mean = _shape_of(shape, (mean,), "wald"), split(key), _cast(mean, dtype)
    square = _rnp.square(normal(keys[0], shape, dtype))
    root = _rnp.sqrt(4 * mean * square + mean * mean * _rnp.square(square))
    x = mean + mean * mean * square / 2 - mean / 2 * root
    return _rnp.where(_rnp.less_equal(uniform(keys[1], shape, dtype), mean / (mean + x)), x, mean * mean / x)


@_op("key")
def philox_bits(key, shape=()):
    """Random uint32 numbers of Philox-4x32-10, of Random123, in place of Threefry's."""
    return _rlx.draw("philox_bits", [_single(key, "philox_bits")], _dims(shape), "uint32")
