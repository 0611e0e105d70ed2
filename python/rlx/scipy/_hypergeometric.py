"""The hypergeometric functions 1F1 and 2F1 of real numbers, by power series that are summed in loops."""

import math as _math

from .. import _control, _rlx
from .._nodes import cast, node
from .._op import op
from ..numpy import any as _any
from ..numpy import broadcast_arrays
from ._special import _where, computed


def _operands(what, *values):
    """The values as floats of one dtype and shape."""
    dtype = _rlx.result_type(*values)[0]
    if dtype.kind == "c":
        raise TypeError(f"{what} of complex numbers is not supported")
    dtype = dtype if dtype.kind == "f" else _rlx.dtype("float32")
    return broadcast_arrays(*(cast(_rlx.value(v), dtype) for v in values))


def _pole(c):
    """True for 0, -1, -2, ..: the gamma function has poles there, and c (c + 1) (c + 2) .. reaches 0."""
    return node("bit_and", node("eq", c, node("floor", c)), node("le", c, 0))


def _not(x):
    return node("eq", x, False)


def _both(*conditions):
    out = conditions[0]
    for c in conditions[1:]:
        out = node("bit_and", out, c)
    return out


def _one_like(x):
    return node("add", node("mul", x, 0), 1)


def _counted(count, x):
    return node("iota", dims=(count,), dtype=x.dtype, axis=0)


def _checked(out, pole, *values):
    """out; NaN where a value is NaN or the series has a pole."""
    out = _where(pole, _math.nan, out)
    for v in values:
        out = _where(node("ne", v, v), v, out)
    return out


def _sign_of_gamma(x):
    odd = node("ne", node("mod", node("floor", x), 2), 0)
    return _where(_both(node("lt", x, 0), odd), -1.0, 1.0)


def _halved_exp(power, factor):
    """exp(power) * factor, which overflows only if the product does."""
    half = node("exp", node("mul", power, 0.5))
    return node("mul", node("mul", half, factor), half)


# -- 1F1 --


def _series_1f1(a, b, x):
    """The sum of (a)_k / (b)_k x^k / k!."""

    def step(state, k):
        total, term = state
        below = node("mul", node("add", b, k), node("add", k, 1))
        ratio = node("div", node("add", a, k), _where(node("eq", below, 0), 1, below))
        term = node("mul", node("mul", term, ratio), x)
        return (node("add", total, term), term), None

    one = _one_like(x)
    return _control.scan(step, (one, one), _counted(640, x))[0][0]


def _far_1f1(a, b, x):
    """The sum of (b - a)_k (1 - a)_k / (k! x^k), up to its least term."""

    def step(state, k):
        total, term, going = state
        ratio = node("mul", node("add", node("sub", b, a), k), node("add", node("sub", 1, a), k))
        ratio = node("div", node("div", ratio, x), node("add", k, 1))
        going = _both(going, node("lt", node("abs", ratio), 0.9))
        term = _where(going, node("mul", term, ratio), 0)
        return (node("add", total, term), term, going), None

    one = _one_like(x)
    return _control.scan(step, (one, one, node("gt", one, 0)), _counted(60, x))[0][0]


def _rising_1f1(a, b, x, scaled):
    """1F1(a, b, x) for x from 0 on; `scaled`: True where it is multiplied by exp(-x)."""
    apart = node("mul", node("add", node("abs", node("sub", b, a)), 4), node("add", node("abs", node("sub", 1, a)), 4))
    far = _both(node("gt", x, 60.0), node("lt", apart, node("mul", x, 1.5)), _not(_pole(a)))
    near_x = _where(far, 1, node("min", x, 1e30))
    near = _series_1f1(a, b, near_x)
    near = node("mul", near, node("exp", _where(scaled, node("neg", near_x), 0)))
    # gamma(b) / gamma(a) exp(x) x^(a - b) times a series in 1 / x
    far_a, far_b = _where(far, a, 1), _where(far, b, 1)
    far_x = _where(far, node("min", x, 1e300 if x.dtype.itemsize == 8 else 1e38), 60.0)
    power = node("sub", node("lgamma", far_b), node("lgamma", far_a))
    power = node("add", power, node("mul", node("sub", far_a, far_b), node("log", far_x)))
    power = node("add", power, _where(scaled, 0, far_x))
    signs = node("mul", _sign_of_gamma(far_b), _sign_of_gamma(far_a))
    return _where(far, node("mul", _halved_exp(power, _far_1f1(far_a, far_b, far_x)), signs), near)


def _hyp1f1(a, b, x):
    pole = _both(_pole(b), _not(_both(_pole(a), node("ge", a, b))))
    # Kummer: 1F1(a, b, x) = exp(x) 1F1(b - a, b, -x); a finite sum is taken as it is.
    turned = _both(node("lt", x, 0), _not(_pole(a)))
    first = _where(turned, node("sub", b, a), a)
    out = _rising_1f1(first, _where(pole, 1, b), _where(turned, node("neg", x), x), turned)
    return _checked(out, pole, a, b, x)


@op("a", "b", "x")
def hyp1f1(a, b, x):
    """Kummer's function 1F1(a; b; x): the sum of (a)_k / (b)_k x^k / k!, for a and b up to about 30 in size."""
    return computed(_hyp1f1, *_operands("hyp1f1", a, b, x))


# -- 2F1: around 0 a power series up to 1/2, then steps by Taylor series around points that halve the distance to 1 --


def _series_2f1(a, b, c, x):
    """(y, y') by the sum of (a)_k (b)_k / (c)_k x^k / k!."""

    def step(state, k):
        y, slope, term = state
        below = node("mul", node("add", c, k), node("add", k, 1))
        ratio = node("div", node("mul", node("add", a, k), node("add", b, k)), _where(node("eq", below, 0), 1, below))
        # Behind the end of a finite sum; powers of a large x are infinite there.
        over = _both(_pole(a), node("ge", node("add", a, k), 0))
        # The term of the slope is (k + 1) t_k x^k, where t_k x^(k+1) is the next term.
        lifted = _where(over, 0, node("mul", _where(over, 0, term), ratio))
        term = node("mul", lifted, _where(over, 0, x))
        return (node("add", y, term), node("add", slope, node("mul", lifted, node("add", k, 1))), term), None

    one = _one_like(x)
    state = _control.scan(step, (one, node("mul", one, 0), one), _counted(160, x))[0]
    return state[0], state[1]


def _towards_one(a, b, c, y, v, far, near):
    """(y, y' near) at 1 - near from (y, y' far) at 1 - far, where near is at least half of far, by the differential
    equation x (1 - x) y'' + (c - (a + b + 1) x) y' = a b y.
    """
    x = node("sub", 1, far)
    h = node("sub", far, near)
    total = node("add", node("add", a, b), 1)
    p = node("mul", x, far)
    q, r = node("sub", far, x), node("sub", c, node("mul", total, x))
    ratio, square = node("div", h, p), node("mul", node("div", h, p), h)

    def step(state, k):
        below, above, out, slope = state
        next_ = node("mul", node("mul", node("mul", node("add", a, k), node("add", b, k)), square), below)
        turned = node("mul", node("mul", node("add", node("mul", q, k), r), ratio), above)
        turned = node("mul", turned, node("add", k, 1))
        next_ = node("div", node("sub", next_, turned), node("mul", node("add", k, 2), node("add", k, 1)))
        slope = node("add", slope, node("mul", next_, node("add", k, 2)))
        return (above, next_, node("add", out, next_), slope), None

    first = node("mul", v, node("div", h, far))
    state = _control.scan(step, (y, first, node("add", y, first), first), _counted(80, y))[0]
    moved = _where(node("gt", h, 0), node("mul", state[3], node("div", near, _where(node("gt", h, 0), h, 1))), v)
    return state[2], moved


def _at_one(a, b, c):
    """gamma(c) gamma(c - a - b) / (gamma(c - a) gamma(c - b)), infinite unless c - a - b is above 0."""
    rest, ca, cb = node("sub", node("sub", c, a), b), node("sub", c, a), node("sub", c, b)
    good = node("gt", rest, 0)
    rest = _where(good, rest, 1)
    zero = node("bit_or", _pole(ca), _pole(cb))
    ca, cb = _where(zero, 1, ca), _where(zero, 1, cb)
    size = node("sub", node("add", node("lgamma", c), node("lgamma", rest)), node("lgamma", ca))
    out = node("exp", node("sub", size, node("lgamma", cb)))
    for v in (c, ca, cb):
        out = node("mul", out, _sign_of_gamma(v))
    endless = node("mul", node("mul", _sign_of_gamma(c), _sign_of_gamma(a)), _sign_of_gamma(b))
    return _where(good, _where(zero, 0, out), node("mul", endless, _math.inf))


def _hyp2f1(a, b, c, x):
    swap = _both(_pole(b), _not(_both(_pole(a), node("ge", a, b))))
    # Of two finite sums the shorter one; below 0 the larger of a and b first, which leaves less cancellation.
    endless = _both(_not(_pole(a)), _not(_pole(b)))
    swap = node("bit_or", swap, _both(endless, node("lt", x, 0), node("lt", a, b)))
    a, b = _where(swap, b, a), _where(swap, a, b)
    finite = _both(_pole(a), node("gt", a, -160.0))
    pole = _both(_pole(c), _not(_both(finite, node("ge", a, c))))
    safe_c = _where(pole, 1, c)
    ends = _series_2f1(_where(finite, a, 0), b, safe_c, _where(finite, x, 0))[0]
    one = node("eq", x, 1)
    inside = _both(node("lt", x, 1), _not(finite), node("gt", x, -1e30))
    z = _where(inside, x, 0)
    # Pfaff: F(a, b, c, x) = (1 - x)^-a F(a, c - b, c, x / (x - 1))
    below = node("lt", z, 0)
    over = node("sub", 1, z)
    far = _where(below, node("div", 1, over), over)  # 1 - the argument
    z = _where(below, node("neg", node("div", z, over)), z)
    second = _where(below, node("sub", c, b), b)
    safe_a = _where(finite, 0, a)
    low = node("ge", far, 0.5)  # at a tie the argument moves alone
    start = _where(low, z, 0.5)
    y, slope = _series_2f1(safe_a, second, safe_c, start)
    at = _where(low, far, 0.5)

    def left(state):
        return _any(node("gt", state[2], far))

    def step(state):
        y, v, at = state
        going, half = node("gt", at, far), node("mul", at, 0.5)
        near = _where(node("ge", far, half), far, half)
        moved = _towards_one(safe_a, second, safe_c, y, v, _where(going, at, 0.5), _where(going, near, 0.5))
        return *(_where(going, new, old) for new, old in zip(moved, (y, v))), _where(going, near, at)

    y, _, _ = _control.while_loop(left, step, (y, node("mul", slope, at), at), max_iterations=110)
    out = node("mul", y, node("exp", _where(below, node("neg", node("mul", safe_a, node("log", over))), 0)))
    out = _where(one, _at_one(a, b, safe_c), _where(inside, out, _math.nan))
    out = _where(finite, ends, out)
    return _checked(out, pole, a, b, c, x)


@op("a", "b", "c", "x")
def hyp2f1(a, b, c, x):
    """Gauss's function 2F1(a, b; c; x): the sum of (a)_k (b)_k / (c)_k x^k / k!, for a, b and c up to about 30 in size.
    NaN for x above 1, where it is not real, unless the sum is finite.
    """
    return computed(_hyp2f1, *_operands("hyp2f1", a, b, c, x))


__all__ = ["hyp1f1", "hyp2f1"]
