// Partition legalization: drops identity views, then decomposes until every device takes the nodes of its partitions.
#include "rlx/compiler/legalize_partition.h"

#include <algorithm>
#include <optional>

#include "rlx/compiler/node_devices.h"
#include "rlx/compiler/partition.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/rewrite/symbol_order.h"

namespace rlx {
namespace {

// Drops identity views, in bodies too. Nullopt when there are none.
std::optional<Graph> stripped(const Graph& g) {
  std::optional<Graph> inside = change_bodies(g, stripped);
  const Graph& from = inside ? *inside : g;
  const auto is_operand = [](const Node& n) { return op_def(n.kind()).view == ViewKind::Always; };
  if (std::none_of(from.nodes().begin(), from.nodes().end(), is_operand)) return inside;
  Graph out = copy_shell(from);
  ValueMap map(from);
  for (std::uint32_t i = 0; i < from.num_nodes(); ++i) {
    const NodeId id{i};
    Node n = from.node(id);
    for (Value& v : n.inputs) v = map(v);
    if (is_operand(n)) {
      map.set(Value(id), n.inputs[0]);
      continue;
    }
    const std::uint32_t results = n.num_results();
    const NodeId made = out.add_node(std::move(n));
    for (std::uint32_t r = 0; r < results; ++r) map.set(Value(id, r), Value(made, r));
  }
  copy_ends(out, from, map);
  return out;
}

// Sorts the graph in the order in which symbol values become known, as partitioning does.
Graph in_order(Graph g) { return g.symbol_sources().empty() ? std::move(g) : sorted_by_symbols(g); }

// A decomposition makes simpler ops, which a device may refuse in their partitions in turn.
constexpr int kMostRounds = 16;

// Records that a node that was native takes another path.
void tell(KernelDispatchReport& report, const Node& n, DispatchPath path, std::string_view why) {
  const std::string_view name = op_def(n.op).name;
  std::vector<KindDispatch>& all = report.summaries;
  const auto native = std::find_if(all.begin(), all.end(), [&](const KindDispatch& k) {
    return k.kind == n.kind() && k.name == name && k.path == DispatchPath::Native;
  });
  if (native != all.end() && --native->node_count == 0) all.erase(native);
  const auto same = std::find_if(all.begin(), all.end(), [&](const KindDispatch& k) {
    return k.kind == n.kind() && k.name == name && k.path == path && k.why == why;
  });
  if (same == all.end())
    all.push_back({n.kind(), std::string(name), path, std::string(why), 1});
  else
    ++same->node_count;
}

// Decomposes the refused nodes and legalizes the result. None when no node may be decomposed.
std::optional<Graph> without_refused(const Graph& g, const Target& target, const KernelDispatchConfig& dispatch,
                                     std::uint32_t home, KernelDispatchReport& report) {
  std::vector<bool> write_out(g.num_nodes(), false);
  for (const Refused& refused : refused_in_parts(g, target, home)) {
    const Node& n = g.node(refused.node);
    if (dispatch.policy_of(n.kind()) == KernelDispatchPolicy::ForceNative) continue;
    write_out[refused.node.index] = true;
    tell(report, n, DispatchPath::Rewritten, refused.why);
  }
  Rebuilder r(g, "hand-over");
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const NodeId id{i};
    if (!write_out[i]) {
      r.copy(id);
      continue;
    }
    const std::vector<Expr> operands = r.operands(id);
    r.replace(id, decompose_into(r.graph(), g.node(id).op, operands));
  }
  if (!r.changed()) return std::nullopt;
  KernelDispatchReport again;
  return in_order(rewrite_for_backend(drop_dead(std::move(r).finish()), target, target.name(), again, dispatch));
}

// None when every device takes all its nodes.
std::optional<Graph> taken_in_parts(const Graph& g, const Target& target, const KernelDispatchConfig& dispatch,
                                    std::uint32_t home, KernelDispatchReport& report) {
  std::optional<Graph> out;
  for (int round = 0; round < kMostRounds; ++round) {
    std::optional<Graph> next = without_refused(out ? *out : g, target, dispatch, home, report);
    if (!next) break;
    out = std::move(next);
  }
  const Graph& now = out ? *out : g;
  const std::vector<std::uint32_t> devices = devices_of_nodes(now, target, home);
  std::optional<Graph> inside = change_bodies_of(now, [&](NodeId control, const Subgraph& body) -> Subgraph {
    if (!target.host_controlled(now, control)) return nullptr;
    std::optional<Graph> taken = taken_in_parts(*body, target, dispatch, devices[control.index], report);
    return taken ? std::make_shared<const Graph>(std::move(*taken)) : nullptr;
  });
  return inside ? std::move(inside) : std::move(out);
}

}  // namespace

Graph without_views(Graph g) {
  std::optional<Graph> changed = stripped(g);
  return changed ? std::move(*changed) : std::move(g);
}

Graph legalize_partition(Graph g, const Target& target, const KernelDispatchConfig& dispatch,
                         KernelDispatchReport& report) {
  g = in_order(without_views(std::move(g)));
  if (std::optional<Graph> changed = taken_in_parts(g, target, dispatch, 0, report)) g = std::move(*changed);
  return g;
}

void report_moved(const Graph& g, const LirBufferPlan& plan, const Target& target, KernelDispatchReport& report,
                  std::uint32_t home) {
  if (!plan.node_devices.empty()) {
    const std::vector<std::uint32_t> asked = devices_of_nodes(g, target, home);
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
      if (const Node& n = g.nodes()[i]; !op_def(n.kind()).is_leaf() && asked[i] != plan.node_devices[i])
        tell(report, n, DispatchPath::HostFallback, "its device refuses it in this partition of the program");
  }
  for (const LirPart& part : plan.parts)
    if (part.host_controlled)
      for (const LirModule& m : part.modules) report_moved(m.graph, m.plan, target, report, part.device);
}

}  // namespace rlx
