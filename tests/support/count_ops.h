// How many nodes of a graph are of one kind.
#pragma once

#include <algorithm>

#include "rlx/ir/graph.h"

namespace rlx::test {

inline int count_ops(const Graph& g, OpKind kind) {
  return static_cast<int>(
      std::count_if(g.nodes().begin(), g.nodes().end(), [&](const Node& n) { return n.kind() == kind; }));
}

}  // namespace rlx::test
