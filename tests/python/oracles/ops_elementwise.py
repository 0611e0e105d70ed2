"""Elementwise ops in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import dtypes
from .catalogue import add

F = dtypes.FLOATS
FC = dtypes.FLOATS + dtypes.COMPLEX


def _unary(f):
    return lambda args, named, attrs: f(args[0], **attrs)


# What SciPy and XLA have in f64 to fewer digits than the places that are asked for: test_special_functions.py.
ROUNDED = ("float32", "bfloat16", "float16")


def _activation(name, f, fill="normal", types=F, places=4, exact=False, weight=4, smooth=True, attrs=None):
    def make(b):
        x = b.pick(types, 0, 4, fill)
        return [x], {}, attrs(b.dice) if attrs and b.dice.chance(50) else {}

    add(name, "activation", make, _unary(f), weight=weight, places=places, exact=exact, smooth=smooth)


def _like(x, value):
    return jnp.asarray(value, x.dtype)


def _elu(x, alpha=1.0):
    return jnp.where(x > 0, x, _like(x, alpha) * jnp.expm1(jnp.where(x > 0, 0, x)))


def _leaky(x, alpha=0.01):
    return jnp.where(x >= 0, x, _like(x, alpha) * x)


def _hard_sigmoid(x, alpha=1 / 6, beta=0.5):
    return jnp.clip(_like(x, alpha) * x + _like(x, beta), 0, 1)


@jax.custom_jvp
def _float_abs(x):
    return jnp.abs(x)


@_float_abs.defjvp
def _abs_slope(primals, tangents):  # 0 at 0, where JAX's is 1
    return jnp.abs(primals[0]), tangents[0] * jnp.sign(primals[0])


def _abs(x):
    return _float_abs(x) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.abs(x)


def _silu(x):
    return x * jax.nn.sigmoid(x)


def _gelu(x):
    return 0.5 * x * lax.erfc(-x * _like(x, np.sqrt(0.5)))


def _gelu_approx(x):
    # 1 + tanh(z) as 2 sigmoid(2 z): that keeps the tail
    z = x * _like(x, np.sqrt(2 / np.pi)) * (1 + _like(x, 0.044715) * x * x)
    return x * jax.nn.sigmoid(2 * z)


def _softplus(x):
    return jnp.logaddexp(x, _like(x, 0))


def _mish(x):
    return x * jnp.tanh(_softplus(x))


def _softsign(x):
    return x / (1 + jnp.abs(x))


def _hard_swish(x):
    return x * jnp.clip(x * _like(x, 1 / 6) + _like(x, 0.5), 0, 1)


def _not(x):
    return jnp.logical_not(x) if x.dtype == bool else jnp.invert(x)


def _relu(x):
    return jax.nn.relu(x) if x.dtype.kind != "c" else x


def _order(d):
    return {"alpha": d.pick((1, 2, 3))}


def _polygamma(x, alpha=1):
    return lax.polygamma(jnp.full_like(x, alpha), x)


def _sinc(x):
    t = jnp.where(x == 0, 1, x) * _like(x, np.pi)
    return jnp.where(x == 0, 1, jnp.sin(t) / t)


def _alpha(d):
    return {"alpha": d.pick((0.25, 0.5, 1.5))}


def _alpha_beta(d):
    return {"alpha": d.pick((0.25, 0.5)), "beta": d.pick((0.25, 0.5))}


I = dtypes.INTS  # noqa: E741

for _name, _f, _more in (
    ("gelu", _gelu, {}),
    ("gelu_approx", _gelu_approx, {}),
    ("silu", _silu, {}),
    ("relu", _relu, dict(types=F + I, places=0)),
    ("sigmoid", jax.nn.sigmoid, {}),
    ("tanh", jnp.tanh, dict(types=FC)),
    ("exp", jnp.exp, dict(types=FC, fill="unit")),
    ("log", jnp.log, dict(types=FC, fill="positive")),
    ("sqrt", jnp.sqrt, dict(types=FC, fill="positive", places=1)),
    ("rsqrt", lax.rsqrt, dict(types=FC, fill="positive")),
    ("neg", jnp.negative, dict(types=FC + I, places=0)),
    ("abs", _abs, dict(types=F + I, places=0)),
    ("sin", jnp.sin, dict(types=FC)),
    ("cos", jnp.cos, dict(types=FC)),
    ("tan", jnp.tan, dict(types=FC, fill="angle")),
    ("atan", jnp.arctan, dict(types=FC)),
    ("round", jnp.round, dict(places=0)),
    ("recip", lambda x: 1 / x, dict(types=FC, fill="positive", places=1)),
    ("floor", jnp.floor, dict(places=0)),
    ("ceil", jnp.ceil, dict(places=0)),
    ("sign", jnp.sign, dict(types=F + I, places=0)),
    ("softplus", _softplus, {}),
    ("elu", _elu, dict(attrs=_alpha)),
    ("erf", lax.erf, {}),
    ("hard_swish", _hard_swish, {}),
    ("hard_sigmoid", _hard_sigmoid, dict(attrs=_alpha_beta)),
    ("mish", _mish, {}),
    ("softsign", _softsign, {}),
    ("log_sigmoid", jax.nn.log_sigmoid, {}),
    ("expm1", jnp.expm1, dict(fill="unit")),
    ("log1p", jnp.log1p, dict(fill="positive")),
    ("not_", _not, dict(types=("bool",) + I, places=0, smooth=False)),
    ("square", jnp.square, dict(types=FC + I, places=1)),
    ("leaky_relu", _leaky, dict(attrs=_alpha, places=2)),
    ("asin", jnp.arcsin, dict(types=FC, fill="unit")),
    ("acos", jnp.arccos, dict(types=FC, fill="unit")),
    ("sinh", jnp.sinh, dict(types=FC)),
    ("cosh", jnp.cosh, dict(types=FC)),
    ("asinh", jnp.arcsinh, {}),
    ("acosh", jnp.arccosh, dict(fill="above_one")),
    ("atanh", jnp.arctanh, dict(types=FC, fill="unit")),
    ("exp2", jnp.exp2, dict(fill="unit")),
    ("log2", jnp.log2, dict(fill="positive")),
    ("log10", jnp.log10, dict(fill="positive")),
    ("cbrt", jnp.cbrt, dict(fill="positive")),
    ("trunc", jnp.trunc, dict(places=0)),
    ("erfinv", lax.erf_inv, dict(fill="unit")),
    ("erfc", lax.erfc, {}),
    ("lgamma", lax.lgamma, dict(fill="positive", types=ROUNDED)),
    ("digamma", lax.digamma, dict(fill="positive")),
    ("polygamma", _polygamma, dict(fill="positive", attrs=_order, places=10)),
    ("sinc", _sinc, dict(fill="unit")),
    ("popcount", lax.population_count, dict(types=I, places=0, smooth=False)),
    ("clz", lax.clz, dict(types=I, places=0, smooth=False)),
):
    _activation(_name, _f, **_more)


# -- of two operands --


def _binary(
    name, f, types=F + I, fill="normal", second=None, low=-3, high=3, low2=None, high2=None, places=1, weight=8, **more
):
    def make(b):
        x = b.pick(types, 0, 4, fill, low, high)
        y = b.partner(x, second or fill, low if low2 is None else low2, high if high2 is None else high2)
        return ([x, y] if b.dice.chance(70) or second else [y, x]), {}, {}

    add(name, "binary", make, lambda a, n, t: f(*a), places=places, weight=weight, **more)


def _integer_div(x, y):
    """Towards zero; by 0 gives 0."""
    safe = jnp.where(y == 0, 1, y)
    q = lax.div(x, safe)
    return jnp.where(y == 0, 0, q)


def _div(x, y):
    return x / y if jnp.issubdtype(x.dtype, jnp.inexact) else _integer_div(*jnp.broadcast_arrays(x, y))


def _mod(x, y):
    """The remainder has the sign of the divisor; of integers by 0 it is 0."""
    x, y = jnp.broadcast_arrays(x, y)
    if jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.remainder(x, y)
    return jnp.where(y == 0, 0, jnp.remainder(x, jnp.where(y == 0, 1, y)))


def _rem(x, y):
    """The remainder has the sign of the dividend; of integers by 0 it is 0."""
    x, y = jnp.broadcast_arrays(x, y)
    if jnp.issubdtype(x.dtype, jnp.floating):
        return lax.rem(x, y)
    return jnp.where(y == 0, 0, lax.rem(x, jnp.where(y == 0, 1, y)))


def _hypot(x, y):
    return jnp.where(jnp.isinf(x) | jnp.isinf(y), jnp.inf, jnp.sqrt(x * x + y * y))


def _of_gamma(f):
    return lambda a, x: f(*jnp.broadcast_arrays(a, x))


def _pow(x, y):
    x, y = jnp.broadcast_arrays(x, y)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return lax.pow(x, y)
    return _integer_pow(x, y)


def _integer_pow(x, y):
    """Wraps; a negative exponent truncates 1 / x^n: 0 unless x is 1 or -1, and 0 for 0."""
    out, base, n = jnp.ones_like(x), x, jnp.where(y < 0, 0, y)
    for _ in range(7):
        out = jnp.where(n & 1 == 1, out * base, out)
        base, n = base * base, n >> 1
    if x.dtype.kind == "u":
        return out
    odd = (y & 1) == 1
    unit = jnp.where(x == 1, 1, jnp.where(x == -1, jnp.where(odd, -1, 1), 0))
    return jnp.where(y < 0, unit, out).astype(x.dtype)


BI = dtypes.BOOL + I
_binary("add", lambda x, y: x + y, FC + BI)
_binary("sub", lambda x, y: x - y, FC + I)
_binary("mul", lambda x, y: x * y, FC + BI, places=2)
_binary("div", _div, FC + I, second="positive", low2=-3, high2=3, places=2)
_binary("max", jnp.maximum, F + BI, places=0)
_binary("min", jnp.minimum, F + BI, places=0)
_binary("pow", _pow, FC + I, fill="positive", second="unit", low2=0, high2=4, places=4)
_binary("mod", _mod, places=0, second="positive", smooth=True)
_binary("atan2", jnp.arctan2, F, second="positive", places=4)
_binary("rem", _rem, places=0, second="positive", smooth=True)
_binary("hypot", _hypot, F, fill="positive", places=4)
_binary("logaddexp", jnp.logaddexp, F, fill="positive", places=4)
# In f64 to 1e-13, which is more than places: test_special_functions.py, and derivatives too. In no random program,
# for JAX has no derivative of theirs.
for _name, _f in (("igamma", lax.igamma), ("igammac", lax.igammac), ("igamma_grad_a", lax.igamma_grad_a)):
    _binary(_name, _of_gamma(_f), ROUNDED, fill="positive", second="positive", places=4, smooth=False, weight=0)
_binary("bit_and", jnp.bitwise_and, ("bool",) + I, smooth=False)
_binary("bit_or", jnp.bitwise_or, ("bool",) + I, smooth=False)
_binary("bit_xor", jnp.bitwise_xor, ("bool",) + I, smooth=False)
_binary(
    "shl", lambda x, y: lax.shift_left(*jnp.broadcast_arrays(x, y)), I, low2=0, high2=9, second="normal", smooth=False
)
_binary("shr", lambda x, y: _shr(*jnp.broadcast_arrays(x, y)), I, low2=0, high2=9, second="normal", smooth=False)


def _shr(x, y):
    return (lax.shift_right_arithmetic if x.dtype.kind == "i" else lax.shift_right_logical)(x, y)


def _compare(name, f, types):
    def make(b):
        x = b.pick(types, 0, 4, low=-2, high=2)
        return [x, b.partner(x, low=-2, high=2)], {}, {}

    add(name, "compare", make, lambda a, n, t: f(*a), smooth=False, weight=4, exact=True)


_compare("eq", jnp.equal, dtypes.ALL)
_compare("ne", jnp.not_equal, dtypes.ALL)
for _name, _f in (("lt", jnp.less), ("le", jnp.less_equal), ("gt", jnp.greater), ("ge", jnp.greater_equal)):
    _compare(_name, _f, ("bool",) + dtypes.NUMBERS)


def _make_where(b):
    x = b.pick(dtypes.ALL, 0, 3)
    y = b.partner(x)
    shape = np.broadcast_shapes(b.shape(x), b.shape(y))
    cond = b.pick(("bool",), shape=shape if b.dice.chance(60) else shape[:0] + shape[1:])
    return [cond, x, y], {}, {}


add("where", "where", _make_where, lambda a, n, t: jnp.where(*a), places=0, weight=12)


def _make_clamp(b):
    x = b.pick(F + I, 0, 3, low=-3, high=3)
    low = b.partner(x, "small", -1, 0)
    shape = b.shape(x)
    high = b.new(b.dtype(x), shape if b.dice.chance(40) else (), "above_one", 1, 3)
    return [x, low, high], {}, {}


add("clamp", "clamp", _make_clamp, lambda a, n, t: jnp.minimum(jnp.maximum(a[0], a[1]), a[2]), places=0)


def _make_cast(b):
    types = dtypes.ALL
    x = b.pick(types, 0, 3)
    to = b.dice.pick([t for t in types if t != b.dtype(x) and (t not in dtypes.COMPLEX or b.dice.chance(40))])
    if b.dtype(x) in dtypes.COMPLEX and to not in dtypes.COMPLEX:
        to = "complex128" if b.dtype(x) == "complex64" else "complex64"
    return [x], {}, {"to": to}


def _cast(a, n, t):
    return lax.convert_element_type(a[0], dtypes.of(t["to"]))


add("cast", "cast", _make_cast, _cast, weight=14, places=0.5)


def _make_bitcast(b):
    """Integers: bits of floats that are off by a rounding are others."""
    x = b.pick(I, 0, 3)
    bits = dtypes.of(b.dtype(x)).itemsize * 8
    narrower = [n for n in (8, 16, 32) if n < bits]
    to = b.dice.pick(narrower) if narrower and b.dice.chance(40) else bits
    return [x], {}, {"to": b.dice.pick(("int", "uint")) + str(to)}


add(
    "bitcast",
    "bitcast",
    _make_bitcast,
    lambda a, n, t: lax.bitcast_convert_type(a[0], dtypes.of(t["to"])),
    smooth=False,
    exact=True,
    weight=3,
)


def _make_stop(b):
    return [b.pick(dtypes.ALL, 0, 3)], {}, {}


add("stop_gradient", "stop_gradient", _make_stop, lambda a, n, t: lax.stop_gradient(a[0]), places=0, weight=4)
