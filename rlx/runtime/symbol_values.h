// Symbols whose values a run finds out: those that inputs alone decide are evaluated on the host before it, the others
// stop it where their values are known.
#pragma once

#include <set>
#include <string>

#include "rlx/runtime/shared_programs.h"

namespace rlx {

/// The symbols of `g`, whose nodes are in the order of its symbols, that inputs and constants alone decide.
std::set<std::string, std::less<>> host_symbols(const Graph& g);
/// The nodes of `g` that those symbols need.
SharedPrograms::SymbolProgram symbol_program_of(const Graph& g, const std::set<std::string, std::less<>>& host);
/// `g`, whose symbols of these names are given their values from outside.
Graph without_sources(const Graph& g, const std::set<std::string, std::less<>>& names);
/// Makes symbols that still have a source runtime symbols of `modes`. Throws for one that has another mode, and for one
/// without an upper bound.
void make_computed_runtime(const Graph& g, SymbolModes& modes);

}  // namespace rlx
