// Graphs, symbols and printed tensors of the command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"

namespace rlx::cli {

/// The graph in `path` ("-": the standard input), text or binary form, verified. Errors: those of the readers, with the
/// place.
Graph read_graph(const std::string& path);

/// "name=rest" split at the first '='; an argument without one, or one that is the path of a file, has an empty name.
struct Binding {
  std::string name, rest;
};
Binding split_binding(const std::string& text);

/// `text` as symbol values: "batch=8". Errors: UsageError for an unknown symbol, naming those of `g`, for no number and
/// for one outside the symbol's bounds.
SymbolBinding parse_symbols(const Graph& g, const std::vector<std::string>& texts);

/// Names the symbols of `g` that `binding` gives no value: "dimensions 'batch', 'seq' have no value"; "" if all have
/// one.
std::string without_value(const Graph& g, const SymbolBinding& binding);
/// Example options that give these symbols values within their bounds: "--bind batch=16 --bind seq=16".
std::string bind_options(const Graph& g, const SymbolBinding& binding);

/// Shape and values for people: one line per row of the last axis, shortest digits that read back; at most
/// `max_values`.
std::string tensor_text(const Tensor& t, std::int64_t max_values);

}  // namespace rlx::cli
