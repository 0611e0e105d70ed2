// Bodies under construction: values of the enclosing graphs become inputs of the body.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// Declares during its life that `body` is built inside `parent`. The body may then use values of the parent and of its
/// enclosing graphs; an Input of the body represents each of them.
class BodyScope {
 public:
  /// InvalidArgument for a body in more bodies than a program may have, naming it: a body function that calls itself
  /// must end.
  BodyScope(Graph& body, Graph& parent, SourceLoc loc);
  ~BodyScope();
  BodyScope(const BodyScope&) = delete;
  BodyScope& operator=(const BodyScope&) = delete;

  /// The values of the parent that the body uses, in the order of their first use; the body has an Input for each.
  const std::vector<Expr>& captured() const { return captured_; }
  const std::vector<NodeId>& inputs() const { return inputs_; }

  /// Throws InvalidArgument when the body or the graph that it is built in was moved, assigned to or destroyed.
  void require_alive(SourceLoc loc) const;

  /// The values that the body `g`, which is under construction, has captured so far.
  static const std::vector<Expr>& captured_by(Graph& g) { return of(g)->captured_; }
  /// Makes `input`, a value of the body `g`, stand for `outer`, a value of its parent. It is not captured then.
  static void stand_for(Graph& g, const Expr& outer, const Expr& input);

  /// True when `inner` is a body under construction inside `outer`, at any depth.
  static bool encloses(const Graph& outer, Graph& inner);
  /// `e` as a value of `g`; an empty Expr when the graph of `e` does not enclose `g`.
  static Expr lift(Graph& g, const Expr& e);

 private:
  static BodyScope* of(Graph& g) { return g.life_.of(g)->scope; }

  std::shared_ptr<GraphLife::Block> life_, parent_;
  std::string name_;  // of the body
  int depth_ = 1;     // bodies that it is in, itself included
  std::vector<Expr> captured_;
  std::vector<NodeId> inputs_;
  std::unordered_map<std::uint64_t, std::size_t> known_;  // value of the parent -> its index in captured_
  std::unordered_map<std::uint64_t, Expr> stands_;        // value of the parent -> the value that stands for it
};

/// `e` as a value of `g`: itself, or the Input that represents it in a body. InvalidArgument, prefixed with `what`
/// unless empty, for a value of another graph.
Expr value_in(Graph& g, const Expr& e, std::string_view what, SourceLoc loc);

}  // namespace rlx
