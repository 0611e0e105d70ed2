// Walks over the bodies of a graph.
#include "rlx/ir/rewrite/bodies.h"

#include <algorithm>
#include <unordered_map>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {

OpBox with_bodies(const OpBox& op, const std::function<Subgraph(std::string_view, const Subgraph&)>& change) {
  const OpDef& def = op_def(op);
  std::shared_ptr<void> copy;
  for (const AttrField& f : def.attrs) {
    if (!holds_body(f.type)) continue;
    const auto body = std::get<Subgraph>(f.get(op.data()));
    Subgraph now = body ? change(f.name, body) : nullptr;
    if (!now) continue;
    if (!copy) {
      copy = make_default_op(op.kind());
      for (const AttrField& other : def.attrs) other.set(copy.get(), other.get(op.data()));
    }
    f.set(copy.get(), std::move(now));
  }
  return copy ? OpBox(op.kind(), std::move(copy)) : op;
}

std::vector<Subgraph> body_graphs(const OpBox& op) {
  std::vector<Subgraph> out;
  for (const AttrField& f : op_def(op).attrs)
    if (holds_body(f.type))
      if (auto body = std::get<Subgraph>(f.get(op.data()))) out.push_back(std::move(body));
  return out;
}

std::optional<LoopParts> loop_parts(const OpBox& op) {
  LoopParts p;
  const auto divide = [&](const Graph& body, std::int64_t invariants, std::int64_t carries) {
    p.invariants = static_cast<std::size_t>(invariants);
    p.carries = static_cast<std::size_t>(carries);
    p.ys = body.outputs().size() - p.carries;
  };
  if (const auto* scan = op.get_if<ops::Scan>()) {
    divide(*scan->body, scan->invariants, scan->carries);
    p.xs = scan->body->leaves(OpKind::Input).size() - p.invariants - p.carries;
    return p;
  }
  if (const auto* loop = op.get_if<ops::While>()) {
    const auto inputs = static_cast<std::int64_t>(loop->body->leaves(OpKind::Input).size());
    divide(*loop->body, loop->invariants, inputs - loop->invariants);
    return p;
  }
  return std::nullopt;
}

bool any_body(const Graph& g, const std::function<bool(const Graph&)>& test) {
  for (const Node& n : g.nodes()) {
    if (op_def(n.op).bodies != BodyKind::Programs) continue;
    for (const Subgraph& body : body_graphs(n.op))
      if (test(*body)) return true;
  }
  return false;
}

std::optional<Graph> change_bodies_of(const Graph& g, const std::function<Subgraph(NodeId, const Subgraph&)>& change) {
  const auto holds = [](const Node& n) { return op_def(n.op).bodies == BodyKind::Programs; };
  if (std::none_of(g.nodes().begin(), g.nodes().end(), holds)) return std::nullopt;
  bool any = false;
  Graph out = copy_shell(g);
  out.reserve(g.num_nodes());
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    Node copy = g.nodes()[i];
    if (holds(copy))
      copy.op = with_bodies(copy.op, [&](std::string_view, const Subgraph& body) {
        Subgraph now = change(NodeId{i}, body);
        any = any || now;
        return now;
      });
    out.add_node(std::move(copy));
  }
  if (!any) return std::nullopt;
  copy_ends(out, g, [](Value v) { return v; });
  return out;
}

std::optional<Graph> change_bodies(const Graph& g, const std::function<std::optional<Graph>(const Graph&)>& change) {
  std::unordered_map<const Graph*, Subgraph> changed;  // null: unchanged
  return change_bodies_of(g, [&](NodeId, const Subgraph& body) {
    auto [it, fresh] = changed.try_emplace(body.get());
    if (fresh)
      if (std::optional<Graph> now = change(*body)) it->second = std::make_shared<const Graph>(std::move(*now));
    return it->second;
  });
}

}  // namespace rlx
