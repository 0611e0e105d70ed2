// Which of its optional operands a node has.
#pragma once

#include <cstdint>

namespace rlx {

/// An attribute of ops with optional operands: bit i is set when the optional operand at place i of the record is among
/// the node's inputs, which stay dense. Required operands have no bit. `place_operands` (op_def.h) sets it from names.
struct OperandMask {
  std::uint32_t bits = 0;
  constexpr bool has(int place) const { return (bits >> place & 1U) != 0; }
  friend bool operator==(const OperandMask&, const OperandMask&) = default;
};

}  // namespace rlx
