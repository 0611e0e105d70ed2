"""Iterative solvers of linear systems: conjugate gradients, BiCGSTAB and GMRES, on trees of arrays.

A is a matrix or a function of a tree like b. Results are (x, None). Derivatives are solutions of such systems too; the
transposed one is solved by the same method.
"""

from ... import _control, _rlx, tree
from ... import numpy as rnp
from ..._implicit import custom_linear_solve as _custom_linear_solve
from ..._nodes import inexact as _inexact
from ..._names import accept_names as _accept_names

__all__ = ["bicgstab", "cg", "gmres"]


def _dot(x, y):
    """The inner product of trees."""
    parts = [rnp.vdot(a, b) for a, b in zip(tree.leaves(x), tree.leaves(y))]
    return sum(parts[1:], parts[0])


def _real_dot(x, y):
    return rnp.real(_dot(x, y))


def _axpy(a, x, y):
    """a x + y."""
    return tree.map(lambda u, v: a.astype(v.dtype) * u + v, x, y)


def _minus(x, y):
    return tree.map(lambda u, v: u - v, x, y)


def _quotient(a, b):
    """a / b; 0 where b is 0."""
    zero = b == 0
    return rnp.where(zero, 0, a / rnp.where(zero, 1, b))


def _operator(a, what):
    if callable(a):
        return a
    matrix = a if isinstance(a, _rlx.Value) else rnp.asarray(a)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{what}: a matrix of shape {matrix.shape}; it must be square")
    return lambda x: rnp.matmul(matrix, x)


def _bound(b, tol, atol):
    return rnp.maximum(tol * rnp.sqrt(_real_dot(b, b)), atol)


def _cg(matvec, b, x0, bound, most, precondition):
    r = _minus(b, matvec(x0))
    z = precondition(r)

    def going(s):
        return (rnp.sqrt(_real_dot(s["r"], s["r"])) > bound) & (s["k"] < most)

    def step(s):
        ap = matvec(s["p"])
        alpha = _quotient(s["gamma"], _real_dot(s["p"], ap))
        x, r = _axpy(alpha, s["p"], s["x"]), _axpy(-alpha, ap, s["r"])
        z = precondition(r)
        gamma = _real_dot(r, z)
        p = _axpy(_quotient(gamma, s["gamma"]), s["p"], z)
        return {"x": x, "r": r, "p": p, "gamma": gamma, "k": s["k"] + 1}

    start = {"x": x0, "r": r, "p": z, "gamma": _real_dot(r, z), "k": rnp.zeros((), "int32")}
    return _control.while_loop(going, step, start)["x"]


def _bicgstab(matvec, b, x0, bound, most, precondition):
    r = _minus(b, matvec(x0))
    dtype = _dot(r, r).dtype
    number = lambda v: rnp.full((), v, dtype)  # noqa: E731

    def going(s):
        return (rnp.sqrt(_real_dot(s["r"], s["r"])) > bound) & (s["k"] < most) & ~s["broken"]

    def step(s):
        rho = _dot(r, s["r"])
        beta = _quotient(rho, s["rho"]) * _quotient(s["alpha"], s["omega"])
        p = _axpy(beta, _axpy(-s["omega"], s["q"], s["p"]), s["r"])
        hat = precondition(p)
        q = matvec(hat)
        alpha = _quotient(rho, _dot(r, q))
        half = _axpy(-alpha, q, s["r"])
        turned = precondition(half)
        t = matvec(turned)
        omega = _quotient(_dot(t, half), _dot(t, t).astype(dtype))
        x = _axpy(omega, turned, _axpy(alpha, hat, s["x"]))
        broken = (rho == 0) | (alpha == 0)
        new = {"x": x, "r": _axpy(-omega, t, half), "p": p, "q": q, "rho": rho, "alpha": alpha, "omega": omega}
        return {**new, "k": s["k"] + 1, "broken": broken}

    zeros = tree.map(rnp.zeros_like, r)
    start = {"x": x0, "r": r, "p": zeros, "q": zeros, "rho": number(1), "alpha": number(1), "omega": number(1)}
    return _control.while_loop(going, step, {**start, "k": rnp.zeros((), "int32"), "broken": rnp.zeros((), "bool")})[
        "x"
    ]


def _gmres(matvec, b, x0, bound, most, precondition, restart):
    """Each round makes an orthonormal basis of the Krylov space and takes the best combination of it."""
    leaves, treedef = tree.flatten(b)
    dtype = _rlx.result_type(*leaves)[0]
    shapes = [(v.shape, v.dtype) for v in leaves]
    flat = lambda x: rnp.concatenate([rnp.ravel(v).astype(dtype) for v in tree.leaves(x)])  # noqa: E731

    def back(v):
        out, at = [], 0
        for shape, kind in shapes:
            count = 1
            for d in shape:
                count *= d
            out.append(rnp.reshape(v[at : at + count], shape).astype(kind))
            at += count
        return treedef.unflatten(out)

    n = flat(b).shape[0]
    restart = min(restart, n)
    size = lambda v: rnp.sqrt(_real_dot(v, v))  # noqa: E731

    def going(s):
        return (s["size"] > bound) & (s["k"] < most) & ~s["stuck"]

    def round_(s):
        r = flat(precondition(_minus(b, matvec(s["x"]))))
        beta = size(r)
        first = r / rnp.where(beta == 0, 1, beta).astype(dtype)
        rows = rnp.where(rnp.expand_dims(rnp.arange(restart + 1) == 0, 1), first, 0)

        def arnoldi(basis, j):
            w = flat(precondition(matvec(back(rnp.take(basis, j, axis=0)))))
            h = rnp.matmul(rnp.conj(basis), w)
            w = w - rnp.matmul(h, basis)
            again = rnp.matmul(rnp.conj(basis), w)  # a second time, because rounding leaves a part
            w = w - rnp.matmul(again, basis)
            length = size(w)
            # Nothing new: the space is closed, and the rest is rounding.
            closed = length <= 10 * rnp.finfo(length.dtype).eps * rnp.sqrt(_real_dot(h, h))
            unit = rnp.where(closed, 0, w / rnp.where(closed, 1, length).astype(dtype))
            place = rnp.arange(restart + 1) == j + 1
            column = h + again + rnp.where(place, rnp.where(closed, 0, length), 0).astype(dtype)
            return rnp.where(rnp.expand_dims(place, 1), unit, basis), column

        basis, columns = _control.scan(arnoldi, rows, rnp.arange(restart))
        hessenberg = rnp.transpose(columns)
        right = rnp.where(rnp.arange(restart + 1) == 0, beta, 0).astype(dtype)
        y = rnp.linalg.lstsq(hessenberg, right)[0]
        x = _axpy(rnp.ones((), "float32"), back(rnp.matmul(y, basis[:restart])), s["x"])
        now = size(flat(_minus(b, matvec(x))))
        better = now < s["size"]
        x = tree.map(lambda a, c: rnp.where(better, a, c), x, s["x"])
        return {"x": x, "size": rnp.where(better, now, s["size"]), "k": s["k"] + 1, "stuck": ~better}

    start = {"x": x0, "size": size(flat(_minus(b, matvec(x0)))), "k": rnp.zeros((), "int32")}
    return _control.while_loop(going, round_, {**start, "stuck": rnp.zeros((), "bool")})["x"]


def _solved(method, what, a, b, x0, tol, atol, maxiter, m, symmetric):
    if not _rlx.tracing():
        from ..._jit import cached_live

        functions = tuple(f for f in (a, m) if callable(f))
        key = (what, tol, atol, maxiter, callable(a), callable(m), m is None, getattr(method, "restart", None))
        given = (None if callable(a) else a, b, x0, None if callable(m) else m)

        def make():
            def run(a_, b_, x_, m_):
                return _solved(
                    method,
                    what,
                    a if a_ is None else a_,
                    b_,
                    x_,
                    tol,
                    atol,
                    maxiter,
                    m if m_ is None else m_,
                    symmetric,
                )

            return run

        return cached_live(key, functions, make)(*given)
    matvec = _operator(a, what)
    precondition = (lambda v: v) if m is None else _operator(m, what)
    b = tree.map(_inexact, b)
    start = tree.map(rnp.zeros_like, b) if x0 is None else tree.map(lambda x, v: rnp.asarray(x).astype(v.dtype), x0, b)
    if tree.structure(start) != tree.structure(b):
        raise ValueError(f"{what}: x0 and b must be trees of one structure")
    count = sum(int(v.size) for v in tree.leaves(b))
    most = 10 * count if maxiter is None else maxiter

    def solve(f, right):
        return method(f, right, start, _bound(right, tol, atol), most, precondition)

    def transposed(f, right):  # from 0, because x0 belongs to the system itself
        return method(f, right, tree.map(rnp.zeros_like, right), _bound(right, tol, atol), most, precondition)

    real = all(v.dtype.kind == "f" for v in tree.leaves(b))
    return _custom_linear_solve(matvec, b, solve, transposed, symmetric=symmetric and real), None


def cg(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """(x, None) with A x = b for a Hermitian positive definite A, by conjugate gradients.

    tol, atol: the residual is at most the larger of tol |b| and atol. maxiter: by default 10 for each element. M: an
        approximation of the inverse of A.
    """
    return _solved(_cg, "cg", A, b, x0, tol, atol, maxiter, M, True)


def bicgstab(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """(x, None) with A x = b for a general A, by the stabilised method of biconjugate gradients; see cg."""
    return _solved(_bicgstab, "bicgstab", A, b, x0, tol, atol, maxiter, M, False)


def gmres(A, b, x0=None, *, tol=1e-5, atol=0.0, restart=20, maxiter=None, M=None, solve_method="batched"):
    """(x, None) with A x = b for a general A, by the smallest residual in Krylov spaces of `restart` dimensions.
    maxiter counts rounds; see cg. solve_method has no effect.
    """

    def method(*given):
        return _gmres(*given, restart)

    method.restart = restart
    return _solved(method, "gmres", A, b, x0, tol, atol, maxiter, M, False)


_accept_names(globals())
