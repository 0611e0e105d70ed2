// Linear algebra. The functions are composed of the ops of rlx/ir/ops/linalg.h and named after numpy.linalg and
// jax.scipy.linalg.
//
// Matrices are the last two axes; leading axes are batch axes. Dtypes are F32, F64, C64 and C128. Integers are cast to
// F32; F16 and BF16 give a DTypeMismatch that asks for a cast. Every function has derivatives of any order in both
// modes. Where the derivative of an op is infinite but that of the function is not (the determinant of a singular
// matrix, the pseudo-inverse for equal singular values), the function has its own derivative rule. Singular and
// non-finite matrices give infinities and NaN, as the ops do. Errors are InvalidArgument, ShapeMismatch and
// DTypeMismatch, at the line of the call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/builder.h"
#include "rlx/ir/graph.h"

namespace rlx::linalg {

// -- systems of equations --

/// The solution x of a x = b by LU factorization with partial pivoting. a [.., N, N]; b [N], or [.., N, K] whose
/// leading axes broadcast with those of a. numpy.linalg.solve.
Expr solve(Expr a, Expr b, SourceLoc loc = SourceLoc::current());
/// solve under its documented names: dense_solve takes a [N, N] with b [N] or [N, K], batched_dense_solve a [B, N, N]
/// with b [B, N] or [B, N, K].
Expr dense_solve(Expr a, Expr b, SourceLoc loc = SourceLoc::current());
Expr batched_dense_solve(Expr a, Expr b, SourceLoc loc = SourceLoc::current());
/// The inverse of a [.., N, N]; numpy.linalg.inv.
Expr inv(Expr a, SourceLoc loc = SourceLoc::current());

struct LuFactors {
  Expr lu, permutation;  // see ops::Lu; jax.scipy.linalg.lu_factor gives pivots, not the permutation
};
/// The LU factors of a [.., M, N], for lu_solve.
LuFactors lu_factor(Expr a, SourceLoc loc = SourceLoc::current());
/// Whether lu_solve and solve_triangular use a, its transpose, or its conjugate transpose.
enum class Transposed : std::uint8_t { No, Yes, Conjugated };
/// The solution x of a x = b, a^T x = b or a^H x = b from the LU factors of a. b [.., N, K] has the leading axes of a.
Expr lu_solve(const LuFactors& factors, Expr b, Transposed transposed = Transposed::No,
              SourceLoc loc = SourceLoc::current());
/// The solution x of a x = b from the Cholesky factor `l` of a: a = l l^H, or a = l^H l with lower = false. b is [N] or
/// [.., N, K].
Expr cholesky_solve(Expr l, Expr b, bool lower = true, SourceLoc loc = SourceLoc::current());
/// ops::TriangularSolve with `left`. b may be [N], and leading axes broadcast.
Expr solve_triangular(Expr a, Expr b, bool lower = false, Transposed transposed = Transposed::No,
                      bool unit_diagonal = false, SourceLoc loc = SourceLoc::current());

/// Results of lstsq.
struct LstsqResult {
  Expr x, residuals, rank, singular_values;
};
/// The least-squares solution x that minimizes |a x - b|, of least norm; jax.numpy.linalg.lstsq. a [M, N], b [M] or [M,
/// K]. residuals [K] ([] for b [M]) are the squared norms of a x - b. rank is I32. Singular values up to rcond times
/// the largest are taken as 0; rcond defaults to eps max(M, N).
LstsqResult lstsq(Expr a, Expr b, std::optional<double> rcond = std::nullopt, SourceLoc loc = SourceLoc::current());
/// The pseudo-inverse [.., N, M] of a [.., M, N]; numpy.linalg.pinv. Singular values up to rcond times the largest are
/// taken as 0; rcond defaults to 10 eps max(M, N), as in JAX. The derivative is that at constant rank (Golub and
/// Pereyra 1973).
Expr pinv(Expr a, std::optional<double> rcond = std::nullopt, SourceLoc loc = SourceLoc::current());

// -- determinants, spectra, norms --

/// The determinant [..] of a [.., N, N]; 1 for a 0x0 matrix. The derivative at a singular matrix is its cofactors.
Expr det(Expr a, SourceLoc loc = SourceLoc::current());
/// Results of slogdet.
struct Slogdet {
  Expr sign, logabsdet;
};
/// The determinant as sign * exp(logabsdet); numpy.linalg.slogdet. sign has the dtype of a. A singular matrix gives
/// sign 0 and logabsdet -inf.
Slogdet slogdet(Expr a, SourceLoc loc = SourceLoc::current());
/// log |det a| [..] of a [.., N, N].
Expr logdet(Expr a, SourceLoc loc = SourceLoc::current());
/// eigvalsh: the eigenvalues, ascending, of a Hermitian matrix, whose lower triangle is read. svdvals: the singular
/// values, descending.
Expr eigvalsh(Expr a, SourceLoc loc = SourceLoc::current());
Expr svdvals(Expr a, SourceLoc loc = SourceLoc::current());
/// The number of singular values above rtol times the largest, I64 or I32; rtol defaults to eps max(M, N).
/// numpy.linalg.matrix_rank.
Expr matrix_rank(Expr a, std::optional<double> rtol = std::nullopt, SourceLoc loc = SourceLoc::current());

/// The norm of a matrix. Frobenius: sqrt(sum |a|^2). Nuclear: the sum of singular values. Two, MinusTwo: the largest,
/// smallest singular value. One, MinusOne: the largest, smallest column sum of |a|. Infinity, MinusInfinity: the
/// largest, smallest row sum of |a|.
enum class MatrixNorm : std::uint8_t { Frobenius, Nuclear, One, MinusOne, Two, MinusTwo, Infinity, MinusInfinity };
/// The norm [..] of matrices a [.., M, N].
Expr matrix_norm(Expr a, MatrixNorm ord = MatrixNorm::Frobenius, SourceLoc loc = SourceLoc::current());
/// (sum |x|^ord)^(1 / ord) over `axes`, all axes by default. ord infinity and -infinity give the largest and smallest
/// |x|, ord 0 the number of nonzero elements. numpy.linalg.vector_norm.
Expr vector_norm(Expr x, double ord = 2, std::vector<std::int64_t> axes = {}, bool keep_dims = false,
                 SourceLoc loc = SourceLoc::current());
/// The condition number norm(a) norm(a^-1) in the norm `ord`. For Two and MinusTwo it comes from singular values, and
/// is infinity for a singular matrix. numpy.linalg.cond.
Expr cond(Expr a, MatrixNorm ord = MatrixNorm::Two, SourceLoc loc = SourceLoc::current());

// -- matmuls and matrix functions --

/// a to the power n by repeated matmul; a negative n uses the inverse.
Expr matrix_power(Expr a, std::int64_t n, SourceLoc loc = SourceLoc::current());
/// The matmul of several matrices in the cheapest order; numpy.linalg.multi_dot. The first and the last may be vectors.
Expr multi_dot(const std::vector<Expr>& matrices, SourceLoc loc = SourceLoc::current());
/// The matrix exponential of a [.., N, N] by scaling and squaring with Pade approximants (Higham 2005). NaN if more
/// than `max_squarings` squarings are needed, as in JAX.
Expr expm(Expr a, std::int64_t max_squarings = 16, SourceLoc loc = SourceLoc::current());
/// The first N columns of the product of the reflections 1 - tau v v^H. The vectors v are the columns of a [.., M, N]
/// below its diagonal, with an implied 1 on it; taus is [.., K], K <= N <= M. LAPACK orgqr,
/// jax.lax.linalg.householder_product.
Expr householder_product(Expr a, Expr taus, SourceLoc loc = SourceLoc::current());

}  // namespace rlx::linalg
