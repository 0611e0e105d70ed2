// Readable dumps of a graph, its statistics, the changes of a pass, and a buffer plan.
#pragma once

#include <string>

#include "rlx/ir/graph.h"
#include "rlx/ir/module.h"

namespace rlx {

/// Header with counts, op histogram, symbols, then one aligned line per node: value, op, type, label, source line, the
/// nodes it came from, and `<- output 0` or `<- state "kv"`. Constants above 8 elements and sub-graph bodies are
/// abbreviated.
std::string inspect_graph(const Graph& g);
/// The header and the histogram alone.
std::string inspect_graph_stats(const Graph& g);
/// Node counts and the signed change of every op kind: "@g: 12 -> 9 nodes (-3)", "  matmul -2".
std::string inspect_graph_diff(const Graph& before, const Graph& after);

std::string inspect_hir(const HirModule& m);
std::string inspect_hir_stats(const HirModule& m);
std::string inspect_mir(const MirModule& m);
std::string inspect_mir_stats(const MirModule& m);
std::string inspect_mir_diff(const MirModule& before, const MirModule& after);
/// The graph, the prepare graph and the buffer plan.
std::string inspect_lir(const LirModule& m);
std::string inspect_lir_stats(const LirModule& m);
/// One row per value in schedule order: step, value, place, offset, bytes, type, the steps it waits for, and for a plan
/// of several devices its device number (LirModule::others). The notes of inspect_plan_notes follow: the parts of the
/// program with their devices, host sync points, loop carries with two buffers, and every copy with its reason.
std::string inspect_buffer_plan(const LirModule& m);
/// The notes below the rows of that table.
std::string inspect_plan_notes(const LirModule& m);
/// One line per update that the plan could not do in place, with the reason: states that are copied after each run, and
/// donated inputs that their output cannot overwrite. Empty when there are none.
std::string inspect_copies(const LirModule& m);
/// The dump for the module's stage.
std::string inspect_module(const GraphModule& m);

/// "640 B", "1.5 KB", "86.6 MB": powers of 1024, at most one decimal.
std::string bytes_text(std::size_t bytes);

}  // namespace rlx
