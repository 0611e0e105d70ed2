// Partition legalization for a device that keeps whole values (an opaque device). Internal.
#pragma once

#include <vector>

#include "rlx/compiler/dispatch_record.h"
#include "rlx/device/target.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/module.h"

namespace rlx {

/// `g` and its bodies without identity views.
Graph without_views(Graph g);

/// Legalizes `g`, which is legal and has its weights split off, for an opaque device. Identity views are dropped: such
/// a device would run them as nodes, and no target is asked about them. A node that a device refuses within its
/// partition is decomposed, as `dispatch` allows. Bodies of host-controlled nodes are legalized in the same way,
/// because they are partitioned in turn. The record has the decomposed nodes alone: the partitions of the plan decide
/// about those that are left (`planned_nodes`).
Legalized legalize_partition(Graph g, const Target& target, const KernelDispatchConfig& dispatch);

/// The nodes that run in `lir`, planned for an opaque device, and in its bodies: with those that the plan moved to the
/// host, because their device refuses them within its partition, and those that prepare weights.
std::vector<NodeDispatch> planned_nodes(const LirModule& lir, const Target& target,
                                        const KernelDispatchConfig& dispatch);

}  // namespace rlx
