// Programs whose first device keeps whole values: what each device runs, cut out as a graph of its own. Internal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rlx/device/target.h"
#include "rlx/ir/module.h"

namespace rlx {

/// Gives `plan` the parts of `g`, whose inputs are on device `home`, and the devices of its nodes, where the home
/// device does not run the whole of it; `plan.aliases` are there. Parts are as few as the order of the devices allows.
/// Who runs a node is settled on the graph that is handed over: what a device refuses once it is cut off from what is
/// around it goes to the host. Unsupported names what may not.
void partition_parts(const Graph& g, const Target& target, std::uint32_t home, LirBufferPlan& plan);

/// A node that its device refuses in the graph that it is given, whatever it said of the whole.
struct Refused {
  NodeId node;
  std::uint32_t device = 0;
  const char* why = nullptr;
};
/// Nodes of `g` that are refused in their parts, and which can be written out of simpler ones. Not those in bodies.
std::vector<Refused> refused_in_parts(const Graph& g, const Target& target, std::uint32_t home);

/// `part`, cut from a symbolic graph, at the extents of `g`, the same graph with its symbols bound.
LirPart resize_part(const Graph& g, const LirPart& part);

/// Every way in which the parts of a plan do not make up `g`; empty when they do.
std::vector<std::string> check_parts(const Graph& g, const LirBufferPlan& plan);

}  // namespace rlx
