"""numpy.fft: Fourier transforms along any axes, of any length, with the norms of NumPy.

The results are complex64 for float32, narrower floats and integers, and complex128 for float64. norm="none" scales in
neither direction.
"""

from .. import _rlx
from .._names import accept_names as _accept_names, getattr_of as _getattr_of
from .._arrays import asarray
from ._base import axis_of, cast, op, value

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def _along(which, a, n, axis, norm):
    return _rlx.fft([value(a)], which, None if n is None else (n,), [axis], "backward" if norm is None else norm)


def _over(which, a, s, axes, norm):
    a = value(a)
    rank = len(a.shape)
    if axes is None:
        axes = tuple(range(rank)) if s is None else tuple(range(rank - len(s), rank))
    if isinstance(axes, str):
        raise TypeError(f"{which}n: axes must be integers, got {axes!r}")
    axes = [axis_of(i, rank, f"{which}n") for i in axes]
    if s is not None:
        if len(s) != len(axes):
            raise ValueError(f"{which}n: s {tuple(s)} and axes {tuple(axes)} differ in length")
        # Without a length, or with -1, an axis keeps its extent. The last axis of irfftn has half of its default
        # length.
        whole = [a.shape[i] for i in axes]
        if which == "irfft" and whole:
            whole[-1] = 2 * (whole[-1] - 1)
        s = [n if k is None or k == -1 else k for k, n in zip(s, whole)]
    if not axes:
        if which in ("rfft", "irfft"):
            raise ValueError(f"{which}n needs at least one axis")
        dtype = a.dtype.name if a.dtype.kind == "c" else "complex128" if a.dtype.name == "float64" else "complex64"
        return cast(a, dtype)
    return _rlx.fft([a], which, s, axes, "backward" if norm is None else norm)


@op("a")
def fft(a, n=None, axis=-1, norm=None):
    """The transform along an axis. The input is cut or padded with zeros to n points."""
    return _along("fft", a, n, axis, norm)


@op("a")
def ifft(a, n=None, axis=-1, norm=None):
    """The inverse of fft."""
    return _along("ifft", a, n, axis, norm)


@op("a")
def rfft(a, n=None, axis=-1, norm=None):
    """The transform of real values: its first n // 2 + 1 elements."""
    return _along("rfft", a, n, axis, norm)


@op("a")
def irfft(a, n=None, axis=-1, norm=None):
    """The inverse of rfft: n real values, by default 2 (m - 1) for m elements."""
    return _along("irfft", a, n, axis, norm)


@op("a")
def hfft(a, n=None, axis=-1, norm=None):
    """The real transform of a signal with Hermitian symmetry; a is its first half."""
    return _along("hfft", a, n, axis, norm)


@op("a")
def ihfft(a, n=None, axis=-1, norm=None):
    """The inverse of hfft."""
    return _along("ihfft", a, n, axis, norm)


@op("a")
def fftn(a, s=None, axes=None, norm=None):
    """The transform along several axes, by default all. s: their lengths."""
    return _over("fft", a, s, axes, norm)


@op("a")
def ifftn(a, s=None, axes=None, norm=None):
    """The inverse of fftn."""
    return _over("ifft", a, s, axes, norm)


@op("a")
def rfftn(a, s=None, axes=None, norm=None):
    """The transform of real values along several axes; the last one has n // 2 + 1 elements."""
    return _over("rfft", a, s, axes, norm)


@op("a")
def irfftn(a, s=None, axes=None, norm=None):
    """The inverse of rfftn."""
    return _over("irfft", a, s, axes, norm)


def _over_two(which, a, s, axes, norm):
    if axes is None or len(axes) != 2:
        raise ValueError(f"{which}2: axes {axes}; there must be two")
    return _over(which, a, s, axes, norm)


@op("a")
def fft2(a, s=None, axes=(-2, -1), norm=None):
    """fftn along two axes, by default the last."""
    return _over_two("fft", a, s, axes, norm)


@op("a")
def ifft2(a, s=None, axes=(-2, -1), norm=None):
    """ifftn along two axes, by default the last."""
    return _over_two("ifft", a, s, axes, norm)


@op("a")
def rfft2(a, s=None, axes=(-2, -1), norm=None):
    """rfftn along two axes, by default the last."""
    return _over_two("rfft", a, s, axes, norm)


@op("a")
def irfft2(a, s=None, axes=(-2, -1), norm=None):
    """irfftn along two axes, by default the last."""
    return _over_two("irfft", a, s, axes, norm)


def _frequencies(n, d, dtype, half, device):
    dtype = _rlx.dtype("float32" if dtype is None else dtype)
    inside = {"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype)
    out = asarray(_rlx.fftfreq(n, float(d), _rlx.dtype(inside), half), device=device)
    return out.astype(dtype) if dtype.kind == "c" else out


def fftfreq(n, d=1.0, dtype=None, *, device=None):
    """The frequencies of the elements of fft(x, n) with spacing d. Negative ones come last, with that at n // 2 among
    them.
    """
    return _frequencies(n, d, dtype, False, device)


def rfftfreq(n, d=1.0, dtype=None, *, device=None):
    """The frequencies of the elements of rfft(x, n)."""
    return _frequencies(n, d, dtype, True, device)


def _shifted(x, axes, back):
    if isinstance(axes, int):
        axes = (axes,)
    if axes is not None and not len(axes):
        return value(x)
    return _rlx.fftshift([value(x)], [] if axes is None else list(axes), back)


@op("x")
def fftshift(x, axes=None):
    """x with frequency 0 moved to the middle."""
    return _shifted(x, axes, False)


@op("x")
def ifftshift(x, axes=None):
    """The inverse of fftshift."""
    return _shifted(x, axes, True)


__getattr__ = _getattr_of("rlx.numpy.fft", {})

_accept_names(globals())
