"""Bessel functions of integer order and spherical harmonics, by recurrences."""

import math as _math

from .. import _control, _rlx
from .._nodes import cast, inexact, node
from .._op import op
from ..numpy import broadcast_arrays, stack
from ..numpy._base import int_static
from ._special import _real, _where, computed


def _bessel_j(z, top, count):
    """The orders 0 to top, by the recurrence downwards from order count, scaled so that J0 + 2 J2 + 2 J4 + .. is 1."""
    size = node("abs", z)
    small = node("lt", size, 1e-4)
    over = node("div", 2, _where(small, 1, size))

    def step(state, k):
        here, above, total = state  # those of orders k and k + 1
        even = node("mul", here, _where(node("eq", k, 0), 1, 2))
        total = node("add", total, _where(node("eq", node("mod", k, 2), 0), even, 0))
        below = node("sub", node("mul", node("mul", over, k), here), above)
        # Each order may be much larger than the one above it.
        scale = _where(node("gt", node("abs", below), 1e12), cast(1e-12, z.dtype), 1)
        return tuple(node("mul", v, scale) for v in (below, here, total)), (here, scale)

    nothing = node("mul", size, 0)
    orders = node("iota", dims=(count + 1,), dtype=z.dtype, axis=0)[::-1]
    start = (node("add", nothing, 1e-20), nothing, nothing)
    (_, _, total), (values, scales) = _control.scan(step, start, orders)
    # Row i holds order count - i, before the scales of this row and of those behind it.
    scale, rows = None, []
    for k in range(top + 1):
        here = scales[count - k]
        scale = here if scale is None else node("mul", scale, here)
        y = node("div", node("mul", values[count - k], scale), total)
        y = _where(node("lt", z, 0), node("neg", y), y) if k % 2 else y
        # Next to 0 the first two terms of the series, whose derivatives are right too.
        first = 0.5**k / _math.factorial(k)
        lead = _where(small, z, 0)
        series = node("sub", first, node("mul", node("mul", lead, lead), first / (4 * (k + 1))))
        for _ in range(k):
            series = node("mul", series, lead)
        rows.append(_where(small, series, y))
    return stack(rows)


@op("z")
def bessel_jn(z, *, v, n_iter=50):
    """The Bessel functions of the first kind of the orders 0 to v, [v + 1, *z.shape]. n_iter: the order from which the
    recurrence runs down; it must be above |z| and v by some 20 for full accuracy.
    """
    v, n_iter = int_static(v, "bessel_jn: v"), int_static(n_iter, "bessel_jn: n_iter")
    if not 0 <= v <= n_iter:
        raise ValueError(f"bessel_jn: v = {v} and n_iter = {n_iter}: 0 <= v <= n_iter")
    return computed(_orders(v, n_iter), _real(z, "bessel_jn"))


def _orders(top, count, levels=2):
    """The function of z that gives the orders 0 to top. Its derivatives up to the order `levels` are by its rule."""
    if levels == 0:
        return lambda z: _bessel_j(z, top, count)

    @_control.custom_jvp
    def orders(z):
        return _bessel_j(z, top, count)

    @orders.defjvp
    def rule(primals, tangents):
        (z,), (t,) = primals, tangents
        # The derivative of order k is the mean of the orders k - 1 and, turned, k + 1.
        every = _orders(top + 1, count + 1, levels - 1)(z)
        slopes = [node("neg", every[1])] + [(every[k - 1] - every[k + 1]) * 0.5 for k in range(1, top + 1)]
        return every[: top + 1], node("mul", stack(slopes), t)

    return orders


@op("n", "m", "theta", "phi")
def _sph_harm_y(n, m, theta, phi, n_max):
    theta, phi = inexact(theta), inexact(phi)
    dtype = _rlx.result_type(theta, phi)[0]
    dtype = dtype if dtype.itemsize >= 4 else _rlx.dtype("float32")
    n, m, theta, phi = broadcast_arrays(*(cast(_rlx.value(x), dtype) for x in (n, m, theta, phi)))
    order, x, s = node("abs", m), node("cos", theta), node("abs", node("sin", theta))
    n = node("min", n, n_max)
    one = node("add", node("mul", x, 0), 1)

    def diagonal(p, k):
        longer = node("neg", node("mul", node("mul", p, s), node("sqrt", node("add", 1, node("div", 0.5, k)))))
        return _where(node("le", k, order), longer, p), None

    def upwards(state, k):
        here, below = state
        square = node("mul", order, order)
        above = node("gt", k, order)
        apart = _where(above, node("sub", node("mul", k, k), square), 1)
        lead = node("sqrt", node("div", node("sub", node("mul", node("mul", k, k), 4), 1), apart))
        past = node("sub", k, 1)
        old = node("sub", node("mul", past, past), square)
        old = node("div", _where(node("gt", old, 0), old, 0), node("sub", node("mul", node("mul", past, past), 4), 1))
        has = node("gt", old, 0)
        rest = node("mul", _where(has, node("sqrt", _where(has, old, 1)), 0), below)
        longer = node("mul", lead, node("sub", node("mul", x, here), rest))
        moving = node("bit_and", above, node("le", k, n))
        return (_where(moving, longer, here), _where(moving, here, below)), None

    degrees = node("iota", dims=(n_max,), dtype=dtype, axis=0) + 1
    first = _control.scan(diagonal, node("mul", one, 0.5 / _math.sqrt(_math.pi)), degrees)[0]
    out = _control.scan(upwards, (first, node("mul", one, 0)), degrees)[0][0]
    odd = node("eq", node("mod", order, 2), 1)
    out = _where(node("bit_and", node("lt", m, 0), odd), node("neg", out), out)
    angle = node("mul", m, phi)
    out = node("complex", node("mul", out, node("cos", angle)), node("mul", out, node("sin", angle)))
    return _where(node("gt", order, n), 0, out)


def sph_harm_y(n, m, theta, phi, diff_n=None, n_max=None):
    """The spherical harmonics of degree n and order m at the colatitude theta and the longitude phi. n_max: a bound of
    n, which a compiled function needs where n is an argument of it.
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported; rlx.jvp gives derivatives")
    if n_max is None:
        if isinstance(n, _rlx.Value):
            raise TypeError("sph_harm_y: n is a traced value; give n_max, a bound of it")
        import numpy

        n_max = int(numpy.max(numpy.asarray(n)))
    n_max = int_static(n_max, "sph_harm_y: n_max")
    if n_max < 0:
        raise ValueError(f"sph_harm_y: n_max = {n_max}; degrees are 0 or more")
    return _sph_harm_y(n, m, theta, phi, n_max)


__all__ = ["bessel_jn", "sph_harm_y"]
