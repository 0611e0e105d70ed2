// Op structs of LIR: what the planner makes.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

namespace ops {

/// A weight packed for a kernel; the sources are joined along N in order. Inputs: weights [K, N_i] (or [N_i, K] when
/// transposed[i] != 0). Result: opaque bytes, U8 [size].
struct Relayout {
  RLX_OP(Relayout);
  std::int64_t panel_width = 0;
  std::vector<std::int64_t> transposed{};
  std::int64_t k = 0, n = 0, packed_bytes = 0;
};
/// epilogue(x w, operands...) with w in the form Relayout packed. Inputs: x [.., K], packed U8 [bytes], operands...;
/// the epilogue's inputs are the accumulator [.., N], then the operands; its one output is the result.
struct PackedDot { RLX_OP(PackedDot); std::int64_t k = 0, n = 0, panel_width = 0; Subgraph epilogue{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
