// Plans of the bodies of control-flow nodes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/device/target.h"
#include "rlx/ir/module.h"

namespace rlx {

/// Planned bodies: ranges with their sizes and devices, but without a place yet.
struct PlannedBodies {
  LirBodies bodies;
  std::vector<std::uint32_t> devices;
};
/// Plans the bodies of node `id`. Device `home` runs them, or, when `host_controlled`, the program does. The bodies use
/// the ranges in turn, one range per arena. A carry is updated in its own bytes if the body's plan allows it. Otherwise
/// it has a second buffer.
PlannedBodies plan_bodies(const Graph& g, NodeId id, const Target& target, bool host_controlled, std::uint32_t home);

/// The operand that result `r` of the op updates in place: of an update op, of a loop (a carry), or of a branch whose
/// bodies are planned. None when the result needs memory of its own.
std::optional<std::uint32_t> updated_operand(const OpBox& op, std::uint32_t r, const LirBodies* bodies);

/// By result of a node with planned bodies: the operand whose bytes the bodies allow it to take. A carry must also be
/// the only operand of its value, since the first iteration overwrites it.
std::vector<std::optional<std::uint32_t>> body_updates(const Node& n, const LirBodies& bodies);

/// The symbols of a body as its program declares them, without those that the body does not read.
std::map<std::string, SymbolInfo> symbols_in(const Graph& g, const Graph& body);

/// Resizes `bodies`, planned for a symbolic graph, to the extents of `g`, the same graph with its symbols bound.
LirBodies resize_bodies(const Graph& g, const LirBodies& bodies);

}  // namespace rlx
