// Rebuilder: copies a graph node by node with replacements, for lowering, legalization and binding.
//
// Rebuilder is for passes that visit every node once, in order, and read the nodes built so far. The new operands of a
// node exist when it is visited. A pass that looks ahead (to the readers of a value) and replaces a pattern of several
// nodes uses GraphRewriter (rewrite.h), which rebuilds once at the end.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/value_map.h"

namespace rlx {

/// A new graph under construction and its source graph.
class Rebuilder {
 public:
  /// `pass` becomes the origin pass of every node that is not a copy.
  Rebuilder(const Graph& source, std::string_view pass);
  const Graph& source() const { return source_; }
  Graph& graph() { return graph_; }
  const ValueMap& map() const { return map_; }
  Value mapped(Value v) const { return map_(v); }
  Expr expr(Value v) { return graph_.expr(map_(v)); }
  /// Operands of an old node in the new graph.
  std::vector<Expr> operands(NodeId id);
  /// Copies the node. Its shapes are kept when no operand's shape changed, else inferred again.
  void copy(NodeId id);
  /// Maps the old node's results to `results`. Nodes appended since the last call get its line, and its label when they
  /// have none.
  void replace(NodeId id, const std::vector<Expr>& results);
  /// Maps outputs, states and symbols, and returns the finished graph.
  Graph finish() &&;
  bool changed() const { return changed_; }

 private:
  const Graph& source_;
  Graph graph_;
  ValueMap map_;
  std::string pass_;
  std::uint32_t stamped_ = 0;  // nodes below this index have their origin
  bool changed_ = false;
};

/// The graph without nodes that no root (roots.h) needs. Inputs, Params and States stay. `map`, when given, receives
/// the new value of each value.
Graph drop_dead(const Graph& g, ValueMap* map = nullptr);
/// The same for a moved graph; returns it unchanged when nothing is dead.
Graph drop_dead(Graph&& g);
/// True when every node is an Input, Param or State, or is needed by a root: `drop_dead` would drop nothing.
bool all_live(const Graph& g);

/// The new results of a node; none keeps the node.
using Replacement = std::optional<std::vector<Expr>>;
/// A copy of the graph in which `f(rebuilder, id)`, a Replacement, stands for each node. Nodes that are dead then are
/// dropped. Nullopt when no node is replaced.
template <class F>
std::optional<Graph> replace_nodes(const Graph& g, std::string_view pass, F f) {
  Rebuilder r(g, pass);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const NodeId id{i};
    if (const Replacement results = f(r, id))
      r.replace(id, *results);
    else
      r.copy(id);
  }
  if (!r.changed()) return std::nullopt;
  return drop_dead(std::move(r).finish());
}

}  // namespace rlx
