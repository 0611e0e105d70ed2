// Instructions of the elementwise tape on few elements, for loops of small steps.
#pragma once

#include <optional>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/graph.h"

namespace rlx::cpu {

inline constexpr int kMostFew = 64;

/// Operands of one instruction on `n` elements of F32 or I32, at most kMostFew. Those that the op does not read may be
/// null. Bit i of `once`: operand i is one element for all.
struct FewOperands {
  const void* at[3] = {};
  unsigned once = 0;
  int n = 1;
};
/// d = t.op(operands), with the bits that the tape gives the elements. d may be an operand.
using TapeFew = void (*)(const TapeInstr& t, const FewOperands& in, void* d);
TapeFew tape_few(Isa isa);

/// The tape instruction of an Activation or Binary whose operands have dtype `t`, F32 or I32.
std::optional<TapeOp> tape_op_of(const Node& n, DType t);

}  // namespace rlx::cpu
