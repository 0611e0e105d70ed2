// Linear algebra of values: systems of equations, determinants, norms and functions of matrices, composed of the ops of
// rlx/ir/ops/linalg.h and named after numpy.linalg and jax.scipy.linalg.
//
// Matrices are the last two axes, leading axes hold more of them. Operands are F32, F64, C64 or C128; integers become
// F32, F16 and BF16 are a DTypeMismatch that says to cast them. Every function has derivatives of any order in both
// modes; where an op's derivative would be infinite though the function's is not (the determinant of a singular matrix,
// the pseudo-inverse beside equal singular values), it has a rule of its own. Singular and non-finite matrices give
// infinities and NaN, as the ops do. All throw InvalidArgument, ShapeMismatch or DTypeMismatch at the line of the call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/builder.h"
#include "rlx/ir/graph.h"

namespace rlx::linalg {

// -- systems of equations --

/// x of a x = b by LU factors with partial pivoting. a [.., N, N]; b [N], or [.., N, K] with leading axes that
/// broadcast with those of a. numpy.linalg.solve.
Expr solve(Expr a, Expr b, SourceLoc loc = SourceLoc::current());
/// The documented names: a [N, N] with b [N] or [N, K]; and a [B, N, N] with b [B, N] or [B, N, K].
Expr dense_solve(Expr a, Expr b, SourceLoc loc = SourceLoc::current());
Expr batched_dense_solve(Expr a, Expr b, SourceLoc loc = SourceLoc::current());
/// The inverse of a [.., N, N].
Expr inv(Expr a, SourceLoc loc = SourceLoc::current());

struct LuFactors {
  Expr lu, permutation;  // as of ops::Lu; jax.scipy.linalg.lu_factor gives the pivots instead
};
LuFactors lu_factor(Expr a, SourceLoc loc = SourceLoc::current());
enum class Transposed : std::uint8_t { No, Yes, Conjugated };
/// x of a x = b, a^T x = b or a^H x = b with the factors of a; b [.., N, K] with the leading axes of a.
Expr lu_solve(const LuFactors& factors, Expr b, Transposed transposed = Transposed::No,
              SourceLoc loc = SourceLoc::current());
/// x of a x = b with the factor `l` of a = l l^H, or with lower = false the factor of a = l^H l; b [N] or [.., N, K].
Expr cholesky_solve(Expr l, Expr b, bool lower = true, SourceLoc loc = SourceLoc::current());
/// ops::TriangularSolve from the left, with b [N] too and leading axes that broadcast.
Expr solve_triangular(Expr a, Expr b, bool lower = false, Transposed transposed = Transposed::No,
                      bool unit_diagonal = false, SourceLoc loc = SourceLoc::current());

struct LstsqResult {
  Expr x, residuals, rank, singular_values;
};
/// x with the least |a x - b|, of those the shortest: a [M, N], b [M] or [M, K]. residuals [K] are the squares of what
/// is left, [] for b [M]; rank is I32. Singular values up to rcond times the largest count as 0, by default eps max(M,
/// N). jax.numpy.linalg.lstsq.
LstsqResult lstsq(Expr a, Expr b, std::optional<double> rcond = std::nullopt, SourceLoc loc = SourceLoc::current());
/// The pseudo-inverse [.., N, M] of a [.., M, N]; singular values up to rcond times the largest count as 0, by default
/// 10 eps max(M, N), as in JAX. Its derivative (Golub and Pereyra 1973) is that at constant rank.
Expr pinv(Expr a, std::optional<double> rcond = std::nullopt, SourceLoc loc = SourceLoc::current());

// -- determinants, spectra, norms --

/// [..] of a [.., N, N]; 1 of 0x0. The derivative of a singular matrix's is that of its cofactors.
Expr det(Expr a, SourceLoc loc = SourceLoc::current());
struct Slogdet {
  Expr sign, logabsdet;
};
/// det = sign exp(logabsdet): the sign in the dtype of a, 0 with -inf of a singular matrix.
Slogdet slogdet(Expr a, SourceLoc loc = SourceLoc::current());
/// log |det a|.
Expr logdet(Expr a, SourceLoc loc = SourceLoc::current());
/// Eigenvalues, ascending, of the Hermitian matrix in the lower triangle; singular values, descending.
Expr eigvalsh(Expr a, SourceLoc loc = SourceLoc::current());
Expr svdvals(Expr a, SourceLoc loc = SourceLoc::current());
/// How many singular values are above rtol times the largest, I64 or I32; by default eps max(M, N).
Expr matrix_rank(Expr a, std::optional<double> rtol = std::nullopt, SourceLoc loc = SourceLoc::current());

enum class MatrixNorm : std::uint8_t { Frobenius, Nuclear, One, MinusOne, Two, MinusTwo, Infinity, MinusInfinity };
/// Of the last two axes: singular values (Frobenius, Nuclear, Two, MinusTwo), or the largest (smallest) sum of a column
/// (One, MinusOne) or row (Infinity, MinusInfinity).
Expr matrix_norm(Expr a, MatrixNorm ord = MatrixNorm::Frobenius, SourceLoc loc = SourceLoc::current());
/// (sum |x|^ord)^(1 / ord) over `axes`, all when empty; infinity and -infinity are the largest and smallest |x|, 0
/// counts.
Expr vector_norm(Expr x, double ord = 2, std::vector<std::int64_t> axes = {}, bool keep_dims = false,
                 SourceLoc loc = SourceLoc::current());
/// norm(a) norm(a^-1); by singular values for Two and MinusTwo, infinity of a singular matrix there.
Expr cond(Expr a, MatrixNorm ord = MatrixNorm::Two, SourceLoc loc = SourceLoc::current());

// -- products and functions --

/// a multiplied n times; of negative n the inverse.
Expr matrix_power(Expr a, std::int64_t n, SourceLoc loc = SourceLoc::current());
/// The product of matrices in the cheapest order; the first and the last may be vectors.
Expr multi_dot(const std::vector<Expr>& matrices, SourceLoc loc = SourceLoc::current());
/// The exponential of a [.., N, N] by scaling, Pade's approximation and squaring (Higham 2005); NaN where more than
/// `max_squarings` would be needed, as in JAX.
Expr expm(Expr a, std::int64_t max_squarings = 16, SourceLoc loc = SourceLoc::current());
/// The first columns of the product of reflections 1 - tau v v^H, with v below the unit diagonal of a [.., M, N]; taus
/// [.., K], K <= N <= M. LAPACK orgqr, jax.lax.linalg.householder_product.
Expr householder_product(Expr a, Expr taus, SourceLoc loc = SourceLoc::current());

}  // namespace rlx::linalg
