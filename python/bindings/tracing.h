// Functions under trace: which graph their nodes go to, and the constants that they capture.
#pragma once

#include <unordered_map>

#include "python/bindings/common.h"
#include "rlx/ir/build/body_scope.h"

namespace rlx::python {

/// One function under trace, or one body of it. Frames of a thread are a stack: nodes go to the graph of the last.
class Frame {
 public:
  /// closed: a body that may use no value of the graphs around it, so that constants lie inside.
  explicit Frame(Graph& g, bool closed = false);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  static Frame* top();
  /// The frame whose graph holds the constants of all those above it.
  Frame& root();
  Graph& graph;
  const std::int64_t id;
  /// Arrays captured by the trace: each is one constant. The references keep their addresses theirs.
  std::unordered_map<PyObject*, std::pair<nb::object, Expr>> constants;

 private:
  Frame* below_;
  const bool closed_;
};

/// The values a Python function gives for `values`, which it gets as one list.
std::vector<Expr> call_with(nb::handle fn, const ExprList& values, Graph& g);
nb::list value_list(std::span<const Expr> values, SourceLoc loc);

}  // namespace rlx::python
