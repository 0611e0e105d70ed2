// Partition legalization: drops identity views, then decomposes until every device takes the nodes of its partitions.
#include "rlx/compiler/legalize_partition.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

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

// Decomposes the refused nodes and legalizes the result. None when no node may be decomposed.
std::optional<Graph> without_refused(const Graph& g, const Target& target, const KernelDispatchConfig& dispatch,
                                     std::uint32_t home, std::vector<NodeDispatch>& decomposed) {
  std::map<NodeId, const char*> refused;
  for (const Refused& node : refused_in_parts(g, target, home))
    if (dispatch.policy_of(g.node(node.node).kind()) != KernelDispatchPolicy::ForceNative)
      refused.emplace(node.node, node.why);
  std::optional<Graph> written = replace_nodes(g, "hand-over", [&](Rebuilder& r, NodeId id) -> Replacement {
    const auto why = refused.find(id);
    if (why == refused.end()) return std::nullopt;
    const OpBox& op = g.node(id).op;
    decomposed.push_back({op.kind(), std::string(op_def(op).name), DispatchPath::Rewritten, why->second});
    return decompose_into(r.graph(), op, r.operands(id));
  });
  if (!written) return std::nullopt;
  Legalized again = legalized(std::move(*written), target, target.name(), dispatch);
  std::move(again.record.decomposed.begin(), again.record.decomposed.end(), std::back_inserter(decomposed));
  return in_order(std::move(again.graph));
}

// None when every device takes all its nodes.
std::optional<Graph> taken_in_parts(const Graph& g, const Target& target, const KernelDispatchConfig& dispatch,
                                    std::uint32_t home, std::vector<NodeDispatch>& decomposed) {
  std::optional<Graph> out;
  for (int round = 0; round < kMostRounds; ++round) {
    std::optional<Graph> next = without_refused(out ? *out : g, target, dispatch, home, decomposed);
    if (!next) break;
    out = std::move(next);
  }
  const Graph& now = out ? *out : g;
  const std::vector<std::uint32_t> devices = devices_of_nodes(now, target, home);
  std::optional<Graph> inside = change_bodies_of(now, [&](NodeId control, const Subgraph& body) -> Subgraph {
    if (!target.host_controlled(now, control)) return nullptr;
    std::optional<Graph> taken = taken_in_parts(*body, target, dispatch, devices[control.index], decomposed);
    return taken ? std::make_shared<const Graph>(std::move(*taken)) : nullptr;
  });
  return inside ? std::move(inside) : std::move(out);
}

// The nodes of a planned program and its bodies, each body once.
struct PlannedNodes {
  const Target& target;
  const KernelDispatchConfig& dispatch;
  std::vector<NodeDispatch> nodes{};
  std::set<Subgraph> seen{};

  void add(const Graph& g, const LirBufferPlan& plan, std::uint32_t home) {
    std::vector<std::uint32_t> asked;  // the devices that nodes would have by their own claims
    if (!plan.node_devices.empty()) asked = devices_of_nodes(g, target, home);
    std::map<NodeId, const LirPart*> host_controlled;
    for (const LirPart& part : plan.parts)
      if (part.host_controlled) host_controlled.emplace(part.nodes[0], &part);
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
      const Node& n = g.nodes()[i];
      if (needs_no_kernel(n)) continue;
      NodeDispatch& node = nodes.emplace_back(dispatch_of(g, NodeId{i}, target, dispatch));
      if (!asked.empty() && asked[i] != plan.node_devices[i])
        node.path = DispatchPath::HostFallback, node.why = "its device refuses it in this partition of the program";
      else if (node.path == DispatchPath::Unsupported)  // on the whole graph, not in its partition
        node.path = DispatchPath::Native, node.why = nullptr;
      const auto part = host_controlled.find(NodeId{i});
      if (op_def(n.op).bodies != BodyKind::Programs) continue;
      const std::vector<Subgraph> bodies = body_graphs(n.op);
      for (std::size_t b = 0; b < bodies.size(); ++b) {
        if (!seen.insert(bodies[b]).second) continue;
        if (part != host_controlled.end())
          add(part->second->modules[b].graph, part->second->modules[b].plan, part->second->device);
        else  // the device runs it as a part of the node
          add(*bodies[b], LirBufferPlan(), home);
      }
    }
  }
};

}  // namespace

Graph without_views(Graph g) {
  std::optional<Graph> changed = stripped(g);
  return changed ? std::move(*changed) : std::move(g);
}

Legalized legalize_partition(Graph g, const Target& target, const KernelDispatchConfig& dispatch) {
  Legalized out{in_order(without_views(std::move(g)))};
  if (std::optional<Graph> changed = taken_in_parts(out.graph, target, dispatch, 0, out.record.decomposed))
    out.graph = std::move(*changed);
  return out;
}

std::vector<NodeDispatch> planned_nodes(const LirModule& lir, const Target& target,
                                        const KernelDispatchConfig& dispatch) {
  PlannedNodes planned{target, dispatch};
  planned.add(lir.graph, lir.plan, 0);
  planned.add(lir.prepare, LirBufferPlan(), 0);
  return std::move(planned.nodes);
}

}  // namespace rlx
