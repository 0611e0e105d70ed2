// Copying a graph node by node with replacements: lowering, legalising, binding.
//
// Rebuilder is for passes that meet every node once, in order, and look at what they have built already: a node's new
// operands are there when its turn comes. A pass that looks ahead (who reads this value?) and replaces a pattern of
// several nodes records it in a GraphRewriter (rewrite.h), which rebuilds once at the end.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/value_map.h"

namespace rlx {

/// A new graph under construction beside the one it is made from.
class Rebuilder {
 public:
  /// `pass` is stamped on every node that was not copied.
  Rebuilder(const Graph& source, std::string_view pass);
  const Graph& source() const { return source_; }
  Graph& graph() { return graph_; }
  const ValueMap& map() const { return map_; }
  Value mapped(Value v) const { return map_(v); }
  Expr expr(Value v) { return graph_.expr(map_(v)); }
  /// Operands of an old node in the new graph.
  std::vector<Expr> operands(NodeId id);
  /// Copies the node as it is (shapes are kept when no operand's shape changed, else inferred again).
  void copy(NodeId id);
  /// Makes `results` stand for the old node's results; nodes appended since the last call inherit its line, and
  /// its label where they have none.
  void replace(NodeId id, const std::vector<Expr>& results);
  /// Maps outputs, states and symbols, and returns the finished graph.
  Graph finish() &&;
  bool changed() const { return changed_; }

 private:
  const Graph& source_;
  Graph graph_;
  ValueMap map_;
  std::string pass_;
  std::uint32_t stamped_ = 0;  // nodes below this index carry their origin
  bool changed_ = false;
};

/// The graph without nodes that no root (roots.h) needs; Inputs, Params and States stay. `map`, when given,
/// receives where each value went.
Graph drop_dead(const Graph& g, ValueMap* map = nullptr);
/// The same; the graph itself when nothing is dead.
Graph drop_dead(Graph&& g);
/// True when some root, Input, Param or State needs each node: `drop_dead` would drop nothing.
bool all_live(const Graph& g);

}  // namespace rlx
