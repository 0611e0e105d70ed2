// The roots of a graph, which keep its nodes, and copies of a graph without its nodes. Every walk and copy uses these.
#pragma once

#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

enum class RootKind : std::uint8_t {
  Output,
  StateUpdate,
  SymbolSource,  // the source of a symbol's value in this run
  Ordered,       // an ordered op (OpTrait::Ordered): it stays even without a reader
};

/// A value that is computed even without a reader. An ordered op is represented by its result 0.
struct Root {
  RootKind kind;
  Value value;
  /// False for an ordered op: its results may have no reader.
  bool is_read() const { return kind != RootKind::Ordered; }
};

/// All roots: outputs, new values of states, sources of symbols, and ordered ops in their order.
std::vector<Root> roots(const Graph& g);

/// True for an op that is ordered itself, or whose bodies hold an ordered op.
bool is_ordered(const OpBox& op);

/// A graph with the same name and symbols but without nodes. `copy_ends` sets its outputs and states once they exist.
Graph copy_shell(const Graph& g);
/// The same under another name.
Graph copy_shell(const Graph& g, std::string name);

/// Copies the state updates and the symbol sources of `from` to `to`, each as `moved(value)`.
template <class F>
void copy_inner_ends(Graph& to, const Graph& from, const F& moved) {
  for (const Graph::StateUpdate& u : from.state_updates()) to.set_state(u.name, moved(u.value));
  for (const auto& [symbol, source] : from.symbol_sources()) to.set_symbol_source(symbol, moved(source));
}
/// The same for state updates, symbol sources and outputs.
template <class F>
void copy_ends(Graph& to, const Graph& from, const F& moved) {
  std::vector<Value> outputs;
  outputs.reserve(from.outputs().size());
  for (Value v : from.outputs()) outputs.push_back(moved(v));
  to.set_outputs(std::move(outputs));
  copy_inner_ends(to, from, moved);
}

}  // namespace rlx
