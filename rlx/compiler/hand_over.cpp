// Views go, then decompositions until every device takes what its parts hold.
#include "rlx/compiler/hand_over.h"

#include <algorithm>
#include <optional>

#include "rlx/compiler/cut_parts.h"
#include "rlx/compiler/memory_plan.h"
#include "rlx/ir/bodies.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rebuild.h"
#include "rlx/ir/roots.h"
#include "rlx/ir/symbol_order.h"

namespace rlx {
namespace {

// None where there are no such views.
std::optional<Graph> without_views(const Graph& g) {
  std::optional<Graph> inside = change_bodies(g, without_views);
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

// In the order in which the values of symbols are known, as graphs are cut up.
Graph in_order(Graph g) { return g.symbol_sources().empty() ? std::move(g) : sorted_by_symbols(g); }

// A decomposition makes simpler ops, which may be refused in their parts in turn.
constexpr int kMostRounds = 16;

// What is refused written out, and all of it legal again; none where nothing is that may be.
std::optional<Graph> without_refused(const Graph& g, const Target& target, const KernelDispatchConfig& dispatch,
                                     std::uint32_t home) {
  std::vector<bool> write_out(g.num_nodes(), false);
  for (NodeId id : refused_in_parts(g, target, home))
    write_out[id.index] = dispatch.policy_of(g.node(id).kind()) != KernelDispatchPolicy::ForceNative;
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
  KernelDispatchReport report;
  return in_order(rewrite_for_backend(drop_dead(std::move(r).finish()), target, target.name(), report, dispatch));
}

// None where every device takes all of what it is given.
std::optional<Graph> taken_in_parts(const Graph& g, const Target& target, const KernelDispatchConfig& dispatch,
                                    std::uint32_t home) {
  std::optional<Graph> out;
  for (int round = 0; round < kMostRounds; ++round) {
    std::optional<Graph> next = without_refused(out ? *out : g, target, dispatch, home);
    if (!next) break;
    out = std::move(next);
  }
  const Graph& now = out ? *out : g;
  const std::vector<std::uint32_t> devices = devices_of_nodes(now, target, home);
  std::optional<Graph> inside = change_bodies_of(now, [&](NodeId holder, const Subgraph& body) -> Subgraph {
    if (!target.driven(now, holder)) return nullptr;
    std::optional<Graph> taken = taken_in_parts(*body, target, dispatch, devices[holder.index]);
    return taken ? std::make_shared<const Graph>(std::move(*taken)) : nullptr;
  });
  return inside ? std::move(inside) : std::move(out);
}

}  // namespace

Graph hand_over(Graph g, const Target& target, const KernelDispatchConfig& dispatch, std::uint32_t home) {
  if (std::optional<Graph> changed = without_views(g)) g = std::move(*changed);
  g = in_order(std::move(g));
  if (std::optional<Graph> changed = taken_in_parts(g, target, dispatch, home)) g = std::move(*changed);
  return g;
}

}  // namespace rlx
