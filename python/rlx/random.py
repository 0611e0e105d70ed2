"""Random numbers with explicit keys: key = rlx.random.key(0); a, b = rlx.random.split(key); rlx.random.normal(a, (3,)).

The same key gives the same bits on every device and for every number of threads. They are the bits of jax.random with
threefry2x32. Integers, uniform numbers and choices equal those of JAX; functions of a uniform number (normal, gumbel)
equal them up to rounding; numbers drawn by rejection (gamma, poisson) have the same distribution.
"""

import functools as _functools
import math as _math
import operator as _operator

from . import _rlx
from . import numpy as _rnp
from ._control import scan as _scan
from ._nodes import axes_of as _axes_of
from ._nodes import cast as _cast
from ._nodes import dims_of as _dims
from ._names import accept_names as _accept_names, getattr_of as _getattr_of
from ._nodes import inexact as _inexact
from ._nodes import node as _node
from ._op import _has_value
from ._op import creator as _creator
from ._op import op as _plain_op
from ._op import refuse_traced as _refuse_traced
from .numpy._base import int_static as _int_static


def _known(x):
    """The numbers of an argument that are known at the call, as a NumPy array; None in a traced function."""
    if x is None or _has_value(x):
        return None
    import numpy

    return numpy.asarray(x)


def _check_probabilities(p, what):
    """An error for probabilities that are NaN or not in [0, 1], where they are known."""
    known = _known(p)
    if known is None or known.dtype.kind not in "fiub":
        return
    wrong = ~((known >= 0) & (known <= 1))
    if wrong.any():
        raise ValueError(f"{what}: the probability {known[wrong].reshape(-1)[0]}; it must be in [0, 1]")


def _check_weights(p, what):
    """An error for probabilities of choices that are negative, infinite or NaN, where they are known."""
    known = _known(p)
    if known is None or known.dtype.kind not in "fiub":
        return
    wrong = ~((known >= 0) & (known < _math.inf))
    if wrong.any():
        raise ValueError(
            f"{what}: the probability {known[wrong].reshape(-1)[0]}; none may be negative, infinite or NaN"
        )


def _op(*arrays, check_p=None):
    """The decorator `op`; an error of a call whose key is none says how to make one. check_p: check_p(p, name) raises
    an error for parameters p that are known and wrong.
    """

    def decorate(fun):
        function = _plain_op(*arrays)(fun)
        if arrays[0] != "key":
            return function
        code = fun.__code__
        placed = code.co_varnames[: code.co_argcount]
        # What is drawn from may be complex, parameters are real.
        real = frozenset(arrays[1:]) - ({"x", "a"} if fun.__name__ in ("choice", "permutation") else set())
        places = [(i, n) for i, n in enumerate(placed) if n in real]

        @_functools.wraps(function)
        def call(*args, **kwargs):
            for i, name in places:
                given = args[i] if i < len(args) else kwargs.get(name)
                kind = getattr(getattr(given, "dtype", None), "kind", "c" if type(given) is complex else "")
                if kind == "c":
                    raise TypeError(f"{fun.__name__}: {name} must be real, got a complex number; use its .real")
            if check_p:
                place = placed.index("p")
                check_p(args[place] if place < len(args) else kwargs.get("p"), fun.__name__)
            try:
                return function(*args, **kwargs)
            except (_rlx.Error, TypeError) as e:
                if "has no argument" in str(e):
                    raise
                wrong = _no_key(args[0] if args else kwargs.get("key"))
                if not wrong:
                    raise
            raise TypeError(
                f"{fun.__name__}: the first argument is a key, uint32 [2], not {wrong}: rlx.random.key(0) makes one, "
                f"and split gives new ones: {fun.__name__}(key, ...)"
            )

        return call

    return decorate


def _no_key(x):
    """What x is, if it is no key; else an empty text."""
    try:
        x = x if isinstance(x, (_rlx.Value, _rlx.Array)) else _rnp.array(x)
    except (_rlx.Error, TypeError, ValueError):
        return f"an object of type {type(x).__name__}"
    if x.dtype.name == "uint32" and x.shape and x.shape[-1] == 2:
        return ""
    return f"{x.dtype.name}{list(x.shape)}"


def _float_dtype(dtype, what):
    dtype = _rlx.dtype(dtype)
    if dtype.kind != "f":
        raise TypeError(f"{what} gives floating dtypes, not {dtype.name}; use rlx.random.randint or bits for integers")
    return dtype


def _at_least_32_bits(p):
    """A probability in a dtype whose uniform numbers are fine enough to compare with it."""
    return _cast(p, "float32") if p.dtype.itemsize < 4 else p


def _is_high(mode, what):
    """True for a mode of numbers with a finer resolution near 0."""
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"{what}: mode {mode!r}; it must be one of low, high and highest")
    return mode in ("high", "highest")


def _check_method(method, what):
    if method not in (None, "exact", "approximate"):
        raise ValueError(f"{what}: method {method!r}; it must be 'exact' or 'approximate'")


def _single(key, what):
    key = _rlx.value(key)
    if key.shape != (2,):
        raise TypeError(f"{what}: the key has shape {key.shape}; it must be uint32 [2]; use rlx.vmap for several keys")
    return key


def _shape_of(shape, parameters, what):
    """`shape`, or by default the shape that the parameters broadcast to. Raises an error if they do not broadcast to
    `shape`.
    """
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
        raise TypeError(f"key: the seed is {seed.dtype.name}{list(seed.shape)}; it must be one integer; see rlx.vmap")
    high = seed >> 32 if seed.dtype.itemsize == 8 else 0
    return _rnp.stack([_cast(high, "uint32"), _cast(seed, "uint32")])


def key(seed, *, impl=None):
    """A key from an integer seed of 64 bits, uint32 [2]. impl: "threefry2x32", the one generator of keys."""
    if impl not in (None, "threefry2x32"):
        raise NotImplementedError(f"key: impl {impl!r}; keys are of the generator 'threefry2x32'")
    if isinstance(seed, int):
        if not -(2**63) <= seed < 2**64:
            raise OverflowError(f"key: the seed {seed} has more than 64 bits; use fold_in to mix in further numbers")
        return _key_of(seed % 2**64 if not -(2**31) <= seed < 0 else seed % 2**32)
    if not hasattr(seed, "dtype") and not hasattr(seed, "__array__"):
        raise TypeError(f"key: the seed must be an integer, got {seed!r} ({type(seed).__name__})")
    return _key_of_array(seed)


PRNGKey = key


def key_data(keys):
    """The numbers of keys: here keys are arrays uint32 [..., 2], and this gives them back."""
    return wrap_key_data(keys)


def wrap_key_data(key_bits_array, *, impl=None):
    """Keys of an array uint32 [..., 2], which it gives back."""
    if impl not in (None, "threefry2x32"):
        raise NotImplementedError(f"wrap_key_data: impl {impl!r}; keys are of the generator 'threefry2x32'")
    what = _no_key(key_bits_array)
    if what:
        raise TypeError(f"a key is an array uint32 [..., 2], got {what}; rlx.random.key(seed) makes one")
    return key_bits_array if isinstance(key_bits_array, _rlx.Value) else _rnp.asarray(key_bits_array)


def key_impl(keys):
    """The name of the generator of keys, "threefry2x32"."""
    key_data(keys)
    return "threefry2x32"


def clone(key):
    """The same key."""
    return key_data(key)


@_op("key")
def split(key, num=2):
    """Splits a key into several: uint32 [num, 2], or [*num, 2] if num is a shape."""
    shape = tuple(_int_static(n, "split: num") for n in _dims(num))
    if any(n < 0 for n in shape):
        raise ValueError(f"split: num must not be negative, got {num}")
    return _rnp.reshape(_rlx.rng_split([_single(key, "split")], _math.prod(shape)), (*shape, 2))


@_op("key", "data")
def _folded_in(key, data):
    return _rlx.rng_fold_in([key, data])


def fold_in(key, data):
    """A new key from a key and an integer of 32 bits; of wider arrays the low 32 bits count."""
    if isinstance(data, int) and not -(2**31) <= data < 2**32:
        raise OverflowError(f"fold_in: {data} has more than 32 bits; fold in its parts one after the other")
    return _folded_in(key, data)


@_op("key")
def bits(key, shape=(), dtype="uint32"):
    """Random unsigned integers, with all bits random."""
    return _rlx.rng_bits([key], _dims(shape), dtype)


@_op("key", "minval", "maxval")
def uniform(key, shape=(), dtype="float32", minval=0.0, maxval=1.0):
    """Uniform numbers in [minval, maxval). The bounds broadcast to the shape."""
    dtype, shape = _float_dtype(dtype, "uniform"), _shape_of(shape, (minval, maxval), "uniform")
    if isinstance(minval, float) and isinstance(maxval, float) and (minval, maxval) == (0.0, 1.0):
        return _rlx.rng_uniform([key], shape, dtype, 0.0, 1.0)
    return _rlx.draw("uniform", [key, _cast(minval, dtype), _cast(maxval, dtype)], shape, dtype)


@_op("key")
def normal(key, shape=(), dtype="float32"):
    """Normal numbers with mean 0 and variance 1. Both parts of complex ones have variance 1/2."""
    if _rlx.dtype(dtype).kind == "c":
        part = "float32" if _rlx.dtype(dtype).name == "complex64" else "float64"
        re, im = (normal(k, shape, part) for k in split(key))
        half = _math.sqrt(0.5)
        return _node("complex", re * half, im * half)
    return _rlx.rng_normal([key], _dims(shape), _float_dtype(dtype, "normal"))


def _check_not_nan(p, what):
    known = _known(p)
    if known is not None and (known != known).any():
        raise ValueError(f"{what}: the probability is NaN")


@_op("key", "p", check_p=_check_not_nan)
def bernoulli(key, p=0.5, shape=None, mode="low"):
    """True with probability p. The default shape is that of p. mode "high" serves probabilities below 1e-7. A p below 0
    counts as 0 and one above 1 as 1, as in JAX. A known p that is NaN is an error; a traced one gives False.
    """
    high = _is_high(mode, "bernoulli")
    p = _rlx.value(p)
    if p.dtype.kind != "f":
        raise TypeError(f"bernoulli: p must be floating, got {p.dtype.name}")
    p = _at_least_32_bits(p)
    shape = _shape_of(shape, (p,), "bernoulli")
    if high:
        first, second = uniform(key, (2, *shape), p.dtype)
        return _rnp.less(second * 2.0 ** -_rnp.finfo(p.dtype).nmant, p - first)
    return _rnp.less(uniform(key, shape, p.dtype), p)


# -- integers --


@_op("key", "minval", "maxval")
def randint(key, shape, minval, maxval, dtype="int32"):
    """Integers in [minval, maxval). If the span is not a power of two, some of them are slightly likelier."""
    dtype = _rlx.dtype(dtype)
    if dtype.kind not in "iu" or dtype.itemsize * 8 != dtype.bits:
        raise TypeError(
            f"randint: dtype {dtype.name}; it must be an integer of 8 bits or more (rlx.random.uniform draws floats)"
        )
    shape = _shape_of(shape, (minval, maxval), "randint")
    for name, bound in (("minval", minval), ("maxval", maxval)):
        if (bound := _rlx.value(bound)).dtype.kind not in "iu":
            raise TypeError(f"randint: {name} must be an integer, got {bound.dtype.name}")
    return _rlx.draw("randint", [_single(key, "randint"), minval, maxval], shape, dtype)


@_op("key")
def rademacher(key, shape=(), dtype="int32"):
    """-1 or 1, each with probability 1/2."""
    return _rlx.draw("rademacher", [key], _dims(shape), dtype)


@_op("key", "p", check_p=_check_probabilities)
def geometric(key, p, shape=None, dtype="int32"):
    """Numbers of trials up to the first success, each with probability p: 1, 2, ...; the largest integer of the dtype
    where the number does not fit or p is 0. A known p that is NaN or not in [0, 1] is an error; of traced ones, those
    below 0 count as 0 and those above 1 as 1.
    """
    p = _rnp.clip(_at_least_32_bits(_inexact(p)), 0, 1)
    u = uniform(key, _shape_of(shape, (p,), "geometric"), p.dtype, float(_rnp.finfo(p.dtype).eps))
    return _cast(_rnp.floor(_rnp.log(u) / _rnp.log1p(-p)) + 1, dtype)


# -- orders and choices --


@_op("key", "x")
def _permuted(key, x, axis, independent):
    x = _rlx.value(x)
    (axis,) = _axes_of(axis, x.ndim, "permutation")
    return _rlx.draw_shuffle([key, x], axis, independent)


def _range_or_array(x, what):
    """range(x) for an integer x, or the array x."""
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
    """The rows of x (or range(x)) in random order. independent: each row along the other axes gets its own order."""
    return _permuted(key, _range_or_array(x, "permutation"), axis, independent)


@_op("key", "a", "p", check_p=lambda p, _: _check_weights(p, "choice"))
def _chosen(key, a, shape, replace, p, axis, mode):
    a, key = _rlx.value(a), _single(key, "choice")
    (axis,) = _axes_of(axis, a.ndim, "choice")
    among, wanted = a.shape[axis], _math.prod(shape)
    if wanted and not among:
        raise ValueError(f"choice: axis {axis} of an array of shape {a.shape} has no entries to choose from")
    if not replace and wanted > among:
        raise ValueError(f"choice: {wanted} of {among} without replacement; draw fewer, or use replace=True")
    if p is None:
        if replace:
            return _rnp.take(a, randint(key, shape, 0, among), axis)
        places = _rlx.draw_permutation([key], among)[:wanted]
    else:
        p = _at_least_32_bits(_inexact(p))
        if p.shape != (among,):
            raise ValueError(f"choice: p has shape {p.shape}, it must be ({among},), one probability for each entry")
        if replace:
            total = _rnp.cumsum(p)
            places = _rnp.searchsorted(total, total[-1] * (1 - uniform(key, shape, p.dtype)))
        else:
            places = _rnp.argsort(-gumbel(key, (among,), p.dtype, mode) - _rnp.log(p))[:wanted]
    return _rnp.take(a, _rnp.reshape(places, shape), axis)


def choice(key, a, shape=(), replace=True, p=None, axis=0, mode=None):
    """Random entries of a (or of range(a)) along an axis, with probabilities p, with or without replacement.

    The result has `shape` in place of that axis. Where no entry has a probability, it is the first one. A known p that
    is negative, infinite or NaN is an error; traced ones make the choice meaningless. mode: as of gumbel, for draws
    without replacement.
    """
    _is_high(mode, "choice")
    return _chosen(key, _range_or_array(a, "choice"), _dims(shape), replace, p, axis, mode)


@_op("key", "logits")
def categorical(key, logits, axis=-1, shape=None, replace=True, mode=None):
    """Random indices with the given logits along an axis, int32. Where every logit is -inf, so that no index has a
    probability, the index is 0.

    shape: the shape of the result. It ends with the other axes of the logits (or a shape that they broadcast to); the
        axes before are independent draws. Without replacement these draws differ from each other.
    mode: as of gumbel.
    """
    high = _is_high(mode, "categorical")
    logits = _inexact(logits)
    (axis,) = _axes_of(axis, logits.ndim, "categorical")
    rows = logits.shape[:axis] + logits.shape[axis + 1 :]
    shape = _shape_of(shape, (_rnp.empty(rows),), "categorical")
    draws, rows = shape[: len(shape) - len(rows)], shape[len(shape) - len(rows) :]
    logits = _rnp.broadcast_to(logits, (*rows[:axis], logits.shape[axis], *rows[axis:]))
    if replace and high:
        noise = gumbel(key, (*draws, *logits.shape), logits.dtype, mode)
        return _rnp.argmax(noise + logits, axis + len(draws))
    if replace:
        return _rlx.draw_categorical([key, logits], axis, draws)
    count = _math.prod(draws)
    if count > logits.shape[axis]:
        raise ValueError(
            f"categorical: {count} of {logits.shape[axis]} indices without replacement; draw fewer, or use replace=True"
        )
    if high:
        order = _rnp.argsort(-gumbel(key, logits.shape, logits.dtype, mode) - logits, axis)
        return _rnp.reshape(_rnp.moveaxis(order, axis, 0)[:count], shape)
    return _rnp.reshape(_rlx.draw_categorical_distinct([key, logits], count, axis), shape)


# -- functions of uniform and of normal numbers --


@_op("key")
def gumbel(key, shape=(), dtype="float32", mode=None):
    """Gumbel numbers. The index of the largest sum of logits and such numbers is a categorical draw. mode "high" (or
    "highest", which is the same) draws two numbers for each, so that events below 1e-7 occur as often as they should.
    """
    if _is_high(mode, "gumbel"):
        limits = _rnp.finfo(_float_dtype(dtype, "gumbel"))
        high, low = uniform(key, (2, *_dims(shape)), dtype)
        fine = _rnp.where(high >= 0.5, high, high + 2.0**-limits.nmant * low + limits.tiny)
        return -_rnp.log(-_rnp.log1p(-fine))
    return _rlx.draw("gumbel", [key], _dims(shape), _float_dtype(dtype, "gumbel"))


@_op("key")
def exponential(key, shape=(), dtype="float32"):
    """Exponential numbers with mean 1."""
    return _rlx.draw("exponential", [key], _dims(shape), _float_dtype(dtype, "exponential"))


@_op("key")
def laplace(key, shape=(), dtype="float32"):
    """Laplace numbers with mean 0 and scale 1."""
    return _rlx.draw("laplace", [key], _dims(shape), _float_dtype(dtype, "laplace"))


@_op("key")
def logistic(key, shape=(), dtype="float32"):
    """Logistic numbers with mean 0 and scale 1."""
    return _rlx.draw("logistic", [key], _dims(shape), _float_dtype(dtype, "logistic"))


@_op("key")
def cauchy(key, shape=(), dtype="float32"):
    """Cauchy numbers with location 0 and scale 1."""
    return _rlx.draw("cauchy", [key], _dims(shape), _float_dtype(dtype, "cauchy"))


def _not_negative(x):
    """x with NaN in place of negative numbers, and 0 of -0."""
    return _rnp.where(_rnp.greater_equal(x, 0), _rnp.abs(x), _math.nan)


@_op("key", "scale")
def rayleigh(key, scale, shape=None, dtype="float32"):
    """Rayleigh numbers with a scale: lengths of vectors of two normal numbers; NaN for a negative scale."""
    shape = _shape_of(shape, (scale,), "rayleigh")
    u = uniform(key, shape, dtype, float(_rnp.finfo(_float_dtype(dtype, "rayleigh")).tiny))
    return _rnp.sqrt(-2 * _rnp.log(u)) * _not_negative(_cast(scale, dtype))


@_op("key", "scale", "concentration")
def weibull_min(key, scale, concentration, shape=(), dtype="float32"):
    """Weibull numbers: scale * e^(1 / concentration) with exponential numbers e; NaN for negative parameters."""
    shape = _shape_of(shape, (scale, concentration), "weibull_min")
    return _rlx.draw("weibull", [key, *(_not_negative(_cast(v, dtype)) for v in (scale, concentration))], shape, dtype)


@_op("key", "b")
def pareto(key, b, shape=None, dtype="float32"):
    """Pareto numbers: at least 1, and above x with probability x^-b; NaN for a negative b."""
    return _rlx.draw("pareto", [key, _not_negative(_cast(b, dtype))], _shape_of(shape, (b,), "pareto"), dtype)


@_op("key", "left", "mode", "right")
def triangular(key, left, mode, right, shape=None, dtype="float32"):
    """Triangular numbers between left and right, with the given mode; NaN unless left <= mode <= right."""
    shape = _shape_of(shape, (left, mode, right), "triangular")
    left, mode, right = (_cast(v, dtype) for v in (left, mode, right))
    u = uniform(key, shape, dtype)
    span = right - left
    size = _rnp.where(_rnp.greater(span, 0), span, 1)  # the products of two spans may overflow
    share = (mode - left) / size
    rising = left + span * _rnp.sqrt(u * share)
    falling = right - span * _rnp.sqrt((1 - u) * ((right - mode) / size))
    ordered = _rnp.less_equal(left, mode) & _rnp.less_equal(mode, right)
    drawn = _rnp.clip(_rnp.where(_rnp.less(u, share), rising, falling), left, right)
    return _rnp.where(ordered, drawn, _math.nan)


@_op("key", "sigma")
def lognormal(key, sigma=1.0, shape=None, dtype="float32"):
    """exp(sigma * z) with normal numbers z."""
    return _rnp.exp(normal(key, _shape_of(shape, (sigma,), "lognormal"), dtype) * _cast(sigma, dtype))


@_op("key")
def maxwell(key, shape=(), dtype="float32"):
    """Lengths of vectors of three normal numbers."""
    return _rnp.linalg.norm(normal(key, (*_dims(shape), 3), dtype), axis=-1)


@_op("key", "lower", "upper")
def truncated_normal(key, lower, upper, shape=None, dtype="float32"):
    """Normal numbers truncated to the range from lower to upper."""
    shape = _shape_of(shape, (lower, upper), "truncated_normal")
    dtype = _float_dtype(dtype, "truncated_normal")
    return _rlx.draw("truncated_normal", [key, _cast(lower, dtype), _cast(upper, dtype)], shape, dtype)


@_op("key", "mean", "cov")
def multivariate_normal(key, mean, cov, shape=None, dtype=None, method="cholesky"):
    """Normal vectors [*shape, n] with mean [.., n] and covariance [.., n, n].

    shape: by default the shape that the leading axes of both broadcast to. method: the factorization of cov:
        "cholesky", "eigh" or "svd". The last two accept semidefinite matrices.
    """
    mean, cov = _inexact(mean), _inexact(cov)
    dtype = _float_dtype(dtype or _rlx.result_type(mean, cov)[0], "multivariate_normal")
    mean, cov = _cast(mean, dtype), _cast(cov, dtype)
    if not mean.ndim or cov.ndim < 2 or cov.shape[-2:] != mean.shape[-1:] * 2:
        raise ValueError(f"multivariate_normal: mean {mean.shape} must be [.., n] and cov {cov.shape} [.., n, n]")
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
        raise ValueError(f"multivariate_normal: method {method!r}; it must be one of cholesky, eigh and svd")
    return mean + _rnp.einsum("...ij,...j->...i", factor, normal(key, (*shape, mean.shape[-1]), dtype))


@_op("key")
def orthogonal(key, n, shape=(), dtype="float32", m=None):
    """Uniformly random matrices [*shape, n, m] with orthonormal columns, or orthonormal rows if n < m. m is n by
    default.
    """
    dtype = _rlx.dtype(dtype)
    dtype = dtype if dtype.kind == "c" else _float_dtype(dtype, "orthogonal")
    n, m = _operator.index(n), _operator.index(n if m is None else m)
    if n < 0 or m < 0:
        raise ValueError(f"orthogonal: a matrix of {n} by {m} has a negative extent")
    q, r = _rnp.linalg.qr(normal(key, (*_dims(shape), max(n, m), min(n, m)), dtype))
    d = _rnp.diagonal(r, 0, -2, -1)[..., None, :]
    q = q * _rnp.sign(d) if dtype.kind == "c" else q * _rnp.where(d < 0, -1, 1)
    return _rnp.swapaxes(q, -2, -1) if n < m else q


# -- drawn by rejection: the distributions are those of JAX, the numbers are not; derivatives by the parameters are 0.
# method "approximate" of JAX gives the exact draws too --


def _drawn(name, what, key, parameters, shape, dtype):
    dtype = _float_dtype(dtype, what)
    shape = _shape_of(shape, parameters, what)
    wide = dtype if dtype.itemsize >= 4 else _rlx.dtype("float32")  # float16 has no shape of 1e-9, and none of 1e5
    return _cast(_rlx.draw(name, [_single(key, what), *(_cast(p, wide) for p in parameters)], shape, wide), dtype)


@_op("key", "a")
def gamma(key, a, shape=None, dtype="float32", *, method=None):
    """Gamma numbers with shape a and scale 1."""
    _check_method(method, "gamma")
    return _drawn("gamma", "gamma", key, (a,), shape, dtype)


@_op("key", "a")
def loggamma(key, a, shape=None, dtype="float32", *, method=None):
    """Logarithms of gamma numbers. They stay finite for a small a, whose gamma numbers round to 0."""
    _check_method(method, "loggamma")
    return _drawn("log_gamma", "loggamma", key, (a,), shape, dtype)


@_op("key", "a", "b")
def beta(key, a, b, shape=None, dtype="float32", *, method=None):
    """Beta numbers: x / (x + y) with gamma numbers x and y."""
    _check_method(method, "beta")
    return _drawn("beta", "beta", key, (a, b), shape, dtype)


@_op("key", "df")
def chisquare(key, df, shape=None, dtype="float32", *, method=None):
    """Chi-square numbers: sums of the squares of df normal numbers."""
    _check_method(method, "chisquare")
    return _drawn("chisquare", "chisquare", key, (df,), shape, dtype)


@_op("key", "df")
def t(key, df, shape=(), dtype="float32"):
    """Student's t numbers with df degrees of freedom."""
    return _drawn("student_t", "t", key, (df,), shape, dtype)


@_op("key", "dfnum", "dfden")
def f(key, dfnum, dfden, shape=None, dtype="float32"):
    """F numbers: ratios of two chi-square numbers, each divided by its degrees of freedom."""
    dtype, shape, keys = _float_dtype(dtype, "f"), _shape_of(shape, (dfnum, dfden), "f"), split(key)
    wide = dtype if dtype.itemsize >= 4 else _rlx.dtype("float32")
    dfnum, dfden = _cast(dfnum, wide), _cast(dfden, wide)
    over, under = (chisquare(k, df, shape, wide) for k, df in zip(keys, (dfnum, dfden)))
    out = over / dfnum / (under / dfden)
    # Both numbers may be too small for the dtype, or too large: then the logarithms decide.
    halves = [loggamma(k, df / 2, shape, wide) for k, df in zip(keys, (dfnum, dfden))]
    lost = (over == 0) & (under == 0) | (over == _math.inf) & (under == _math.inf)
    far = _rnp.exp(halves[0] - halves[1] + (_rnp.log(dfden) - _rnp.log(dfnum)))
    return _cast(_rnp.where(lost, far, out), dtype)


@_op("key", "alpha")
def dirichlet(key, alpha, shape=None, dtype="float32", *, method=None):
    """Dirichlet vectors, whose positive elements add up to 1: [*shape, K] for alpha [.., K]."""
    _check_method(method, "dirichlet")
    dtype = _float_dtype(dtype, "dirichlet")
    wide = dtype if dtype.itemsize >= 4 else _rlx.dtype("float32")
    alpha = _cast(alpha, wide)
    if not alpha.ndim:
        raise ValueError("dirichlet: alpha needs an axis, [.., K]")
    shape = _shape_of(shape, (_rnp.empty(alpha.shape[:-1]),), "dirichlet")
    return _cast(_rlx.draw("dirichlet", [_single(key, "dirichlet"), alpha], shape, wide), dtype)


@_op("key", "lam")
def poisson(key, lam, shape=None, dtype="int32", *, method=None):
    """Poisson numbers with rate lam, as integers; -1 if lam is negative, infinite or NaN. A number that the dtype does
    not hold is its largest one. They are computed in float32: rates above 1e7 spread too far, by up to a third.
    """
    _check_method(method, "poisson")
    shape = _shape_of(shape, (lam,), "poisson")
    return _rlx.draw("poisson", [_single(key, "poisson"), _cast(lam, "float32")], shape, dtype)


@_op("key", "n", "p")
def binomial(key, n, p, shape=None, dtype="float32"):
    """Binomial numbers: successes of n trials with probability p, as floating numbers; NaN where n is negative or p not
    in [0, 1].
    """
    dtype = _float_dtype(dtype, "binomial")
    if type(n) is int and n < 2**24:
        return _drawn("binomial", "binomial", key, (n, p), shape, dtype)
    # The differences of logarithms of factorials need the digits.
    return _cast(_drawn("binomial", "binomial", key, (n, p), shape, "float64"), dtype)


def multinomial(key, n, p, *, shape=None, dtype=None, unroll=1):
    """Multinomial numbers: how often each of K outcomes occurs in n trials with probabilities p [.., K], as floating
    numbers [.., K].

    shape: the shape of the result, which ends with K; by default the shape that n and the leading axes of p broadcast
        to. The probabilities are divided by their sum. `unroll` has no effect. Known probabilities that are negative,
        infinite or NaN are an error; traced ones make the counts meaningless.
    """
    _check_weights(p, "multinomial")
    return _multinomial(key, n, p, shape=shape, dtype=dtype)


@_op("key", "n", "p")
def _multinomial(key, n, p, *, shape=None, dtype=None):
    p = _inexact(p)
    dtype = _float_dtype(dtype or p.dtype, "multinomial")
    wide = _rlx.dtype("float64")  # counts of many trials
    n, p = _cast(n, wide), _cast(p, wide)
    if not p.ndim:
        raise ValueError("multinomial: p needs an axis, [.., K]")
    if shape is not None and tuple(shape)[-1:] != p.shape[-1:]:
        raise ValueError(f"multinomial: shape {tuple(shape)} must end with {p.shape[-1]}, the outcomes of p {p.shape}")
    leading = None if shape is None else tuple(shape)[:-1]
    shape = _shape_of(leading, (n, _rnp.empty(p.shape[:-1])), "multinomial")
    p = _rnp.moveaxis(_rnp.broadcast_to(p, (*shape, p.shape[-1])), -1, 0)
    # Outcome i against the later outcomes, for the trials that are left.
    behind = _rnp.flip(_rnp.cumsum(_rnp.flip(p, 0), 0), 0)
    chance = _rnp.where(behind > 0, _rnp.minimum(p / _rnp.where(behind > 0, behind, 1), 1), 0)

    def outcome(left, x):
        one, own = x
        count = binomial(own, left, one, shape, wide)
        return left - count, count

    _, counts = _scan(outcome, _rnp.broadcast_to(n, shape), (chance, split(key, p.shape[0])))
    return _cast(_rnp.moveaxis(counts, 0, -1), dtype)


@_op("key")
def ball(key, d, p=2, shape=(), dtype="float32"):
    """Uniform points [*shape, d] in the unit ball of the p-norm."""
    dtype = _float_dtype(dtype, "ball")
    return _rlx.draw_ball([_single(key, "ball")], d, float(p), _dims(shape), dtype)


@_op("key", "p")
def generalized_normal(key, p, shape=(), dtype="float32"):
    """Numbers with a density proportional to exp(-|x|^p), uniform ones of an infinite p; NaN unless p is positive."""
    p, keys, shape = _cast(p, dtype), split(key), _shape_of(shape, (p,), "generalized_normal")
    p = _rnp.where(_rnp.greater(p, 0), p, _math.nan)
    sizes = _rnp.power(gamma(keys[0], 1 / p, shape, dtype), 1 / p)
    sizes = _rnp.where(_rnp.equal(p, _math.inf), uniform(keys[0], shape, dtype), sizes)
    return rademacher(keys[1], shape, dtype) * sizes


@_op("key", "loc", "scale")
def double_sided_maxwell(key, loc, scale, shape=(), dtype="float32"):
    """loc + scale * x, where x is a Maxwell number with a random sign."""
    shape, keys = _shape_of(shape, (loc, scale), "double_sided_maxwell"), split(key)
    sized = maxwell(keys[0], shape, dtype) * rademacher(keys[1], shape, dtype)
    return sized * _cast(scale, dtype) + _cast(loc, dtype)


@_op("key", "mean")
def wald(key, mean, shape=None, dtype="float32"):
    """Wald (inverse Gaussian) numbers with the given mean and scale 1."""
    shape, keys, mean = _shape_of(shape, (mean,), "wald"), split(key), _cast(mean, dtype)
    # The roots of a quadratic equation, whose product is mean^2: the smaller one without cancellation.
    w = mean * _rnp.square(normal(keys[0], shape, dtype))
    ratio = 1 + (w + _rnp.sqrt(w) * _rnp.sqrt(4 + w)) / 2
    return mean * _rnp.where(_rnp.less_equal(uniform(keys[1], shape, dtype), ratio / (1 + ratio)), 1 / ratio, ratio)


@_op("key")
def philox_bits(key, shape=()):
    """Random uint32 numbers of Philox-4x32-10 (Random123) instead of Threefry."""
    return _rlx.draw("philox_bits", [_single(key, "philox_bits")], _dims(shape), "uint32")


_INSTEAD = {
    "key_dtype": "keys are uint32 arrays [.., 2]",
    "rng_bit_generator": "bits(key, shape)",
    "rand": "uniform(key, shape)",
    "randn": "normal(key, shape)",
    "random": "uniform(key, shape)",
    "seed": "key(seed) makes a key, which every function takes first",
    "shuffle": "permutation(key, x)",
}
__getattr__ = _getattr_of("rlx.random", _INSTEAD)

_accept_names(globals())
