"""scipy.optimize.minimize by the method BFGS, as a program: it works in jit and under vmap."""

import typing as _typing

from .. import _control, _rlx
from .. import numpy as rnp
from .._jit import cached_live as _cached_live
from .._nodes import inexact as _inexact
from .._transforms import value_and_grad as _value_and_grad
from .._names import accept_names as _accept_names

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(_typing.NamedTuple):
    """The result of minimize.

    x: the solution. success: True if the gradient became small enough. status: 0; 1, the iterations were used up; 3, no
        step made the function smaller.
    fun, jac: value and gradient at x. hess_inv: an approximation of the inverse Hessian there.
    nfev, njev, nit: calls of the function and of its gradient, iterations.
    """

    x: _typing.Any
    success: _typing.Any
    status: _typing.Any
    fun: _typing.Any
    jac: _typing.Any
    hess_inv: _typing.Any
    nfev: _typing.Any
    njev: _typing.Any
    nit: _typing.Any


_OPTIONS = {"gtol": 1e-5, "maxiter": None, "norm": float("inf"), "line_search_maxiter": 30}
_LESS, _FLATTER = 1e-4, 0.9  # what a step must gain of the slope's promise, and how much flatter it must end


def minimize(fun, x0, args=(), *, method, tol=None, options=None):
    """Minimises fun(x, *args), a scalar function of a vector, from x0. method: "BFGS".

    options: gtol, the largest gradient of a solution (1e-5, or tol), in the norm `norm` (the largest element); maxiter
        (200 for each element of x); line_search_maxiter, the tries of each step (30).
    """
    if not callable(fun):
        raise TypeError(f"minimize takes a function, got an object of type {type(fun).__name__}")
    if str(method).lower() != "bfgs":
        raise ValueError(f'minimize: method {method!r}; it must be "BFGS"')
    unknown = set(options or {}) - set(_OPTIONS)
    if unknown:
        raise ValueError(f"minimize: options {sorted(unknown)}; BFGS has {', '.join(_OPTIONS)}")
    chosen = {**_OPTIONS, **({} if tol is None else {"gtol": tol}), **(options or {})}
    if not isinstance(args, tuple):
        raise TypeError("minimize: args must be a tuple, as in args=(2.0,)")
    if not _rlx.tracing():
        key = ("minimize", tuple((k, v) for k, v in chosen.items()))
        return _cached_live(key, (fun,), lambda: lambda x, a: _bfgs(fun, x, a, chosen))(x0, args)
    return _bfgs(fun, x0, args, chosen)


def _bfgs(fun, x0, args, options):
    x0 = _inexact(x0)
    if x0.ndim != 1:
        raise ValueError(f"minimize: x0 of shape {x0.shape}; it must be a vector (rlx.flatten_util.ravel_pytree)")
    n = x0.shape[0]
    most = 200 * n if options["maxiter"] is None else options["maxiter"]
    one = rnp.eye(n, dtype=x0.dtype)
    both = _value_and_grad(lambda x: fun(x, *args))
    size = lambda g: rnp.linalg.norm(g, options["norm"])  # noqa: E731

    def line(x, f, g, p):
        """(the step along p, x, f, g there, tries, found): bisection between a step that is too long and one that is
        too short.
        """
        slope = rnp.dot(g, p)

        def searching(s):
            return (s["tries"] < options["line_search_maxiter"]) & ~s["found"]

        def step(s):
            t = s["t"]
            new = x + t * p
            value, gradient = both(new)
            better = value <= f + _LESS * t * slope  # False of NaN too
            flat = rnp.dot(gradient, p) >= _FLATTER * slope
            low, high = rnp.where(better, t, s["low"]), rnp.where(better, s["high"], t)
            longer = rnp.where(rnp.isfinite(high), 0.5 * (low + high), 2 * low)
            # The best step so far is kept: near a minimum rounding hides the last condition.
            take = better & (value <= s["f"])
            keep = lambda a, b: rnp.where(take, a, b)  # noqa: E731
            return {
                "t": longer, "low": low, "high": high, "tries": s["tries"] + 1, "found": better & flat,
                "x": keep(new, s["x"]), "f": keep(value, s["f"]), "g": keep(gradient, s["g"]),
                "any": s["any"] | take,
            }  # fmt: skip

        none = rnp.zeros((), "bool")
        start = {
            "t": rnp.ones((), x0.dtype), "low": rnp.zeros((), x0.dtype), "high": rnp.full((), rnp.inf, x0.dtype),
            "tries": rnp.zeros((), "int32"), "found": none, "x": x, "f": f, "g": g, "any": none,
        }  # fmt: skip
        return _control.while_loop(searching, step, start)

    def going(s):
        return (s["k"] < most) & ~s["done"] & ~s["stuck"]

    def step(s):
        p = -rnp.dot(s["h"], s["g"])
        down = rnp.dot(s["g"], p) < 0
        p = rnp.where(down, p, -s["g"])
        h = rnp.where(down, s["h"], one)
        r = line(s["x"], s["f"], s["g"], p)
        moved, turned = r["x"] - s["x"], r["g"] - s["g"]
        curve = rnp.dot(moved, turned)
        good = curve > 0
        rho = rnp.where(good, 1 / rnp.where(good, curve, 1), 0)
        # The first estimate has the size of the curvature along the first step.
        first = (s["k"] == 0) & good
        scale = rnp.where(first, curve / rnp.where(first, rnp.dot(turned, turned), 1), 1)
        h = h * scale
        left = one - rho * rnp.outer(moved, turned)
        h = rnp.dot(rnp.dot(left, h), rnp.transpose(left)) + rho * rnp.outer(moved, moved)
        return {
            "x": r["x"], "f": r["f"], "g": r["g"], "h": h, "k": s["k"] + 1, "calls": s["calls"] + r["tries"],
            "done": size(r["g"]) <= options["gtol"], "stuck": ~r["any"],
        }  # fmt: skip

    f, g = both(x0)
    start = {
        "x": x0, "f": f, "g": g, "h": one, "k": rnp.zeros((), "int32"), "calls": rnp.ones((), "int32"),
        "done": size(g) <= options["gtol"], "stuck": rnp.zeros((), "bool"),
    }  # fmt: skip
    s = _control.while_loop(going, step, start)
    status = rnp.where(s["done"], 0, rnp.where(s["stuck"], 3, 1)).astype("int32")
    calls = s["calls"]
    return OptimizeResults(s["x"], s["done"], status, s["f"], s["g"], s["h"], calls, calls, s["k"])


_accept_names(globals())
