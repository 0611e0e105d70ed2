// Partitions of a program whose first device keeps whole values: each is a graph that one device runs. Internal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rlx/device/target.h"
#include "rlx/ir/module.h"

namespace rlx {

/// Partitions `g`, whose inputs are on device `home`, when the home device does not run all of it. Sets the partitions
/// and the node devices in `plan`; `plan.aliases` must be set before. The number of partitions is as small as the order
/// of the devices allows. The device of a node is decided on its partition's graph: a node that its device refuses
/// there goes to the host. Throws an Unsupported error that names the nodes that may not run on the host.
void partition_parts(const Graph& g, const Target& target, std::uint32_t home, LirBufferPlan& plan);

/// A node that its device refuses within its partition, whatever it claimed on the whole graph.
struct Refused {
  NodeId node;
  std::uint32_t device = 0;
  const char* why = nullptr;
};
/// The nodes of `g` that are refused within their partitions and have a decomposition. Nodes in bodies are not
/// included.
std::vector<Refused> refused_in_parts(const Graph& g, const Target& target, std::uint32_t home);

/// Resizes `part`, made for a symbolic graph, to the extents of `g`, the same graph with its symbols bound.
LirPart resize_part(const Graph& g, const LirPart& part);

/// Returns every way in which the partitions of a plan do not make up `g`. Empty when they do.
std::vector<std::string> check_parts(const Graph& g, const LirBufferPlan& plan);

}  // namespace rlx
