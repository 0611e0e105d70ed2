// Binding the symbols of one finished graph to many values, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

struct AttrField;

/// What `Graph::bind` does, prepared once: the distinct symbolic dimensions are found here, and binding evaluates each
/// once and copies the nodes. Nothing is inferred again, so the graph must be one whose shapes hold (a planned
/// program).
class GraphBinder {
 public:
  /// `g` must outlive the binder.
  explicit GraphBinder(const Graph& g);
  GraphBinder(GraphBinder&&) noexcept;
  ~GraphBinder();
  /// The graph at `values`: every node keeps its id, label and line. Throws Unsupported naming a symbol without a
  /// value.
  Graph bind(const SymbolBinding& values) const;
  /// Its first `nodes` nodes at `values`, which need hold the symbols of those alone; without outputs and new states.
  Graph bind_first(std::uint32_t nodes, const SymbolBinding& values) const;

 private:
  // An op with symbolic attributes.
  struct SymbolicOp;
  std::uint32_t slot(const Dim& d);

  const Graph* graph_;
  std::vector<Dim> distinct_;
  std::vector<std::uint32_t> shape_slots_;     // of every symbolic dimension of a result, in node order
  std::vector<bool> symbolic_results_;         // by node
  std::vector<std::uint32_t> distinct_after_;  // by node: how many of `distinct_` it and those before have
  std::vector<SymbolicOp> ops_;                // in node order
};

}  // namespace rlx
