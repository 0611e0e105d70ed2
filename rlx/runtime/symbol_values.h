// Symbols whose values are computed during a run. Symbols that inputs alone determine are evaluated on the host before
// the run. Others make the run wait at a host sync point.
#pragma once

#include <set>
#include <string>

#include "rlx/runtime/shared_programs.h"

namespace rlx {

/// The symbols that inputs and constants alone determine. The nodes of `g` must be in the order of its symbols.
std::set<std::string, std::less<>> host_symbols(const Graph& g);
/// The nodes of `g` that those symbols need.
SharedPrograms::SymbolProgram symbol_program_of(const Graph& g, const std::set<std::string, std::less<>>& host);
/// `g` with the symbols of these names set from outside instead of by their sources.
Graph without_sources(const Graph& g, const std::set<std::string, std::less<>>& names);
/// Makes symbols that still have a source runtime symbols in `modes`. Throws for a symbol that has another mode, and
/// for one without an upper bound.
void make_computed_runtime(const Graph& g, SymbolModes& modes);

}  // namespace rlx
