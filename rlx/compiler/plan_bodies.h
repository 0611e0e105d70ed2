// Plans of the bodies of control-flow nodes.
#pragma once

#include "rlx/device/target.h"
#include "rlx/ir/module.h"

namespace rlx {

/// Bodies whose ranges have bytes, but no place yet, and the device that each range belongs to.
struct PlannedBodies {
  LirBodies bodies;
  std::vector<std::uint32_t> devices;
};
/// Plans the bodies of node `id`, which device `home` runs or, when `driven`, the program: as many ranges as the bodies
/// have arenas, which they use in turn. A carry is updated in its own bytes where the body's plan allows it, and has a
/// second buffer else.
PlannedBodies plan_bodies(const Graph& g, NodeId id, const Target& target, bool host_controlled, std::uint32_t home);

/// True when result `r` of a loop may lie over operand `k`: it is that of its carry, and no other operand is the same.
bool carry_in_place(const Graph& g, NodeId id, std::uint32_t k, std::uint32_t r);

/// The operand that result `r` of the op is but for what it changes of it: of an update, of a carry, and, where its
/// bodies are planned, of a branch. None for a result that is made anew.
std::optional<std::uint32_t> updated_operand(const OpBox& op, std::uint32_t r, const LirBodies* bodies);

/// `bodies`, planned for a symbolic graph, at the extents of `g`, the same graph with its symbols bound.
LirBodies resize_bodies(const Graph& g, const LirBodies& bodies);

}  // namespace rlx
