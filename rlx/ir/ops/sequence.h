// Op structs of recurrences.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

namespace ops {

/// h' = f(x w + h r + b).
struct Rnn { RLX_OP(Rnn); OperandMask present{}; };
struct Gru { RLX_OP(Gru); OperandMask present{}; };
struct Lstm { RLX_OP(Lstm); OperandMask present{}; };
struct SelectiveScan { RLX_OP(SelectiveScan); OperandMask present{}; };
struct Mamba2 { RLX_OP(Mamba2); OperandMask present{}; };
struct GatedDeltaNet { RLX_OP(GatedDeltaNet); OperandMask present{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
