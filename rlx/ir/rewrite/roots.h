// What the nodes of a graph are kept for, and the frame around them: the one place that every walk and every copy asks.
#pragma once

#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

enum class RootKind : std::uint8_t {
  Output,
  StateUpdate,
  SymbolSource,  // the value that a symbol has in this run
  Ordered,       // an op that others see run (OpTrait::Ordered): it stays, whoever reads it
};

/// A value that is computed whoever reads it; of an ordered op its result 0 stands for the node.
struct Root {
  RootKind kind;
  Value value;
  /// False for an ordered op, of which nobody need look at the results.
  bool is_read() const { return kind != RootKind::Ordered; }
};

/// Everything that nodes are kept for: outputs, new values of states, sources of symbols, ordered ops in their order.
std::vector<Root> roots(const Graph& g);

/// True for an op that others see run, by itself or by what its bodies hold.
bool is_ordered(const OpBox& op);

/// A graph of the same name and symbols without nodes, whose ends `copy_ends` sets when it has them.
Graph copy_shell(const Graph& g);
/// The same under another name.
Graph copy_shell(const Graph& g, std::string name);

/// Gives `to` the state updates and the sources of symbols of `from`, each at `moved(value)`.
template <class F>
void copy_inner_ends(Graph& to, const Graph& from, const F& moved) {
  for (const Graph::StateUpdate& u : from.state_updates()) to.set_state(u.name, moved(u.value));
  for (const auto& [symbol, source] : from.symbol_sources()) to.set_symbol_source(symbol, moved(source));
}
/// The same and the outputs.
template <class F>
void copy_ends(Graph& to, const Graph& from, const F& moved) {
  std::vector<Value> outputs;
  outputs.reserve(from.outputs().size());
  for (Value v : from.outputs()) outputs.push_back(moved(v));
  to.set_outputs(std::move(outputs));
  copy_inner_ends(to, from, moved);
}

}  // namespace rlx
