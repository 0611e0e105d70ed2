"""Comparing results of rlx with those of NumPy and JAX: NaN and infinities in their places, numbers in ulp."""

import importlib

import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

SPECIAL = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        7.5,
        -7.5,
        0.1,
        100.0,
        -100.0,
        1e-45,
        -1e-45,
        1e-40,
        2**-126,
        -(2**-126),
        3.4028235e38,
        -3.4028235e38,
        np.inf,
        -np.inf,
        np.nan,
        np.pi,
        1e-3,
        1e10,
        88.0,
        -88.0,
        16777216.0,
        1 - 2**-24,
    ],
    np.float32,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def normal(*shape, dtype=np.float32, seed=0, scale=1.0):
    return np.asarray(rng(seed).standard_normal(shape) * scale, dtype)


def uniform(*shape, low=0.0, high=1.0, dtype=np.float32, seed=0):
    return np.asarray(rng(seed).uniform(low, high, shape), dtype)


def integers(*shape, low=-10, high=10, dtype=np.int32, seed=0):
    return np.asarray(rng(seed).integers(low, high, shape), dtype)


def distinct(*shape, dtype=np.float32, seed=0):
    """Numbers without ties, for derivatives of sorts and extremes."""
    n = int(np.prod(shape))
    return np.asarray(rng(seed).permutation(n).reshape(shape) * 0.37 - n / 6, dtype)


def complexes(*shape, dtype=np.complex64, seed=0):
    g = rng(seed)
    return np.asarray(g.standard_normal(shape) + 1j * g.standard_normal(shape), dtype)


def leaves(x):
    if isinstance(x, (tuple, list)):
        return [y for i in x for y in leaves(i)]
    return [np.asarray(x)]


def ulp_distance(a, b):
    """|a - b| in units of the last place of b."""
    a, b = np.asarray(a), np.asarray(b)
    gap = np.spacing(np.maximum(np.abs(b), np.finfo(a.dtype).tiny).astype(a.dtype)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.abs(a.astype(np.float64) - b.astype(np.float64)) / gap


def same(got, want, tol, what, dtypes=True):
    """Asserts that results agree: tol None: exactly; ("ulp", n); ("rel", r) with r of the largest magnitude."""
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want), f"{what}: {len(got)} results, expected {len(want)}"
    for g, w in zip(got, want):
        assert g.shape == w.shape, f"{what}: shape {g.shape}, expected {w.shape}"
        if dtypes:
            assert kind(g.dtype) == kind(w.dtype), f"{what}: dtype {g.dtype}, expected {w.dtype}"
        if g.dtype.kind == "c" or w.dtype.kind == "c":
            g, w = (np.stack([np.real(v), np.imag(v)], -1) for v in (g, w))
        if kind(g.dtype) != "f" or kind(w.dtype) != "f":
            assert np.array_equal(g, w), f"{what}:\n{g}\nexpected\n{w}"
            continue
        close(g, w, tol, what)


def kind(dtype):
    return "f" if dtype.kind == "V" or dtype.name == "bfloat16" else "i" if dtype.kind in "iu" else dtype.kind


def close(g, w, tol, what):
    with np.errstate(over="ignore"):
        w = w.astype(g.dtype)
    g64, w64 = g.astype(np.float64), w.astype(np.float64)
    nan = np.isnan(g64) != np.isnan(w64)
    assert not nan.any(), f"{what}: NaN in other places:\n{g}\nexpected\n{w}"
    g64, w64 = np.where(np.isnan(g64), 0, g64), np.where(np.isnan(w64), 0, w64)
    if tol is None or tol == "zeros":
        bad = g64 != w64
        if tol == "zeros":  # exactly, and the signs of zeros too
            bad |= (np.signbit(g64) != np.signbit(w64)) & ~nan_in(g, w)
    elif tol[0] == "ulp":
        equal = g64 == w64
        bad = ~equal & ~(
            ulp_distance(np.where(equal, 0, g64).astype(g.dtype), np.where(equal, 0, w64).astype(g.dtype)) <= tol[1]
        )
    else:
        finite = np.isfinite(w64) & np.isfinite(g64)
        size = np.max(np.abs(w64[np.isfinite(w64)]), initial=0.0)
        bad = np.where(
            finite, np.abs(np.where(finite, g64, 0) - np.where(finite, w64, 0)) > tol[1] * max(size, 1e-30), g64 != w64
        )
    assert not np.any(bad), f"{what} ({tol}): at {np.argwhere(bad)[:5].tolist()}\n{g[bad][:5]}\nexpected\n{w[bad][:5]}"


def nan_in(g, w):
    return np.isnan(g.astype(np.float64)) | np.isnan(w.astype(np.float64))


class Case:
    """call(m, *arrays) of a module m, which is rlx.numpy, numpy or jax.numpy, and what to compare.

    oracle: "np" (floats in float64), "np32" (as they are) or "jax", or a function of (module, *arrays).
    tol as of `same`; grad: derivatives are compared with JAX's, or with NumPy's results at unit vectors ("affine": of
    functions whose derivative is the same everywhere, where JAX has not the function as NumPy has it); vmap: batched
    and looped results are equal.
    """

    def __init__(
        self,
        name,
        call,
        *arrays,
        oracle="np",
        tol=("ulp", 4),
        grad=None,
        vmap=True,
        jit=True,
        dtypes=True,
        grad_tol=("rel", 2e-5),
        id="",
    ):
        self.name, self.call, self.arrays, self.oracle, self.tol = name, call, arrays, oracle, tol
        floats = [a.dtype.kind in "f" and a.size and np.isfinite(a).all() for a in arrays]
        self.grad = (bool(floats) and floats[0]) if grad is None else grad
        self.vmap, self.jit, self.dtypes, self.grad_tol = vmap, jit, dtypes, grad_tol
        shapes = "-".join("x".join(map(str, a.shape)) or "s" for a in arrays)
        self.id = f"{name}{'-' + id if id else ''}-{arrays[0].dtype.name if arrays else ''}-{shapes}"

    @np.errstate(all="ignore")
    def expected(self):
        if callable(self.oracle):
            return self.oracle(*self.arrays)
        if self.oracle == "jax":
            import jax.numpy as jnp

            return self.call(jnp, *map(jnp.asarray, self.arrays))
        wide = {"np": lambda a: a.astype(np.float64) if a.dtype == np.float32 else a, "np32": lambda a: a}[self.oracle]
        return self.call(np, *map(wide, self.arrays))

    def check_forward(self):
        want = self.expected()
        xs = [rnp.asarray(a) for a in self.arrays]
        same(self.call(rnp, *xs), want, self.tol, f"{self.id} eager", self.dtypes)
        if self.jit:
            same(rlx.jit(lambda *v: self.call(rnp, *v))(*xs), want, self.tol, f"{self.id} jit", self.dtypes)

    def check_grad(self):
        import jax
        import jax.numpy as jnp

        def loss(m, dot):
            def f(x, *rest):
                outs = [o for o in flat(self.call(m, x, *rest)) if rnp_kind(o) in "fc"]
                return sum(dot(m, o) for o in outs)

            return f

        def dot(m, o):
            w = np.cos(np.arange(int(np.prod(o.shape)))).reshape(o.shape).astype(np.float32)
            return (m.real(o) * w).sum() if rnp_kind(o) == "c" else (o * w).sum()

        wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in self.arrays]
        if self.grad == "affine":
            f, (x, *rest) = loss(np, dot), wide
            units = np.eye(x.size).reshape(x.size, *x.shape)
            want = np.reshape([f(unit, *rest) - f(0 * x, *rest) for unit in units], x.shape)
        else:
            want = jax.grad(loss(jnp, dot))(*map(jnp.asarray, wide))
        got = rlx.grad(loss(rnp, dot))(*[rnp.asarray(a) for a in self.arrays])
        same(got, want, self.grad_tol, f"{self.id} grad")

    def check_vmap(self):
        batch = [np.stack([a, a[::-1] if a.ndim and a.dtype.kind in "f" else a]) for a in self.arrays]
        got = rlx.vmap(lambda *v: self.call(rnp, *v))(*map(rnp.asarray, batch))
        rows = [self.call(rnp, *[rnp.asarray(b[i]) for b in batch]) for i in range(2)]
        want = [np.stack(pair) for pair in zip(*map(leaves, rows))]
        same(got, want, ("rel", 2e-5) if self.tol else None, f"{self.id} vmap")


def flat(x):
    return [y for i in x for y in flat(i)] if isinstance(x, (tuple, list)) else [x]


def rnp_kind(x):
    return np.dtype(x.dtype.name).kind if x.dtype.name != "bfloat16" else "f"


def by_jax(calls):
    """What thunks give of JAX without 64 bits, in one program: most of the time of small ones is their compilation."""
    import jax

    with jax.enable_x64(False):
        return jax.jit(lambda: [call() for call in calls])()


class Table:
    """Calls call(module, numpy) of a module of rlx and of JAX's of that name, some for each function.

    tol is as of `same`; shapes and dtypes are compared too.
    """

    def __init__(self, name):
        self.name, self.calls, self.expected = name, [], None

    def add(self, name, *calls, tol=("ulp", 8)):
        self.calls.extend((name, call, tol) for call in calls)

    def params(self):
        return [pytest.param(i, id=f"{name}-{i}") for i, (name, _, _) in enumerate(self.calls)]

    def check(self, i, jit=True):
        """Call i at once and compiled, beside JAX."""
        ours, (name, call, tol) = importlib.import_module("rlx." + self.name), self.calls[i]
        if self.expected is None:
            import jax.numpy as jnp

            theirs = importlib.import_module("jax." + self.name)
            self.expected = by_jax([lambda c=c: c(theirs, jnp) for _, c, _ in self.calls])
        want = rlx.tree.leaves(self.expected[i])
        for run in (lambda: call(ours, rnp), *([rlx.jit(lambda: call(ours, rnp))] if jit else [])):
            got = rlx.tree.leaves(run())
            assert [str(np.asarray(g).dtype) for g in got] == [str(w.dtype) for w in want]
            same(got, want, tol, f"{self.name}.{name}")

    def forgotten(self):
        """Functions of the module that the table has no call of."""
        module = importlib.import_module("rlx." + self.name)
        tried = [getattr(module, name) for name, _, _ in self.calls]
        public = {n: f for n, f in vars(module).items() if n[0] != "_" and callable(f)}
        return sorted(n for n, f in public.items() if not any(f is t for t in tried))
