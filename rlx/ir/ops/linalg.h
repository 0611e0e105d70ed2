// Op structs of matrix products.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dtype.h"

// clang-format off
namespace rlx {

namespace ops {

/// NumPy matmul: [.., M, K] x [.., K, N] -> [.., M, N], leading dims broadcast; both rank >= 2. Composite of
/// DotGeneral.
struct MatMul { RLX_OP(MatMul); };
/// XLA's dot_general: result = batch ++ lhs free ++ rhs free. Floats accumulate in at least F32. The result has the
/// dtype of the operands, or `out`: I32 of I8 and U8 (which may be mixed), F32 (or F64) of BF16, F16 and the F8 dtypes.
struct DotGeneral {
  RLX_OP(DotGeneral);
  std::vector<std::int64_t> lhs_contract{}, rhs_contract{}, lhs_batch{}, rhs_batch{};
  std::optional<DType> out{};
};
/// Products of rows with the matrix of their group; ids outside [0, E) belong to none. Rows: x [M, K], w [E, K, N], ids
/// [M] -> [M, N], row i is x[i] w[ids[i]], zeros without a group; `groups` is 0. Contract: x [M, K], y [M, N], ids [M]
/// -> [E, K, N] with E = `groups`, group e is the sum of the outer products of its own rows. ids I32 or I64, in any
/// order. Composite.
struct GroupedDot {
  RLX_OP(GroupedDot);
  GroupedKind fn = GroupedKind::Rows;
  std::int64_t groups = 0;
};

// Factors of matrices, which are the last two axes of [.., M, N]; leading axes hold more of them. F32, F64, C64, C128.
// H is the conjugate transpose. What holds a NaN or an infinity has NaN factors, alone among the matrices beside it.

/// The lower factor l of Hermitian a [.., N, N] = l l^H, zeros above the diagonal, which is real and positive. Of a the
/// lower triangle alone is read (and the real part of the diagonal), and its derivative is that of this function. NaN
/// in the lower triangle of l where a is not positive definite. numpy.linalg.cholesky, jax.lax.linalg.cholesky with
/// symmetrize_input = false, LAPACK potrf.
struct Cholesky { RLX_OP(Cholesky); };
/// x of op(a) x = b, with left = false of x op(a) = b. a [.., N, N]: its lower or upper triangle alone is read, and
/// with unit_diagonal its diagonal is 1 and not read. op transposes, conjugates, or both. b [.., N, K] or [.., K, N]
/// with the leading axes of a. Inputs: a, b. A zero on the diagonal gives infinities and NaN.
/// jax.lax.linalg.triangular_solve, LAPACK trsm.
struct TriangularSolve {
  RLX_OP(TriangularSolve);
  bool left = true, lower = true, transpose = false, conjugate = false, unit_diagonal = false;
};
/// Rows of a [.., M, N] in the order `permutation` are l u: a[permutation] = l u, with the larger |re| + |im| as pivot,
/// the first of equals. Results: lu, the unit lower l below the diagonal and u in one; pivots I32 [.., min(M, N)], row
/// i was exchanged with row pivots[i]; permutation I32 [.., M]. A singular matrix has zeros on the diagonal of u.
/// jax.lax.linalg.lu, LAPACK getrf, whose pivots count from 1.
struct Lu { RLX_OP(Lu); };
/// a [.., M, N] = q r by Householder reflections. Results with K = min(M, N), or full K = M: q [.., M, K] with
/// orthonormal columns, r [.., K, N] upper; its diagonal is real and of any sign, as LAPACK geqrf leaves it.
/// numpy.linalg.qr modes "reduced" and "complete". Derivatives need the first min(M, N) columns of a to be independent,
/// and full M <= N.
struct Qr { RLX_OP(Qr); bool full = false; };
/// Hermitian a [.., N, N] = v diag(w) v^H, of which the lower triangle alone is read. Results: w [.., N] ascending, in
/// the real dtype; v [.., N, N] with orthonormal columns. Of each column the first element that is at least 0.3 of the
/// largest is real and positive, so that vectors of simple eigenvalues are the same everywhere. Derivatives of v are
/// infinite or NaN where eigenvalues are equal, as in JAX. numpy.linalg.eigh, LAPACK heevd.
struct Eigh {
  RLX_OP(Eigh);
  static constexpr double kAnchor = 0.09;  // the square of 0.3
};
/// a [.., M, N] = u diag(s) vh. Results with K = min(M, N): u [.., M, K], s [.., K] descending, not negative, in the
/// real dtype, vh [.., K, N]; full: u [.., M, M] and vh [.., N, N], whose further columns and rows complete a basis. Of
/// each of the first K columns of u the first element that is at least 0.3 of the largest is real and positive.
/// Derivatives of u and vh are infinite or NaN where singular values are equal or zero, as in JAX; full and M != N that
/// of s alone. numpy.linalg.svd, LAPACK gesdd.
struct Svd { RLX_OP(Svd); bool full = false; };

}  // namespace ops
}  // namespace rlx
// clang-format on
