// Chain: a read-only view of the body of an elementwise region or of a dot's epilogue as a list of steps.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// An operand of a step: an operand of the region, an earlier step, or a constant of the body.
struct ChainOperand {
  enum class From : std::uint8_t { Input, Step, Constant };
  From from = From::Input;
  std::uint32_t index = 0;  // operand or step number; for a constant, its node in the body
  friend bool operator==(const ChainOperand&, const ChainOperand&) = default;
};

/// One op of the chain.
struct ChainStep {
  NodeId node;  // in the body: op, dtype and shape
  std::vector<ChainOperand> operands;
};

/// A body in the order of its ops.
struct Chain {
  std::vector<ChainStep> steps;
  std::vector<ChainOperand> results;  // one per output of the body
};

/// The chain of a body of one-result ops. Throws InvalidArgument naming a leaf or op that a body cannot hold.
Chain chain_of(const Graph& body);

}  // namespace rlx
