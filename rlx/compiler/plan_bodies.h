// Plans of the bodies of control-flow nodes.
#pragma once

#include "rlx/driver/target.h"
#include "rlx/ir/module.h"

namespace rlx {

/// Plans the bodies of node `id`, each from the start of one range: `arena` and `offset` are left to the caller. A
/// carry is updated in its own bytes where the body's plan allows it, and has a second buffer in the range else.
LirBodies plan_bodies(const Graph& g, NodeId id, const Target& target);

/// `bodies`, planned for a symbolic graph, at the extents of `g`, the same graph with its symbols bound.
LirBodies resize_bodies(const Graph& g, const LirBodies& bodies);

}  // namespace rlx
