// Functions under trace: the graph that their nodes go to, and the constants that they capture.
#pragma once

#include <unordered_map>

#include "python/bindings/common.h"
#include "rlx/ir/build/body_scope.h"

namespace rlx::python {

/// A function under trace, or a body in it. The frames of a thread are a stack; new nodes go to the graph of the top
/// frame.
class Frame {
 public:
  /// closed: the body must not use values of outer graphs, so it holds its own constants.
  explicit Frame(Graph& g, bool closed = false);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  static Frame* top();
  /// The frame whose graph holds the constants of this frame and of those above it.
  Frame& root();
  Graph& graph;
  const std::int64_t id;
  /// Arrays captured by the trace, one constant each. The references keep their addresses from being reused.
  std::unordered_map<PyObject*, std::pair<nb::object, Expr>> constants;

 private:
  Frame* below_;
  const bool closed_;
};

/// Calls a Python function with one list of values and converts its results.
std::vector<Expr> call_with(nb::handle fn, const ExprList& values, Graph& g);
nb::list value_list(std::span<const Expr> values, SourceLoc loc);

}  // namespace rlx::python
