// When a run can know the values of symbols that it computes itself: which nodes come before, and in which turns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// The symbols that results, attributes and bodies of a node depend on, sorted, each once.
std::vector<std::string> symbols_of(const Node& n);

/// True when there are any.
bool has_symbols(const Node& n);

/// The symbols with a source by turns: those of one turn are known together, when all that their sources need is done.
struct SymbolOrder {
  std::vector<std::vector<std::string>> turns;  // each sorted
  std::vector<std::uint32_t> turn;              // by node: the first turn that needs it, turns.size() for the others
};

/// A source that cannot be known before what has its symbol in its shape: the symbol, and the node that has it.
struct SymbolCircle {
  std::string symbol;
  NodeId node;
};

/// The turns of `g`; linear in the graph. None when a source needs its own symbol, which `circle` then names.
std::optional<SymbolOrder> symbol_order(const Graph& g, SymbolCircle* circle = nullptr);

/// True when every source comes before all that has its symbol in its shape, so that the nodes can run as they come.
bool in_symbol_order(const Graph& g);

/// `g` with the leaves first, then what each turn needs, then the rest. InvalidArgument naming the symbol for a circle.
Graph sorted_by_symbols(const Graph& g);

/// Throws the error of `check_symbol_value` with the node that gave `value`; `symbol` has a source in `g`.
void check_computed_symbol(const Graph& g, const std::string& symbol, std::int64_t value);

}  // namespace rlx
