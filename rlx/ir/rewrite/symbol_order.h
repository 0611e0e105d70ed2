// The order of symbols whose values a run computes: the nodes that come before them, and the stages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// The symbols that results, attributes and bodies of a node depend on, sorted and unique.
std::vector<std::string> symbols_of(const Node& n);

/// True when the node depends on a symbol.
bool has_symbols(const Node& n);

/// The symbols with a source, in stages. The symbols of a stage are known together, once everything that their sources
/// need has run.
struct SymbolOrder {
  std::vector<std::vector<std::string>> stages;  // each sorted
  std::vector<std::uint32_t> stage;              // by node: the first stage that needs it; turns.size() for the others
};

/// A circular dependence: a source that needs a node with the source's symbol in its shape.
struct SymbolCircle {
  std::string symbol;
  NodeId node;
};

/// The stages of `g`, in linear time. None when a source needs its own symbol; `circle` then names it.
std::optional<SymbolOrder> symbol_order(const Graph& g, SymbolCircle* circle = nullptr);

/// True when every source comes before all nodes with its symbol in their shapes, so that the nodes can run in order.
bool in_symbol_order(const Graph& g);

/// `g` with the leaves first, then the nodes that each stage needs, then the rest. InvalidArgument naming the symbol
/// for a circle.
Graph sorted_by_symbols(const Graph& g);

/// The least and the largest value of a dimension. It looks at the symbols of `d` alone; undeclared ones have the
/// bounds of SymbolInfo{}.
DimRange bounds_of(const Graph& g, const Dim& d);

/// Throws the error of `check_symbol_value` with the node that computed `value`. `symbol` has a source in `g`.
void check_computed_symbol(const Graph& g, const std::string& symbol, std::int64_t value);

}  // namespace rlx
