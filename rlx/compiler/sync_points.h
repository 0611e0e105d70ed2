// Host sync points: where a run waits to read the values of symbols that it computes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rlx/ir/module.h"

namespace rlx {

/// One sync point. The steps before `step` make the sources. None of them has a symbol of this sync point or a later
/// one.
struct SyncPoint {
  std::size_t step = 0;
  std::uint32_t nodes = 0;  // nodes [0, nodes) are the earlier steps, their operands and all leaves
  std::vector<std::string> symbols;
  std::vector<Value> sources;  // the source of each symbol
};

/// The sync points of a graph in the order of `sorted_by_symbols` (ir/rewrite/symbol_order.h), and its schedule.
std::vector<SyncPoint> sync_points(const Graph& g, const std::vector<LirStep>& schedule);

/// The first step at which all symbols are known; 0 when the graph computes none.
std::size_t last_sync_step(const std::vector<SyncPoint>& points);

/// The plan of the nodes before a sync point, without the copies after the last step.
LirBufferPlan plan_until(const LirBufferPlan& plan, const SyncPoint& point);

}  // namespace rlx
