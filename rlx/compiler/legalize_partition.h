// What is handed to a device that keeps whole values: only what it takes. Internal.
#pragma once

#include <cstdint>

#include "rlx/compiler/legalize.h"
#include "rlx/device/target.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/module.h"

namespace rlx {

/// `g` and its bodies without views that are their operand.
Graph without_views(Graph g);

/// `g`, legal, with weights split off, as a target of whole values is given it: without views that are their operand,
/// for these are nodes like others there and nobody asks a target about them; and with the decomposition in place of
/// what a device refuses in the part that it is given, as `dispatch` allows. Bodies that the host drives likewise, for
/// they are cut up in turn. `report` gets what was written out.
Graph legalize_partition(Graph g, const Target& target, const KernelDispatchConfig& dispatch,
                         KernelDispatchReport& report);

/// Tells `report` the nodes of `g` that `plan` has on the host since their device refuses them in its part.
void report_moved(const Graph& g, const LirBufferPlan& plan, const Target& target, KernelDispatchReport& report,
                  std::uint32_t home = 0);

}  // namespace rlx
