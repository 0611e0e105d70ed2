"""True values of real functions and their derivatives at any point, by mpmath: with as many digits as the value needs,
and by limits where a formula has none (infinities, edges of the domain, removable singularities).
"""

import functools
import itertools

import mpmath
from mpmath import mp, mpf

NONE = None  # no value: outside of the domain, or the limits from both sides differ


def _real(call):
    """The real number that call() gives; NONE for complex numbers, poles and domain errors."""
    try:
        y = call()
    except (ZeroDivisionError, ValueError, OverflowError, mpmath.libmp.NoConvergence):
        return NONE
    if isinstance(y, mpmath.mpc):
        if y.imag != 0:
            return NONE
        y = y.real
    y = mpf(y)
    return NONE if mpmath.isnan(y) else y


def settled(f, *at):
    """f at numbers, with digits added until 25 of them are settled."""
    before = NONE
    for digits in (40, 100, 400, 1200):
        with mp.workdps(digits):
            y = _real(lambda: f(*map(mpf, at)))
            if y is NONE and before is NONE and digits > 40:
                return NONE
            if (
                y is not NONE
                and before is not NONE
                and abs(y - before) <= abs(y) * mpf(10) ** -25
                and (y or digits > 500)
            ):
                return y
            before = y
    return before


def _trend(near, nearer):
    """The limit of a function by its values at two places, the second much nearer to the point."""
    if near is NONE or nearer is NONE:
        return NONE
    if near == nearer or abs(nearer - near) <= abs(nearer) * mpf("1e-4"):
        return nearer if abs(nearer) > mpf("1e-300") or nearer == 0 else mpf(0)
    small, large = abs(near), abs(nearer)
    if large < small:
        return mpf(0) if large < mpf("1e-3") else nearer
    return mpmath.sign(nearer) * mpf("inf")


def limit(f, at, i):
    """The limit of f as argument i comes to at[i]; NONE if the sides differ."""
    x = at[i]
    if mpmath.isinf(x):
        places = [(mpmath.sign(x) * mpf("1e30"), mpmath.sign(x) * mpf("1e40"))]
    else:
        steps = (mpf("1e-450"), mpf("1e-900")) if x == 0 else (abs(x) * mpf("1e-12"), abs(x) * mpf("1e-24"))
        with mp.workdps(60):
            places = [(mpf(x) + s * steps[0], mpf(x) + s * steps[1]) for s in (1, -1)]
    sides = []
    for near, nearer in places:
        y = _trend(*(settled(f, *at[:i], p, *at[i + 1 :]) for p in (near, nearer)))
        if y is not NONE:
            sides.append(y)
    if not sides:
        return NONE
    a, b = sides[0], sides[-1]
    same = a == b or (mpmath.isfinite(a) and mpmath.isfinite(b) and abs(a - b) <= mpf("1e-4") * max(abs(a), abs(b)))
    return a if same else NONE


def at_point(f, *at):
    """f at a point of doubles; where f has no value, its limit as any one of the arguments that are 0 or infinite
    moves, if they agree.
    """
    at = [mpf(x) for x in at]
    if all(mpmath.isfinite(x) for x in at):
        y = settled(f, *at)
        if y is not NONE:
            return y
    limits = [limit(f, at, i) for i, x in enumerate(at) if len(at) == 1 or x == 0 or mpmath.isinf(x)]
    return limits[0] if limits and NONE not in limits and all(y == limits[0] for y in limits) else NONE


def derivative(f, orders, periodic=False):
    """The partial derivative of f by differences with a step far below each argument (below 1 if f is periodic), from
    all sides, which must agree.
    """

    def d(*at):
        digits = mp.dps
        with mp.workdps(3 * digits):
            steps = [(min(abs(x), 1) if periodic and x else abs(x) or mpf(1)) * mpf(10) ** (-digits) for x in at]
            sides = []
            for signs in itertools.product(*((1, -1) if k else (1,) for k in orders)):
                total = mpf(0)
                for shifts, weight in _stencil(tuple(orders)):
                    total += weight * f(*(x + k * s * h for x, k, s, h in zip(at, shifts, signs, steps)))
                for k, s, h in zip(orders, signs, steps):
                    total /= (s * h) ** k
                sides.append(total)
            scale = max(map(abs, sides))
            if any(abs(y - sides[0]) > scale * mpf("1e-12") for y in sides[1:]) and scale > mpf(10) ** (-digits // 2):
                raise ValueError("the sides differ")
        return +sides[0]

    return d


@functools.cache
def _stencil(orders):
    """The shifts and weights of a difference to one side of these orders."""
    one = {0: [(0, 1)], 1: [(1, 1), (0, -1)], 2: [(2, 1), (1, -2), (0, 1)]}
    out = [((), 1)]
    for k in orders:
        out = [((*s, t), w * v) for s, w in out for t, v in one[k]]
    return out
