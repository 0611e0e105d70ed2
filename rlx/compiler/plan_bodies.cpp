// Bodies as planned programs whose carries are donated: output c may be written over the input that it replaces.
#include "rlx/compiler/plan_bodies.h"

#include <algorithm>

#include "rlx/compiler/memory_plan.h"
#include "rlx/ir/bodies.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/control.h"

namespace rlx {
namespace {

// The carries of a loop among the inputs of its body, which is the last of its bodies, and as its first results.
struct CarriedInputs {
  std::uint32_t first = 0, count = 0;
};
CarriedInputs carries_of(const Node& n) {
  if (const auto* scan = n.op.get_if<ops::Scan>())
    return {static_cast<std::uint32_t>(scan->invariants), static_cast<std::uint32_t>(scan->carries)};
  if (const auto* loop = n.op.get_if<ops::While>()) {
    const auto first = static_cast<std::uint32_t>(loop->invariants);
    return {first, static_cast<std::uint32_t>(n.inputs.size()) - first};
  }
  return {};
}

}  // namespace

LirBodies plan_bodies(const Graph& g, NodeId id, const Target& target) {
  const Node& n = g.node(id);
  const CarriedInputs carries = carries_of(n);
  const std::size_t alignment = target.limits().alignment;
  const auto padded = [&](std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  LirBodies out;
  out.node = id;
  const std::vector<Subgraph> graphs = body_graphs(n.op);
  for (const Subgraph& body : graphs) {
    LirModule m;
    m.graph = *body;
    if (!m.graph.is_static()) m.graph.set_symbols(g.symbols());  // with the bounds that the program is planned for
    std::vector<LirAlias> donated;
    if (&body == &graphs.back())
      for (std::uint32_t c = 0; c < carries.count; ++c) donated.push_back({carries.first + c, c, {}});
    m.plan = plan_memory(m.graph, target, donated);
    if (m.plan.arenas.size() > 1)
      throw Error(Diagnostic{ErrorCode::Unsupported,
                             concat_text("a body of ", op_text_name(n.op), " takes ", m.plan.arena_bytes,
                                         " bytes, more than an arena of ", target.name(), " has"),
                             node_where(g, id), "compute it in slices"});
    out.bytes = std::max(out.bytes, padded(m.plan.arena_bytes));
    out.modules.push_back(std::move(m));
  }
  for (std::uint32_t c = 0; c < carries.count; ++c) {
    const std::string& refused = out.modules.back().plan.aliases[c].refused;
    out.reasons.push_back(refused);
    out.second.emplace_back();
    if (refused.empty()) continue;
    out.second.back() = out.bytes;
    out.bytes += padded(max_bytes(g, Value(id, c)));
  }
  return out;
}

LirBodies resize_bodies(const Graph& g, const LirBodies& bodies) {
  LirBodies out = bodies;
  const std::vector<Subgraph> graphs = body_graphs(g.node(bodies.node).op);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    out.modules[i].graph = *graphs[i];
    out.modules[i].plan = resize_plan(*graphs[i], bodies.modules[i].plan);
  }
  return out;
}

}  // namespace rlx
