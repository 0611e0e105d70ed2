"""Random calls of rlx's functions beside the functions of JAX that have their names.

    python tests/python/run_functions.py --count 20000 --seed 1
    python tests/python/run_functions.py --only numpy.cumsum --count 500

Every function that `rlx.MODULE` and `jax.MODULE` both have is called with operands of odd shapes (scalars, none, one),
every dtype, NaN, infinities, extremes of integers and Python numbers, which are weakly typed, and with the parameters
that their names are known by: axes, lengths, dtypes. What JAX refuses is no call. Where rlx refuses it, gives another
shape or dtype, or other numbers, the first calls of each function are printed. Call k has seed SEED + k.
"""

import argparse
import collections
import importlib
import inspect
import os
import sys
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from oracles.dice import Dice  # noqa: E402

MODULES = ("numpy", "numpy", "numpy", "lax", "lax", "nn", "numpy.linalg", "numpy.fft", "scipy.special", "scipy.linalg")
# What reads or writes files, prints, makes types, gives numbers without a meaning or takes functions.
LEFT_OUT = set(
    """array_repr array_str apply_along_axis apply_over_axes asarray array can_cast einsum einsum_path empty empty_like
    finfo from_dlpack frombuffer fromfile fromfunction fromiter frompyfunc fromstring get_printoptions iinfo isdtype
    issubdtype iterable load mask_indices piecewise printoptions promote_types result_type save savez
    set_printoptions vectorize cond switch while_loop fori_loop scan reduce associative_scan optimization_barrier
    broadcast_shapes conv_dimension_numbers eigh svd qr lu eig packbits place put fill_diagonal""".split()
)
DTYPES = [np.dtype(t) for t in "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()]
DTYPES += [np.dtype(t) for t in "float32 float32 float32 float64 float16 complex64 complex128".split()]
DTYPES += [np.dtype(ml_dtypes.bfloat16)]
SHAPES = [(), (1,), (0,), (3,), (5,), (2, 3), (3, 2), (1, 3), (0, 3), (3, 0), (4, 4), (2, 1, 3), (2, 3, 4), (1, 1)]
AXES = ("axis", "axis1", "axis2", "axes", "dimension", "concat_dimension", "operand_dimension", "start", "source",
        "destination")  # fmt: skip


# Arguments whose defaults are taken but now and then.
RARELY_GIVEN = {
    "out",
    "initial",
    "where",
    "sharding",
    "out_sharding",
    "device",
    "precision",
    "copy",
    "preferred_element_type",
    "fweights",
    "aweights",
    "size",
    "fill_value",
    "sorter",
    "like",
    "overwrite_input",
    "weights",
    "correction",
    "wrap_negative_indices",
    "mode_",
    "range",
    "period",
    "total_repeat_length",
    "unique_indices",
    "indices_are_sorted",
    "promote_integers",
    "subok",
    "accuracy",
    "num_keys",
    "out_dtype",
    "check_finite",
    "overwrite_a",
    "algorithm",
}


def is_float(t):
    return t.kind == "f" or t == ml_dtypes.bfloat16


def array_of(d, dtype, shape, plain):
    n = int(np.prod(shape))
    if dtype == bool:
        flat = [d.chance(50) for _ in range(n)]
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        ends = (info.min, info.max, info.max - 1, 0)
        low = 0 if dtype.kind == "u" else -5
        flat = [d.pick(ends) if not plain and d.chance(10) else d.between(low, 9) for _ in range(n)]
    else:
        odd = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30, -1e-30)
        one = lambda: d.pick(odd) if not plain and d.chance(8) else d.between(-24, 24) / 8.0  # noqa: E731
        flat = [complex(one(), one()) if dtype.kind == "c" else one() for _ in range(n)]
    with np.errstate(all="ignore"):
        return np.array(flat, dtype=object if dtype.kind in "iu" else None).reshape(shape).astype(dtype)


class Call:
    """Arguments by place and by name, as a text that makes them again and for either library."""

    def __init__(self, args, named):
        self.args, self.named = args, named

    def for_library(self, lib):
        def own(v):
            if isinstance(v, np.ndarray):
                return jnp.asarray(v) if lib == "jax" else importlib.import_module("rlx").numpy.asarray(v)
            if isinstance(v, list):
                return [own(e) for e in v]
            return v

        return [own(a) for a in self.args], {k: own(v) for k, v in self.named.items()}

    def text(self):
        def one(v):
            if isinstance(v, np.ndarray):
                return f"{v.dtype.name}{list(v.shape)} {np.array2string(v, max_line_width=10**6, threshold=24)}"
            if isinstance(v, list):
                return "[" + ", ".join(map(one, v)) + "]"
            return repr(v)

        parts = [one(a) for a in self.args] + [f"{k}={one(v)}" for k, v in self.named.items()]
        return ", ".join(parts).replace("\n", "")


def draw_call(d, signature, name):
    """A call that may fit the signature: the operands first, then what hangs on their rank."""
    plain = d.chance(60)
    dtype, shape = d.pick(DTYPES), d.pick(SHAPES)
    if name in ("matmul", "dot", "solve", "cholesky", "inv", "det") and d.chance(60):
        shape = d.pick([(3, 3), (2, 3, 3), (3,), (1, 1)])
    rank = len(shape)
    args, named = [], {}

    def operand(first):
        if not first and d.chance(15):
            return d.pick((2, -3, 0, 1.5, True, 2 + 1j))
        t = dtype if first or d.chance(65) else d.pick(DTYPES)
        s = shape
        if not first and d.chance(30):
            s = tuple(1 if d.chance(40) else e for e in shape)[d.below(rank + 1) :]
        return array_of(d, t, s, plain)

    def axis():
        if d.chance(10) or not rank:
            return d.pick((None, 0, -1))
        return d.between(-rank, rank - 1)

    first = True
    for p in signature.parameters.values():
        if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            if p.kind == p.VAR_POSITIONAL and p.name in ("arys", "xi", "arrays", "operands", "args"):
                args += [operand(False) for _ in range(d.between(1, 3))]
            continue
        required = p.default is p.empty
        if not required and d.chance(65):
            continue
        n = p.name
        if n in AXES:
            v = axis()
            if n == "axes" or (n == "axis" and d.chance(15)):
                v = tuple(d.sample(list(range(rank)), d.between(0, rank)))
        elif n in ("keepdims", "endpoint", "descending", "increasing", "assume_unique", "equal_nan", "density", "bias",
                   "rowvar", "return_index", "return_inverse", "return_counts", "invert", "reverse", "hermitian",
                   "lower", "approximate", "is_stable", "stable", "symmetric", "ascending", "is_gradient"):  # fmt: skip
            v = d.chance(50)
        elif n in ("dtype", "new_dtype", "dtypes", "element_type"):
            v = d.pick(DTYPES)
        elif n in ("n", "k", "N", "M", "m", "shift", "num", "offset", "order", "deg", "repeats", "decimals", "ddof",
                   "k_", "num_classes", "times", "x_size", "length", "minlength", "index", "y", "power"):  # fmt: skip
            v = d.between(-1, 6) if required or d.chance(80) else 0
            if n in ("y", "index", "order") or (n in ("n", "m", "k", "N", "M") and name in ("ldexp", "lcm", "gcd")):
                v = operand(first)
            if n == "order" and not required:
                continue
        elif n in ("shape", "newshape", "new_shape", "s", "reps", "sizes", "broadcast_sizes", "new_sizes"):
            v = tuple(d.between(0, 3) for _ in range(d.between(0, 3)))
            if n == "shape" and d.chance(60):
                v = shape[::-1] if d.chance(50) else (-1,)
        elif n in ("permutation", "perm"):
            v = tuple(d.shuffled(list(range(rank))))
        elif n in ("dimensions",):
            v = tuple(d.sample(list(range(rank)), d.between(0, rank)))
        elif n in ("q",):
            v = array_of(d, np.dtype("float32"), d.pick([(), (2,)]), True)
            v = np.abs(v) / 3 * (100 if "percentile" in name else 1)
        elif n in ("pad_width",):
            v = [(d.between(0, 2), d.between(0, 2)) for _ in range(rank)]
        elif n in ("mode", "method", "side", "norm", "ord", "interpolation", "kind", "indexing", "UPLO", "order"):
            choices = {
                "side": ("left", "right"), "norm": ("ortho", "forward", "backward"), "indexing": ("ij", "xy"),
                "UPLO": ("L", "U"), "method": ("linear", "lower", "higher", "nearest", "midpoint"),
                "mode": ("full", "same", "valid", "edge", "reflect", "wrap", "symmetric", "clip", "constant"),
                "ord": (1, 2, -1, -2, "fro", "nuc", np.inf, -np.inf, 0, 3),
            }.get(n)  # fmt: skip
            if choices is None:
                continue
            v = d.pick(choices)
        elif n in ("arrays", "tup", "seq", "operands", "xs") or (n == "arys" and required):
            v = [operand(False) if d.chance(30) else array_of(d, dtype, shape, plain) for _ in range(d.between(1, 3))]
            v = [e for e in v if isinstance(e, np.ndarray)] or [array_of(d, dtype, shape, plain)]
        elif n in ("indices", "indices_or_sections", "start_indices", "limit_indices", "strides", "starts", "stops"):
            v = array_of(d, np.dtype("int32"), d.pick([(), (2,), (1, 2)]), True)
            if name in ("split", "hsplit", "vsplit", "dsplit", "array_split"):
                v = d.pick((1, 2, 3))
            if name == "slice":
                v = tuple(d.between(0, 1) if "start" in n else d.between(1, 3) for _ in shape)
                v = tuple(min(e, s) for e, s in zip(v, shape)) if "limit" in n else v
        elif n in RARELY_GIVEN and not required:
            if n == "where" and rank and d.chance(60):
                v = array_of(d, np.dtype(bool), shape, True)
            elif n in ("initial", "fill_value") and d.chance(50):
                v = d.pick((0, 1, 2.5))
            elif n == "weights" and rank and d.chance(60):
                v = array_of(d, np.dtype("float32"), shape, True)
            else:
                continue
        else:
            if not required and p.default is not None and not isinstance(p.default, (int, float)):
                continue
            v = operand(first)
            if name.startswith("bessel"):
                v = v
        first = False
        if p.kind == p.KEYWORD_ONLY or not required:
            named[n] = v
        else:
            args.append(v)
    return Call(args, named)


def leaves(v):
    if isinstance(v, (tuple, list)):
        return [e for x in v for e in leaves(x)]
    return [v]


_NARROWER = {("float32", "float64"), ("complex64", "complex128"), ("int32", "int64")}


def difference(got, want, text):
    """What is wrong with a result of the call of this text, or None."""
    got, want = leaves(got), leaves(want)
    if len(got) != len(want):
        return f"{len(got)} results, wanted {len(want)}"
    for k, (g, w) in enumerate(zip(got, want)):
        if not hasattr(w, "dtype"):
            if hasattr(g, "dtype") or g != w and not (g != g and w != w):
                return f"result {k} is {g!r}, wanted {w!r}"
            continue
        g, w = np.asarray(g), np.asarray(w)
        if g.shape != w.shape:
            return f"result {k} has shape {g.shape}, wanted {w.shape}"
        # Without an operand of 64 bits floats have 32, and places need no more than 32.
        wide_ok = "float64" in text or "int64" in text or "complex128" in text
        if g.dtype != w.dtype and not (not wide_ok and (g.dtype.name, w.dtype.name) in _NARROWER):
            return f"result {k} is {g.dtype.name}, wanted {w.dtype.name}"
        if g.dtype.kind not in "fcV" and g.dtype != ml_dtypes.bfloat16:
            if not np.array_equal(g, w):
                return f"result {k} is {short(g)}, wanted {short(w)}"
            continue
        wide = np.complex128 if w.dtype.kind == "c" else np.float64
        narrow = w.dtype == np.float16 or w.dtype == ml_dtypes.bfloat16
        eps = 2.0**-6 if narrow else 2.0**-30 if w.dtype in (np.float64, np.complex128) else 2.0**-12
        with np.errstate(all="ignore"):
            a, b = g.astype(wide), w.astype(wide)
            finite = np.isfinite(b)
            scale = np.abs(np.where(finite, b, 0))
            top = scale.max(initial=0) if scale.max(initial=0) < 1e20 else 0
            close = np.abs(a - b) <= eps * (scale + min(top, 100)) + eps / 8
            if w.dtype.kind == "c":  # which part of what is NaN or infinite is not compared
                same = ~np.isfinite(a) & ~finite
            else:
                same = (a == b) | (np.isnan(a) & np.isnan(b))
        bad = ~(close | same)
        if bad.any():
            return f"result {k} is {short(g)}, wanted {short(w)}"
    return None


def short(a):
    return np.array2string(a, threshold=12, max_line_width=10**6).replace("\n", "")[:200]


def functions():
    out = []
    for module in MODULES:
        mine, theirs = importlib.import_module("rlx." + module), importlib.import_module("jax." + module)
        for name in sorted(dir(mine)):
            f, j = getattr(mine, name), getattr(theirs, name, None)
            if name.startswith("_") or name in LEFT_OUT or not callable(f) or not callable(j) or isinstance(j, type):
                continue
            try:
                signature = inspect.signature(j)
            except (TypeError, ValueError):
                continue
            if not isinstance(getattr(j, "dtype", None), np.dtype):
                out.append((f"{module}.{name}", f, j, signature))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--each", type=int, default=2, help="so many calls of a function are printed")
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    every = [f for f in functions() if not a.only or f[0] in a.only]
    tried, refused, wrong = collections.Counter(), collections.Counter(), collections.Counter()
    began = time.time()
    for seed in range(a.seed, a.seed + a.count):
        if a.seconds and time.time() - began > a.seconds:
            break
        d = Dice(seed * 2654435761 + 99)
        name, f, j, signature = d.pick(every)
        try:
            call = draw_call(d, signature, name.split(".")[-1])
            args, named = call.for_library("jax")
            want = j(*args, **named)
            jax.block_until_ready([w for w in leaves(want) if hasattr(w, "dtype")])
        except Exception:  # noqa: BLE001  no call
            continue
        tried[name] += 1
        text = None
        try:
            args, named = call.for_library("rlx")
            got = f(*args, **named)
            text = difference(got, want, call.text())
            wrong[name] += text is not None
        except Exception as e:  # noqa: BLE001
            text = f"REFUSED {type(e).__name__}: {str(e)[:200]}"
            refused[name] += 1
        if text and wrong[name] + refused[name] <= a.each:
            print(f"seed {seed}: {name}({call.text()})\n    {text}", flush=True)
    never = sorted({n for n, *_ in every} - set(tried))
    print(f"{sum(tried.values())} calls of {len(tried)} functions, {time.time() - began:.0f} s; "
          f"{sum(wrong.values())} differ, {sum(refused.values())} refused")  # fmt: skip
    print("differ:", dict(wrong.most_common()))
    print("refused:", dict(refused.most_common()))
    print("never called:", " ".join(never))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
