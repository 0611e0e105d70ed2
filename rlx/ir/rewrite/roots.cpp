// Roots and shells of graphs.
#include "rlx/ir/rewrite/roots.h"

#include <utility>

#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {

std::vector<Root> roots(const Graph& g) {
  std::vector<Root> out;
  out.reserve(g.outputs().size() + g.state_updates().size() + g.symbol_sources().size() + g.ordered().size());
  for (Value v : g.outputs()) out.push_back({RootKind::Output, v});
  for (const Graph::StateUpdate& u : g.state_updates()) out.push_back({RootKind::StateUpdate, u.value});
  for (const auto& [symbol, source] : g.symbol_sources()) out.push_back({RootKind::SymbolSource, source});
  for (NodeId id : g.ordered()) out.push_back({RootKind::Ordered, Value(id)});
  return out;
}

bool is_ordered(const OpBox& op) {
  const OpDef& def = op_def(op);
  if (def.trait == OpTrait::Ordered) return true;
  if (def.bodies != BodyKind::Programs) return false;
  for (const Subgraph& body : body_graphs(op))
    if (!body->ordered().empty()) return true;
  return false;
}

Graph copy_shell(const Graph& g, std::string name) {
  Graph out(std::move(name));
  out.set_symbols(g.symbols());
  return out;
}
Graph copy_shell(const Graph& g) { return copy_shell(g, g.name()); }

}  // namespace rlx
