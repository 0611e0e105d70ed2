// Statistics and array functions. They follow NumPy's and jax.nn's functions of the same names. Axes may be negative,
// and an empty list of axes means all axes. The first operand is a value of a graph. Errors are InvalidArgument,
// ShapeMismatch, DTypeMismatch, and Unsupported where a symbolic extent must be known.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::stats {

/// The variance over `axes`: the sum of squared distances from the mean, divided by the number of elements minus
/// `ddof`.
Expr var(Operand x, std::vector<std::int64_t> axes = {}, double ddof = 0, bool keep_dims = false);
/// The standard deviation, the square root of var.
Expr std(Operand x, std::vector<std::int64_t> axes = {}, double ddof = 0, bool keep_dims = false);
/// The quantile q in [0, 1] along `axis`, with linear interpolation between two elements. A NaN in x gives NaN. The
/// extent must be static and not 0.
Expr quantile(Operand x, double q, std::int64_t axis = -1, bool keep_dims = false);
/// The median, quantile(x, 0.5).
Expr median(Operand x, std::int64_t axis = -1, bool keep_dims = false);
/// The covariance matrix [N, N] of the rows of x [N, M], which are M samples each, divided by M - ddof.
Expr cov(Operand x, double ddof = 1);
/// The correlation matrix [N, N] of the rows of x [N, M], clamped to [-1, 1].
Expr corrcoef(Operand x);
/// The number of elements of x in each of `bins` equal intervals of [low, high], I32 [bins]. Intervals are half-open
/// except the last, which includes `high`.
Expr histogram(Operand x, std::int64_t bins, double low, double high);
/// The number of times each of 0 .. length - 1 occurs in integers x, I32 [length]. Other values are ignored.
Expr bincount(Operand x, std::int64_t length);
/// The I32 index at which each element of v is inserted into the sorted vector a: before equal elements, or after them
/// with `right`. NaN is above all numbers. The extent of a must be static.
Expr searchsorted(Operand a, Operand v, bool right = false);
/// One-hot encoding of integers x along a new axis of extent `classes`. An integer outside [0, classes) gives zeros.
Expr one_hot(Operand x, std::int64_t classes, std::int64_t axis = -1, DType dtype = DType::F32);
/// log(sum(exp(x))) over `axes` without overflow; -infinity if all elements are.
Expr logsumexp(Operand x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// The running logsumexp along `axis`, from the end with `reverse`. The extent must be static.
Expr cumulative_logsumexp(Operand x, std::int64_t axis, bool reverse = false);
/// (x - mean) / sqrt(var + eps) with the mean and variance over `axes`.
Expr standardize(Operand x, std::vector<std::int64_t> axes = {-1}, double eps = 1e-5);

/// Coordinate grids of vectors, as numpy.meshgrid with indexing "ij": value i has the elements of vector i along axis i
/// and is repeated along the others.
ExprList meshgrid(const ExprList& vectors, SourceLoc loc = SourceLoc::current());
/// A vector x as diagonal k of a square matrix of zeros, or diagonal k of a matrix x as a vector; numpy.diag. Extents
/// must be static.
Expr diag(Operand x, std::int64_t k = 0);
/// The outer product a_i b_j of the flattened operands: [A, B].
Expr outer(Operand a, Operand b);
/// The Kronecker product of two values of the same rank. ShapeMismatch for different ranks.
Expr kron(Operand a, Operand b);

}  // namespace rlx::stats
