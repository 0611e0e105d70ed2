// The verifier: every invariant of a graph at a level, checked in one pass.
#pragma once

#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"

namespace rlx {

/// Every problem of `g` at `level`, in node order; empty for a valid graph. Checked: operands exist and precede their
/// users; operand counts, attribute ranges and dtypes (the shape rules); stored shapes equal inferred ones; every op is
/// allowed at the level; leaf names are distinct; sub-graphs are closed (no Param, State or state update) and valid;
/// outputs exist; state updates have a state of their type; symbol bounds are possible. Never throws on a broken graph.
std::vector<Diagnostic> verify(const Graph& g, Level level);

/// Throws the first problem with the number of others. `what` names the producer of the graph ("pass fuse-dot",
/// "model.rlx").
void verify_or_throw(const Graph& g, Level level, std::string_view what);

}  // namespace rlx
