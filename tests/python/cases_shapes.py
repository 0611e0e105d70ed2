"""Cases of creation, shapes, joining, padding."""

import numpy as np
from oracle import Case, complexes, integers, normal

X = normal(3, 4)
V = normal(5, seed=1)
T = normal(2, 3, 4, seed=2)
S = np.asarray(np.float32(1.5))
E = np.zeros((0, 3), np.float32)
I = integers(3, 4)
CASES = []


def add(*args, tol=None, **kwargs):
    kwargs.setdefault("oracle", "np32")
    CASES.append(Case(*args, tol=tol, **kwargs))


def made(name, *args, tol=None, dtypes=True, want=None, **kwargs):
    """A function without array arguments."""

    def call(m):
        return getattr(m, name)(*args, **kwargs)

    add(
        name,
        call,
        vmap=False,
        tol=tol,
        dtypes=dtypes,
        id=f"{args}{kwargs}",
        **({} if want is None else {"oracle": want}),
    )


for shape in ((2, 3), 4, (), (0, 2)):
    made("zeros", shape), made("ones", shape), made("empty", shape, want=lambda s=shape: np.zeros(s))
    made("full", shape, 2.5), made("full", shape, 3), made("full", shape, True)
    made("indices", shape if isinstance(shape, tuple) and shape else (2,))
made("zeros", (2,), "int8"), made("ones", 3, "bool"), made("full", (2, 3), 1, dtype="float64")
made("indices", (2, 3), sparse=True)
for name in ("zeros_like", "ones_like"):
    for x in (X, S, E, I):
        add(name, lambda m, x, n=name: getattr(m, n)(x), x, grad=False)
    add(name, lambda m, x, n=name: getattr(m, n)(x, dtype="int32", shape=(2, 2)), X, grad=False, vmap=False)
add("empty_like", lambda m, x: m.empty_like(x) * 0, X, grad=False)
add("full_like", lambda m, x: m.full_like(x, 2), X, grad=False)
add("full_like", lambda m, x: m.full_like(x, 2.75), I, grad=False)
add("full", lambda m, x: m.full((2, 4), x), X[0])
add("copy", lambda m, x: m.copy(x), X)
for a in ((5,), (2, 9), (2, 9, 3), (9, 2, -2), (0,), (5, 2), (3, 3), (-3, 4), (2**31, 2**31 + 3)):
    made("arange", *a)
for a in ((0.0, 1.0, 0.1), (5.0,), (0.5, 4), (1, 0, -0.25), (0.0, 1.0, 0.3)):
    made("arange", *a, tol=("ulp", 1))
made("arange", 5, dtype="float32"), made("arange", 0, 10, 3, dtype="int8")
for a, k in (
    ((0, 1), {}),
    ((0, 1, 5), {}),
    ((2.0, -3.0, 7), {}),
    ((0, 10, 5), dict(endpoint=False)),
    ((0, 1, 0), {}),
    ((0, 1, 1), {}),
    ((3, 3, 4), {}),
    ((0, 9, 4), dict(dtype="int32")),
    ((0, 1, 1), dict(endpoint=False)),
    ((0.1, 0.7, 50), {}),
    ((0, 10, 4), dict(retstep=True)),
    ((-1e30, 1e30, 5), {}),
):
    made("linspace", *a, tol=("rel", 1e-7), **k)
add("linspace", lambda m, a, b: m.linspace(a, b, 5), V, V + 3, tol=("ulp", 4), vmap=False)
add("linspace", lambda m, a, b: m.linspace(a, b, 5, axis=-1), X, X[0] + 1, tol=("rel", 1e-6), vmap=False)
for a, k in (((0, 2, 5), {}), ((0, 3, 4), dict(base=2)), ((0.5, 1.5, 3), dict(endpoint=False)), ((1, 2, 1), {})):
    made("logspace", *a, tol=("ulp", 2), **k)
for a, k in (
    ((1, 1000, 4), {}),
    ((1, 256, 9), {}),
    ((-2, -32, 5), {}),
    ((8, 1, 4), dict(endpoint=False)),
    ((3, 5, 1), {}),
):
    made("geomspace", *a, tol=("ulp", 2), **k)
add("geomspace", lambda m, a, b: m.geomspace(a, b, 4), np.abs(V) + 1, np.abs(V) + 9, tol=("ulp", 8), vmap=False)
for a, k in (
    ((3,), {}),
    ((2, 4), {}),
    ((4, 2), dict(k=1)),
    ((3, 3), dict(k=-2)),
    ((3, 3, 7), {}),
    ((0,), {}),
    ((2,), dict(dtype="int32")),
):
    made("eye", *a, **k), made("tri", *a, **k)
made("identity", 3), made("identity", 0)
for M in (0, 1, 2, 5, 12):
    for name in ("bartlett", "hanning", "hamming", "blackman"):
        made(name, M, tol=("rel", 1e-6))
    made("kaiser", M, 8.6, tol=("rel", 1e-6)), made("kaiser", M, 0, tol=("rel", 1e-6))
add("fromfunction", lambda m: m.fromfunction(lambda i, j: i * 3 + j, (3, 4)), vmap=False)
for name in ("tril_indices", "triu_indices"):
    made(name, 3), made(name, 4, k=1), made(name, 3, -1, 5), made(name, 0)
    add(name + "_from", lambda m, x, n=name: getattr(m, n + "_from")(x, 1), X, grad=False, vmap=False)
made("diag_indices", 3), made("diag_indices", 2, 3)
add("diag_indices_from", lambda m, x: m.diag_indices_from(x), np.zeros((3, 3, 3), np.float32), grad=False, vmap=False)
add("mask_indices", lambda m: m.mask_indices(4, m.triu, 1), vmap=False, jit=False)
add("ix_", lambda m: m.ix_([0, 2], [1, 3, 0]), vmap=False)
add("ix_", lambda m: m.ix_([True, False, True], [1, 3]), vmap=False, jit=False)
add("mgrid", lambda m: m.mgrid[0:3, 1:5:2], vmap=False)
add("mgrid", lambda m: m.mgrid[0:1:5j], vmap=False, tol=("ulp", 1))
add("ogrid", lambda m: m.ogrid[0:3, 1:5:2], vmap=False)
add("s_", lambda m: m.arange(9)[m.s_[1:8:3]], vmap=False)
add("index_exp", lambda m: m.arange(9)[m.index_exp[2]], vmap=False)
for n in (None, 0, 2, 7):
    for inc in (False, True):
        add("vander", lambda m, x, n=n, inc=inc: m.vander(x, n, increasing=inc), V, tol=("ulp", 16), grad=n != 0)
add("vander", lambda m, x: m.vander(x, 3), I[0])

for name in (
    "ravel",
    "transpose",
    "matrix_transpose",
    "squeeze",
    "fliplr",
    "flipud",
    "flip",
    "permute_dims",
    "tril",
    "triu",
    "rot90",
    "trace",
    "diagonal",
):
    for x in (X, T, I, np.zeros((2, 0), np.float32), np.ones((1, 1), np.float32)):
        if name == "permute_dims":
            add(name, lambda m, x: m.permute_dims(x, tuple(range(x.ndim))[::-1]), x)
        elif name == "matrix_transpose":
            add(name, lambda m, x: m.matrix_transpose(x), x, oracle=lambda x: np.swapaxes(x, -1, -2))
        else:
            add(name, lambda m, x, n=name: getattr(m, n)(x), x, tol=("ulp", 2) if name == "trace" else None)
add("ravel", lambda m, x: m.ravel(x, order="F"), T)
add("reshape", lambda m, x: m.reshape(x, (4, 3)), X), add("reshape", lambda m, x: x.reshape(-1, 2), X, id="method")
(
    add("reshape", lambda m, x: m.reshape(x, (6, -1), order="F"), T),
    add("reshape", lambda m, x: m.reshape(x, (1, 1)), S),
    add("reshape", lambda m, x: m.reshape(x, (0, 5)), E),
)
add("transpose", lambda m, x: m.transpose(x, (2, 0, -2)), T)
add("swapaxes", lambda m, x: m.swapaxes(x, 0, -1), T)
for s, d in ((0, -1), (-1, 0), ((0, 1), (-1, 0)), ((2, 0), (0, 1)), ((), ())):
    add("moveaxis", lambda m, x, s=s, d=d: m.moveaxis(x, s, d), T, id=str((s, d)))
for a in range(3):
    for s in range(-3, 4):
        add("rollaxis", lambda m, x, a=a, s=s: m.rollaxis(x, a, s), T, id=f"{a},{s}", vmap=False, grad=False)
for a in (0, -1, (0, 2), (1, -1)):
    add("expand_dims", lambda m, x, a=a: m.expand_dims(x, a), X, id=str(a))
add("squeeze", lambda m, x: m.squeeze(x, (0, -1)), np.ones((1, 3, 1), np.float32))
(
    add("broadcast_to", lambda m, x: m.broadcast_to(x, (2, 3, 4)), X),
    add("broadcast_to", lambda m, x: m.broadcast_to(x, (3,)), S),
    add("broadcast_to", lambda m, x: m.broadcast_to(x, (0, 3)), X[:1, :3]),
)
add("broadcast_arrays", lambda m, x, y: list(m.broadcast_arrays(x, y)), X, V[:1], vmap=False)
add("broadcast_shapes", lambda m: np.array(m.broadcast_shapes((2, 1), (3,), (1, 1))), vmap=False, jit=False)
for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    for x in (S, V, X, T):
        add(name, lambda m, x, n=name: getattr(m, n)(x), x)
    add(name, lambda m, x, y, n=name: list(getattr(m, n)(x, y)), S, X)
(
    add("flip", lambda m, x: m.flip(x, (0, 2)), T),
    add("flip", lambda m, x: m.flip(x, 1), T),
    add("flip", lambda m, x: m.flip(x, ()), T),
)
for k in range(-3, 6):
    add("rot90", lambda m, x, k=k: m.rot90(x, k, (1, 0)), X, id=str(k), grad=False)
for s, a in ((1, None), (-2, 0), (5, 1), ((1, 2), (0, 1)), (3, (0, 1)), ((1, -1), (0, 0)), (0, 1), (100, 1)):
    add("roll", lambda m, x, s=s, a=a: m.roll(x, s, a), X, id=str((s, a)))
add("roll", lambda m, x: m.roll(x, 1), E)
for r, a in ((2, None), (3, 0), (0, 1), (1, 1), ([1, 0, 2], 0), ([2], 1), ([1, 2, 0, 3], 1)):
    add("repeat", lambda m, x, r=r, a=a: m.repeat(x, r, a), X, id=str((r, a)), grad="affine" if r else False)
add(
    "repeat",
    lambda m, x: m.repeat(x, [1, 2, 1], 0) if m is np else m.repeat(x, [1, 2, 1], 0, total_repeat_length=4),
    X,
    id="total",
    grad="affine",
)
for r in (2, (2, 1), (1, 2, 2), (0, 1), ()):
    (
        add("tile", lambda m, x, r=r: m.tile(x, r), X, id=str(r), grad=r != (0, 1)),
        add("tile", lambda m, x, r=r: m.tile(x, r), S, id=str(r), grad=False),
    )
for s in ((2, 2), 7, (5, 6), (0,), ()):
    add("resize", lambda m, x, s=s: m.resize(x, s), X, id=str(s), grad=s != (0,))
(
    add("astype", lambda m, x: m.astype(x, "int32") if m is not np else x.astype("int32"), X * 5, grad=False),
    add("astype", lambda m, x: x.astype("bool"), I),
    add("astype", lambda m, x: x.astype("float64"), X),
)
(
    add("shape", lambda m, x: np.array(m.shape(x)), T, vmap=False, jit=False, grad=False),
    add("ndim", lambda m, x: np.array(m.ndim(x)), T, vmap=False, jit=False, grad=False),
)
add("size", lambda m, x: np.array([m.size(x), m.size(x, 1)]), T, vmap=False, jit=False, grad=False)
add("size_of", lambda m, x: m.size_of(x, 1), T, oracle=lambda x: np.array(3, np.int64), grad=False, vmap=False)
for k in (0, 1, -2, 9):
    for name in ("tril", "triu", "diagonal", "trace"):
        add(name, lambda m, x, k=k, n=name: getattr(m, n)(x, k), X, id=str(k), tol=("ulp", 2), grad=k != 9)
    (
        add("diag", lambda m, x, k=k: m.diag(x, k), X, id=str(k), grad=k != 9),
        add("diag", lambda m, x, k=k: m.diag(x, k), V, id=str(k)),
        add("diagflat", lambda m, x, k=k: m.diagflat(x, k), X, id=str(k)),
    )
(
    add("diagonal", lambda m, x: m.diagonal(x, 1, 2, 0), T),
    add("trace", lambda m, x: m.trace(x, -1, 1, 2), T, tol=("ulp", 2)),
)


def filled(m, x, v, wrap):
    if m is np:
        x = x.copy()
        np.fill_diagonal(x, v, wrap)
        return x
    return m.fill_diagonal(x, v, wrap, inplace=False)


for x in (X, normal(6, 2), np.zeros((3, 3, 3), np.float32), np.zeros((2, 5), np.float32)):
    for wrap in (False, True):
        add("fill_diagonal", lambda m, x, w=wrap: filled(m, x, 7, w), x, id=str(wrap), grad="affine")
        two = np.array([1, 2], np.float32)
        add("fill_diagonal", lambda m, x, w=wrap: filled(m, x, two, w), x, id=f"vector{wrap}", grad="affine")

for a in (0, 1, -1, None):
    (
        add("concatenate", lambda m, x, y, a=a: m.concatenate([x, y], axis=a), X, X + 1, id=str(a)),
        add("concat", lambda m, x, y, a=a: m.concat([x, y], axis=a), X, X + 1, id=str(a)),
    )
(
    add(
        "concatenate",
        lambda m, x, y: m.concatenate((x, y)),
        X,
        I,
        oracle=lambda x, y: np.concatenate([x, y.astype(np.float32)]),
    ),
    add("concatenate", lambda m, x: m.concatenate(x), T),
)
add("concatenate", lambda m, x, y: m.concatenate([x, y]), E, X[:, :3], grad=False)
for a in (0, 1, -1):
    add("stack", lambda m, x, y, a=a: m.stack([x, y], axis=a), X, X + 1, id=str(a))
add("unstack", lambda m, x: m.unstack(x, axis=1) if m is not np else tuple(np.moveaxis(x, 1, 0)), T)
for name in ("vstack", "hstack", "dstack", "column_stack"):
    for x in (V, X, T) if name != "column_stack" else (V, X):
        add(name, lambda m, x, y, n=name: getattr(m, n)([x, y]), x, x + 1)
    add(name, lambda m, x, y, n=name: getattr(m, n)((x, y)), S, S + 1, vmap=True)
(
    add("block", lambda m, x, y: m.block([[x, y], [y, x]]), X, X + 1),
    add("block", lambda m, x, y: m.block([x, y]), V, V),
    add("block", lambda m, x: m.block([[1.0, x], [x, 2.0]]), S),
    add("block", lambda m, x: m.block(x), X),
)
add("block", lambda m, x, v: m.block([[x], [v]]), X, V[:4])
for name, x in (
    ("split", X),
    ("array_split", X),
    ("vsplit", X),
    ("hsplit", np.asarray(normal(3, 6))),
    ("dsplit", normal(2, 3, 6)),
):
    (
        add(name, lambda m, x, n=name: list(getattr(m, n)(x, 3)), x),
        add(name, lambda m, x, n=name: list(getattr(m, n)(x, [1, 2])), x, id="at"),
    )
(
    add("array_split", lambda m, x: list(m.array_split(x, 3)), V),
    add("array_split", lambda m, x: list(m.array_split(x, 7)), V, grad=False),
    add("split", lambda m, x: list(m.split(x, [1, 3, 9])), V, grad=False),
)
add("split", lambda m, x: list(m.split(x, 2, axis=-1)), X), add("hsplit", lambda m, x: list(m.hsplit(x, 5)), V)
for a in (None, 0):
    add("append", lambda m, x, y, a=a: m.append(x, y, axis=a), X, X[:1], id=str(a))
for obj in (1, -1, [0, 2], slice(0, 2), slice(None, None, 2), [True, False, True], []):
    add(
        "delete",
        lambda m, x, o=obj: m.delete(
            x,
            (
                np.array(o, bool)
                if o and isinstance(o, list) and isinstance(o[0], bool)
                else np.array(o, int) if o == [] else o
            ),
            axis=0,
        ),
        X,
        id=str(obj),
        grad="affine",
    )
(
    add("delete", lambda m, x: m.delete(x, 3), X),
    add("delete", lambda m, x: m.delete(x, [1, 1, 2], axis=1), X, grad="affine"),
)
for obj in (1, -1, 0, 3, [0, 2], [1, 1], slice(0, 2)):
    add("insert", lambda m, x, o=obj: m.insert(x, o, 9.0, axis=0), X, id=str(obj), grad="affine")
(
    add("insert", lambda m, x, v: m.insert(x, 1, v, axis=1), X, V[:3]),
    add("insert", lambda m, x, v: m.insert(x, 2, v, axis=0), X, V[:4]),
    add("insert", lambda m, x: m.insert(x, 5, 9), X),
)
(
    add("insert", lambda m, x, v: m.insert(x, [1, 3], v, axis=1), X, normal(3, 2), grad="affine"),
    add("insert", lambda m, x, v: m.insert(x, 1, v, axis=0), X, normal(2, 4)),
    add("insert", lambda m, x, v: m.insert(x, [2], v, axis=0), X, normal(2, 4), grad="affine"),
)
for k in (dict(), dict(indexing="ij"), dict(sparse=True), dict(indexing="ij", sparse=True)):
    add("meshgrid", lambda m, x, y, k=k: list(m.meshgrid(x, y, **k)), V, V[:3], id=str(k), vmap=False)
(
    add("meshgrid", lambda m, x, y, z: list(m.meshgrid(x, y, z)), V, V[:3], V[:2], vmap=False),
    add("meshgrid", lambda m, x: list(m.meshgrid(x)), V),
)
for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "mean", "median", "minimum"):
    for w in (1, (2, 3), ((0, 2), (3, 0)), ((5, 7),), ((9, 8), (7, 9))):
        for x in (X, I):
            add(
                "pad",
                lambda m, x, w=w, mode=mode: m.pad(x, w, mode=mode),
                x,
                id=f"{mode}{w}",
                tol=("rel", 2e-6),
                vmap=w == 1,
                grad=w == 1 and x.dtype.kind == "f" and mode not in ("linear_ramp",),
                oracle="np32",
            )
(
    add("pad", lambda m, x: m.pad(x, ((1, 2), (0, 1)), constant_values=((1, 2), (3, 4))), X),
    add("pad", lambda m, x: m.pad(x, 1, constant_values=5), X),
    add("pad", lambda m, x: m.pad(x, 2, mode="linear_ramp", end_values=4.0), X, tol=("rel", 1e-6)),
)
(
    add("pad", lambda m, x: m.pad(x, 2, mode="mean", stat_length=2), X, tol=("ulp", 4)),
    add("pad", lambda m, x: m.pad(x, ((1, 0),), mode="reflect"), np.ones((1,), np.float32)),
    add("pad", lambda m, x: m.pad(x, 0, mode="edge"), E, grad=False),
)
add("pad", lambda m, x: m.pad(x, 1, mode="empty")[1:-1], V)
for mode in ("reflect", "symmetric"):
    for w in (1, ((1, 2), (5, 0)), ((4, 7), (9, 3))):
        add(
            "pad",
            lambda m, x, mode=mode, w=w: m.pad(x, w, mode, reflect_type="odd"),
            X,
            id=f"odd {mode}{w}",
            tol=("rel", 1e-5),
            vmap=False,
            grad=w == 1,
            oracle="np32",
        )
(
    add("packbits", lambda m, x: m.packbits(x), np.arange(21) % 3 == 0),
    add(
        "packbits",
        lambda m, x: m.packbits(x, axis=0, bitorder="little"),
        integers(11, 3, low=0, high=2, dtype=np.uint8),
    ),
)
(
    add("unpackbits", lambda m, x: m.unpackbits(x), np.array([0, 1, 170, 255], np.uint8)),
    add(
        "unpackbits", lambda m, x: m.unpackbits(x, axis=1, count=-3, bitorder="little"), np.array([[2], [7]], np.uint8)
    ),
    add("unpackbits", lambda m, x: m.unpackbits(x, count=19), np.array([5, 9], np.uint8)),
)
(
    add("array", lambda m, x: m.array(x), X, grad=False),
    add("asarray", lambda m, x: m.asarray(x), X, grad=False),
    add("array", lambda m: m.array([[1, 2], [3, 4]], "float32"), vmap=False),
)
add("conj", lambda m, x: m.transpose(x).reshape(2, 6), complexes(3, 4), grad=False, id="moves")
