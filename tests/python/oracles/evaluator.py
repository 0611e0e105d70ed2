"""JAX programs run by NumPy in float64, with or without the rounding errors that they may have.

JAX traces a function, with its derivatives and batching, to a jaxpr; here the jaxpr is run. Compared with XLA that
needs no compiling (of new shapes that takes a hundred times as long), keeps every float as float64 whatever dtype the
jaxpr names, and can put an error of a few units of that dtype on every result: a run with errors shows how far rounding
may carry each element. Whole numbers stay whole: what the dtype holds exactly gets no error, unless a function such as
exp made it. Primitives that are not known here are JAX's own.
"""

import jax
import numpy as np

from . import dtypes

RULES = {}


def rule(*names):
    def add(f):
        for n in names:
            RULES[n] = f
        return f

    return add


def wide(x):
    """An array with floats as float64 and complex numbers as complex128."""
    x = np.asarray(x)
    k = dtypes.kind(x.dtype.name)
    if k == "f":
        return x.astype(np.float64)
    return x.astype(np.complex128) if k == "c" else x


class Evaluator:
    """One run. amplitude 0: exact; else every inexact result moves by up to about `amplitude` units of its dtype."""

    def __init__(self, amplitude=0, seed=0):
        self.amplitude = amplitude
        self.undefined = False  # some result inside was NaN or infinite
        self.random = np.random.Generator(np.random.PCG64(seed)) if amplitude else None

    def draw(self, shape):
        # Never close to 0: two samples then see a tie that is one unit away.
        u = self.random.uniform(0.5, 1.0, shape)
        return np.where(self.random.integers(0, 2, shape) == 1, u, -u)

    def moved(self, y, name, sure=False):
        """y as a result of that dtype. sure: exact where it is a number of few bits."""
        f = dtypes.format_of(name)
        if not self.undefined and y.size and not np.all(np.isfinite(y)):
            self.undefined = True
        if f.most < 1e300 and y.size and np.max(np.abs(y), initial=0, where=y == y) > f.most:
            if y.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    y = np.where(np.abs(y) > f.most * (1 + f.eps / 2), np.sign(y) * np.inf, y)
        if not self.amplitude or y.size == 0:
            return y
        size = np.maximum(f.eps * np.abs(y), f.least) * (np.abs(y) > 0)
        if sure:
            size = np.where(dtypes.few_bits(y, name), 0, size)
        with np.errstate(all="ignore"):
            e = self.amplitude * size * self.draw(y.shape)
            if y.dtype.kind == "c":
                e = e + 1j * self.amplitude * size * self.draw(y.shape)
            return np.where(np.isfinite(y), y + e, y)

    def summed(self, y, terms, name):
        """y, a sum of that dtype; terms: a function that gives the sum of the absolute values of what was added."""
        if not self.amplitude or y.size == 0:
            return self.moved(y, name)
        acc = dtypes.accumulator(name)
        with np.errstate(all="ignore"):
            s = np.abs(terms())
            exact = dtypes.few_bits(y, acc) & dtypes.few_bits(s, acc)
            size = np.where(exact | ~np.isfinite(y), 0, dtypes.format_of(acc).eps * np.where(np.isfinite(s), s, 0))
            e = 2 * self.amplitude * size * self.draw(y.shape)
            if y.dtype.kind == "c":
                e = e * (1 + 1j)
            y = y + e
        return y if acc == name else self.moved(y, name, True)

    def run(self, closed, *args):
        """The results of a closed jaxpr."""
        return self.jaxpr(closed.jaxpr, [wide(c) for c in closed.consts], list(args))

    def jaxpr(self, jaxpr, consts, args):
        env = {}
        for v, x in zip(jaxpr.constvars, consts):
            env[v] = x
        for v, x in zip(jaxpr.invars, args):
            env[v] = x
        literal = jax.extend.core.Literal
        for eqn in jaxpr.eqns:
            ins = [wide(v.val) if isinstance(v, literal) else env[v] for v in eqn.invars]
            f = RULES.get(eqn.primitive.name)
            outs = f(self, eqn, ins) if f else self.fallback(eqn, ins)
            if eqn.primitive.multiple_results:
                for v, x in zip(eqn.outvars, outs):
                    env[v] = x
            else:
                env[eqn.outvars[0]] = outs
        return [wide(v.val) if isinstance(v, literal) else env[v] for v in jaxpr.outvars]

    def fallback(self, eqn, ins):
        narrow = [
            x.astype(v.aval.dtype) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x
            for v, x in zip(eqn.invars, ins)
        ]
        for v in eqn.outvars:  # JAX's own float results would be rounded
            if dtypes.is_inexact(getattr(v.aval.dtype, "name", "")):
                raise NotImplementedError(f"the evaluator has no rule for {eqn.primitive.name}")
        out = eqn.primitive.bind(*narrow, **eqn.params)
        if eqn.primitive.multiple_results:
            return [_host(o) for o in out]
        return _host(out)


def _host(x):
    return x if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) else np.asarray(x)


from . import rules_control, rules_elementwise, rules_fourier  # noqa: E402,F401
from . import rules_indexing, rules_moves, rules_random  # noqa: E402,F401
