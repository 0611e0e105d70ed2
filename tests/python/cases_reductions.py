"""Cases of reductions, statistics, sorting, searching."""

import numpy as np
from oracle import Case, complexes, distinct, integers, normal

X = normal(3, 5)
D = distinct(3, 5)
T = distinct(2, 3, 4)
S = np.asarray(np.float32(1.5))
I = integers(3, 5)
N = X.copy()
N[0, 1] = N[2, 2] = np.nan
N[1] = np.nan
INF = np.array([[np.inf, 1, 2], [-np.inf, np.nan, 0], [np.inf, -np.inf, 1]], np.float32)
B = integers(3, 5, low=0, high=2) > 0
SMALL = integers(3, 5, low=-100, high=100, dtype=np.int8)
SUM = ("rel", 2e-6)
CASES = []


def add(*args, tol=SUM, **kwargs):
    CASES.append(Case(*args, tol=tol, **kwargs))


AXES = (None, 0, -1, (0, 1), ())
for name in (
    "sum",
    "prod",
    "mean",
    "max",
    "min",
    "amax",
    "amin",
    "ptp",
    "any",
    "all",
    "var",
    "std",
    "nansum",
    "nanprod",
    "nanmean",
    "nanmax",
    "nanmin",
    "nanvar",
    "nanstd",
    "count_nonzero",
    "median",
    "nanmedian",
):
    exact = name in ("max", "min", "amax", "amin", "nanmax", "nanmin", "any", "all", "count_nonzero")
    for axis in AXES:
        if axis == () and name in ("median", "nanmedian", "ptp", "var", "std", "nanvar", "nanstd", "nanmean", "mean"):
            continue
        add(
            name,
            lambda m, x, n=name, a=axis: getattr(m, n)(x, axis=a),
            D,
            tol=None if exact else SUM,
            id=str(axis),
            grad=not exact or name in ("max", "min"),
        )
        for x in (I, B) if name not in ("ptp", "median", "nanmedian") else (I,):
            if name in (
                "max",
                "min",
                "nanmax",
                "nanmin",
                "amax",
                "amin",
                "any",
                "all",
                "count_nonzero",
                "sum",
                "prod",
                "nansum",
                "nanprod",
                "ptp",
            ):
                add(
                    name,
                    lambda m, x, n=name, a=axis: getattr(m, n)(x, axis=a),
                    x,
                    tol=None,
                    id=str(axis),
                    oracle="np32",
                )
            else:
                add(name, lambda m, x, n=name, a=axis: getattr(m, n)(x, axis=a), x, id=str(axis), oracle="jax")
    for k in (dict(axis=1, keepdims=True), dict(keepdims=True)):
        add(name, lambda m, x, n=name, k=k: getattr(m, n)(x, **k), D, tol=None if exact else SUM, id=str(k), grad=False)
    add(
        name,
        lambda m, x, n=name: getattr(m, n)(x, axis=-1),
        N,
        oracle="jax" if name.startswith("nan") else "np32",
        tol=None if exact else SUM,
        grad=False,
        id="nan",
    )
    if "median" not in name:
        add(
            name,
            lambda m, x, n=name: getattr(m, n)(x, axis=-1),
            INF,
            oracle="np32",
            tol=None if exact else SUM,
            grad=False,
            id="inf",
        )
    add(
        name,
        lambda m, x, n=name: getattr(m, n)(x),
        S,
        tol=None if exact else SUM,
        grad=name in ("sum", "mean", "prod", "max"),
    )
    if name in ("sum", "prod", "any", "all", "nansum", "nanprod", "mean", "count_nonzero"):
        add(
            name,
            lambda m, x, n=name: getattr(m, n)(x, axis=0),
            np.zeros((0, 3), np.float32),
            oracle="np32",
            tol=None,
            grad=False,
        )
    if name in ("sum", "prod", "mean", "var", "std", "nansum", "nanmean", "nanvar", "any", "all"):
        add(
            name,
            lambda m, x, w, n=name: getattr(m, n)(x, axis=1, where=w),
            D,
            B,
            tol=None if exact else SUM,
            id="where",
            grad=False,
        )
    if name in ("sum", "prod", "max", "min", "nansum", "nanmax"):
        add(
            name,
            lambda m, x, n=name: getattr(m, n)(x, axis=1, initial=0.5),
            D,
            tol=None if exact else SUM,
            id="initial",
            grad=False,
        )
for name in ("max", "min", "nanmax", "nanmin"):
    add(
        name,
        lambda m, x, w, n=name: getattr(m, n)(x, axis=1, where=w, initial=-0.5),
        D,
        B,
        tol=None,
        id="where",
        grad=False,
    )
    add(
        name,
        lambda m, x, n=name: getattr(m, n)(x, axis=0, initial=0.5),
        np.zeros((0, 3), np.float32),
        tol=None,
        grad=False,
    )
for name in ("sum", "prod", "cumsum", "cumprod"):
    add(
        name,
        lambda m, x, n=name: getattr(m, n)(x, axis=-1),
        SMALL,
        oracle=lambda x, n=name: getattr(np, n)(x.astype(np.int32), axis=-1, dtype=np.int32),
        tol=None,
    )
    add(
        name,
        lambda m, x, n=name: getattr(m, n)(x, 0, "float32"),
        I,
        oracle=lambda x, n=name: getattr(np, n)(x.astype(np.float32), 0),
        tol=SUM,
    )
for name in ("var", "std", "nanvar", "nanstd"):
    add(name, lambda m, x, n=name: getattr(m, n)(x, axis=1, ddof=1), D, id="ddof", grad_tol=("rel", 1e-4))
for name in ("var", "std", "mean", "sum", "prod"):
    add(name, lambda m, x, n=name: getattr(m, n)(x, axis=1), complexes(3, 5), oracle="np32", id="complex")
add("var", lambda m, x: m.var(x), np.array([1e4, 1e4 + 1, 1e4 + 2], np.float32), grad=False)
(
    add("average", lambda m, x: m.average(x, axis=1), D),
    add("average", lambda m, x, w: m.average(x, axis=1, weights=w), D, np.abs(X[0]) + 1),
    add("average", lambda m, x, w: m.average(x, weights=w), D, np.abs(X) + 1),
    add("average", lambda m, x, w: list(m.average(x, 0, w, returned=True)), D, np.abs(X) + 1),
)
for name in ("cumsum", "cumprod", "nancumsum", "nancumprod"):
    for axis in (None, 0, -1):
        (
            add(name, lambda m, x, n=name, a=axis: getattr(m, n)(x, axis=a), X, id=str(axis)),
            add(name, lambda m, x, n=name, a=axis: getattr(m, n)(x, axis=a), N, id=f"nan{axis}", grad=False),
        )
for name in ("cumulative_sum", "cumulative_prod"):
    for first in (False, True):
        add(name, lambda m, x, n=name, f=first: getattr(m, n)(x, axis=1, include_initial=f), X, id=str(first))
(
    add("cummax", lambda m, x: m.cummax(x, 1), X, oracle=lambda x: np.maximum.accumulate(x, 1), tol=None, grad=False),
    add("cummin", lambda m, x: m.cummin(x, 0), X, oracle=lambda x: np.minimum.accumulate(x, 0), tol=None, grad=False),
)
for name in ("argmax", "argmin", "nanargmax", "nanargmin"):
    for axis in (None, 0, 1):
        for x in (D, I, np.array([[1, 1, 0], [0, 0, 1]], np.float32), B):
            add(name, lambda m, x, n=name, a=axis: getattr(m, n)(x, axis=a), x, tol=None, grad=False, id=str(axis))
    (
        add(name, lambda m, x, n=name: getattr(m, n)(x, axis=1, keepdims=True), D, tol=None, grad=False, id="keep"),
        add(name, lambda m, x, n=name: getattr(m, n)(x, keepdims=True), D, tol=None, grad=False, id="keepall"),
    )
    add(name, lambda m, x, n=name: getattr(m, n)(x, axis=1), N, oracle="jax", tol=None, grad=False, id="nan")
    if name.startswith("nan"):
        add(
            name,
            lambda m, x, n=name: getattr(m, n)(x, axis=1),
            np.array([[np.nan, -np.inf, -np.inf], [np.inf, np.nan, np.inf], [np.nan] * 3], np.float32),
            tol=None,
            grad=False,
            id="inf",
            oracle=lambda x, n=name: np.array([1, 0, -1], np.int32),
        )
for name in ("quantile", "nanquantile"):
    for method in ("linear", "lower", "higher", "midpoint", "nearest"):
        for q in (0.3, np.array([0.0, 0.25, 0.5, 1.0], np.float32)):
            add(
                name,
                lambda m, x, n=name, q=q, me=method: getattr(m, n)(x, q, axis=1, method=me),
                D,
                id=f"{method}{np.ndim(q)}",
                oracle="np",
                grad=method == "linear",
            )
    (
        add(name, lambda m, x, n=name: getattr(m, n)(x, 0.4, keepdims=True), D),
        add(
            name,
            lambda m, x, n=name: getattr(m, n)(x, np.array([0.4, 0.6], np.float32), axis=(0, 2), keepdims=True),
            T,
            id="axes",
        ),
    )
    add(name, lambda m, x, n=name: getattr(m, n)(x, 0.7, axis=0), N, oracle="np32", grad=False, id="nan")
(
    add("percentile", lambda m, x: m.percentile(x, 30.0, axis=1), D),
    add("percentile", lambda m, x: m.percentile(x, np.array([10, 90], np.int32)), D),
    add("nanpercentile", lambda m, x: m.nanpercentile(x, 30.0, axis=0), N, oracle="np32", grad=False),
)
add("median", lambda m, x: m.median(x, axis=(0, 1)), T, id="axes")
for k in (dict(), dict(rowvar=False), dict(bias=True), dict(ddof=0)):
    add("cov", lambda m, x, k=k: m.cov(x, **k), X, id=str(k), grad_tol=("rel", 1e-4))
(
    add("cov", lambda m, x: m.cov(x), X[0]),
    add("cov", lambda m, x, y: m.cov(x, y), X[0], X[1]),
    add("cov", lambda m, x, f: m.cov(x, fweights=f), X, np.array([1, 2, 3, 1, 1], np.int32), tol=("rel", 5e-6)),
    add("cov", lambda m, x, a: m.cov(x, aweights=a), X, np.abs(X[0]) + 1, tol=("rel", 5e-6)),
)
add("cov", lambda m, x: m.cov(x), complexes(3, 5), oracle="np32")
(
    add("corrcoef", lambda m, x: m.corrcoef(x), X, tol=("rel", 5e-6), grad_tol=("rel", 1e-4)),
    add("corrcoef", lambda m, x, y: m.corrcoef(x, y), X[0], X[1], tol=("rel", 5e-6)),
)
COUNTS = integers(20, low=0, high=7)
(
    add("bincount", lambda m, x: m.bincount(x), COUNTS, tol=None, jit=False, vmap=False),
    add("bincount", lambda m, x: m.bincount(x, minlength=12), COUNTS, tol=None, jit=False, vmap=False),
)
(
    add("bincount", lambda m, x: m.bincount(x) if m is np else m.bincount(x, length=7), COUNTS, tol=None),
    add(
        "bincount",
        lambda m, x, w: m.bincount(x, w) if m is np else m.bincount(x, w, length=7),
        COUNTS,
        normal(20),
        dtypes=False,
    ),
)
add("bincount", lambda m, x: m.bincount(x, length=4), COUNTS, tol=None, oracle="jax")
H = normal(40)
for bins in (5, np.array([-1.0, 0.0, 0.3, 2.0], np.float32)):
    for k in (dict(), dict(density=True), dict(range=(-1, 1))):
        add(
            "histogram",
            lambda m, x, b=bins, k=k: list(m.histogram(x, b, **k)),
            H,
            id=f"{np.ndim(bins)}{k}",
            dtypes=False,
            grad=False,
        )
    add(
        "histogram_bin_edges",
        lambda m, x, b=bins: m.histogram_bin_edges(x, b),
        H,
        id=str(np.ndim(bins)),
        grad=False,
        dtypes=False,
    )
(
    add(
        "histogram",
        lambda m, x, w: list(m.histogram(x, 4, weights=w)),
        H,
        np.abs(normal(40, seed=2)),
        dtypes=False,
        grad=False,
    ),
    add("histogram", lambda m, x: list(m.histogram(x, 3)), np.full((4,), 2.0, np.float32), dtypes=False, grad=False),
    add("histogram", lambda m, x: list(m.histogram(x, 3)), I, dtypes=False),
)
(
    add("histogram2d", lambda m, x, y: list(m.histogram2d(x, y, 4)), H, normal(40, seed=2), dtypes=False, grad=False),
    add(
        "histogram2d",
        lambda m, x, y: list(m.histogram2d(x, y, [3, 5], density=True)),
        H,
        normal(40, seed=2),
        dtypes=False,
        grad=False,
    ),
)
add(
    "histogramdd",
    lambda m, x: [m.histogramdd(x, 3)[0], *m.histogramdd(x, 3)[1]],
    normal(30, 3),
    dtypes=False,
    grad=False,
)

for name in ("sort", "argsort"):
    for axis in (-1, 0, None):
        for x in (D, I, N, np.array([[2, 1, 2, 1], [0, 0, 0, -1]], np.float32), np.zeros((0, 3), np.float32)):
            add(
                name,
                lambda m, x, n=name, a=axis: getattr(m, n)(x, axis=a, **({"kind": "stable"} if m is np else {})),
                x,
                tol=None,
                id=str(axis),
                grad=name == "sort" and x is D,
            )
    (
        add(name, lambda m, x, n=name: getattr(m, n)(x), complexes(6), oracle="np32", tol=None, grad=False),
        add(name, lambda m, x, n=name: getattr(m, n)(x, descending=True), D, oracle="jax", tol=None, grad=False),
    )
(
    add("sort_complex", lambda m, x: m.sort_complex(x), complexes(6), oracle="np32", tol=None, grad=False),
    add("sort_complex", lambda m, x: m.sort_complex(x), X[0], oracle="jax", tol=None, grad=False),
)
(
    add(
        "lexsort",
        lambda m, x, y: m.lexsort((x, y)),
        integers(9, low=0, high=3),
        integers(9, low=0, high=3, seed=1),
        tol=None,
    ),
    add(
        "lexsort",
        lambda m, x: m.lexsort(x),
        integers(3, 9, low=0, high=3),
        tol=None,
        vmap=False,
        oracle=lambda x: np.lexsort(x),
    ),
)
(
    add("partition", lambda m, x: m.sort(m.partition(x, 2, axis=1), axis=1), D, tol=None),
    add("argpartition", lambda m, x: m.sort(m.argpartition(x, 2, axis=1), axis=1), D, tol=None, grad=False),
)
A = np.array([-1, 0, 0, 2, 5, 5, 5, 9], np.float32)
Q = np.array([[-2, -1, 0, 1], [5, 9, 10, np.nan]], np.float32)
for side in ("left", "right"):
    add(
        "searchsorted",
        lambda m, a, v, s=side: m.searchsorted(a, v, side=s),
        A,
        Q,
        tol=None,
        grad=False,
        id=side,
        vmap=False,
    )
    add(
        "searchsorted",
        lambda m, a, v, s=side: m.searchsorted(a, v, side=s),
        np.array([1, 2, np.inf, np.nan, np.nan], np.float32),
        np.array([np.nan, np.inf, 0], np.float32),
        tol=None,
        grad=False,
        id=f"nan{side}",
        vmap=False,
    )
    for n in (0, 1, 2, 3, 7):
        add(
            "searchsorted",
            lambda m, a, v, s=side: m.searchsorted(a, v, side=s),
            np.arange(n).astype(np.float32),
            np.array([-1, 0, 0.5, 1, 6, 8], np.float32),
            tol=None,
            grad=False,
            id=f"{side}{n}",
            vmap=False,
        )
add(
    "searchsorted",
    lambda m, a, v, o: m.searchsorted(a, v, sorter=o),
    A[::-1].copy(),
    Q[0],
    np.arange(8)[::-1].copy().astype(np.int32),
    tol=None,
    grad=False,
    vmap=False,
)
for right in (False, True):
    for bins in (np.array([0, 1, 2.5, 4], np.float32), np.array([4, 2.5, 1, 0], np.float32), np.array([1], np.float32)):
        add(
            "digitize",
            lambda m, x, b, r=right: m.digitize(x, b, right=r),
            np.array([-1, 0, 0.5, 1, 2.5, 3, 4, 9], np.float32),
            bins,
            tol=None,
            grad=False,
            id=str(right),
            vmap=False,
        )
(
    add("where", lambda m, c, x, y: m.where(c, x, y), B, X, X + 1, oracle="np32", tol=None, grad=False),
    add("where", lambda m, x: m.where(x > 0, x, 0), X, oracle="np32", tol=None),
    add("where", lambda m, x: list(m.where(x)), I % 3, tol=None, jit=False, vmap=False),
)
(
    add("select", lambda m, x: m.select([x < -0.5, x > 0.5], [x, x * 2], 7.0), X, oracle="np32", tol=None),
    add("select", lambda m, x: m.select([x < 3, x > 5], [x, x**2]), I, tol=None),
)
for mode in ("wrap", "clip"):
    add("choose", lambda m, a, x, y, mode=mode: m.choose(a, [x, y], mode=mode), I, I + 100, I - 100, tol=None, id=mode)
IDX = np.array([[0, -1, 2], [1, 1, 0]], np.int32)
for axis in (None, 0, 1):
    add(
        "take",
        lambda m, x, i, a=axis: m.take(x, i, axis=a),
        X,
        IDX,
        tol=None,
        oracle="np32",
        id=str(axis),
    )
    add(
        "take",
        lambda m, x, i, a=axis: m.take(x, i, axis=a, mode="wrap"),
        X,
        IDX * 7,
        tol=None,
        oracle="np32",
        id=f"wrap{axis}",
    )
    add(
        "take",
        lambda m, x, i, a=axis: m.take(x, i, axis=a, mode="fill", fill_value=-1),
        X,
        IDX * 7,
        tol=None,
        oracle="jax",
        id=f"fill{axis}",
    )
(
    add("take", lambda m, x, i: m.take(x, i, mode="fill"), I, IDX * 90, tol=None, oracle="jax"),
    add("take", lambda m, x, i: m.take(x, i, axis=1), X, IDX * 4, tol=None, oracle="jax", id="outside"),
    add("take", lambda m, x, i: m.take(x, i, axis=1, mode="clip"), X, IDX * 4, tol=None, oracle="np32", id="clip"),
    add("take", lambda m, x, i: m.take(x, i, axis=1), X > 0, IDX * 4, tol=None, oracle="jax", id="bools"),
    add("take", lambda m, x, i: m.take(x, i, axis=1), I.astype(np.uint8), IDX * 4, tol=None, oracle="jax", id="bytes"),
    add("take", lambda m, x, i: m.take(x, i), X, np.array(3, np.int32), tol=None, oracle="np32"),
)
(
    add(
        "take_along_axis",
        lambda m, x, i: m.take_along_axis(x, i, 1),
        X,
        np.array([[0, 4], [-1, 2], [3, 3]], np.int32),
        tol=None,
        oracle="np32",
    ),
    add(
        "take_along_axis",
        lambda m, x, i: m.take_along_axis(x, i, 0),
        X,
        np.array([[0, 2, 1, 1, -1]], np.int32),
        tol=None,
        oracle="np32",
    ),
    add(
        "take_along_axis",
        lambda m, x, i: m.take_along_axis(x, i, None),
        X,
        np.array([0, 14, -1], np.int32),
        tol=None,
        oracle="np32",
    ),
)
add(
    "take_along_axis",
    lambda m, x, i: m.take_along_axis(x, i, 1),
    X,
    np.array([[1, 0]], np.int32),
    tol=None,
    oracle="np32",
    id="wide",
)


def changed(name):
    def call(m, x, *rest, **k):
        if m is np:
            x = x.copy()
            getattr(np, name)(x, *rest, **k)
            return x
        return getattr(m, name)(x, *rest, inplace=False, **k)

    return call


(
    add(
        "put_along_axis",
        lambda m, x, i, v: changed("put_along_axis")(m, x, i, v, 1),
        X,
        np.array([[0, 4], [-1, 2], [3, 1]], np.int32),
        normal(3, 2),
        tol=None,
        oracle="np32",
    ),
    add(
        "put_along_axis",
        lambda m, x, i: changed("put_along_axis")(m, x, i, 9.0, 0),
        X,
        np.array([[0, 2, 1, 1, -1]], np.int32),
        tol=None,
        oracle="np32",
    ),
)
(
    add(
        "put",
        lambda m, x, i, v: changed("put")(m, x, i, v),
        X,
        np.array([0, 7, -1], np.int32),
        np.array([1, 2], np.float32),
        tol=None,
        oracle="np32",
        grad=False,
    ),
    add(
        "put",
        lambda m, x, i: changed("put")(m, x, i, 5.0, mode="wrap"),
        X,
        np.array([0, 17, -20], np.int32),
        tol=None,
        oracle="np32",
    ),
)
add(
    "place",
    lambda m, x, k, v: changed("place")(m, x, k, v),
    X,
    B,
    np.array([1, 2, 3], np.float32),
    tol=None,
    oracle="np32",
)
Z = np.array([0, 3, 0, 5, 1, 0], np.int32)
for name in ("nonzero", "flatnonzero", "argwhere"):
    for x in (Z, I % 2, B):
        add(name, lambda m, x, n=name: getattr(m, n)(x), x, tol=None, jit=False, vmap=False)
    for size in (2, 3, 7, 0):
        (
            add(
                name, lambda m, x, n=name, s=size: getattr(m, n)(x, size=s), I % 2, tol=None, oracle="jax", id=str(size)
            ),
            add(
                name,
                lambda m, x, n=name, s=size: getattr(m, n)(x, size=s, fill_value=-1),
                Z,
                tol=None,
                oracle="jax",
                id=f"fill{size}",
            ),
        )
add("nonzero", lambda m, x: m.nonzero(x, size=2), np.zeros((0, 2), np.int32), tol=None, oracle="jax")
(
    add(
        "compress",
        lambda m, c, x: m.compress(c, x, axis=1),
        B[0],
        X,
        tol=None,
        oracle="np32",
        jit=False,
        vmap=False,
        grad=False,
    ),
    add("compress", lambda m, c, x: m.compress(c, x, axis=1, size=4), B[0], X, tol=None, oracle="jax", grad=False),
    add(
        "compress", lambda m, c, x: m.compress(c, x, size=4, fill_value=9), B[0], X, tol=None, oracle="jax", grad=False
    ),
)
(
    add("extract", lambda m, c, x: m.extract(c, x), B, X, tol=None, oracle="np32", jit=False, vmap=False, grad=False),
    add("extract", lambda m, c, x: m.extract(c, x, size=4), B, X, tol=None, oracle="jax", grad=False),
)
U = np.array([[3, 1, 2, 3], [1, 1, 7, -2]], np.float32)
UN = np.array([1, np.nan, 1, np.nan, 0], np.float32)
(
    add("unique", lambda m, x: m.unique(x), U, tol=None, jit=False, vmap=False, grad=False),
    add("unique", lambda m, x: list(m.unique(x, True, True, True)), U, tol=None, jit=False, vmap=False, grad=False),
    add("unique", lambda m, x: m.unique(x), UN, tol=None, jit=False, vmap=False, grad=False),
    add("unique", lambda m, x: m.unique(x), np.zeros((0,), np.float32), tol=None, jit=False, vmap=False),
)
for size in (3, 5, 8):
    (
        add(
            "unique",
            lambda m, x, s=size: list(m.unique(x, True, True, True, size=s)),
            U,
            tol=None,
            oracle="jax",
            grad=False,
            id=str(size),
        ),
        add(
            "unique",
            lambda m, x, s=size: list(m.unique(x, return_counts=True, size=s, fill_value=99)),
            I,
            tol=None,
            oracle="jax",
            id=str(size),
        ),
    )
for name in ("unique_values", "unique_counts", "unique_inverse", "unique_all"):
    (
        add(
            name,
            lambda m, x, n=name: list(getattr(m, n)(x)) if n != "unique_values" else m.unique_values(x),
            U,
            tol=None,
            jit=False,
            vmap=False,
            grad=False,
        ),
        add(
            name,
            lambda m, x, n=name: list(getattr(m, n)(x, size=5)) if n != "unique_values" else m.unique_values(x, size=5),
            U,
            tol=None,
            oracle="jax",
            grad=False,
        ),
    )
for n in (0, 1, 5, 40):
    for inv in (False, True):
        add(
            "isin",
            lambda m, x, t, i=inv: m.isin(x, t, invert=i),
            I,
            integers(n, low=-5, high=5, seed=4),
            tol=None,
            id=str(inv),
            vmap=False,
        )
P, R = np.array([5, 1, 3, 3, 9], np.int32), np.array([3, 4, 5, 5], np.int32)
for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
    add(name, lambda m, x, y, n=name: getattr(m, n)(x, y), P, R, tol=None, jit=False, vmap=False)
    for size in (2, 6):
        add(
            name,
            lambda m, x, y, n=name, s=size: (
                getattr(m, n)(x, y)[:s] if m is np else getattr(m, n)(x, y, size=s)[: len(getattr(np, n)(P, R)[:s])]
            ),
            P,
            R,
            tol=None,
            id=str(size),
        )
(
    add(
        "unravel_index",
        lambda m, x: list(m.unravel_index(x, (3, 4, 2))),
        np.array([[0, 5], [23, 7]], np.int32),
        tol=None,
    ),
    add("unravel_index", lambda m, x: list(m.unravel_index(x, 5)), np.array(3, np.int32), tol=None),
)
for mode in ("wrap", "clip"):
    for order in ("C", "F"):
        add(
            "ravel_multi_index",
            lambda m, x, y, mo=mode, o=order: m.ravel_multi_index((x, y), (3, 4), mode=mo, order=o),
            np.array([0, 2, 5, -1], np.int32),
            np.array([3, 1, -2, 9], np.int32),
            tol=None,
            id=mode + order,
        )
