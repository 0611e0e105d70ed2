"""The table of the sweep over the edges of functions (test_edges.py): each function of real numbers beside its
definition for mpmath, which has nothing in common with the formulas of rlx.
"""

import mpmath
from mpmath import mp, mpf

import rlx
import rlx.numpy as rnp

nn, lax, special = rlx.nn, rlx.lax, rlx.scipy.special


class Function:
    """call(*arrays) of rlx beside truth(*mpf).

    slopes: the first and second derivative of a function of one number, where differences would need many digits; or
        {orders by each argument: derivative}.
    ulps: the largest error of value, first and second derivative, in units of the last place of the true value or of
        `scale`, the size to which they are accurate, where that is larger (docs/numerics.md).
        A scale may be a function of the point, or {orders by each argument: scale}.
    only: the points that are tried. periodic: differences take steps below 1.
    normal: numbers below the smallest normal one are not tried, since quotients by them overflow; nor of two arguments.
    highest: the order of the derivatives that are tried. without: those that are not, by their orders.
    slow: its truth takes long, so it is tried in full runs only. f16: its parameters are numbers of f16 too.

    A name starts with the public function, module.function.
    """

    def __init__(
        self, name, call, truth, arity=1, *, slopes=None, ulps=(8, 24, 48), scale=(0, 0, 0), only=None, periodic=False,
        highest=2, without=(), normal=False, slow=False, f16=True,
    ):  # fmt: skip
        self.name, self.call, self.truth, self.arity, self.slopes = name, call, truth, arity, slopes
        self.ulps, self.scale, self.only, self.periodic = ulps, scale, only, periodic
        self.highest, self.without, self.normal, self.slow = highest, without, normal or arity > 1, slow
        self.f16 = f16

    def __repr__(self):
        return self.name

    def slope(self, orders):
        """The derivative of these orders, or None."""
        if not self.slopes or not any(orders):
            return None
        return self.slopes[orders] if isinstance(self.slopes, dict) else self.slopes[sum(orders) - 1]

    def scale_at(self, orders, at):
        scale = self.scale[sum(orders)]
        if isinstance(scale, dict):
            scale = scale.get(orders, 0)
        return scale(*map(mpf, at)) if callable(scale) else scale


TABLE = []


def unary(names, truth, **options):
    for name in names.split():
        module, function = name.split(".")
        f = getattr({"np": rnp, "nn": nn, "lax": lax, "sp": special}[module], function)
        TABLE.append(Function(name, f, truth, **options))


def add(name, call, truth, arity=1, **options):
    TABLE.append(Function(name, call, truth, arity, **options))


PI = lambda: +mp.pi  # noqa: E731


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def logistic_slope(x):
    return mp.exp(-abs(x)) / (1 + mp.exp(-abs(x))) ** 2


def softplus(x):
    return mp.log1p(mp.exp(x))


def ncdf(x):
    return erfc(-x / mp.sqrt(2)) / 2


def bell(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * PI())


def erfc(x):
    return mp.erfc(x) if abs(x) < 200 else mpf(0) if x > 0 else mpf(2)


def lower_gamma(a, x):
    """P(a, x), by its series next to 0, which needs few digits."""
    if x > 30:
        return 1 - upper_gamma(a, x)
    if x == 0:
        return mpf(0)
    total = term = 1 / mpf(a)
    for k in range(1, 100000):
        term *= x / (a + k)
        total += term
        if term < total * mpf(10) ** (-mp.dps - 5):
            return total * mp.exp(a * mp.log(x) - x - mp.loggamma(a))


def upper_gamma(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True) if x > 30 else 1 - lower_gamma(a, x)


def elu(x, a):
    return x if x > 0 else a * mp.expm1(x)


def clip(x, low, high):
    return low if x < low else high if x > high else x


def real_root(x, n):
    return mp.root(x, n) if x >= 0 else -mp.root(-x, n)


# -- elementary functions --
unary("np.abs np.absolute np.fabs lax.abs", abs)
unary("np.exp lax.exp", mp.exp)
unary("np.exp2 lax.exp2", lambda x: mpf(2) ** x)
unary("np.expm1 lax.expm1", mp.expm1)
unary("np.log lax.log", mp.log)
unary("np.log2", lambda x: mp.log(x) / mp.log(2))
unary("np.log10", lambda x: mp.log(x) / mp.log(10))
unary("np.log1p lax.log1p", mp.log1p)
unary("np.sqrt lax.sqrt", mp.sqrt)
unary("lax.rsqrt", lambda x: 1 / mp.sqrt(x))
unary("np.cbrt lax.cbrt", lambda x: real_root(x, 3))
unary("np.sin lax.sin", mp.sin, periodic=True)
unary("np.cos lax.cos", mp.cos, periodic=True)
unary("np.tan lax.tan", mp.tan, periodic=True)
unary("np.arcsin lax.asin", mp.asin, only=lambda x: abs(x) <= 1, ulps=(8, 24, 64))
unary("np.arccos lax.acos", mp.acos, only=lambda x: abs(x) <= 1)
unary("np.arctan lax.atan", mp.atan)
unary("np.sinh lax.sinh", mp.sinh)
unary("np.cosh lax.cosh", mp.cosh)
unary("np.tanh lax.tanh nn.tanh", mp.tanh, scale=(0, 1, 1))
unary("np.arcsinh lax.asinh", mp.asinh)
unary("np.arccosh lax.acosh", mp.acosh, only=lambda x: x >= 1)
unary("np.arctanh lax.atanh", mp.atanh, only=lambda x: abs(x) <= 1)
unary("np.square lax.square", lambda x: x * x)
unary("np.reciprocal lax.reciprocal", lambda x: 1 / x)
unary("np.negative lax.neg", lambda x: -x)
unary("np.positive nn.identity", lambda x: +x)
unary("np.degrees np.rad2deg", lambda x: x * 180 / PI())
unary("np.radians np.deg2rad", lambda x: x * PI() / 180)
unary("np.sinc sp.sinc", lambda x: mp.sincpi(x), periodic=True, ulps=(8, 64, 64))
unary(
    "np.i0 sp.i0",
    lambda x: mp.besseli(0, x),
    slopes=(lambda x: mp.besseli(1, x), lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2),
    only=lambda x: abs(x) < 800,
)
for n in (-4, -3, -2, -1, 0, 1, 2, 3, 5, 8):
    add(f"x**{n}", lambda x, n=n: x**n, lambda x, n=n: x**n if n else mpf(1))
for p in (-2.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0):
    add(f"x**{p}", lambda x, p=p: x**p, lambda x, p=p: x**p if p else mpf(1))
add("3**x", lambda x: 3.0**x, lambda x: mpf(3) ** x)

# -- activations --
unary("nn.sigmoid lax.logistic sp.expit", sigmoid, scale=(0, 0.25, 0.25))
unary("nn.silu nn.swish", lambda x: x * sigmoid(x), scale=(0, 1e-30, 0.5))
unary("nn.softplus", softplus, scale=(0, 0, 0.25))
unary("nn.log_sigmoid", lambda x: -softplus(-x), scale=(0, 0, 0.25))
unary("nn.mish", lambda x: x * mp.tanh(softplus(x)), scale=(0, 1e-30, 1))
unary("nn.soft_sign", lambda x: x / (1 + abs(x)))
unary("nn.relu", lambda x: x if x > 0 else mpf(0))
unary("nn.relu6", lambda x: clip(x, mpf(0), mpf(6)))
unary("nn.hard_sigmoid", lambda x: clip((x + 3) / 6, mpf(0), mpf(1)))
unary("nn.hard_swish nn.hard_silu", lambda x: x * clip((x + 3) / 6, mpf(0), mpf(1)))
unary("nn.hard_tanh", lambda x: clip(x, mpf(-1), mpf(1)))
unary("nn.elu", lambda x: elu(x, 1))
add("nn.elu(alpha=0.7)", lambda x: nn.elu(x, 0.7), lambda x: elu(x, mpf(0.7)))
unary("nn.celu", lambda x: elu(x, 1))
add("nn.celu(alpha=0.5)", lambda x: nn.celu(x, 0.5), lambda x: x if x > 0 else mp.expm1(2 * x) / 2)
unary(
    "nn.selu",
    lambda x: mpf("1.0507009873554804934193349852946") * elu(x, mpf("1.6732632423543772848170429916717")),
)
add(
    "nn.gelu(approximate=False)",
    lambda x: nn.gelu(x, False),
    lambda x: x * ncdf(x),
    slopes=(lambda x: ncdf(x) + x * bell(x), lambda x: (2 - x * x) * bell(x)),
    ulps=(400, 24, 48),
    scale=(0, 0.1, 0.1),
)
unary(
    "nn.gelu",
    lambda x: x * sigmoid(2 * mp.sqrt(2 / PI()) * (x + mpf("0.044715") * x**3)),
    ulps=(400, 500, 800),
    scale=(0, 0.05, 1),
)
unary("nn.leaky_relu", lambda x: x if x > 0 else x * mpf("0.01"))
unary("nn.squareplus", lambda x: (x + mp.sqrt(x * x + 4)) / 2, scale=(0, 0, 1), only=lambda x: x > -1e4)
unary("nn.sparse_plus", lambda x: mpf(0) if x < -1 else x if x > 1 else (x + 1) ** 2 / 4)
unary("nn.sparse_sigmoid", lambda x: clip((x + 1) / 2, mpf(0), mpf(1)))
unary("nn.log1mexp", lambda x: mp.log(-mp.expm1(-x)), only=lambda x: x > 0)
unary("nn.thresholded_relu", lambda x: x if x > 1 else mpf(0))
unary("nn.shrink", lambda x: x if abs(x) > mpf(0.5) else mpf(0))
unary("nn.tanh_shrink", lambda x: x - mp.tanh(x), scale=(1, 0, 1))
add("nn.prelu(slope=0.25)", lambda x: nn.prelu(x, 0.25), lambda x: x if x > 0 else x / 4)

# -- special functions --
BELL = lambda x: 2 * mp.exp(-x * x) / mp.sqrt(PI())  # noqa: E731
unary(
    "nn.erf sp.erf lax.erf",
    lambda x: mp.erf(clip(x, -200, 200)),
    slopes=(BELL, lambda x: -2 * x * BELL(x)),
    ulps=(8, 400, 400),
)
unary("sp.erfc lax.erfc", erfc, slopes=(lambda x: -BELL(x), lambda x: 2 * x * BELL(x)), ulps=(8, 400, 400))
unary(
    "sp.erfinv lax.erf_inv",
    lambda x: -_erfcinv(1 + x),
    ulps=(8, 64, 128),
    slopes=(lambda x: 1 / BELL(_erfcinv(1 + x)), lambda x: -2 * _erfcinv(1 + x) / BELL(_erfcinv(1 + x)) ** 2),
    only=lambda x: abs(x) < 1,
)
unary(
    "sp.gammaln lax.lgamma",
    lambda x: mp.log(abs(mp.gamma(x))) if abs(x) < 1e4 else mp.re(mp.loggamma(x)),
    slopes=(mp.digamma, lambda x: mp.psi(1, x)),
    only=lambda x: x > 0 or -1e4 < x != int(x),
    scale=(1, 1, 0),
)
unary(
    "sp.gamma",
    mp.gamma,
    slopes=(lambda x: mp.gamma(x) * mp.digamma(x), lambda x: mp.gamma(x) * (mp.digamma(x) ** 2 + mp.psi(1, x))),
    only=lambda x: 0 < x < 1e4 or -20 < x < 0 and x != int(x),
    ulps=(64, 128, 400),
)
unary(
    "sp.digamma sp.psi lax.digamma",
    mp.digamma,
    slopes=(lambda x: mp.psi(1, x), lambda x: mp.psi(2, x)),
    only=lambda x: -1e4 < x < 1e300,
    scale=(1, 0, 10),
)
add(
    "sp.polygamma(1, x)",
    lambda x: special.polygamma(1, x),
    lambda x: mp.psi(1, x),
    slopes=(lambda x: mp.psi(2, x), lambda x: mp.psi(3, x)),
    only=lambda x: x > 0,
)
add(
    "sp.polygamma(2, x)",
    lambda x: special.polygamma(2, x),
    lambda x: mp.psi(2, x),
    slopes=(lambda x: mp.psi(3, x), lambda x: mp.psi(4, x)),
    only=lambda x: x > 0,
)
unary("sp.factorial", lambda x: mp.gamma(x + 1), only=lambda x: 0 < x < 1e4, ulps=(64, 128, 400))
unary("sp.logit", lambda x: mp.log(x / (1 - x)), only=lambda x: 0 <= x <= 1)
unary(
    "sp.entr",
    lambda x: -x * mp.log(x) if x > 0 else mpf(0) if x == 0 else -mp.inf,
    slopes=(lambda x: -mp.log(x) - 1, lambda x: -1 / x),
    only=lambda x: x >= 0,
)
unary("sp.ndtr", ncdf, slopes=(bell, lambda x: -x * bell(x)), ulps=(400, 400, 800))
unary(
    "sp.log_ndtr",
    lambda x: mp.log(ncdf(x)) if x < 0 else mp.log1p(-ncdf(-x)),
    slopes=(lambda x: bell(x) / ncdf(x), lambda x: -x * bell(x) / ncdf(x) - (bell(x) / ncdf(x)) ** 2),
    only=lambda x: x > -180,
    ulps=(400, 400, 8000),
)
unary(
    "sp.ndtri",
    lambda p: -mp.sqrt(2) * _erfcinv(2 * p),
    slopes=(
        lambda p: 1 / bell(mp.sqrt(2) * _erfcinv(2 * p)),
        lambda p: -mp.sqrt(2) * _erfcinv(2 * p) / bell(mp.sqrt(2) * _erfcinv(2 * p)) ** 2,
    ),
    only=lambda p: 1e-30 < p < 1,
    ulps=(8, 400, 800),
)
add(
    "sp.multigammaln(x, 3)",
    lambda x: special.multigammaln(x, 3),
    scale=(4, 4, 0),
    truth=lambda x: 3 * mp.log(PI()) / 2 + sum(mp.loggamma(x - mpf(j) / 2) for j in range(3)),
    only=lambda x: x > 1,
)


def _erfcinv(q):
    """The inverse of erfc, for results of any size."""
    if q > 1:
        return -_erfcinv(2 - q)
    if q > mpf("0.1"):
        return mp.erfinv(1 - q)
    x = mp.sqrt(-mp.log(q))
    return mp.findroot(lambda v: mp.log(mp.erfc(v)) - mp.log(q), x, tol=mpf(10) ** (-2 * mp.dps + 10))


# -- functions of two numbers --
for name in ("np.add lax.add", "np.subtract lax.sub", "np.multiply lax.mul", "np.divide np.true_divide lax.div"):
    kind = name.split(".")[1][:3]
    truth = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
    }[kind]
    unary(name, truth, arity=2)
unary(
    "np.power np.pow lax.pow np.float_power",
    lambda x, y: x**y if x or y > 0 else mpf(1) if y == 0 else mp.inf,
    arity=2,
    only=lambda x, y: 1e-12 < x < 1e12 and abs(y) < 1e3,
    ulps=(8, 64, 400),
)
unary(
    "np.arctan2 np.atan2 lax.atan2",
    lambda y, x: mp.atan2(y, x),
    arity=2,
    only=lambda y, x: all(1e-12 < abs(v) < 1e12 for v in (x, y)) and abs(x) != abs(y),
)
unary(
    "np.hypot",
    lambda x, y: mp.hypot(x, y),
    arity=2,
    only=lambda x, y: 1e-12 < abs(x) + abs(y) < 1e12,
    scale=(0, 0, 1),
)
unary("np.maximum lax.max np.fmax", lambda x, y: max(x, y), arity=2)
unary("np.minimum lax.min np.fmin", lambda x, y: min(x, y), arity=2)
unary(
    "np.logaddexp",
    lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
    arity=2,
    slopes={
        (1, 0): lambda x, y: sigmoid(x - y),
        (0, 1): lambda x, y: sigmoid(y - x),
        (2, 0): lambda x, y: logistic_slope(x - y),
        (1, 1): lambda x, y: -logistic_slope(x - y),
        (0, 2): lambda x, y: logistic_slope(x - y),
    },
    scale=(0, lambda x, y: abs(x - y) * mp.exp(-abs(x - y)), 0.25),  # the difference is rounded
)
unary("np.logaddexp2", lambda x, y: max(x, y) + mp.log1p(mpf(2) ** -abs(x - y)) / mp.log(2), arity=2)
unary("sp.xlogy", lambda x, y: x * mp.log(y), arity=2, only=lambda x, y: y > 0)
unary("sp.xlog1py", lambda x, y: x * mp.log1p(y), arity=2, only=lambda x, y: y > -1)
unary("sp.rel_entr", lambda x, y: x * mp.log(x / y) if x else mpf(0), arity=2, only=lambda x, y: x > 0 and y > 0)
unary(
    "sp.kl_div",
    lambda x, y: x * mp.log(x / y) - x + y if x else y,
    arity=2,
    only=lambda x, y: x > 0 and y > 0,
    scale=(lambda x, y: x * abs(mp.log(x / y)) + x + y, 0, lambda x, y: 1 / y),
)
unary("sp.betaln", lambda x, y: _logbeta(x, y), arity=2, only=lambda x, y: x > 0 and y > 0)
unary("sp.beta", lambda x, y: mp.exp(_logbeta(x, y)), arity=2, only=lambda x, y: x > 0 and y > 0)


def _logbeta(x, y):
    return mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y)


# -- losses --
def entropy(x, t):
    return t * softplus(-x) + (1 - t) * softplus(x)


LABELS = (0.0, 1.0, 0.25)
for t in LABELS:
    at = f", {t:g})"
    add(
        "nn.sigmoid_binary_cross_entropy(x" + at,
        lambda x, t=t: nn.sigmoid_binary_cross_entropy(x, t),
        lambda x, t=t: entropy(x, mpf(t)),
    )
    add(
        "nn.binary_cross_entropy_with_logits(x" + at + " pos_weight",
        lambda x, t=t: nn.binary_cross_entropy_with_logits(x, t, pos_weight=3.0, reduction="none"),
        lambda x, t=t: 3 * mpf(t) * softplus(-x) + (1 - mpf(t)) * softplus(x),
        scale=(0, 0.375 if t == 0.25 else 0, 0),  # terms that cancel at 0
    )
    add(
        "nn.sigmoid_focal_loss(x" + at,
        lambda x, t=t: nn.sigmoid_focal_loss(x, t),
        lambda x, t=t: entropy(x, mpf(t)) * (mpf(t) * sigmoid(-x) + (1 - mpf(t)) * sigmoid(x)) ** 2,
        only=lambda x: abs(x) < mp.inf,
        scale=(0, 0.1 if t == 0.25 else 1e-30, 1e-30),  # 0.25: its least value is near -2.5
    )
    add(
        "nn.binary_cross_entropy(p" + at,
        lambda x, t=t: nn.binary_cross_entropy(x, t, reduction="none"),
        lambda x, t=t: -(mpf(t) * mp.log(x) + (1 - mpf(t)) * mp.log1p(-x)),
        only=lambda x: 1e-30 < x < 1,
    )
for t in (-1.0, 1.0):
    add(
        f"nn.soft_margin_loss(x, {t:g})",
        lambda x, t=t: nn.soft_margin_loss(x, t, reduction="none"),
        lambda x, t=t: softplus(-t * x),
        scale=(0, 0, 0.25),
    )
    add(f"nn.hinge_loss(x, {t:g})", lambda x, t=t: nn.hinge_loss(x, t), lambda x, t=t: max(1 - t * x, mpf(0)))
    add(
        f"nn.hinge_embedding_loss(x, {t:g})",
        lambda x, t=t: nn.hinge_embedding_loss(x, t, reduction="none"),
        lambda x, t=t: x if t == 1 else max(1 - x, mpf(0)),
    )
unary("nn.squared_error", lambda x, y: (x - y) ** 2, arity=2)
unary("nn.l2_loss", lambda x, y: (x - y) ** 2 / 2, arity=2)
unary(
    "nn.log_cosh",
    lambda x, y: mp.log(mp.cosh(x - y)) if abs(x - y) < 1e5 else abs(x - y) - mp.log(2),
    arity=2,
    slopes={
        (1, 0): lambda x, y: mp.tanh(x - y),
        (0, 1): lambda x, y: mp.tanh(y - x),
        (2, 0): lambda x, y: mp.sech(x - y) ** 2,
        (1, 1): lambda x, y: -mp.sech(x - y) ** 2,
        (0, 2): lambda x, y: mp.sech(x - y) ** 2,
    },
    scale=(0, 0, lambda x, y: abs(x - y) * mp.sech(x - y) ** 2),  # the difference is rounded
)


def huber(d, delta=1):
    d = abs(d)
    return d * d / 2 if d <= delta else delta * (d - mpf(delta) / 2)


def off_corner(x, y):
    """Where the difference is not rounded to the corner, and has a second derivative."""
    return abs(abs(x - y) - 1) > 0.01


unary("nn.huber_loss", lambda x, y: huber(x - y), arity=2, only=off_corner)
add("nn.mse_loss", lambda x, y: nn.mse_loss(x, y, reduction="none"), lambda x, y: (x - y) ** 2, 2)
add("nn.l1_loss", lambda x, y: nn.l1_loss(x, y, reduction="none"), lambda x, y: abs(x - y), 2)
add(
    "nn.smooth_l1_loss",
    lambda x, y: nn.smooth_l1_loss(x, y, reduction="none"),
    lambda x, y: huber(x - y),
    2,
    only=off_corner,
)
add(
    "nn.kl_div",
    lambda x, t: nn.kl_div(x, t, reduction="none"),
    lambda x, t: t * (mp.log(t) - x),
    2,
    only=lambda x, t: t > 0,
    scale=(lambda x, t: t * (abs(mp.log(t)) + abs(x)), lambda x, t: 1 + abs(mp.log(t)) + abs(x), 0),
)
add(
    "nn.kl_div(log_target)",
    lambda x, t: nn.kl_div(x, t, log_target=True, reduction="none"),
    lambda x, t: mp.exp(t) * (t - x),
    2,
    only=lambda x, t: t <= 0,
    scale=[lambda x, t, n=n: mp.exp(t) * (abs(t) + abs(x) + n) for n in (0, 1, 2)],
)
add(
    "nn.poisson_nll_loss",
    lambda x, t: nn.poisson_nll_loss(x, t, reduction="none"),
    lambda x, t: mp.exp(x) - t * x,
    2,
    slopes={
        (1, 0): lambda x, t: mp.exp(x) - t,
        (0, 1): lambda x, t: -x,
        (2, 0): lambda x, t: mp.exp(x),
        (1, 1): lambda x, t: mpf(-1),
        (0, 2): lambda x, t: mpf(0),
    },
    only=lambda x, t: abs(x) * abs(t) < 1e38,  # no difference of infinities
    scale=(lambda x, t: mp.exp(x) + abs(t * x), {(1, 0): lambda x, t: mp.exp(x) + abs(t)}, 0),
)
add(
    "nn.poisson_nll_loss(rates)",
    lambda x, t: nn.poisson_nll_loss(x, t, log_input=False, reduction="none"),
    lambda x, t: x - t * mp.log(x + mpf(1e-8)),
    2,
    only=lambda x, t: x >= 0,
    slopes={
        (1, 0): lambda x, t: 1 - t / (x + mpf(1e-8)),
        (0, 1): lambda x, t: -mp.log(x + mpf(1e-8)),
        (2, 0): lambda x, t: t / (x + mpf(1e-8)) ** 2,
        (1, 1): lambda x, t: -1 / (x + mpf(1e-8)),
        (0, 2): lambda x, t: mpf(0),
    },
    scale=(  # x + 1e-8 is rounded
        lambda x, t: x + abs(t) * (1 + abs(mp.log(x + mpf(1e-8)))),
        {(1, 0): lambda x, t: 1 + abs(t) / (x + mpf(1e-8)), (0, 1): 1},
        0,
    ),
)
add(
    "nn.gaussian_nll_loss(x, 0.5, var)",
    lambda x, v: nn.gaussian_nll_loss(x, 0.5, v, reduction="none"),
    lambda x, v: (mp.log(v) + (x - mpf(0.5)) ** 2 / v) / 2,
    2,
    only=lambda x, v: 1e-5 < v < 1e37,
    scale=(
        lambda x, v: abs(mp.log(v)) + (x - mpf(0.5)) ** 2 / v,
        {(0, 1): lambda x, v: 1 / v + (x - mpf(0.5)) ** 2 / v**2},
        {(0, 2): lambda x, v: 1 / v**2 + (x - mpf(0.5)) ** 2 / v**3},
    ),
)
add("lax.clamp(-1, x, 2)", lambda x: lax.clamp(-1.0, x, 2.0), lambda x: clip(x, -1, 2))
add("np.clip(x, -1, 2)", lambda x: rnp.clip(x, -1.0, 2.0), lambda x: clip(x, -1, 2))
unary("np.heaviside", lambda x, y: mpf(0) if x < 0 else mpf(1) if x > 0 else y, arity=2)
unary("np.copysign", lambda x, y: abs(x) if y > 0 else -abs(x), arity=2, only=lambda x, y: y != 0)
FLAT = (lambda x: mpf(0), lambda x: mpf(0))  # the derivatives of steps, at the steps too
for name in ("floor", "ceil"):
    unary(f"np.{name} lax.{name}", getattr(mp, name), slopes=FLAT)
unary("np.trunc np.fix", lambda x: mp.floor(x) if x >= 0 else mp.ceil(x), slopes=FLAT)
unary("np.rint", mp.nint, slopes=FLAT)
unary("np.sign lax.sign", mp.sign, slopes=FLAT)
unary("np.nan_to_num", lambda x: x, only=lambda x: abs(x) < mp.inf)
