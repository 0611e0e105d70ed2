// Op structs of matmul and matrix factorization.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dtype.h"

// clang-format off
namespace rlx {

namespace ops {

/// NumPy matmul: [.., M, K] x [.., K, N] -> [.., M, N]. Leading axes broadcast, and both ranks are at least 2.
/// Composite of DotGeneral.
struct MatMul { RLX_OP(MatMul); };
/// A matmul over any batch and contracted axes: XLA's dot_general. The result has the batch axes, then the free axes of
/// lhs, then the free axes of rhs. Floats accumulate in at least F32. The result has the dtype of the operands, or
/// `out`: I32 for I8 and U8 operands (which may be mixed), F32 or F64 for BF16, F16 and F8 operands.
struct DotGeneral {
  RLX_OP(DotGeneral);
  std::vector<std::int64_t> lhs_contract{}, rhs_contract{}, lhs_batch{}, rhs_batch{};
  std::optional<DType> out{};
};
/// A grouped matmul, as in mixture-of-experts layers: row i of x belongs to group ids[i], and ids outside [0, E) to no
/// group. Rows: x [M, K], w [E, K, N], ids [M] -> [M, N]; row i is x[i] w[ids[i]], or zeros without a group; `groups`
/// is 0. Contract: x [M, K], y [M, N], ids [M] -> [E, K, N] with E = `groups`; matrix e is the sum of the outer
/// products of its rows of x and y. ids are I32 or I64, in any order. Composite.
struct GroupedDot {
  RLX_OP(GroupedDot);
  GroupedKind fn = GroupedKind::Rows;
  std::int64_t groups = 0;
};

// Matrix factorizations. Matrices are the last two axes of [.., M, N]; leading axes are batch axes. Dtypes are F32,
// F64, C64 and C128. a^H is the conjugate transpose. A matrix that holds a NaN or an infinity has NaN factors; the
// other matrices of the batch are not affected.

/// The lower triangular factor l of a Hermitian positive definite a [.., N, N]: a = l l^H, zeros above the diagonal, a
/// real positive diagonal. Only the lower triangle of a is read, without the imaginary part of the diagonal, and the
/// derivative is that of this function. If a is not positive definite, the lower triangle of l is NaN. Like
/// numpy.linalg.cholesky, jax.lax.linalg.cholesky with symmetrize_input = false, LAPACK potrf.
struct Cholesky { RLX_OP(Cholesky); };
/// The solution x of op(a) x = b, or of x op(a) = b with left = false, for a triangular a [.., N, N]. op transposes,
/// conjugates, or both. Only the lower or upper triangle of a is read; with unit_diagonal its diagonal is taken as 1
/// and not read. b is [.., N, K], or [.., K, N] with left = false, with the leading axes of a. Inputs: a, b. A zero on
/// the diagonal gives infinities and NaN. Like jax.lax.linalg.triangular_solve, LAPACK trsm.
struct TriangularSolve {
  RLX_OP(TriangularSolve);
  bool left = true, lower = true, transpose = false, conjugate = false, unit_diagonal = false;
};
/// The LU factorization of a [.., M, N] with partial pivoting: a[permutation] = l u. The pivot has the largest |re| +
/// |im|, the first of equals. Results: lu, with u in the upper triangle and the unit lower l below the diagonal; pivots
/// I32 [.., min(M, N)], where row i was exchanged with row pivots[i]; permutation I32 [.., M]. A singular matrix has a
/// zero on the diagonal of u. Like jax.lax.linalg.lu, and LAPACK getrf, whose pivots count from 1.
struct Lu { RLX_OP(Lu); };
/// The QR factorization a [.., M, N] = q r by Householder reflections. Results with K = min(M, N), or K = M with
/// `full`: q [.., M, K] with orthonormal columns, r [.., K, N] upper triangular. The diagonal of r is real and of
/// either sign, as LAPACK geqrf leaves it. Like numpy.linalg.qr with modes "reduced" and "complete". Derivatives need
/// the first min(M, N) columns of a to be linearly independent, and with `full` also M <= N.
struct Qr { RLX_OP(Qr); bool full = false; };
/// The eigendecomposition of a Hermitian a [.., N, N]: a = v diag(w) v^H. Only the lower triangle of a is read.
/// Results: w [.., N], ascending, in the real dtype; v [.., N, N] with orthonormal columns. The phase of a column is
/// fixed: its first element of at least 0.3 times the largest magnitude is real and positive. So eigenvectors of simple
/// eigenvalues agree across devices. Derivatives of v are infinite or NaN for equal eigenvalues, as in JAX. Like
/// numpy.linalg.eigh, LAPACK heevd.
struct Eigh {
  RLX_OP(Eigh);
  static constexpr double kAnchor = 0.09;  // the square of 0.3
};
/// The singular value decomposition a [.., M, N] = u diag(s) vh. Results with K = min(M, N): u [.., M, K]; s [.., K],
/// descending, not negative, in the real dtype; vh [.., K, N]. With `full`: u [.., M, M] and vh [.., N, N], whose
/// further columns and rows complete an orthonormal basis. In each of the first K columns of u, the first element of at
/// least 0.3 times the largest magnitude is real and positive. Derivatives of u and vh are infinite or NaN for equal or
/// zero singular values, as in JAX; with `full` and M != N only s has derivatives. Like numpy.linalg.svd, LAPACK gesdd.
struct Svd { RLX_OP(Svd); bool full = false; };

}  // namespace ops
}  // namespace rlx
// clang-format on
