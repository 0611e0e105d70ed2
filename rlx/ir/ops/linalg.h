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

/// The lower Cholesky factor of Hermitian a [.., N, N], whose lower triangle alone is read.
struct Cholesky { RLX_OP(Cholesky); };
/// x of a x = b (or x a = b) with a triangular [.., N, N]. Inputs: a, b.
struct TriangularSolve { RLX_OP(TriangularSolve); bool left = true, lower = true, transpose = false, conjugate = false, unit_diagonal = false; };
/// Partial pivoting of a [.., M, N]. Results: lu, pivots I32 [.., min(M, N)], permutation I32 [.., M].
struct Lu { RLX_OP(Lu); };
/// a = q r of a [.., M, N]. Results: q, r.
struct Qr { RLX_OP(Qr); bool full = false; };
/// Eigenvalues, ascending, and vectors of Hermitian a [.., N, N]. Results: w, v.
struct Eigh { RLX_OP(Eigh); };
/// a = u diag(s) vh. Results: u, s (descending), vh.
struct Svd { RLX_OP(Svd); bool full = false; };

}  // namespace ops
}  // namespace rlx
// clang-format on
