"""Cases of products, calculus, polynomials, and functions of functions."""

import numpy as np
from oracle import Case, complexes, integers, normal

X, Y, V, W = normal(3, 4), normal(4, 5, seed=1), normal(4, seed=2), normal(4, seed=3)
BX, BY = normal(2, 1, 3, 4), normal(5, 4, 2, seed=1)
SUM = ("rel", 3e-6)
CASES = []


def add(*args, tol=SUM, **kwargs):
    CASES.append(Case(*args, tol=tol, **kwargs))


for a, b in (
    (X, Y),
    (X, V),
    (V, Y),
    (V, W),
    (BX, BY),
    (integers(3, 4), integers(4, 2)),
    (complexes(3, 4), complexes(4, 2)),
    (np.zeros((0, 4), np.float32), Y),
    (np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32)),
):
    (
        add("matmul", lambda m, x, y: m.matmul(x, y), a, b, vmap=a.ndim < 3),
        add("matmul", lambda m, x, y: x @ y, a, b, vmap=a.ndim < 3, id="op"),
    )
for a, b in ((X, Y), (X, V), (V, W), (BX, BY), (np.float32(2), X), (X, np.asarray(np.float32(3)))):
    add("dot", lambda m, x, y: m.dot(x, y), np.asarray(a), b)
(
    add("vdot", lambda m, x, y: m.vdot(x, y), X, X + 1),
    add("vdot", lambda m, x, y: m.vdot(x, y), complexes(5), complexes(5, seed=1)),
    add("inner", lambda m, x, y: m.inner(x, y), X, normal(2, 4)),
    add("inner", lambda m, x, y: m.inner(x, y), V, W),
    add("inner", lambda m, x, y: m.inner(x, y), X, np.asarray(np.float32(3))),
)
(
    add("outer", lambda m, x, y: m.outer(x, y), V, X),
    add("vecdot", lambda m, x, y: m.vecdot(x, y), X, V),
    add("vecdot", lambda m, x, y: m.vecdot(x, y, axis=0), X, X + 1),
    add("vecdot", lambda m, x, y: m.vecdot(x, y), complexes(3, 4), complexes(4, seed=1)),
)
(
    add("matvec", lambda m, x, y: m.matvec(x, y), X, V),
    add("vecmat", lambda m, x, y: m.vecmat(x, y), complexes(4), complexes(4, 2, seed=1)),
    add("vecmat", lambda m, x, y: m.vecmat(x, y), V, Y),
    add("matvec", lambda m, x, y: m.matvec(x, y), BX, V),
)
for axes in (0, 1, ((1,), (0,)), (1, 0)):
    add("tensordot", lambda m, x, y, a=axes: m.tensordot(x, y, axes=a), X, Y, id=str(axes))
(
    add("tensordot", lambda m, x, y: m.tensordot(x, y, axes=((0, 2), (1, 0))), normal(2, 3, 4), normal(4, 2, 5)),
    add("tensordot", lambda m, x, y: m.tensordot(x, y), normal(2, 3, 4), normal(3, 4, 5)),
)
for a, b in ((X, Y), (V, X), (X, V), (np.asarray(np.float32(2)), V), (normal(2, 1, 2), X)):
    add("kron", lambda m, x, y: m.kron(x, y), a, b)
for a, b in (
    (normal(4, 3), normal(4, 3, seed=1)),
    (normal(3), normal(2, 3)),
    (normal(4, 2), normal(4, 2, seed=1)),
    (normal(4, 3), normal(4, 2)),
    (normal(4, 2), normal(4, 3)),
):
    add("cross", lambda m, x, y: m.cross(x, y), a, b)
(
    add("cross", lambda m, x, y: m.cross(x, y, axis=0), normal(3, 4), normal(3, 4, seed=1)),
    add("cross", lambda m, x, y: m.cross(x, y, axisa=0, axisb=1, axisc=0), normal(3, 4), normal(4, 3, seed=1)),
)
(
    add("einsum", lambda m, x, y: m.einsum("ij,jk->ik", x, y), X, Y),
    add("einsum", lambda m, x, y: m.einsum(x, [0, 1], y, [1, 2], [2, 0]), X, Y),
    add("einsum", lambda m, x: m.einsum("ii->i", x), normal(3, 3)),
)
add(
    "einsum_path",
    lambda m, x: np.array(len(m.einsum_path("ij,jk,kl->il", x, x.T, x)[0])),
    X,
    vmap=False,
    jit=False,
    grad=False,
)

L = "linalg."
for ord in (None, 1, 2, np.inf, -np.inf, 0, 3, -1, 0.5):
    (
        add(L + "norm", lambda m, x, o=ord: m.linalg.norm(x, o), V, id=str(ord), grad=ord not in (0,)),
        add(
            L + "norm",
            lambda m, x, o=ord: m.linalg.norm(x, o, axis=1, keepdims=True),
            X,
            id=f"axis{ord}",
            grad=ord not in (0,),
        ),
    )
    if ord is not None:
        (
            add(L + "vector_norm", lambda m, x, o=ord: m.linalg.vector_norm(x, ord=o), X, id=str(ord), grad=ord != 0),
            add(
                L + "vector_norm",
                lambda m, x, o=ord: m.linalg.vector_norm(x, ord=o, axis=(0, 2), keepdims=True),
                normal(2, 3, 4),
                id=f"axes{ord}",
                grad=ord != 0,
            ),
        )
for ord in (None, "fro", 1, -1, np.inf, -np.inf):
    (
        add(L + "norm", lambda m, x, o=ord: m.linalg.norm(x, o), X, id=f"m{ord}"),
        add(
            L + "norm",
            lambda m, x, o=ord: m.linalg.norm(x, o, axis=(2, 0), keepdims=True),
            normal(2, 3, 4),
            id=f"axes{ord}",
        ),
    )
    if ord is not None:
        add(L + "matrix_norm", lambda m, x, o=ord: m.linalg.matrix_norm(x, ord=o), normal(2, 3, 4), id=str(ord))
(
    add(L + "norm", lambda m, x: m.linalg.norm(x), complexes(3, 4)),
    add(L + "norm", lambda m, x: m.linalg.norm(x), normal(2, 3, 4)),
)
for n in (0, 1, 2, 3, 5):
    add(L + "matrix_power", lambda m, x, n=n: m.linalg.matrix_power(x, n), normal(2, 3, 3), id=str(n), grad=n > 0)
(
    add(L + "multi_dot", lambda m, x, y, z: m.linalg.multi_dot([x, y, z]), X, Y, normal(5, 2)),
    add(L + "multi_dot", lambda m, x, y, z: m.linalg.multi_dot([x, y, z]), V, Y, normal(5)),
)
(
    add(L + "cross", lambda m, x, y: m.linalg.cross(x, y), normal(4, 3), normal(4, 3, seed=1)),
    add(L + "outer", lambda m, x, y: m.linalg.outer(x, y), V, W),
    add(L + "vecdot", lambda m, x, y: m.linalg.vecdot(x, y), X, V),
    add(L + "matmul", lambda m, x, y: m.linalg.matmul(x, y), X, Y),
    add(L + "tensordot", lambda m, x, y: m.linalg.tensordot(x, y, axes=1), X, Y),
)
(
    add(L + "diagonal", lambda m, x: m.linalg.diagonal(x, offset=1), normal(2, 3, 4)),
    add(L + "trace", lambda m, x: m.linalg.trace(x), normal(2, 3, 4)),
    add(L + "matrix_transpose", lambda m, x: m.linalg.matrix_transpose(x), normal(2, 3, 4)),
)

for n in (0, 1, 2, 3):
    for axis in (-1, 0):
        add("diff", lambda m, x, n=n, a=axis: m.diff(x, n, axis=a), X, id=f"{n},{axis}", tol=("rel", 2e-6), grad=n < 3)
(
    add("diff", lambda m, x: m.diff(x, prepend=0.0, append=x[:, :2]), X),
    add("diff", lambda m, x: m.diff(x), np.array([True, False, False])),
    add("diff", lambda m, x: m.diff(x), np.array([1, 5, 2], np.uint8), oracle="np32"),
)
(
    add("ediff1d", lambda m, x: m.ediff1d(x), X),
    add("ediff1d", lambda m, x: m.ediff1d(x, to_end=np.array([9, 8], np.float32), to_begin=np.array(7, np.float32)), X),
)
for k in (dict(), dict(axis=0), dict(edge_order=2), dict(axis=(1,), edge_order=2)):
    add(
        "gradient",
        lambda m, x, k=k: m.gradient(x, **k) if "axis" in k else list(m.gradient(x, **k)),
        normal(4, 5),
        id=str(k),
        tol=("rel", 1e-5),
        grad="affine",
    )
(
    add("gradient", lambda m, x: m.gradient(x, 0.5), V),
    add("gradient", lambda m, x, c: m.gradient(x, c), V, np.array([0, 1, 1.5, 4], np.float32), tol=("rel", 1e-5)),
    add(
        "gradient",
        lambda m, x, c: m.gradient(x, c, edge_order=2),
        V,
        np.array([0, 1, 1.5, 4], np.float32),
        tol=("rel", 1e-5),
        grad="affine",
    ),
    add("gradient", lambda m, x: list(m.gradient(x, 2.0, 0.5)), X, tol=("rel", 1e-5)),
)
(
    add("trapezoid", lambda m, y: m.trapezoid(y), X),
    add("trapezoid", lambda m, y: m.trapezoid(y, dx=0.25, axis=0), X),
    add("trapezoid", lambda m, y, x: m.trapezoid(y, x), X, np.array([0, 1, 1.5, 4], np.float32)),
    add("trapezoid", lambda m, y, x: m.trapezoid(y, x, axis=0), X, X + 1),
    add("trapezoid", lambda m, y: m.trapezoid(y), integers(3, 4), dtypes=False),
)
ANGLES = np.array([0, 1, 3, 6, 9.6, 12, 2, -5, -11], np.float32)
(
    add("unwrap", lambda m, x: m.unwrap(x), ANGLES, tol=("rel", 2e-6)),
    add("unwrap", lambda m, x: m.unwrap(x, period=4), np.array([0, 1, 2, -1, 0, 2, 4, 2], np.int32)),
    add("unwrap", lambda m, x: m.unwrap(x, discont=5.0), ANGLES, tol=("rel", 2e-6)),
    add("unwrap", lambda m, x: m.unwrap(x, axis=0, period=2.0), X * 4, tol=("rel", 5e-6)),
    add("unwrap", lambda m, x: m.unwrap(x, period=2.0), np.array([0, 1, 2, 1, -1], np.float32), id="edge"),
)
XP, FP = np.array([-1, 0, 0.5, 2], np.float32), np.array([1, 4, -2, 3], np.float32)
Q = np.array([[-2, -1, -0.5, 0], [0.25, 1.9, 2, 5]], np.float32)
(
    add("interp", lambda m, x, xp, fp: m.interp(x, xp, fp), Q, XP, FP, grad=False, vmap=False),
    add("interp", lambda m, x, xp, fp: m.interp(x, xp, fp), Q[:, 2:3] + 0.1, XP, FP, vmap=False),
    add("interp", lambda m, x, xp, fp: m.interp(x, xp, fp, left=-7.0, right=8.0), Q, XP, FP, grad=False, vmap=False),
    add(
        "interp",
        lambda m, x, xp, fp: m.interp(x, xp, fp, period=3.0),
        Q,
        XP,
        FP,
        grad=False,
        vmap=False,
        tol=("rel", 1e-5),
    ),
)
add(
    "interp",
    lambda m, x, xp, fp: m.interp(x, xp, fp),
    np.array([np.nan, 0.3], np.float32),
    XP[:1],
    FP[:1],
    grad=False,
    vmap=False,
)
for mode in ("full", "same", "valid"):
    for a, b in (
        (normal(7), normal(3)),
        (normal(3), normal(7)),
        (normal(4), normal(4)),
        (normal(5), normal(2)),
        (normal(1), normal(1)),
    ):
        (
            add("convolve", lambda m, x, y, mo=mode: m.convolve(x, y, mo), a, b, id=mode),
            add("correlate", lambda m, x, y, mo=mode: m.correlate(x, y, mo), a, b, id=mode),
        )
    (
        add("correlate", lambda m, x, y, mo=mode: m.correlate(x, y, mo), complexes(5), complexes(3, seed=1), id=mode),
        add("convolve", lambda m, x, y, mo=mode: m.convolve(x, y, mo), integers(5), integers(3), id=mode),
    )

C = np.array([2, -1, 0.5, 3], np.float32)
(
    add("polyval", lambda m, p, x: m.polyval(p, x), C, X),
    add("polyval", lambda m, p, x: m.polyval(p, x), C, np.asarray(np.float32(2))),
    add("polyval", lambda m, p, x: m.polyval(p, x), np.zeros((0,), np.float32), X, grad=False),
    add("polyval", lambda m, p, x: m.polyval(p, x), integers(3), integers(4)),
)
for name in ("polyadd", "polysub", "polymul"):
    (
        add(name, lambda m, p, q, n=name: getattr(m, n)(p, q), C, C[:2]),
        add(name, lambda m, p, q, n=name: getattr(m, n)(p, q), C[:2], C),
    )
(
    add("polydiv", lambda m, p, q: m.polydiv(p, q)[0], C, C[1:3], grad=False),
    add(
        "polydiv",
        lambda m, p, q: m.polydiv(p, q)[1] if m is not np else np.pad(np.polydiv(p, q)[1], (3, 0)),
        C,
        C[1:3],
        grad=False,
    ),
)
for k in (0, 1, 2, 5):
    (
        add("polyder", lambda m, p, k=k: m.polyder(p, k), C, id=str(k), grad=k < 4),
        add("polyint", lambda m, p, k=k: m.polyint(p, k), C, id=str(k)),
    )
add("polyint", lambda m, p: m.polyint(p, 2, k=[1.0, 2.0]), C, grad="affine"), add("poly", lambda m, p: m.poly(p), C)

(
    add("apply_along_axis", lambda m, x: m.apply_along_axis(lambda v: v.sum() * 2, 1, x), normal(2, 3, 4), vmap=False),
    add("apply_along_axis", lambda m, x: m.apply_along_axis(lambda v: v[:2] * 2, 0, x), X, vmap=False),
    add(
        "apply_along_axis",
        lambda m, x: m.apply_along_axis(lambda v: m.outer(v, v), 1, x),
        normal(2, 3, 4),
        vmap=False,
        grad=False,
    ),
)
add("apply_over_axes", lambda m, x: m.apply_over_axes(m.sum, x, (0, 2)), normal(2, 3, 4))
(
    add(
        "piecewise",
        lambda m, x: m.piecewise(x, [x < -0.5, x > 0.5], [lambda v: -v, lambda v: v * v, 1.0]),
        X,
        oracle="np32",
        grad=True,
    ),
    add("piecewise", lambda m, x: m.piecewise(x, [x < 0], [lambda v: -v]), X, oracle="np32"),
)
(
    add("vectorize", lambda m, x, y: m.vectorize(lambda a, b: a * b + 1)(x, y), X, V, vmap=False),
    add(
        "vectorize",
        lambda m, x, y: m.vectorize(lambda a, b: m.dot(a, b), signature="(n),(n)->()")(x, y),
        normal(2, 3, 4),
        V,
        vmap=False,
        grad=False,
    ),
    add(
        "frompyfunc",
        lambda m, x, y: m.frompyfunc(lambda a, b: a * b, 2, 1)(x, y).astype("float32"),
        X,
        X,
        vmap=False,
        grad=False,
    ),
)
