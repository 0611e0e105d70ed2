// GraphBinder: binds the symbols of one finished graph to many sets of values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

struct AttrField;

/// A prepared `Graph::bind`. The constructor finds the distinct symbolic dimensions; binding evaluates each once and
/// copies the nodes. It infers no shapes again, so the shapes of the graph must be valid (a planned program).
class GraphBinder {
 public:
  /// `g` must outlive the binder.
  explicit GraphBinder(const Graph& g);
  GraphBinder(GraphBinder&&) noexcept;
  ~GraphBinder();
  /// The graph at `values`: every node keeps its id, label and line. Throws Unsupported naming a symbol without a
  /// value.
  Graph bind(const SymbolBinding& values) const;
  /// The first `nodes` nodes at `values`, without outputs and new states. `values` needs only the symbols of these
  /// nodes.
  Graph bind_first(std::uint32_t nodes, const SymbolBinding& values) const;

 private:
  // An op with symbolic attributes.
  struct SymbolicOp;
  struct Slots;
  std::uint32_t slot(const Dim& d, Slots& slots);

  const Graph* graph_;
  std::vector<Dim> distinct_;
  std::vector<std::uint32_t> shape_slots_;     // for every symbolic dimension of a result, in node order
  std::vector<bool> symbolic_results_;         // by node
  std::vector<std::uint32_t> distinct_after_;  // by node: entries of `distinct_` that it and earlier nodes have
  std::vector<SymbolicOp> ops_;                // in node order
};

}  // namespace rlx
