"""Elementwise primitives, sums and products of the evaluator."""

import functools

import numpy as np
import scipy.special as sp

from . import dtypes
from .evaluator import rule, wide


def _name(eqn):
    return eqn.outvars[0].aval.dtype.name


def _plain(f):
    """Exactly rounded: add, mul, ... For integers as NumPy has them."""

    def run(ev, eqn, ins):
        name = _name(eqn)
        with np.errstate(all="ignore"):
            y = f(*ins)
        if dtypes.is_inexact(name):
            return ev.moved(np.asarray(y), name, True)
        return np.asarray(y).astype(dtypes.of(name))

    return run


def _function(f):
    """Computed by a kernel of its own: in doubt every result has an error."""

    def run(ev, eqn, ins):
        name = _name(eqn)
        with np.errstate(all="ignore"):
            y = np.asarray(f(*ins))
        if dtypes.is_inexact(name):
            return ev.moved(y, name)
        return y.astype(dtypes.of(name))

    return run


def _exact(f):
    """No rounding at all."""

    def run(ev, eqn, ins):
        with np.errstate(all="ignore"):
            y = np.asarray(f(*ins))
        name = _name(eqn)
        return y if dtypes.is_inexact(name) else y.astype(dtypes.of(name))

    return run


def _div(x, y):
    if x.dtype.kind not in "iu":
        return x / y
    # XLA: towards zero; by 0 all bits; the most negative by -1 is itself
    safe = np.where(y == 0, 1, y)
    q = np.abs(x.astype(object)) // np.abs(safe.astype(object)) if x.size else x
    if x.size:
        q = np.where((x < 0) != (safe < 0), -q, q)
        bits = x.dtype.itemsize * 8
        wrapped = np.array([int(v) % (1 << bits) for v in np.ravel(q)], dtype=np.uint64).astype(x.dtype)
        q = wrapped.reshape(np.shape(q))
    return np.where(y == 0, np.array(-1).astype(x.dtype) if x.dtype.kind == "i" else np.iinfo(x.dtype).max, q)


def _rem(x, y):
    if x.dtype.kind in "iu":
        r = np.fmod(x, np.where(y == 0, 1, y))
        return np.where(y == 0, x, r)
    return np.fmod(x, y)


def _sign(x):
    if x.dtype.kind == "c":
        return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))
    return np.where(x == 0, x, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


def _shift(x, s, right):
    bits = x.dtype.itemsize * 8
    big = (s < 0) | (s >= bits) if s.dtype.kind == "i" else s >= bits
    small = np.where(big, 0, s).astype(x.dtype)
    if right:
        return np.where(big, np.where(x < 0, -1, 0).astype(x.dtype), x >> small)
    return np.where(big, 0, x << small)


def _leading_zeros(x):
    bits = 8 * x.dtype.itemsize
    x = x.view(f"u{x.dtype.itemsize}")
    return bits - sum((x >> np.array(k, x.dtype) != 0).astype(int) for k in range(bits))


def _gamma_slope(a, x):
    """The derivative of gammainc by a, by a difference of 30 digits."""
    import mpmath

    def one(a, x):
        with mpmath.workdps(40):
            a, x, h = mpmath.mpf(float(a)), mpmath.mpf(float(x)), mpmath.mpf(10) ** -13
            p = [mpmath.gammainc(a + s * h, 0, x, regularized=True) for s in (1, -1)]
            return float((p[0] - p[1]) / (2 * h))

    return np.vectorize(one, otypes=[np.float64])(a, x)


def _cbrt(x):
    return np.cbrt(x)


def _round(ev, eqn, ins):
    x = ins[0]
    if int(eqn.params["rounding_method"]) == 1:  # to nearest even
        return np.round(x)
    return np.where(x < 0, np.ceil(x - 0.5), np.floor(x + 0.5))


def _integer_pow(ev, eqn, ins):
    x, y = ins[0], eqn.params["y"]
    name = _name(eqn)
    with np.errstate(all="ignore"):
        if x.dtype.kind in "iu":
            return (x**y).astype(x.dtype)
        r = x**y if y >= 0 else 1 / x ** (-y)
    return ev.moved(np.asarray(r), name, True) if abs(y) <= 4 else ev.moved(np.asarray(r), name)


def _pow(x, y):
    return np.power(x, y.astype(x.dtype) if x.dtype.kind in "fc" else y)


PLAIN = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _div,
    "rem": _rem,
    "add_any": np.add,
    "sqrt": np.sqrt,
    "square": np.square,
}
EXACT = {
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "floor": np.floor,
    "ceil": np.ceil,
    "sign": _sign,
    "is_finite": np.isfinite,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "real": np.real,
    "imag": np.imag,
    "conj": np.conj,
    "copy": np.array,
    "copy_p": np.array,
    "eq_to": np.equal,
    "lt_to": np.less,
    "le_to": np.less_equal,
    "stop_gradient": np.array,
    "complex": lambda a, b: a + 1j * b,
    "clamp": lambda a, x, b: np.minimum(np.maximum(x, a), b),
    "shift_left": lambda x, s: _shift(x, s, False),
    "shift_right_arithmetic": lambda x, s: _shift(x, s, True),
    "shift_right_logical": lambda x, s: _shift(x.view(f"u{x.dtype.itemsize}"), s, True).view(x.dtype),
    "population_count": lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype),
    "clz": lambda x: _leading_zeros(x).astype(x.dtype),
}
FUNCTIONS = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": _cbrt,
    "erf": sp.erf,
    "erfc": sp.erfc,
    "erf_inv": sp.erfinv,
    "logistic": sp.expit,
    "pow": _pow,
    "lgamma": sp.gammaln,
    "digamma": sp.digamma,
    "polygamma": lambda n, x: sp.polygamma(n.astype(int), x),
    "igamma": sp.gammainc,
    "igammac": sp.gammaincc,
    "igamma_grad_a": _gamma_slope,
    "one_minus_square": lambda x: (1 + x) * (1 - x),
    "polynomial": lambda x, *a: functools.reduce(lambda y, c: y * x + c, a[::-1]),
}
for _n, _f in PLAIN.items():
    rule(_n)(_plain(_f))
for _n, _f in EXACT.items():
    rule(_n)(_exact(_f))
for _n, _f in FUNCTIONS.items():
    rule(_n)(_function(_f))


def _comparing(f):
    """A comparison; in a run with errors numbers that the dtype may round to one compare either way."""

    def run(ev, eqn, ins):
        x, y = ins
        with np.errstate(all="ignore"):
            out = np.asarray(f(x, y))
            name = getattr(eqn.invars[0].aval.dtype, "name", "")
            if not ev.amplitude or not dtypes.is_inexact(name):
                return out
            near = np.abs(x - y) <= (ev.amplitude + 1) * dtypes.format_of(name).eps * np.maximum(np.abs(x), np.abs(y))
            near = near & ~(dtypes.few_bits(x, name) & dtypes.few_bits(y, name))
            return np.where(near, ev.random.integers(0, 2, np.shape(out)) == 1, out)

    return run


for _n in ("eq", "ne", "lt", "le", "gt", "ge"):
    rule(_n)(_comparing(EXACT[_n]))
rule("round")(_round)
rule("integer_pow")(_integer_pow)


@rule("abs")
def _abs(ev, eqn, ins):
    y = np.abs(ins[0])
    return ev.moved(y, _name(eqn), True) if ins[0].dtype.kind == "c" else y


@rule("select_n")
def _select(ev, eqn, ins):
    which, *cases = ins
    if len(cases) == 2:
        return np.where(which.astype(bool), cases[1], cases[0])
    return np.choose(which, cases)


def convert(ev, x, to):
    """x as a dtype, by the rules of rlx: docs/numerics.md, Casts."""
    kind_to, kind_from = dtypes.kind(to), x.dtype.kind
    with np.errstate(all="ignore"):
        if kind_to == "c":
            return ev.moved(x.astype(np.complex128), to, True)
        if kind_to == "f":
            y = wide(x.real if kind_from == "c" else x.astype(np.float64))
            return ev.moved(y, to, True)
        if kind_to == "b":
            return x != 0
        if kind_from in "fc":
            info = np.iinfo(dtypes.of(to))
            t = np.trunc(np.nan_to_num(x.real if kind_from == "c" else x, nan=0.0, posinf=1e30, neginf=-1e30))
            low, high = t <= float(info.min), t >= float(info.max)
            out = np.where(low | high, 0, t).astype(dtypes.of(to))
            return np.where(low, info.min, np.where(high, info.max, out)).astype(dtypes.of(to))
        return x.astype(dtypes.of(to))


@rule("convert_element_type")
def _convert(ev, eqn, ins):
    to = np.dtype(eqn.params["new_dtype"]).name
    x = ins[0]
    if to in dtypes.STORAGE:
        raise NotImplementedError("storage dtypes are not traced")
    src = getattr(eqn.invars[0].aval.dtype, "name", to)
    if dtypes.is_inexact(to) and src == to:
        return x
    return convert(ev, x, to)


@rule("reduce_precision")
def _reduce_precision(ev, eqn, ins):
    return ins[0]


# -- sums --


@rule("reduce_sum")
def _reduce_sum(ev, eqn, ins):
    axes, name, x = tuple(eqn.params["axes"]), _name(eqn), ins[0]
    with np.errstate(all="ignore"):
        y = np.sum(x, axes, dtype=x.dtype)
    return ev.summed(y, lambda: np.sum(np.abs(x), axes), name) if dtypes.is_inexact(name) else y


@rule("reduce_prod")
def _reduce_prod(ev, eqn, ins):
    name, x = _name(eqn), ins[0]
    with np.errstate(all="ignore"):
        y = np.asarray(np.prod(x, tuple(eqn.params["axes"]), dtype=x.dtype))
    return ev.moved(y, name, True) if dtypes.is_inexact(name) else y


def _reduced(f, empty):
    def run(ev, eqn, ins):
        x, axes = ins[0], tuple(eqn.params["axes"])
        return np.asarray(f(x, axes, initial=empty(x.dtype)))

    return run


def _least(d):
    return {"f": -np.inf, "b": False}.get(d.kind) if d.kind in "fb" else np.iinfo(d).min


def _largest(d):
    return {"f": np.inf, "b": True}.get(d.kind) if d.kind in "fb" else np.iinfo(d).max


rule("reduce_max")(_reduced(np.max, _least))
rule("reduce_min")(_reduced(np.min, _largest))
rule("reduce_and")(lambda ev, eqn, ins: np.asarray(np.all(ins[0], tuple(eqn.params["axes"]))))
rule("reduce_or")(lambda ev, eqn, ins: np.asarray(np.any(ins[0], tuple(eqn.params["axes"]))))


def _arg(f):
    def run(ev, eqn, ins):
        (axis,) = eqn.params["axes"]
        return np.asarray(f(ins[0], axis)).astype(np.dtype(eqn.params["index_dtype"]))

    return run


rule("argmax")(_arg(np.argmax))
rule("argmin")(_arg(np.argmin))


def _running(f, is_sum=False, move=False):
    def run(ev, eqn, ins):
        x, axis, name = ins[0], eqn.params["axis"], _name(eqn)
        flip = (lambda a: np.flip(a, axis)) if eqn.params["reverse"] else (lambda a: a)
        with np.errstate(all="ignore"):
            y = flip(f(flip(x), axis))
        if not dtypes.is_inexact(name):
            return y.astype(x.dtype)
        if is_sum:
            return ev.summed(y, lambda: flip(np.cumsum(flip(np.abs(x)), axis)), name)
        return ev.moved(y, name, True) if move else y

    return run


rule("cumsum")(_running(lambda x, a: np.cumsum(x, a, dtype=x.dtype), is_sum=True))
rule("cumprod")(_running(lambda x, a: np.cumprod(x, a, dtype=x.dtype), move=True))
rule("cummax")(_running(lambda x, a: np.maximum.accumulate(x, a) if x.size else x))
rule("cummin")(_running(lambda x, a: np.minimum.accumulate(x, a) if x.size else x))


@rule("dot_general")
def _dot_general(ev, eqn, ins):
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    name = _name(eqn)
    x, y = ins
    out = dtypes.of(name)
    if not dtypes.is_inexact(name):
        x, y = x.astype(out), y.astype(out)
    elif x.dtype != y.dtype:
        x, y = x.astype(np.result_type(x, y)), y.astype(np.result_type(x, y))

    def product(x, y):
        lf = [a for a in range(x.ndim) if a not in lc and a not in lb]
        rf = [a for a in range(y.ndim) if a not in rc and a not in rb]
        b, k = [x.shape[a] for a in lb], int(np.prod([x.shape[a] for a in lc], dtype=int))
        m, n = [x.shape[a] for a in lf], [y.shape[a] for a in rf]
        count = int(np.prod(b, dtype=int))
        left = np.transpose(x, [*lb, *lf, *lc]).reshape(count, int(np.prod(m, dtype=int)), k)
        right = np.transpose(y, [*rb, *rc, *rf]).reshape(count, k, int(np.prod(n, dtype=int)))
        with np.errstate(all="ignore"):
            return np.matmul(left, right).reshape([*b, *m, *n])

    z = product(x, y)
    return ev.summed(z, lambda: product(np.abs(x), np.abs(y)), name) if dtypes.is_inexact(name) else z.astype(out)
