// Statistics and small functions of arrays, with the meaning of NumPy's and of jax.nn's of the same names. Axes may be
// negative; empty lists of axes mean all of them. The first operand is a value of a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::stats {

/// The mean of squared distances from the mean, over the number of elements less `ddof`.
Expr var(Operand x, std::vector<std::int64_t> axes = {}, double ddof = 0, bool keep_dims = false);
/// Its square root.
Expr std(Operand x, std::vector<std::int64_t> axes = {}, double ddof = 0, bool keep_dims = false);
/// The quantile q in [0, 1] along an axis, between two elements by linear interpolation; a NaN gives NaN.
Expr quantile(Operand x, double q, std::int64_t axis = -1, bool keep_dims = false);
/// quantile(x, 1/2).
Expr median(Operand x, std::int64_t axis = -1, bool keep_dims = false);
/// The covariances of the rows of x [N, M], each of M samples, over M - ddof: [N, N].
Expr cov(Operand x, double ddof = 1);
/// The same over the deviations: 1 on the diagonal.
Expr corrcoef(Operand x);
/// How many elements of x lie in each of `bins` parts of [low, high), the last with its end: I32 [bins].
Expr histogram(Operand x, std::int64_t bins, double low, double high);
/// How often 0 .. length - 1 are in x, integers; others are not counted: I32 [length].
Expr bincount(Operand x, std::int64_t length);
/// Where each of v goes into the sorted vector a, I32: before equal elements, or with `right` behind them.
Expr searchsorted(Operand a, Operand v, bool right = false);
/// Zeros with a one at x along a new axis of `classes`; outside of the classes there is no one.
Expr one_hot(Operand x, std::int64_t classes, std::int64_t axis = -1, DType dtype = DType::F32);
/// log of the sum of exponentials, -infinity where all are, and no overflow.
Expr logsumexp(Operand x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// Its running value along an axis.
Expr cumulative_logsumexp(Operand x, std::int64_t axis, bool reverse = false);
/// (x - mean) / sqrt(var + eps) over axes.
Expr standardize(Operand x, std::vector<std::int64_t> axes = {-1}, double eps = 1e-5);

/// x[i] along the axis i of the result, for vectors: each over the grid of all of them, row-major ("ij").
ExprList meshgrid(const ExprList& vectors, SourceLoc loc = SourceLoc::current());
/// A vector on diagonal k of a square matrix of zeros; or diagonal k of the matrix x, as a vector.
Expr diag(Operand x, std::int64_t k = 0);
/// a_i b_j of all elements of both: [A, B].
Expr outer(Operand a, Operand b);
/// The Kronecker product of two values of one rank.
Expr kron(Operand a, Operand b);

}  // namespace rlx::stats
