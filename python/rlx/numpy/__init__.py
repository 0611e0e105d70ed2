"""NumPy's functions over rlx arrays: at once on arrays, as nodes inside compiled functions.

Differences from NumPy are those of JAX: arrays are immutable, Python numbers are weakly typed, indices out of range are
clamped when read and dropped when written, and inside compiled functions shapes do not depend on values: what would have
such a shape (nonzero, unique, ...) takes `size` there. Defaults are float32 and int32; floats beside integers give float32.
"""
import math as _math

from .. import _rlx
from .._arrays import array, asarray, from_dlpack  # noqa: F401

pi, e, inf, nan, euler_gamma = _math.pi, _math.e, _math.inf, _math.nan, 0.57721566490153286061
newaxis = None
ndarray = _rlx.Array
dtype = _rlx.dtype
for _d in _rlx.dtypes:
    globals()["bool_" if _d.name == "bool" else _d.name] = _d
del _d
float_, int_, uint, complex_ = _rlx.dtype("float32"), _rlx.dtype("int32"), _rlx.dtype("uint32"), _rlx.dtype("complex64")
single, double, csingle, cdouble = (_rlx.dtype(n) for n in ("float32", "float64", "complex64", "complex128"))

from ._ufuncs import (  # noqa: E402, F401
    abs, absolute, acos, acosh, add, allclose, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, around,
    array_equal, array_equiv, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_count, bitwise_invert,
    bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, cbrt, ceil, clip, copysign, cos,
    cosh, deg2rad, degrees, divide, divmod, equal, exp, exp2, expm1, fabs, fix, float_power, floor, floor_divide,
    fmax, fmin, fmod, frexp, gcd, greater, greater_equal, heaviside, hypot, i0, invert, isclose, isfinite, isinf,
    isnan, isneginf, isposinf, lcm, ldexp, left_shift, less, less_equal, log, log10, log1p, log2, logaddexp,
    logaddexp2, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod, modf, multiply, nan_to_num,
    negative, nextafter, not_equal, positive, pow, power, rad2deg, radians, reciprocal, remainder, right_shift, rint,
    round, sign, signbit, sin, sinc, sinh, spacing, sqrt, square, subtract, tan, tanh, true_divide, trunc,
)
from ._complex import (  # noqa: E402, F401
    angle, conj, conjugate, imag, iscomplex, iscomplexobj, isreal, isrealobj, real,
)
from ._creation import (  # noqa: E402, F401
    arange, bartlett, blackman, copy, diag_indices, diag_indices_from, empty, empty_like, eye, fromfunction, full,
    full_like, geomspace, hamming, hanning, identity, index_exp, indices, ix_, kaiser, linspace, logspace,
    mask_indices, mgrid, ogrid, ones, ones_like, s_, tri, tril_indices, tril_indices_from, triu_indices,
    triu_indices_from, vander, zeros, zeros_like,
)
from ._shapes import (  # noqa: E402, F401
    astype, atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes, broadcast_to, diag, diagflat,
    diagonal, expand_dims, fill_diagonal, flip, fliplr, flipud, matrix_transpose, moveaxis, ndim, permute_dims, ravel,
    repeat, reshape, resize, roll, rollaxis, rot90, shape, size, size_of, squeeze, swapaxes, tile, trace, transpose,
    tril, trim_zeros, triu,
)
from ._joining import (  # noqa: E402, F401
    append, array_split, block, column_stack, concat, concatenate, delete, dsplit, dstack, hsplit, hstack, insert,
    meshgrid, pad, split, stack, unstack, vsplit, vstack,
)
from ._reductions import (  # noqa: E402, F401
    all, amax, amin, any, argmax, argmin, count_nonzero, cummax, cummin, cumprod, cumsum, cumulative_prod,
    cumulative_sum, max, mean, min, nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmin, nanprod,
    nanstd, nansum, nanvar, prod, ptp, std, sum, var,
)
from ._search import (  # noqa: E402, F401
    argpartition, argsort, argwhere, choose, compress, digitize, extract, flatnonzero, intersect1d, isin, lexsort,
    nonzero, partition, place, put, put_along_axis, ravel_multi_index, searchsorted, select, setdiff1d, setxor1d,
    sort, sort_complex, take, take_along_axis, union1d, unique, unique_all, unique_counts, unique_inverse,
    unique_values, unravel_index, where,
)
from ._products import (  # noqa: E402, F401
    cross, dot, einsum, einsum_path, inner, kron, matmul, matvec, outer, tensordot, vdot, vecdot, vecmat,
)
from ._statistics import (  # noqa: E402, F401
    average, bincount, corrcoef, cov, histogram, histogram2d, histogram_bin_edges, histogramdd, median, nanmedian,
    nanpercentile, nanquantile, percentile, quantile,
)
from ._calculus import (  # noqa: E402, F401
    convolve, correlate, diff, ediff1d, gradient, interp, trapezoid, unwrap,
)
from ._polynomials import (  # noqa: E402, F401
    poly, polyadd, polyder, polydiv, polyint, polymul, polysub, polyval,
)
from ._functional import (  # noqa: E402, F401
    apply_along_axis, apply_over_axes, frompyfunc, piecewise, vectorize,
)
from ._dtypes import (  # noqa: E402, F401
    array_repr, array_str, can_cast, complexfloating, finfo, floating, generic, get_printoptions, iinfo, inexact,
    integer, isdtype, isscalar, issubdtype, iterable, number, printoptions, promote_types, result_type,
    set_printoptions, signedinteger, unsignedinteger,
)
from ._bits import (  # noqa: E402, F401
    frombuffer, fromfile, fromiter, fromstring, load, packbits, save, savez, unpackbits,
)
from . import linalg  # noqa: E402, F401

ascontiguousarray = asarray
