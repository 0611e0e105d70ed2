// Where the runs of a program stop to read the values of symbols that they compute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rlx/ir/module.h"

namespace rlx {

/// One stop: the steps before `step` make the sources, and none of them has a symbol of this stop or a later one.
struct SyncPoint {
  std::size_t step = 0;
  std::uint32_t nodes = 0;  // the steps before it, their operands and all leaves are nodes [0, nodes)
  std::vector<std::string> symbols;
  std::vector<Value> sources;  // of each
};

/// The stops of a graph that `sorted_by_symbols` (ir/rewrite/symbol_order.h) put in order, and its schedule.
std::vector<SyncPoint> sync_points(const Graph& g, const std::vector<LirStep>& schedule);

/// The steps from which on all symbols are known; 0 when the graph computes none.
std::size_t last_cut(const std::vector<SyncPoint>& cuts);

/// What is done before a stop: the plan of its nodes alone, without what comes behind the last step.
LirBufferPlan plan_until(const LirBufferPlan& plan, const SyncPoint& cut);

}  // namespace rlx
