// Partition legalization for a device that keeps whole values (an opaque device). Internal.
#pragma once

#include <cstdint>

#include "rlx/compiler/legalize.h"
#include "rlx/device/target.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/module.h"

namespace rlx {

/// `g` and its bodies without identity views.
Graph without_views(Graph g);

/// Legalizes `g`, which is legal and has its weights split off, for an opaque device. Identity views are dropped: such
/// a device would run them as nodes, and no target is asked about them. A node that a device refuses within its
/// partition is decomposed, as `dispatch` allows. Bodies of host-controlled nodes are legalized in the same way,
/// because they are partitioned in turn. Decomposed nodes are added to `report`.
Graph legalize_partition(Graph g, const Target& target, const KernelDispatchConfig& dispatch,
                         KernelDispatchReport& report);

/// Adds to `report` the nodes of `g` that `plan` runs on the host because their device refuses them within its
/// partition.
void report_moved(const Graph& g, const LirBufferPlan& plan, const Target& target, KernelDispatchReport& report,
                  std::uint32_t home = 0);

}  // namespace rlx
