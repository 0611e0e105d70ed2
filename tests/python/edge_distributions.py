"""The distributions of rlx.scipy.stats in the table of edge_functions.py, by their densities and distribution functions
in mpmath.
"""

from edge_functions import TABLE, Function, _erfcinv, lower_gamma, ncdf, rlx, upper_gamma
from mpmath import mp, mpf
from oracles import truth as oracle

stats = rlx.scipy.stats


def _slopes(value, pdf, slope):
    """First and second derivative of `value` (its name) by the density and the derivative of the density."""
    return {
        "pdf": (slope, None),
        "cdf": (pdf, slope),
        "sf": (lambda x: -pdf(x), lambda x: -slope(x)),
    }.get(value, (None, None))


def _closed(low, high):
    return lambda x: low <= x <= high


def _log(f):
    return lambda x: mp.log(f(x))


def continuous(name, args, pdf, cdf, sf, ppf=None, *, low=-mp.inf, high=mp.inf, reach=1e4, scale=1, ulps=(64, 400, 800),
               kink=None, logs=True, size=None):  # fmt: skip
    """Rows of each function that a distribution has, at parameters `args`, inside of its support. logs: logcdf and
    logsf have formulas of their own; else they are logarithms of numbers that may be too small.
    """
    of = getattr(stats, name)
    shown = "".join(f", {a:g}" for a in args)
    difference = oracle.derivative(pdf, (1,))

    def slope(x):
        with mp.workdps(max(mp.dps, 400 if abs(x) < 1e-30 else 0)):  # a step beside it leaves a constant as it is
            return difference(x)

    inside = lambda x: low < x < high and abs(x) < reach and x != kink  # noqa: E731
    plain = {"pdf": pdf, "cdf": cdf, "sf": sf}
    for method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"):
        if not hasattr(of, method):
            continue
        base = plain[method.removeprefix("log")]
        f, slopes = base, _slopes(method, pdf, slope)
        if method.startswith("log"):
            f = _log(base)
            if method != "logpdf":
                s = 1 if method == "logcdf" else -1
                slopes = (
                    lambda x, base=base, s=s: s * pdf(x) / base(x),
                    lambda x, base=base, s=s: s * slope(x) / base(x) - (pdf(x) / base(x)) ** 2,
                )
            sizes = (scale, 1, 1)
        else:
            sizes = (0, pdf, pdf) if size is None else (0, size, size)
        held = method in ("logcdf", "logsf") and not logs
        many = 16 if method == "pdf" else 1  # the exponential of a logarithm
        TABLE.append(
            Function(
                f"st.{name}.{method}(x{shown})",
                lambda x, f=getattr(of, method): f(x, *args),
                f,
                slopes=None if slopes == (None, None) else slopes,
                only=(lambda x, base=base: inside(x) and base(x) > 1e-18) if held else inside,
                normal=True,
                scale=sizes,
                ulps=tuple(many * u for u in ulps),
            )
        )
    for method in ("ppf", "isf"):
        if not hasattr(of, method):
            continue
        f = ppf if method == "ppf" else lambda q: ppf(1 - q)
        TABLE.append(
            Function(
                f"st.{name}.{method}(q{shown})",
                lambda x, f=getattr(of, method): f(x, *args),
                f,
                only=lambda q: 0 < q < 1,
                normal=True,
                ulps=ulps,
                scale=(1, 1, 1),
                highest=1,
            )
        )


def _between(a, b):
    """ndtr(b) - ndtr(a)."""
    return ncdf(b) - ncdf(a)


def _bell(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


continuous("norm", (), _bell, ncdf, lambda x: ncdf(-x), lambda q: -mp.sqrt(2) * _erfcinv(2 * q), reach=180,
           ulps=(400, 400, 8000))  # fmt: skip
continuous("expon", (), lambda x: mp.exp(-x), lambda x: -mp.expm1(-x), lambda x: mp.exp(-x), lambda q: -mp.log1p(-q),
           low=0)  # fmt: skip
continuous("uniform", (), lambda x: mpf(1) + 0 * x, lambda x: x, lambda x: 1 - x, lambda q: q, low=0, high=1)
continuous("laplace", (), lambda x: mp.exp(-abs(x)) / 2, lambda x: _half(x), lambda x: _half(-x),
           lambda q: mp.log(2 * q) if q < 0.5 else -mp.log(2 * (1 - q)), kink=0)  # fmt: skip


def _half(x):
    return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2


continuous("logistic", (), lambda x: 1 / (2 + 2 * mp.cosh(x)), lambda x: 1 / (1 + mp.exp(-x)),
           lambda x: 1 / (1 + mp.exp(x)), lambda q: mp.log(q) - mp.log1p(-q),
           ulps=(64, 400, 800), size=0.25)  # fmt: skip
continuous("cauchy", (), lambda x: 1 / (mp.pi * (1 + x * x)), lambda x: mp.atan2(1, -x) / mp.pi,
           lambda x: mp.atan2(1, x) / mp.pi, lambda q: -mp.cot(mp.pi * q), reach=1e37)  # fmt: skip
continuous("gumbel_r", (), lambda x: mp.exp(-x - mp.exp(-x)), lambda x: mp.exp(-mp.exp(-x)),
           lambda x: -mp.expm1(-mp.exp(-x)), lambda q: -mp.log(-mp.log(q)), low=-5)  # fmt: skip
continuous("gumbel_l", (), lambda x: mp.exp(x - mp.exp(x)), lambda x: -mp.expm1(-mp.exp(x)),
           lambda x: mp.exp(-mp.exp(x)), lambda q: mp.log(-mp.log1p(-q)), high=5)  # fmt: skip


def _gamma(a, scale=1):
    return (
        lambda x: mp.exp((a - 1) * mp.log(x / scale) - x / scale) / mp.gamma(a) / scale,
        lambda x: lower_gamma(a, x / scale),
        lambda x: upper_gamma(a, x / scale),
    )


for a in (0.3, 2.5):
    low = 1e-20 if a > 1 else 0  # its slope is a number where the density is too small for one
    continuous("gamma", (a,), *_gamma(mpf(a)), low=low, reach=80, ulps=(800, 800, 8000), logs=False)
continuous("chi2", (3.0,), *_gamma(mpf(1.5), 2), low=0, reach=80, ulps=(800, 800, 8000), logs=False)


def _beta(a, b):
    a, b = mpf(a), mpf(b)
    return (
        lambda x: mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x)) / mp.beta(a, b),
        lambda x: mp.betainc(a, b, 0, x, regularized=True),
        lambda x: mp.betainc(b, a, 0, 1 - x, regularized=True),
    )


continuous("beta", (2.5, 0.7), *_beta(2.5, 0.7), low=1e-30, high=1, ulps=(4000, 4000, 8000), logs=False)


def _student(n):
    n = mpf(n)

    def tail(x):
        return mp.betainc(n / 2, mpf(1) / 2, 0, n / (n + x * x), regularized=True) / 2

    def cdf(x):
        return tail(x) if x < 0 else 1 - tail(x)

    norm = lambda: mp.gamma((n + 1) / 2) / mp.gamma(n / 2) / mp.sqrt(n * mp.pi)  # noqa: E731
    return lambda x: norm() * (1 + x * x / n) ** (-(n + 1) / 2), cdf, lambda x: cdf(-x)


continuous("t", (3.0,), *_student(3), ulps=(4000, 4000, 8000), reach=1e12, logs=False)
continuous("pareto", (2.5,), lambda x: mpf(2.5) * x ** mpf(-3.5), lambda x: 1 - x ** mpf(-2.5),
           lambda x: x ** mpf(-2.5), lambda q: mp.exp(-mp.log1p(-q) / 2.5), low=1, ulps=(400, 400, 800))  # fmt: skip


def _general(b):
    b = mpf(b)

    def cdf(x):
        tail = upper_gamma(1 / b, abs(x) ** b) / 2
        return tail if x < 0 else 1 - tail

    return lambda x: b / 2 / mp.gamma(1 / b) * mp.exp(-(abs(x) ** b)), cdf, lambda x: cdf(-x)


continuous("gennorm", (1.5,), *_general(1.5), ulps=(800, 800, 8000), reach=100, kink=0, logs=False)
continuous("truncnorm", (-1.0, 2.0), lambda x: _bell(x) / _between(mpf(-1), mpf(2)),
           lambda x: _between(mpf(-1), x) / _between(mpf(-1), mpf(2)),
           lambda x: _between(x, mpf(2)) / _between(mpf(-1), mpf(2)), low=-0.9, high=1.9,
           ulps=(400, 800, 8000))  # fmt: skip
continuous("truncnorm", (6.0, 8.0), lambda x: _bell(x) / _between(mpf(6), mpf(8)),
           lambda x: _between(mpf(6), x) / _between(mpf(6), mpf(8)),
           lambda x: _between(x, mpf(8)) / _between(mpf(6), mpf(8)), low=6.1, high=7.9,
           ulps=(4000, 4000, 8000))  # fmt: skip
continuous("vonmises", (2.0,), lambda x: mp.exp(2 * mp.cos(x)) / (2 * mp.pi * mp.besseli(0, 2)), None, None, reach=1e3)
continuous("wrapcauchy", (0.5,), lambda x: mpf(0.75) / (2 * mp.pi) / (mpf(1.25) - mp.cos(x)), None, None, low=0, high=6)


# -- by the parameters --


def by(name, call, f, only, **options):
    options = {"ulps": (400, 800, 1600), "scale": (1, 1, 1), **options}
    TABLE.append(Function(f"st.{name}", call, f, only=only, **options))


by("norm.logpdf(1.5, 0, s)", lambda s: stats.norm.logpdf(1.5, 0.0, s),
   lambda s: -mpf(2.25) / (2 * s * s) - mp.log(s) - mp.log(2 * mp.pi) / 2, lambda s: 1e-3 < s < 1e4)  # fmt: skip
by("gamma.logpdf(2, a)", lambda a: stats.gamma.logpdf(2.0, a),
   lambda a: (a - 1) * mp.log(2) - 2 - mp.loggamma(a), lambda a: 0 < a < 1e4)  # fmt: skip
by("gamma.logpdf(x, x)", lambda a: stats.gamma.logpdf(a, a),
   lambda a: (a - 1) * mp.log(a) - a - mp.loggamma(a), lambda a: 0 < a < 1e8, highest=0)  # fmt: skip
by("beta.logpdf(0.25, a, 2)", lambda a: stats.beta.logpdf(0.25, a, 2.0),
   lambda a: (a - 1) * mp.log(mpf(0.25)) + mp.log(mpf(0.75)) + mp.log(a) + mp.log(a + 1),
   lambda a: 0 < a < 1e3)  # fmt: skip
by("t.logpdf(1.5, n)", lambda n: stats.t.logpdf(1.5, n), lambda n: mp.log(_student(n)[0](mpf(1.5))),
   lambda n: 1e-3 < n < 1e12)  # fmt: skip
by("poisson.logpmf(3, m)", lambda m: stats.poisson.logpmf(3.0, m), lambda m: 3 * mp.log(m) - m - mp.log(6),
   lambda m: 0 < m < 1e4)  # fmt: skip
by("binom.logpmf(3, 10, p)", lambda p: stats.binom.logpmf(3.0, 10.0, p),
   lambda p: mp.log(120) + 3 * mp.log(p) + 7 * mp.log1p(-p), lambda p: 0 < p < 1)  # fmt: skip


# -- whole numbers --


def discrete(name, args, pmf, cdf, sf, *, low=0, high=mp.inf, ulps=64, scale=1, reach=310):
    of = getattr(stats, name)
    shown = "".join(f", {a:g}" for a in args)
    plain = {"pmf": pmf, "cdf": cdf, "sf": sf}
    for method in ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf"):
        if hasattr(of, method):
            f = plain[method.removeprefix("log")]
            TABLE.append(
                Function(
                    f"st.{name}.{method}(k{shown})",
                    lambda k, f=getattr(of, method): f(k, *args),
                    _log(f) if method.startswith("log") else f,
                    only=lambda k, f=f, held=method.startswith("log"): (
                        low <= k <= high and k < reach and k == int(k) and not (held and f(k) < 1e-30)
                    ),
                    scale=(scale if method.startswith("log") else 0, 0, 0),
                    ulps=((16 if method == "pmf" else 1) * ulps, 0, 0),
                    highest=0,
                )
            )


P = mpf(0.25)
discrete("bernoulli", (0.25,), lambda k: P if k else 1 - P, lambda k: mpf(1) if k else 1 - P,
         lambda k: mpf(0) if k else P, high=1)  # fmt: skip
discrete("poisson", (3.5,), lambda k: mp.exp(k * mp.log(mpf(3.5)) - mpf(3.5)) / mp.factorial(k),
         lambda k: upper_gamma(k + 1, mpf(3.5)),
         lambda k: lower_gamma(k + 1, mpf(3.5)), ulps=4000)  # fmt: skip
discrete("geom", (0.25,), lambda k: P * (1 - P) ** (k - 1), lambda k: 1 - (1 - P) ** k, lambda k: (1 - P) ** k, low=1)
discrete(
    "binom",
    (300.0, 0.25),
    lambda k: mp.binomial(300, k) * P**k * (1 - P) ** (300 - k),
    lambda k: mp.betainc(300 - k, k + 1, 0, 1 - P, regularized=True) if k < 300 else mpf(1),
    lambda k: mp.betainc(k + 1, 300 - k, 0, P, regularized=True) if k < 300 else mpf(0),
    high=300,
    ulps=8000,
)
discrete("nbinom", (2.5, 0.25),
         lambda k: mp.gammaprod([k + mpf(2.5)], [mpf(2.5), k + 1]) * P ** mpf(2.5) * (1 - P) ** k,
         lambda k: mp.betainc(mpf(2.5), k + 1, 0, P, regularized=True),
         lambda k: mp.betainc(k + 1, mpf(2.5), 0, 1 - P, regularized=True), ulps=8000)  # fmt: skip
discrete("betabinom", (10.0, 2.5, 0.75), lambda k: mp.binomial(10, k) * mp.beta(k + mpf(2.5), 10 - k + mpf(0.75))
         / mp.beta(mpf(2.5), mpf(0.75)), None, None, high=10, ulps=400)  # fmt: skip


def counts(name, call, f, only, ulps=400, scale=1, **options):
    by(name, call, f, only, ulps=(ulps, 0, 0), scale=(scale, 0, 0), highest=0, **options)


counts("poisson.logpmf(k, k)", lambda k: stats.poisson.logpmf(rlx.numpy.floor(k), rlx.numpy.floor(k)),
       lambda k: k * mp.log(k) - k - mp.loggamma(k + 1), lambda k: 1 <= k < 1e9 and k == int(k))  # fmt: skip
counts("binom.logpmf(k, 2k, 0.5)", lambda k: stats.binom.logpmf(rlx.numpy.floor(k), 2 * rlx.numpy.floor(k), 0.5),
       lambda k: mp.loggamma(2 * k + 1) - 2 * mp.loggamma(k + 1) - 2 * k * mp.log(2),
       lambda k: 1 <= k < 1e9 and k == int(k), f16=False)  # fmt: skip
by("bernoulli.ppf(q, 0.25)", lambda q: stats.bernoulli.ppf(q, 0.25), lambda q: mpf(q > 1 - P), lambda q: 0 <= q <= 1,
   highest=0)  # fmt: skip


def _entropy(m):
    """The sum of m^k log(k!) exp(-m) / k! beside m (1 - log m)."""
    total, term, log = mpf(0), mp.exp(-m), mpf(0)
    for k in range(1, int(m + 60 * mp.sqrt(m)) + 200):
        log += mp.log(k)
        term *= m / k
        total += term * log
    return m * (1 - mp.log(m)) + total


by("poisson.entropy(m)", lambda m: stats.poisson.entropy(m), _entropy, lambda m: 0 < m < 20, highest=0)
