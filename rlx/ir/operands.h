// Records which optional operands a node has.
#pragma once

#include <cstdint>

namespace rlx {

/// An attribute of ops with optional operands. Bit i is set when the optional operand at position i of the record is
/// among the node's inputs, which stay dense. Required operands have no bit. `place_operands` (input_spec.h) sets the
/// mask from operand names.
struct OperandMask {
  std::uint32_t bits = 0;
  constexpr bool has(int place) const { return (bits >> place & 1U) != 0; }
  friend bool operator==(const OperandMask&, const OperandMask&) = default;
};

}  // namespace rlx
