// Rebuilds graphs.
#include "rlx/ir/rewrite/rebuild.h"

#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {

Rebuilder::Rebuilder(const Graph& source, std::string_view pass)
    : source_(source), graph_(copy_shell(source)), map_(source), pass_(pass) {
  graph_.reserve(source.num_nodes());
}

std::vector<Expr> Rebuilder::operands(NodeId id) {
  std::vector<Expr> out;
  for (Value v : source_.node(id).inputs) out.push_back(expr(v));
  return out;
}

void Rebuilder::copy(NodeId id) {
  const Node& n = source_.node(id);
  std::vector<Value> inputs;
  inputs.reserve(n.inputs.size());
  bool same_shapes = true;
  for (Value v : n.inputs) {
    inputs.push_back(map_(v));
    same_shapes = same_shapes && graph_.shape(inputs.back()) == source_.shape(v);
  }
  NodeId fresh;
  if (same_shapes) {
    fresh = graph_.add_node(Node{n.op, std::move(inputs), n.shapes, n.origin});
  } else {
    fresh = graph_.add(n.op, std::move(inputs), n.origin.loc).value().node;
    graph_.origin(fresh) = n.origin;
  }
  for (std::uint32_t r = 0; r < n.num_results(); ++r) map_.set(Value(id, r), Value(fresh, r));
  stamped_ = static_cast<std::uint32_t>(graph_.num_nodes());
}

void Rebuilder::replace(NodeId id, const std::vector<Expr>& results) {
  const Node& n = source_.node(id);
  check(results.size() == n.num_results(), "a replacement must give every result");
  for (std::uint32_t r = 0; r < n.num_results(); ++r) {
    check(results[r].valid(), "an empty replacement");
    map_.set(Value(id, r), results[r].value());
  }
  for (; stamped_ < graph_.num_nodes(); ++stamped_) {
    Origin& origin = graph_.origin(NodeId{stamped_});
    if (origin.label.empty()) origin.label = n.origin.label;
    origin.loc = n.origin.loc;
    origin.pass = pass_;
    origin.from = n.origin.from;
    origin.from.push_back(concat_text(id, " ", op_text_name(n.op)));
  }
  changed_ = true;
}

Graph Rebuilder::finish() && {
  copy_ends(graph_, source_, map_);
  return std::move(graph_);
}

namespace {

std::vector<bool> live_nodes(const Graph& g) {
  std::vector<bool> live(g.num_nodes(), false);
  auto mark = [&](Value v) { live[v.node.index] = true; };
  for (const Root& r : roots(g)) mark(r.value);
  for (std::uint32_t i = static_cast<std::uint32_t>(g.num_nodes()); i-- > 0;) {
    if (is_named_leaf(g.nodes()[i].kind())) live[i] = true;
    if (live[i])
      for (Value v : g.nodes()[i].inputs) mark(v);
  }
  return live;
}

bool all_of(const std::vector<bool>& live) { return std::find(live.begin(), live.end(), false) == live.end(); }

Graph copy_live(const Graph& g, const std::vector<bool>& live, ValueMap* map) {
  Rebuilder r(g, "eliminate-dead-code");
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (live[i]) r.copy(NodeId{i});
  if (map) *map = r.map();
  return std::move(r).finish();
}

}  // namespace

bool all_live(const Graph& g) { return all_of(live_nodes(g)); }

Graph drop_dead(const Graph& g, ValueMap* map) {
  const std::vector<bool> live = live_nodes(g);
  if (!all_of(live)) return copy_live(g, live, map);
  if (map) *map = ValueMap::identity(g);
  return g;
}

Graph drop_dead(Graph&& g) {
  const std::vector<bool> live = live_nodes(g);
  return all_of(live) ? std::move(g) : copy_live(g, live, nullptr);
}

}  // namespace rlx
