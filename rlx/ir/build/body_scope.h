// Bodies under construction: how values of the graphs around them become their inputs.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// Says, while it lives, that `body` is built inside `parent`: a value of the parent, or of a graph around that, may be
/// used in the body, where an Input stands for it.
class BodyScope {
 public:
  BodyScope(Graph& body, Graph& parent);
  ~BodyScope();
  BodyScope(const BodyScope&) = delete;
  BodyScope& operator=(const BodyScope&) = delete;

  /// Values of the parent that the body uses, in the order of their first use, and the Inputs that stand for them.
  const std::vector<Expr>& captured() const { return captured_; }
  const std::vector<NodeId>& inputs() const { return inputs_; }

  /// True when `inner` is a body under construction somewhere inside `outer`.
  static bool encloses(const Graph& outer, Graph& inner);
  /// `e` as a value of `g`; an empty Expr when its graph is not one around `g`.
  static Expr lift(Graph& g, const Expr& e);

 private:
  static BodyScope* of(Graph& g) { return g.life_.of(g)->scope; }

  std::shared_ptr<GraphLife::Block> life_;
  Graph& parent_;
  std::vector<Expr> captured_;
  std::vector<NodeId> inputs_;
  std::unordered_map<std::uint64_t, std::size_t> known_;  // value of the parent -> which captured one
};

/// `e` as a value of `g`: itself, or the Input that stands for it in a body. InvalidArgument, after `what` where that
/// is given, for a value of another graph.
Expr value_in(Graph& g, const Expr& e, std::string_view what, SourceLoc loc);

}  // namespace rlx
