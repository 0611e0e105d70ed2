"""Array creation: filled arrays, ranges, grids, windows, index arrays."""

import builtins as _b
import math as _math

from .. import _rlx
from .._nodes import counted, diagonal_ones, grid_index
from ._base import array, asarray, cast, creator, dims_of, extent_value, filled, int_static, named, near_diagonal, node
from ._base import op, value
from ._joining import concatenate, meshgrid, stack
from ._ranges import range_types, ranged, spaced
from ._shapes import broadcast_to
from ._ufuncs import exp, i0, log


@creator
def zeros(shape, dtype="float32", *, device=None):
    """An array of zeros."""
    return filled(shape, 0, dtype or "float32")


@creator
def ones(shape, dtype="float32", *, device=None):
    """An array of ones."""
    return filled(shape, 1, dtype or "float32")


@op("fill_value")
def full(shape, fill_value, dtype=None, *, device=None):
    """An array filled with one value, or with a value that broadcasts to the shape."""
    x = value(fill_value) if dtype is None else cast(fill_value, dtype)
    return _rlx.expand([x._with_weak(False)], dims_of(shape))


def _like(x, dtype, shape):
    x = value(x)
    return x.shape if shape is None else dims_of(shape), x.dtype if dtype is None else dtype


@op("x")
def zeros_like(x, dtype=None, shape=None, *, device=None):
    """Zeros of the shape and dtype of x."""
    shape, dtype = _like(x, dtype, shape)
    return filled(shape, 0, dtype)


@op("x")
def ones_like(x, dtype=None, shape=None, *, device=None):
    """Ones of the shape and dtype of x."""
    shape, dtype = _like(x, dtype, shape)
    return filled(shape, 1, dtype)


@op("x", "fill_value")
def full_like(x, fill_value, dtype=None, shape=None, *, device=None):
    """An array filled with one value, with the shape and dtype of x."""
    shape, dtype = _like(x, dtype, shape)
    return _rlx.expand([cast(fill_value, dtype)], shape)


empty, empty_like = zeros, zeros_like


@op("x")
def copy(x):
    """Returns x. Arrays are immutable, so the result may share memory with x."""
    return value(x)._with_weak(False)


def _whole(x):
    return isinstance(x, int) or (not isinstance(x, (float, complex)) and hasattr(x, "__index__"))


@creator
def arange(start, stop=None, step=1, dtype=None, *, device=None):
    """start, start + step, ... below stop: int32 (int64 if needed), or float32 if an argument is a float."""
    if stop is None:
        start, stop = 0, start
    if _b.any(isinstance(v, _rlx.Dim) for v in (start, stop, step)):
        return _symbolic_range(start, stop, step, dtype)
    whole_numbers = _b.all(_whole(v) for v in (start, stop, step))
    if step == 0:
        raise ValueError("arange: step is 0")
    count = _b.max(0, -(-(stop - start) // step) if whole_numbers else _math.ceil((stop - start) / step))
    if dtype is None:
        fits = whole_numbers and _b.all(-(2**31) <= v < 2**31 for v in (start, start + step * _b.max(count - 1, 0)))
        dtype = "float32" if not whole_numbers else ("int32" if fits else "int64")
    dtype = _rlx.dtype(dtype)
    wide = dtype if dtype.kind in "iu" else _rlx.dtype("int64" if whole_numbers else "float64")
    return cast(counted(count, wide, start, step), dtype)


def _symbolic_range(start, stop, step, dtype):
    """arange with a symbolic extent as start or stop. The default dtype is int32, because the values are not known."""
    if not isinstance(step, int) or step == 0 or not _b.all(_whole(v) for v in (start, stop)):
        raise TypeError(
            f"arange({start}, {stop}, {step}) over a symbolic extent: start and stop must be integers or extents, and "
            "step a Python integer; compute other ranges from rlx.numpy.arange(n)"
        )
    far = stop - start if step > 0 else start - stop
    count = far if _b.abs(step) == 1 else (far + (_b.abs(step) - 1)) // _b.abs(step)
    dtype = _rlx.dtype("int32" if dtype is None else dtype)
    wide = dtype if dtype.kind in "iu" else _rlx.dtype("int64")
    x = counted(count, wide, step=step)
    if isinstance(start, _rlx.Dim) or start != 0:
        x = node("add", x, cast(extent_value(start), wide))
    return cast(x, dtype)


@op("start", "stop")
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """num evenly spaced numbers from start to stop, along a new axis; with retstep also their distance."""
    x, step = spaced(start, stop, num, endpoint, dtype, axis)
    return (x, cast(step, x.dtype if x.dtype.kind in "fc" else "float32")) if retstep else x


@op("start", "stop")
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """base to the powers of linspace(start, stop, num)."""
    inside, out = range_types(start, stop, dtype)
    x, _ = ranged(cast(start, inside), cast(stop, inside), num, endpoint, axis)
    return cast(node("pow", cast(base, inside), x), out)


@op("start", "stop")
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """num numbers from start to stop with a constant ratio. start and stop must have the same sign, or be complex: then
    their ratios are along a logarithmic spiral.
    """
    inside, out = range_types(start, stop, dtype)
    start, stop = cast(start, inside), cast(stop, inside)
    if start.dtype.kind == "c":
        ratio = node("div", stop, start)
        x, _ = ranged(node("mul", ratio, 0), log(ratio), num, endpoint, axis)
        x = node("mul", exp(x), _wide(broadcast_to(start, ratio.shape), axis, x.ndim))
        return cast(x, out)
    turn = node("where", node("lt", start, 0), -1, 1)
    first, last = node("mul", start, turn), node("mul", stop, turn)
    x, _ = ranged(node("log", first), node("log", last), num, endpoint, axis)
    x = node("mul", node("exp", x), _wide(turn, axis, x.ndim))
    places = node(
        "iota", dims=tuple(num if d == axis % x.ndim else 1 for d in range(x.ndim)), dtype="int64", axis=axis % x.ndim
    )
    x = node("where", node("eq", places, 0), _wide(start, axis, x.ndim), x)
    if endpoint and num > 1:
        x = node("where", node("eq", places, num - 1), _wide(stop, axis, x.ndim), x)
    return cast(x, out)


def _wide(x, axis, rank):
    """x with an axis of extent 1 in place of the axis of the range."""
    shape = list(x.shape)
    while len(shape) < rank - 1:
        shape.insert(0, 1)
    shape.insert(axis % rank, 1)
    return _rlx.reshape([x], tuple(shape))


@creator
def eye(n, m=None, k=0, dtype="float32", *, device=None):
    """Ones on the k-th diagonal of an [n, m] array of zeros."""
    return diagonal_ones(n, n if m is None else m, k, dtype or "float32")


def identity(n, dtype="float32"):
    """The unit matrix [n, n]."""
    return eye(n, dtype=dtype)


@creator
def tri(n, m=None, k=0, dtype="float32", *, device=None):
    """Ones at and below the k-th diagonal of an [n, m] array of zeros."""
    m = n if m is None else m
    k = near_diagonal(k, n, m)
    return cast(node("ge", node("add", grid_index((n, m), 0), k), grid_index((n, m), 1)), dtype or "float32")


def fromfunction(function, shape, dtype="float32", **kwargs):
    """Calls function with the coordinates of all elements of a shape."""
    return function(*indices(shape, dtype=dtype), **kwargs)


@creator
def indices(dimensions, dtype="int32", sparse=False):
    """The coordinates of all elements of a shape: [rank, *shape], or with sparse one array with one long axis for each
    axis.
    """
    dimensions = dims_of(dimensions)
    if sparse:
        return tuple(
            node("iota", dims=tuple(d if a == axis else 1 for a, d in enumerate(dimensions)), dtype=dtype, axis=axis)
            for axis in range(len(dimensions))
        )
    if not dimensions:
        return filled((0,), 0, dtype)
    rows = [node("iota", dims=(1, *dimensions), dtype=dtype, axis=axis + 1) for axis in range(len(dimensions))]
    return node("concat", *rows, axis=0)


@op("x")
def vander(x, N=None, increasing=False):
    """The Vandermonde matrix: columns of powers of x, the highest first unless `increasing`."""
    x = value(x)
    if x.ndim != 1:
        raise ValueError(f"vander: an array with {x.ndim} axes; it must have one")
    n = x.shape[0] if N is None else int_static(N, "vander: N")
    if not 0 <= n <= 2**16:
        raise ValueError(f"vander: N = {n}; it must be 0 to {2**16}")
    x = cast(x, "int32") if x.dtype.kind == "b" else x
    columns = [filled(x.shape, 1, x.dtype)]
    for _ in range(n - 1):
        columns.append(node("mul", columns[-1], x))
    columns = [_rlx.reshape([c], (x.shape[0], 1)) for c in columns[:n]]
    if not columns:
        return filled((x.shape[0], 0), 0, x.dtype)
    return node("concat", *(columns if increasing else columns[::-1]), axis=1)


# -- windows --


def _points(M):
    M = int_static(M, "a window's number of points")
    if M > 1 << 24:
        raise ValueError(f"a window of {M} points; the limit is {1 << 24}")
    return M


def _window(name, text, formula):
    def function(M):
        M = _points(M)
        if M <= 0:
            return zeros((0,))
        if M == 1:
            return ones((1,))
        return array([formula(k / (M - 1)) for k in range(M)], "float32")

    return named(function, name, text)


def _cosines(*weights):
    def formula(t):
        return sum(w * _math.cos(2 * _math.pi * k * t) for k, w in enumerate(weights))

    return formula


bartlett = _window("bartlett", "The Bartlett window of M points, a triangle.", lambda t: 1.0 - _b.abs(2.0 * t - 1.0))
hanning = _window("hanning", "The Hann window of M points, a raised cosine.", _cosines(0.5, -0.5))
hamming = _window("hamming", "The Hamming window of M points, a raised cosine on a pedestal.", _cosines(0.54, -0.46))
blackman = _window("blackman", "The Blackman window of M points.", _cosines(0.42, -0.5, 0.08))


def kaiser(M, beta):
    """The Kaiser window of M points."""
    M = _points(M)
    if M <= 1:
        return ones((_b.max(M, 0),))
    t = array(
        [float(beta) * _math.sqrt(_b.max(0.0, 1.0 - (2.0 * k / (M - 1) - 1.0) ** 2)) for k in range(M)], "float64"
    )
    return (i0(t) / i0(array(float(beta), "float64"))).astype("float32")


# -- index arrays --


def _pairs(n, m, keep, what):
    import numpy as np

    n, m = (_b.max(int_static(x, f"{what}: {name}"), 0) for x, name in ((n, "n"), (m, "m")))
    if n * m >= 2**31:
        raise ValueError(f"{what}: an array [{n}, {m}] has more elements than int32 counts")
    places = np.nonzero(np.broadcast_to(keep(*np.ogrid[:n, :m]), (n, m)))
    return tuple(array(p, "int32") for p in places)


def tril_indices(n, k=0, m=None):
    """(rows, columns) of the elements at and below the k-th diagonal of an [n, m] array."""
    return _pairs(n, n if m is None else m, lambda i, j: j - i <= k, "tril_indices")


def triu_indices(n, k=0, m=None):
    """(rows, columns) of the elements at and above the k-th diagonal of an [n, m] array."""
    return _pairs(n, n if m is None else m, lambda i, j: j - i >= k, "triu_indices")


def _matrix_shape(x, what):
    if len(x.shape) != 2:
        raise ValueError(f"{what}: an array with {len(x.shape)} axes; it must have two")
    return x.shape


def tril_indices_from(arr, k=0):
    """tril_indices for the shape of a matrix."""
    n, m = _matrix_shape(arr, "tril_indices_from")
    return tril_indices(n, k, m)


def triu_indices_from(arr, k=0):
    """triu_indices for the shape of a matrix."""
    n, m = _matrix_shape(arr, "triu_indices_from")
    return triu_indices(n, k, m)


def mask_indices(n, mask_func, k=0):
    """The indices where mask_func(ones((n, n)), k) is not zero. mask_func runs on arrays and not on traced values."""
    return asarray(mask_func(ones((n, n)), k)).nonzero()


def diag_indices(n, ndim=2):
    """The indices of the main diagonal of an array with ndim axes of extent n."""
    ndim = int_static(ndim, "diag_indices: ndim")
    if not 0 <= ndim <= 2**10:
        raise ValueError(f"diag_indices: ndim = {ndim}; it must be 0 to {2**10}")
    return (arange(int_static(n, "diag_indices: n")),) * ndim


def diag_indices_from(arr):
    """diag_indices for an array whose axes have equal extents."""
    if len(arr.shape) < 2 or len(set(arr.shape)) != 1:
        raise ValueError(f"diag_indices_from: shape {tuple(arr.shape)}; it must have two or more axes of equal extent")
    return diag_indices(arr.shape[0], len(arr.shape))


def ix_(*args):
    """Index arrays that select the elements (args[0][i], args[1][j], ...)."""
    out = []
    for axis, a in enumerate(args):
        a = a if isinstance(a, _rlx.Value) else array(a)
        if a.ndim != 1:
            raise ValueError(f"ix_: an array with {a.ndim} axes; each must have one")
        if a.dtype.name == "bool":
            (a,) = a.nonzero()
        elif a.size == 0 and a.dtype.kind == "f":
            a = a.astype("int32")
        out.append(a.reshape(tuple(-1 if k == axis else 1 for k in range(len(args)))))
    return tuple(out)


class _Grid:
    """mgrid[0:3, 0:1:5j] and ogrid: arrays of coordinates from slices. An imaginary step is a number of points."""

    def __init__(self, name, dense):
        self._dense = dense
        self.__name__ = self.__qualname__ = name

    def __getitem__(self, key):
        slices = key if isinstance(key, tuple) else (key,)
        axes = []
        for s in slices:
            axes.append(_range_of(s))
        if not isinstance(key, tuple):
            return axes[0]
        grids = meshgrid(*axes, indexing="ij", sparse=not self._dense)
        return stack(grids) if self._dense else tuple(grids)


mgrid, ogrid = _Grid("mgrid", True), _Grid("ogrid", False)


class _Index:
    """s_[1:3, ...]: an index as an object."""

    def __init__(self, always_tuple):
        self._tuple = always_tuple

    def __getitem__(self, key):
        return (key,) if self._tuple and not isinstance(key, tuple) else key


s_, index_exp = _Index(False), _Index(True)


class _Joined:
    """r_[1:4, 0, x] and c_[x, y]: arrays joined along the first or the last axis. Slices are ranges as in mgrid; a text
    "axis,least axes,place of the new axis" before them chooses another axis.
    """

    def __init__(self, name, axis, ndmin, place):
        self._axis, self._ndmin, self._place = axis, ndmin, place
        self.__name__ = self.__qualname__ = name

    def __getitem__(self, key):
        parts = key if isinstance(key, tuple) else (key,)
        axis, ndmin, place = self._axis, self._ndmin, self._place
        if isinstance(parts[0], str):
            if parts[0] in ("r", "c"):
                raise NotImplementedError(f"{self.__name__}[{parts[0]!r}, ...] makes a matrix; use rlx.numpy.reshape")
            numbers = [int(n) for n in parts[0].split(",")]
            axis, ndmin, place = (*numbers, *(axis, ndmin, place)[len(numbers) :])
            parts = parts[1:]
        arrays = []
        for part in parts:
            if isinstance(part, slice):
                part = _range_of(part)
            own = getattr(part, "ndim", None)
            x = part if isinstance(part, _rlx.Value) else array(part)
            own = x.ndim if own is None else own
            if x.ndim < ndmin:
                new = [1] * (ndmin - own)
                at = place if place >= 0 else ndmin - own + 1 + place
                x = x.reshape((*new[:at], *x.shape, *new[at:]))
            arrays.append(x if x.ndim else x.reshape(1))
        return concatenate(arrays, axis)


def _range_of(s):
    start, step = s.start or 0, 1 if s.step is None else s.step
    if isinstance(step, complex):
        return linspace(float(start), float(s.stop), int(_b.abs(step)))
    return arange(start, s.stop, step)


r_, c_ = _Joined("r_", 0, 1, -1), _Joined("c_", -1, 2, 0)
