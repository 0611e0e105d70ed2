"""More of the table of edge_functions.py: Bessel functions, integrals, functions of gamma and beta, hypergeometric
ones, remainders, and losses of two classes.
"""

from edge_functions import (
    FLAT,
    _logbeta,
    add,
    bell,
    lax,
    lower_gamma,
    nn,
    rnp,
    sigmoid,
    softplus,
    special,
    unary,
    upper_gamma,
)
from mpmath import mp, mpf


def _sign(x):
    if x == 0:
        raise ValueError("the sides differ")
    return 1 if x > 0 else -1


# -- modified Bessel functions --


def _scaled_i(order, x):
    """exp(-|x|) I(x), by its asymptotic series where that is exact to many digits."""
    size = abs(x)
    if size < 1e5:
        return mp.exp(-size) * mp.besseli(order, x)
    total = term = mpf(1)
    for k in range(1, 40):
        term *= -mpf(4 * order * order - (2 * k - 1) ** 2) / (k * 8 * size)
        total += term
    return total / mp.sqrt(2 * mp.pi * size) * (_sign(x) if order % 2 else 1)


unary(
    "sp.i0e lax.bessel_i0e",
    lambda x: _scaled_i(0, x),
    slopes=(
        lambda x: _scaled_i(1, x) - _sign(x) * _scaled_i(0, x),
        lambda x: (3 * _scaled_i(0, x) + _scaled_i(2, x)) / 2 - 2 * _sign(x) * _scaled_i(1, x),
    ),
    only=lambda x: x != 0,
    scale=(0, lambda x: _scaled_i(0, x), lambda x: _scaled_i(0, x)),
)
unary(
    "sp.i1",
    lambda x: mp.besseli(1, x),
    slopes=(
        lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2,
        lambda x: (3 * mp.besseli(1, x) + mp.besseli(3, x)) / 4,
    ),
    only=lambda x: abs(x) < 800,
)
unary(
    "sp.i1e lax.bessel_i1e",
    lambda x: _scaled_i(1, x),
    slopes=(
        lambda x: (_scaled_i(0, x) + _scaled_i(2, x)) / 2 - abs(_scaled_i(1, x)),
        lambda x: _scaled_i(1, x) + (3 * _scaled_i(1, x) + _scaled_i(3, x)) / 4
        - _sign(x) * (_scaled_i(0, x) + _scaled_i(2, x)),
    ),
    scale=(0, lambda x: _scaled_i(0, x), lambda x: _scaled_i(0, x)),
)  # fmt: skip
for n in (0, 1, 5):
    add(
        f"sp.bessel_jn(x, v=5)[{n}]",
        lambda x, n=n: special.bessel_jn(x, v=5)[n],
        lambda x, n=n: mp.besselj(n, x),
        slopes=(
            lambda x, n=n: (mp.besselj(n - 1, x) - mp.besselj(n + 1, x)) / 2,
            lambda x, n=n: (mp.besselj(n - 2, x) - 2 * mp.besselj(n, x) + mp.besselj(n + 2, x)) / 4,
        ),
        only=lambda x: abs(x) < 21,
        ulps=(24, 48, 96),
        scale=(0.1, 0.1, 0.1),
    )

# -- the error function, scaled; Dawson's and Fresnel's integrals --


def _dawson(x, order=0):
    if abs(x) < 1e6:
        d = mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2
        return [d, 1 - 2 * x * d, (4 * x * x - 2) * d - 2 * x][order]
    total = mpf(0)
    for k in range(6):
        power = -2 * k - 1
        factor = [1, power, power * (power - 1)][order]
        total += factor * mp.fac2(2 * k - 1) / mpf(2) ** (k + 1) * mpf(x) ** (power - order)
    return total


def _scaled_erfc(x, order=0):
    if x < 1e6:
        y = mp.exp(x * x) * mp.erfc(x)
        slope = 2 * x * y - 2 / mp.sqrt(mp.pi)
        return [y, slope, 2 * y + 2 * x * slope][order]
    total = mpf(0)
    for k in range(6):
        power = -2 * k - 1
        factor = [1, power, power * (power - 1)][order]
        total += factor * (-1) ** k * mp.fac2(2 * k - 1) / mpf(2) ** k * mpf(x) ** (power - order)
    return total / mp.sqrt(mp.pi)


def _orders(f):
    return (lambda x: f(x, 1)), (lambda x: f(x, 2))


unary("sp.dawsn", _dawson, slopes=_orders(_dawson), scale=(0, 0.2, 2))
unary("sp.erfcx", _scaled_erfc, slopes=_orders(_scaled_erfc), only=lambda x: x > -200, ulps=(400, 800, 800))


def _quarter(x):
    return mp.pi * x * x / 2


_FRESNEL = (
    (mp.fresnels, lambda x: mp.sin(_quarter(x)), lambda x: mp.pi * x * mp.cos(_quarter(x))),
    (mp.fresnelc, lambda x: mp.cos(_quarter(x)), lambda x: -mp.pi * x * mp.sin(_quarter(x))),
)
for i, (value, *slopes) in enumerate(_FRESNEL):
    add(
        f"sp.fresnel(x)[{i}]",
        lambda x, i=i: special.fresnel(x)[i],
        lambda x, f=value: f(x) if abs(x) < 1e12 else mpf(0.5) * _sign(x),
        slopes=slopes,
        only=lambda x: abs(x) < 1e15,
        scale=(0, 0.1, lambda x: mpf(0.1) * abs(x)),
    )


def _sine_over(x):
    return mp.sin(x) / x


def _cosine_over(x):
    return mp.cos(x) / x


add(
    "sp.sici(x)[0]",
    lambda x: special.sici(x)[0],
    lambda x: mp.si(x) if abs(x) < 1e30 else mp.pi / 2 * _sign(x),
    slopes=(_sine_over, lambda x: _cosine_over(x) - mp.sin(x) / x**2),
    only=lambda x: abs(x) < mp.inf,
    scale=(0, lambda x: 1 / max(abs(x), 1), lambda x: min(1, 1 / max(abs(x), mpf(1e-300)))),
)
add(
    "sp.sici(x)[1]",
    lambda x: special.sici(x)[1],
    lambda x: mp.ci(x) if x < 1e30 else mpf(0),
    slopes=(_cosine_over, lambda x: -mp.sin(x) / x - mp.cos(x) / x**2),
    only=lambda x: 0 < x < mp.inf,
    scale=(lambda x: min(1, 1 / x), lambda x: 1 / x, lambda x: max(1 / x, 1 / x**2)),
)


def _owens(h, a):
    """By the integral over the angles, in pieces by the width of the integrand."""
    h, size = abs(h), abs(a)
    ends = sorted(e for e in (*(w / max(h, mpf("1e-3")) for w in (mpf(1) / 4, 1, 2, 4, 8, 16, 64)), mpf(1)) if e < size)
    y = mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [mpf(0), *ends, size]) / (2 * mp.pi)
    return y if a >= 0 else -y


def _owens_by_h(h, a, order):
    if order == 1:
        return -bell(h) * mp.erf(a * h / mp.sqrt(2)) / 2
    return h * bell(h) * mp.erf(a * h / mp.sqrt(2)) / 2 - a * bell(h) * bell(a * h)


def _owens_by_a(h, a, order):
    slope = mp.exp(-h * h * (1 + a * a) / 2) / (1 + a * a) / (2 * mp.pi)
    return slope if order == 1 else slope * (-h * h * a - 2 * a / (1 + a * a))


_OWENS = dict(only=lambda x: abs(x) < 20, ulps=(400, 400, 800), scale=(1e-30, 1e-30, 1e-30))
for a in (0.5, 3.0):
    add(f"sp.owens_t(h, {a:g})", lambda h, a=a: special.owens_t(h, a), lambda h, a=a: _owens(h, mpf(a)),
        slopes=tuple(lambda h, a=a, n=n: _owens_by_h(h, mpf(a), n) for n in (1, 2)), **_OWENS)  # fmt: skip
add("sp.owens_t(1.5, a)", lambda a: special.owens_t(1.5, a), lambda a: _owens(mpf(1.5), a),
    slopes=tuple(lambda a, n=n: _owens_by_a(mpf(1.5), a, n) for n in (1, 2)), **_OWENS)  # fmt: skip

# -- exponential integrals, the dilogarithm, zeta --

unary(
    "sp.exp1",
    lambda x: mp.e1(x) if x < 1e5 else mpf(0),
    slopes=(lambda x: -mp.exp(-x) / x, lambda x: mp.exp(-x) * (1 / x + 1 / x**2)),
    only=lambda x: x >= 0,
    ulps=(64, 64, 64),
)
unary(
    "sp.expi",
    lambda x: mp.ei(max(x, -(10**5))),
    slopes=(lambda x: mp.exp(x) / x, lambda x: mp.exp(x) * (1 / x - 1 / x**2)),
    only=lambda x: x < 800,
    ulps=(64, 64, 64),
    scale=(0, 0, lambda x: mp.exp(x) / max(abs(x), mpf(1e-300))),
)
for n in (0, 1, 2, 3, 8, 25):
    add(
        f"sp.expn({n}, x)",
        lambda x, n=n: special.expn(n, x),
        lambda x, n=n: mp.expint(n, min(x, 10**5)),
        slopes=(
            lambda x, n=n: -mp.expint(n - 1, min(x, 10**5)),
            lambda x, n=n: mp.expint(n - 2, min(x, 10**5)),
        ),
        only=lambda x: 0 <= x < 700,
        ulps=(64, 64, 64),
    )


def _dilog(x):
    return mp.re(mp.polylog(2, 1 - x)) if x < 1e6 else -mp.pi**2 / 6 - mp.log(x - 1) ** 2 / 2 + sum(
        (-1) ** (k + 1) * -mpf(1) / (k * k * (x - 1) ** k) * -1 for k in range(1, 8)
    )  # fmt: skip


unary(
    "sp.spence",
    _dilog,
    slopes=(lambda x: mp.log(x) / (1 - x), lambda x: 1 / (x * (1 - x)) + mp.log(x) / (1 - x) ** 2),
    only=lambda x: 0 <= x < mp.inf,
    ulps=(16, 64, 400),
)
add(
    "sp.zeta(x)",
    lambda x: special.zeta(x),
    mp.zeta,
    slopes=(lambda x: mp.zeta(x, 1, 1), lambda x: mp.zeta(x, 1, 2)),
    only=lambda x: 1 < x < 400,
    ulps=(16, 64, 400),
)
for s in (1.5, 4.0):
    add(
        f"sp.zeta({s}, q)",
        lambda q, s=s: special.zeta(s, q),
        lambda q, s=s: _hurwitz(mpf(s), q),
        slopes=(
            lambda q, s=s: -mpf(s) * _hurwitz(mpf(s) + 1, q),
            lambda q, s=s: mpf(s) * (mpf(s) + 1) * _hurwitz(mpf(s) + 2, q),
        ),
        only=lambda q: 0 < q < mp.inf,
        ulps=(16, 64, 200),
    )
unary("lax.zeta", lambda s, q: _hurwitz(s, q), arity=2, highest=0, ulps=(64, 0, 0),
      only=lambda s, q: 1 < s < 400 and 0 < q < mp.inf)  # fmt: skip


def _hurwitz(s, q):
    if q < 1e6:
        return mp.zeta(s, q)
    total, factor = q ** (1 - s) / (s - 1) + q**-s / 2, s * q ** (-s - 1)
    for k in range(1, 8):
        total += mp.bernoulli(2 * k) / mp.factorial(2 * k) * factor
        factor *= (s + 2 * k - 1) * (s + 2 * k) / q**2
    return total


# -- functions of gamma and beta --

unary("sp.gammasgn", lambda x: mp.sign(mp.gamma(x)), highest=0, only=lambda x: 0 < x or -1e4 < x != int(x))
unary("sp.loggamma", mp.loggamma, slopes=(mp.digamma, lambda x: mp.psi(1, x)), only=lambda x: x > 0, scale=(1, 1, 0))


def _rising(z, m, by_z=0, by_m=0):
    """gamma(z + m) / gamma(z) or a derivative."""
    y = mp.gammaprod([z + m], [z])
    if by_m:
        first, second = mp.digamma(z + m), mp.psi(1, z + m)
    else:
        first, second = mp.digamma(z + m) - mp.digamma(z), mp.psi(1, z + m) - mp.psi(1, z)
    return [y, y * first, y * (first**2 + second)][by_z + by_m]


add(
    "sp.poch(x, 2.5)",
    lambda x: special.poch(x, 2.5),
    lambda x: _rising(x, mpf(2.5)),
    slopes=tuple(lambda x, n=n: _rising(x, mpf(2.5), by_z=n) for n in (1, 2)),
    only=lambda x: 1e-30 < x < 1e25,
    ulps=(400, 800, 1600),
)
add(
    "sp.poch(x, 3)",
    lambda x: special.poch(x, 3),
    lambda x: x * (x + 1) * (x + 2),
    only=lambda x: 0 < x < mp.inf,
    ulps=(400, 800, 1600),
)
add(
    "sp.poch(2.5, m)",
    lambda m: special.poch(2.5, m),
    lambda m: _rising(mpf(2.5), m),
    slopes=tuple(lambda m, n=n: _rising(mpf(2.5), m, by_m=n) for n in (1, 2)),
    only=lambda m: -2 < m < 1e4,
    ulps=(800, 1600, 3200),
    scale=(0, 1, 1),
)
add("sp.comb(x, 3)", lambda x: special.comb(x, 3.0), lambda x: x * (x - 1) * (x - 2) / 6, only=lambda x: 3 < x < mp.inf,
    ulps=(400, 800, 1600))  # fmt: skip
add("sp.comb(40, k)", lambda k: special.comb(40.0, k), lambda k: mp.binomial(40, k), only=lambda k: 0 < k < 40,
    ulps=(400, 0, 0), highest=0)  # fmt: skip


def _power_of(x, a):
    """The density of the gamma distribution."""
    return mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def _lower_gamma_by_a(a, x):
    """d/da of x^a e^-x / gamma(a + 1) * sum of x^n / ((a + 1) .. (a + n)), term by term."""
    term, harmonic, total, by_a = mpf(1), mpf(0), mpf(1), mpf(0)
    n = 0
    while n < x - a or term > mp.eps * total:
        n += 1
        term *= x / (a + n)
        harmonic += 1 / (a + n)
        total += term
        by_a -= term * harmonic
    front = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
    return front * ((mp.log(x) - mp.digamma(a + 1)) * total + by_a)


for a in (1e-10, 0.3, 1.0, 2.5, 30.0, 1000.0):
    slopes = (
        lambda x, a=a: _power_of(x, mpf(a)),
        lambda x, a=a: _power_of(x, mpf(a)) * ((mpf(a) - 1) / x - 1),
    )
    reach = dict(only=lambda x: 0 <= x < 1e4, ulps=(8000, 8000, 16000), f16=a > 1e-7)
    for name, f, truth, signs in (
        ("lax.igamma", lax.igamma, lower_gamma, 1),
        ("lax.igammac", lax.igammac, upper_gamma, -1),
    ):
        add(
            f"{name}({a:g}, x)",
            lambda x, a=a, f=f: f(a, x),
            lambda x, a=a, f=truth: f(mpf(a), x),
            slopes=tuple(lambda x, s=s, signs=signs: signs * s(x) for s in slopes),
            normal=True,
            scale=(1 if a < 1e-3 and signs < 0 else 0, 0, lambda x, s=slopes[0]: s(x) if x else 0),
            **reach,
        )
    add(
        f"lax.igamma_grad_a({a:g}, x)",
        lambda x, a=a: lax.igamma_grad_a(a, x),
        lambda x, a=a: _lower_gamma_by_a(mpf(a), x),
        only=lambda x: 0 < x < 1e3,
        highest=0,
        ulps=(4000, 0, 0),
        slow=True,
        scale=(1e-12, 0, 0),
        f16=a > 1e-7,
    )
add("lax.igamma(a, 2)", lambda a: lax.igamma(a, 2.0), lambda a: lower_gamma(a, mpf(2)), highest=1, ulps=(4000, 4000, 0),
    only=lambda a: 0 < a < 1e3)  # fmt: skip
add("lax.igammac(a, 2)", lambda a: lax.igammac(a, 2.0), lambda a: upper_gamma(a, mpf(2)), highest=1,
    ulps=(4000, 4000, 0), only=lambda a: 0 < a < 1e3)  # fmt: skip


def _beta_density(a, b, x):
    return mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - _logbeta(a, b))


for a, b in ((2.5, 0.7), (0.3, 4.0), (1.0, 1.0), (100.0, 50.0)):
    add(
        f"lax.betainc({a:g}, {b:g}, x)",
        lambda x, a=a, b=b: lax.betainc(a, b, x),
        lambda x, a=a, b=b: mp.betainc(mpf(a), mpf(b), 0, x, regularized=True),
        slopes=(
            lambda x, a=a, b=b: _beta_density(mpf(a), mpf(b), x),
            lambda x, a=a, b=b: _beta_density(mpf(a), mpf(b), x) * ((mpf(a) - 1) / x - (mpf(b) - 1) / (1 - x)),
        ),
        only=lambda x: 1e-18 < x < 1,
        ulps=(4000, 4000, 8000),
        scale=(0, 0, lambda x, a=a, b=b: _beta_density(mpf(a), mpf(b), x) / (x * (1 - x))),
    )

# -- hypergeometric functions --

for a, b in ((0.5, 1.5), (2.0, 3.5), (-1.5, 2.0), (3.0, 0.7)):
    add(
        f"sp.hyp1f1({a:g}, {b:g}, x)",
        lambda x, a=a, b=b: special.hyp1f1(a, b, x),
        lambda x, a=a, b=b: mp.hyp1f1(mpf(a), mpf(b), x),
        slopes=(
            lambda x, a=a, b=b: mpf(a) / b * mp.hyp1f1(mpf(a) + 1, mpf(b) + 1, x),
            lambda x, a=a, b=b: mpf(a) * (mpf(a) + 1) / (mpf(b) * (mpf(b) + 1)) * mp.hyp1f1(mpf(a) + 2, mpf(b) + 2, x),
        ),
        only=lambda x: abs(x) < 701,
        ulps=(4000, 8000, 16000),
        scale=(1e-3, 1e-3, 1e-3),
    )
for a, b, c in ((0.5, 1.0, 1.5), (1.0, 2.0, 3.5), (-2.0, 1.5, 0.7), (2.5, -0.3, 1.2)):
    add(
        f"sp.hyp2f1({a:g}, {b:g}, {c:g}, x)",
        lambda x, a=a, b=b, c=c: special.hyp2f1(a, b, c, x),
        lambda x, a=a, b=b, c=c: mp.hyp2f1(mpf(a), mpf(b), mpf(c), x),
        slopes=tuple(
            lambda x, a=a, b=b, c=c, n=n: (
                mp.rf(mpf(a), n)
                * mp.rf(mpf(b), n)
                / mp.rf(mpf(c), n)
                * mp.hyp2f1(mpf(a) + n, mpf(b) + n, mpf(c) + n, x)
            )
            for n in (1, 2)
        ),
        only=lambda x: -1e18 < x < 1,
        ulps=(4000, 8000, 16000),
        scale=(1e-3, 1e-3, 1e-3),
    )
add("sp.wofz(x).real", lambda x: rnp.real(special.wofz(x)), lambda x: mp.exp(-min(x * x, mpf(10) ** 8)),
    slopes=(lambda x: -2 * x * mp.exp(-min(x * x, mpf(10) ** 8)),
            lambda x: (4 * x * x - 2) * mp.exp(-min(x * x, mpf(10) ** 8))),
    scale=(0.1, 1, 1), only=lambda x: abs(x) < 20, ulps=(64, 64, 400))  # fmt: skip
add("sp.wofz(x).imag", lambda x: rnp.imag(special.wofz(x)), lambda x: _dawson(x) * 2 / mp.sqrt(mp.pi),
    slopes=tuple(lambda x, n=n: _dawson(x, n) * 2 / mp.sqrt(mp.pi) for n in (1, 2)),
    scale=(0, 1, 1), only=lambda x: abs(x) < 20, ulps=(64, 64, 400))  # fmt: skip


# -- transforms of Box and Cox --


def _box_cox(log, p):
    return log if p == 0 else mp.expm1(p * log) / p


for p in (0.0, 0.5, -2.0):
    add(f"sp.boxcox(x, {p:g})", lambda x, p=p: special.boxcox(x, p), lambda x, p=p: _box_cox(mp.log(x), p),
        only=lambda x: 0 < x < mp.inf, normal=True, ulps=(400, 400, 800))  # fmt: skip
    add(f"sp.boxcox1p(x, {p:g})", lambda x, p=p: special.boxcox1p(x, p), lambda x, p=p: _box_cox(mp.log1p(x), p),
        only=lambda x: -1 < x < mp.inf, normal=True, ulps=(400, 400, 800))  # fmt: skip
add(
    "sp.boxcox(3, p)",
    lambda p: special.boxcox(3.0, p),
    lambda p: _box_cox(mp.log(3), p),
    only=lambda p: abs(p) < 300,
    ulps=(400, 8000, 80000),
)

# -- remainders and parts --


def _floor_mod(x, y):
    return x - y * mp.floor(x / y)


def _truncated(x, y):
    q = x / y
    return x - y * (mp.floor(q) if q >= 0 else mp.ceil(q))


_PARTS = dict(arity=2, only=lambda x, y: y != 0 and abs(x) < abs(y) * mpf(10) ** 15 and abs(y) < mp.inf)
unary("np.mod np.remainder", _floor_mod, **_PARTS)
unary("np.fmod lax.rem", _truncated, **_PARTS)
_STEPS = {orders: lambda x, y: mpf(0) for orders in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))}
unary("np.floor_divide", lambda x, y: mp.floor(x / y), slopes=_STEPS, **_PARTS)
add("np.divmod(x, y)[0]", lambda x, y: rnp.divmod(x, y)[0], lambda x, y: mp.floor(x / y), slopes=_STEPS, **_PARTS)
add("np.divmod(x, y)[1]", lambda x, y: rnp.divmod(x, y)[1], _floor_mod, **_PARTS)


def _whole(x):
    return mp.floor(x) if x >= 0 else mp.ceil(x)


add("np.modf(x)[0]", lambda x: rnp.modf(x)[0], lambda x: x - _whole(x), only=lambda x: abs(x) < 1e6)
add("np.modf(x)[1]", lambda x: rnp.modf(x)[1], _whole, slopes=FLAT)
unary("np.round np.around", mp.nint, slopes=FLAT)
add("lax.round(x, 1)", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), mp.nint, slopes=FLAT)
add("lax.round(x)", lambda x: lax.round(x), lambda x: mp.floor(x + 0.5) if x >= 0 else mp.ceil(x - 0.5), slopes=FLAT)
add("np.ldexp(x, 3)", lambda x: rnp.ldexp(x, 3), lambda x: 8 * x)
add("lax.integer_pow(x, -3)", lambda x: lax.integer_pow(x, -3), lambda x: x**-3)
add("np.polyval", lambda x: rnp.polyval(rnp.array([1.0, -2.0, 0.5], x.dtype), x), lambda x: x * x - 2 * x + 0.5,
    scale=(1, 1, 1), only=lambda x: abs(x) < mp.inf)  # fmt: skip

# -- losses and reductions, of two classes --


def _pair(x):
    """Two logits, x and 0."""
    return rnp.stack([x, rnp.zeros_like(x)], -1)


_GATE = dict(scale=(0, 0.25, 0.25))
add("nn.softmax([x, 0])[0]", lambda x: nn.softmax(_pair(x), -1)[..., 0], sigmoid, only=lambda x: x < mp.inf, **_GATE)
add("nn.log_softmax([x, 0])[0]", lambda x: nn.log_softmax(_pair(x), -1)[..., 0], lambda x: -softplus(-x),
    scale=(1, 1, 0.25), only=lambda x: abs(x) < mp.inf)  # fmt: skip
add("nn.logsumexp([x, 0])", lambda x: nn.logsumexp(_pair(x), -1), softplus, scale=(1, 0.25, 0.25),
    only=lambda x: x < mp.inf)  # fmt: skip
add("nn.logmeanexp([x, 0])", lambda x: nn.logmeanexp(_pair(x), -1), lambda x: softplus(x) - mp.log(2),
    scale=(1, 0.25, 0.25), only=lambda x: x < mp.inf)  # fmt: skip
for label in (0, 1):
    sign = 1 - 2 * label
    loss = dict(scale=(1, 1, 0.25), only=lambda x: abs(x) < mp.inf)
    add(f"nn.softmax_cross_entropy_with_integer_labels([x, 0], {label})",
        lambda x, n=label: nn.softmax_cross_entropy_with_integer_labels(_pair(x), rnp.zeros(x.shape, "int32") + n),
        lambda x, s=sign: softplus(-s * x), **loss)  # fmt: skip
    add(f"nn.cross_entropy([x, 0], {label})",
        lambda x, n=label: _cross_entropy(x, n), lambda x, s=sign: softplus(-s * x), **loss)  # fmt: skip
    add(f"nn.nll_loss(log_softmax [x, 0], {label})",
        lambda x, n=label: _nll(x, n), lambda x, s=sign: softplus(-s * x), **loss)  # fmt: skip


def _cross_entropy(x, label):
    flat = rnp.reshape(x, (-1,))
    out = nn.cross_entropy(_pair(flat), rnp.zeros(flat.shape, "int32") + label, reduction="none")
    return rnp.reshape(out, x.shape)


def _nll(x, label):
    flat = rnp.reshape(x, (-1,))
    out = nn.nll_loss(nn.log_softmax(_pair(flat), -1), rnp.zeros(flat.shape, "int32") + label, reduction="none")
    return rnp.reshape(out, x.shape)


add("nn.softmax_cross_entropy([x, 0], [0.25, 0.75])",
    lambda x: nn.softmax_cross_entropy(_pair(x), rnp.array([0.25, 0.75], x.dtype)),
    lambda x: (softplus(-x) + 3 * softplus(x)) / 4, scale=(1, 1, 0.25), only=lambda x: abs(x) < mp.inf)  # fmt: skip
add("nn.kl_divergence(log_softmax [x, 0], [0.25, 0.75])",
    lambda x: nn.kl_divergence(nn.log_softmax(_pair(x), -1), rnp.array([0.25, 0.75], x.dtype)),
    lambda x: (softplus(-x) + 3 * softplus(x) + mp.log(0.25) + 3 * mp.log(0.75)) / 4, scale=(1, 1, 0.25),
    only=lambda x: abs(x) < mp.inf)  # fmt: skip
add("nn.kl_divergence_with_log_targets(log_softmax [x, 0], log [0.25, 0.75])",
    lambda x: nn.kl_divergence_with_log_targets(
        nn.log_softmax(_pair(x), -1), rnp.log(rnp.array([0.25, 0.75], x.dtype))),
    lambda x: (softplus(-x) + 3 * softplus(x) + mp.log(0.25) + 3 * mp.log(0.75)) / 4, scale=(2, 2, 0.25),
    only=lambda x: abs(x) < mp.inf)  # fmt: skip
for t in (-1.0, 1.0):
    add(f"nn.margin_ranking_loss(x, y, {t:g})",
        lambda x, y, t=t: nn.margin_ranking_loss(x, y, t, margin=0.5, reduction="none"),
        lambda x, y, t=t: max(mpf(0), -t * (x - y) + mpf(0.5)), arity=2)  # fmt: skip
add("nn.glu([x, y])", lambda x, y: nn.glu(rnp.stack([x, y], -1), -1)[..., 0], lambda x, y: x * sigmoid(y), arity=2,
    scale=(0, {(0, 1): lambda x, y: max(mpf(1e-30), abs(x) / 4)}, lambda x, y: (1 + abs(x)) / 4))  # fmt: skip
