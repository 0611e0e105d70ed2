"""Schur and Hessenberg forms of scipy.linalg, and what is made from them: functions of matrices, products with q."""

from .. import _control, _rlx
from .._nodes import cast, inexact
from .._op import op
from .. import numpy as rnp
from ..lax import linalg as _factors
from ..numpy import conj, diagonal, matmul, matrix_transpose, where
from ..numpy._qr_sweeps import each_matrix
from ..numpy._real_schur import complex_form
from ..numpy._schur import real_schur_of, schur_of


def _adjoint(x):
    return conj(matrix_transpose(x))


@op("a")
def schur(a, output="real", *, overwrite_a=False, check_finite=True):
    """(t, z) with a = z t z^H and z unitary. Of complex matrices, and with output="complex", t is upper triangular; of
    real ones it is real, with blocks of two rows on its diagonal for pairs of complex eigenvalues.
    """
    if output not in ("real", "complex", "r", "c"):
        raise ValueError(f'schur: output {output!r}; it must be "real" or "complex"')
    a = inexact(a)
    real = a.dtype.kind != "c" and output[0] == "r"
    return real_schur_of(a, "schur") if real else schur_of(a, "schur")


@op("T", "Z")
def rsf2csf(T, Z, check_finite=True):
    """The complex Schur form (t, z) from the real one."""
    t, z = inexact(T), inexact(Z)
    for name, x in (("T", t), ("Z", z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"rsf2csf: {name} of shape {x.shape}; it must be square")
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(f"rsf2csf: T of shape {t.shape} and Z of shape {z.shape}")
    wide = "complex128" if _rlx.result_type(t, z)[0].name in ("float64", "complex128") else "complex64"
    lead = rnp.broadcast_shapes(t.shape[:-2], z.shape[:-2])
    t, z = (rnp.broadcast_to(cast(v, wide), (*lead, *v.shape[-2:])) for v in (t, z))
    return each_matrix(complex_form, t, z)


def _parlett(t, values):
    """f of the upper triangular t, with the values of f at its diagonal, one diagonal after the other."""
    n = t.shape[0]
    index = rnp.arange(n)
    apart = rnp.expand_dims(index, 0) - rnp.expand_dims(index, 1)
    strict = where(apart > 0, t, 0)
    d = diagonal(t)
    gaps = rnp.expand_dims(d, 0) - rnp.expand_dims(d, 1)
    lead = t * (rnp.expand_dims(values, 0) - rnp.expand_dims(values, 1))
    known = rnp.eye(n, dtype=t.dtype) * rnp.expand_dims(values, 0)

    def step(f, p):
        upper = where(apart > 0, f, 0)
        s = lead + matmul(strict, upper) - matmul(upper, strict)
        s = where(gaps == 0, s, s / where(gaps == 0, 1, gaps))
        return where(apart == p, s, f), None

    return _control.scan(step, known, rnp.arange(1, n))[0] if n > 1 else known


def funm(A, func, disp=True):
    """func of a square matrix by its Schur form, complex; with disp=False (the result, a bound of its relative error).
    func takes arrays. Eigenvalues near each other lose digits.
    """
    a = inexact(A) if _rlx.tracing() else A
    if not callable(func):
        raise TypeError("funm(A, func): func is a function of arrays")
    if not _rlx.tracing():
        from .._jit import cached_live

        return cached_live(("funm", bool(disp)), (func,), lambda: lambda a: funm(a, func, disp))(a)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"funm of shape {a.shape}; it must be a square matrix")
    t, z = schur_of(a, "funm")
    values = func(diagonal(t))
    f = _parlett(t, cast(values, t.dtype))
    out = matmul(z, matmul(f, _adjoint(z)))
    if disp:
        return out
    d = diagonal(t)
    n = a.shape[0]
    gaps = rnp.abs(rnp.expand_dims(d, 0) - rnp.expand_dims(d, 1))
    least = rnp.min(where(rnp.eye(n) > 0, rnp.inf, where(gaps == 0, rnp.inf, gaps)), initial=1)
    eps = rnp.finfo(gaps.dtype).eps
    error = rnp.maximum(eps, eps / least * rnp.linalg.norm(rnp.triu(t, 1), 1))
    error = rnp.minimum(1, error)
    return out, where(rnp.all(rnp.isfinite(rnp.abs(f))), error, rnp.inf)


@op("a")
def hessenberg(a, *, calc_q=False, overwrite_a=False, check_finite=True):
    """The form h = q^H a q with zeros below the second diagonal; with calc_q (h, q)."""
    out, taus = _factors.hessenberg(a)
    h = rnp.triu(out, -1)
    if not calc_q:
        return h
    n = h.shape[-1]
    if n < 2:
        return h, rnp.broadcast_to(rnp.eye(n, dtype=h.dtype), h.shape)
    inner = _factors.householder_product(out[..., 1:, :-1], taus)
    lead = [(0, 0)] * (h.ndim - 2)
    q = rnp.pad(inner, [*lead, (1, 0), (1, 0)])
    corner = rnp.pad(rnp.ones((1, 1), h.dtype), [(0, n - 1), (0, n - 1)])
    return h, q + corner
