// Computes sync points from the stages of the graph's symbols.
#include "rlx/compiler/sync_points.h"

#include <algorithm>
#include <optional>

#include "rlx/error.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/symbol_order.h"

namespace rlx {

std::vector<SyncPoint> sync_points(const Graph& g, const std::vector<LirStep>& schedule) {
  std::vector<SyncPoint> out;
  if (g.symbol_sources().empty()) return out;
  const std::optional<SymbolOrder> order = symbol_order(g);
  check(order.has_value(), "the symbols of a planned program depend on each other");
  std::uint32_t nodes = 0;
  std::size_t step = 0;
  for (std::uint32_t t = 0; t < order->stages.size(); ++t) {
    while (nodes < g.num_nodes() && (order->stage[nodes] <= t || op_def(g.nodes()[nodes].kind()).is_leaf())) ++nodes;
    while (step < schedule.size() && schedule[step].node.index < nodes) ++step;
    SyncPoint point{step, nodes, order->stages[t], {}};
    for (const std::string& name : point.symbols) {
      point.sources.push_back(g.symbol_sources().at(name));
      check(point.sources.back().node.index < nodes,
            "the nodes of a planned program are not in the order of its symbols");
    }
    out.push_back(std::move(point));
  }
  return out;
}

std::size_t last_sync_step(const std::vector<SyncPoint>& points) { return points.empty() ? 0 : points.back().step; }

LirBufferPlan plan_until(const LirBufferPlan& plan, const SyncPoint& point) {
  LirBufferPlan out;
  if (plan.opaque) {
    out.opaque = true;
    out.alignment = plan.alignment;
    out.node_devices = plan.node_devices;
    for (const LirPart& part : plan.parts)
      if (std::all_of(part.nodes.begin(), part.nodes.end(), [&](NodeId id) { return id.index < point.nodes; }))
        out.parts.push_back(part);
    if (!out.node_devices.empty()) out.node_devices.resize(point.nodes);
    return out;
  }
  out = plan;
  out.values.resize(point.nodes);
  if (!out.node_devices.empty()) out.node_devices.resize(point.nodes);
  out.schedule.resize(point.step);
  out.output_copies.clear(), out.state_copies.clear(), out.remote_state_copies.clear(), out.update_copies.clear(),
      out.aliases.clear();
  std::erase_if(out.bodies, [&](const LirBodies& b) { return b.node.index >= point.nodes; });
  return out;
}

}  // namespace rlx
