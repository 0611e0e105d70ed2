// Op structs of losses.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

namespace ops {

struct SoftmaxCrossEntropy { RLX_OP(SoftmaxCrossEntropy); OperandMask present{}; };
struct CtcLoss { RLX_OP(CtcLoss); std::int64_t blank = 0; };

}  // namespace ops
}  // namespace rlx
// clang-format on
