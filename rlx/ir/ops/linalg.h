// Op structs of matrix products.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

namespace ops {

/// NumPy matmul: [.., M, K] x [.., K, N] -> [.., M, N], leading dims broadcast; both rank >= 2. Composite of
/// DotGeneral.
struct MatMul { RLX_OP(MatMul); };
/// XLA's dot_general: result = batch ++ lhs free ++ rhs free. Floats accumulate in at least F32.
struct DotGeneral {
  RLX_OP(DotGeneral);
  std::vector<std::int64_t> lhs_contract{}, rhs_contract{}, lhs_batch{}, rhs_batch{};
};

}  // namespace ops
}  // namespace rlx
// clang-format on
