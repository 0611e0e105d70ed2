"""What a program has to give: exact values, and how far rounding may carry each element."""

import jax
import numpy as np

from oracles import dtypes
from oracles.evaluator import Evaluator, wide

from . import libs, transforms

jax.config.update("jax_enable_x64", True)

COARSE = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
AMPLITUDE = 4  # units that every inexact result of a noisy run is moved by
FACTOR = 3  # the bound is so much times the largest distance that noisy runs went


def traced(f, specs):
    """The jaxpr of a function of JAX arrays and the dtypes of its results."""
    args = [jax.ShapeDtypeStruct(s, dtypes.of(d)) for d, s in specs]
    closed = jax.make_jaxpr(f)(*args)
    return closed, [a.dtype.name for a in closed.out_avals]


class Expected:
    """Exact results of a jaxpr for given inputs; bounds are refined when somebody looks closer."""

    def __init__(self, trace, args, known=None, coarse=None):
        self.trace = trace  # gives the jaxpr and the dtypes of its results; costs the most
        self.args = [wide(a) for a in args]
        self.closed, self.runs, self._coarse = None, 0, coarse
        self.undefined = False
        if known:
            self.types = [t for t, _, _ in known]
            self.values = [v for _, v, _ in known]
        else:
            self.closed, self.types = trace()
            exact = Evaluator()
            self.values = [np.asarray(v) for v in exact.run(self.closed, *self.args)]
            self.undefined = exact.undefined
        self.spread = [np.zeros(v.shape) if v.dtype.kind in "fc" else np.zeros(v.shape, bool) for v in self.values]
        if known:
            self._widen([n for _, _, n in known])

    def refine(self, runs):
        """More noisy runs."""
        if self.closed is None:
            self.closed, _ = self.trace()
        for k in range(self.runs, runs):
            self._widen(Evaluator(AMPLITUDE, seed=k + 1).run(self.closed, *self.args))
        self.runs = max(self.runs, runs)

    def coarsest(self):
        """The largest eps of bf16 and f16 in the program, or 0."""
        if self._coarse is None:
            text = str(self.trace()[0] if self.closed is None else self.closed)
            found = [eps for name, eps in COARSE.items() if name.replace("float", "f") + "[" in text]
            self._coarse = max(found, default=0.0)
        return self._coarse

    def _widen(self, noisy):
        for s, v, n in zip(self.spread, self.values, noisy):
            n = np.asarray(n)
            if s.dtype == bool:
                np.logical_or(s, v != n, out=s)
                continue
            with np.errstate(all="ignore"):
                d = np.abs(n - v)
            same = (n == v) | ((n != n) & (v != v))
            d = np.where(same, 0, np.where(np.isfinite(n) & np.isfinite(v), d, np.inf))
            np.maximum(s, d, out=s)

    def check(self, k, got, derived):
        """(message of the worst element or None, how many elements rounding decides)."""
        want, spread, name = self.values[k], self.spread[k], self.types[k]
        if tuple(got.shape) != tuple(want.shape):
            return f"result {k} has shape {tuple(got.shape)}, wanted {tuple(want.shape)}", 0
        if got.dtype.name != name:
            return f"result {k} has dtype {got.dtype.name}, wanted {name}", 0
        g = wide(got)
        if spread.dtype == bool:
            bad = (g != want) & ~spread
            return (self._text(k, g, want, bad, spread) if bad.any() else None), int(spread.sum())
        f = dtypes.format_of(name)
        with np.errstate(all="ignore"):
            size = np.abs(np.where(np.isfinite(want), want, 0))
            bound = FACTOR * spread + np.where(spread > 0, 4 * f.eps * size, 0)
            if derived and spread.size and spread.max() > 0:
                # Formulas of derivatives differ: what cancels in one may not in the other. In bf16 and f16 an op of
                # ours rounds cotangents where a formula of JAX's goes on in f32.
                top = size.max()
                bound = bound + 4 * f.eps * min(top, 64.0) + 4 * f.least
                bound = bound + 2 * self.coarsest() * min(max(top, 1.0), 64.0)
            elif derived:  # JAX's formula subtracts equal values early, ours late
                bound = np.where(want == 0, 4 * f.eps, bound)
            if want.dtype.kind == "f" and name != "float64":
                exact = want.astype(f.dtype).astype(np.float64)
            else:
                exact = want
            distance = np.abs(g - exact)
            bound = bound + np.abs(exact - want)
        same = (g == exact) | ((g != g) & (want != want))
        # A value near the largest number may be rounded to infinity.
        near = (np.abs(want) >= 0.98 * f.most) & (np.abs(g) >= 0.98 * f.most) & (np.sign(g.real) == np.sign(want.real))
        undecided = ~np.isfinite(bound)
        if derived and self.undefined:
            # Zero times the derivative at a point that has none is NaN, or 0 where the zero is known to be one.
            undecided = undecided | (g != g) | (want != want)
        good = same | near | undecided | (np.isfinite(g) & np.isfinite(want) & (distance <= bound))
        bad = ~good
        loose = undecided | (bound > 0.1 * np.maximum(size, 1e-3))
        return (self._text(k, g, want, bad, bound) if bad.any() else None), int(loose.sum())

    def _text(self, k, got, want, bad, bound):
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return (
            f"result {k}{list(at)} ({self.types[k]}) is {got[at]!r}, wanted {want[at]!r} within {bound[at]!r}; "
            f"{int(bad.sum())} of {bad.size} elements are off"
        )


def expected(program, args):
    """Expected of a program with its transforms."""

    def trace():
        lib = libs.JaxLib()
        specs = [(i.dtype, i.value.shape) for i in program.inputs]
        f, specs = transforms.apply(lib, libs.function_of(lib, program), specs, program.transforms)
        return traced(f, specs)

    known = program.known if not program.transforms else None
    want = Expected(trace, args, known, program.coarse)
    if not known:
        want.refine(1)
    return want
