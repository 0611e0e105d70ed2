// Static graphs as StableHLO text, the form in which a PJRT plug-in takes programs (`mlir`).
//
// A value of a 4-bit dtype is passed into and out of a program as its bytes, U8 [(n + 1) / 2]: plug-ins differ in how
// they keep such elements. All other dtypes have an element type of their own there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "rlx/ir/graph.h"
#include "rlx/ir/op_set.h"

namespace rlx::tpu {

/// Every kind that has a row, and the leaves.
const OpSet& stablehlo_kinds();
/// Null when the text can say this node, else why not; the text is static.
const char* stablehlo_refuses(const Graph& g, NodeId id);

/// A donated argument, whose buffer the result may take.
struct HloAlias {
  std::uint32_t argument = 0, result = 0;
};

/// The module whose function @main takes the Inputs, then the States, then the Params of `g`, each in node order, and
/// gives the outputs, then the new value of each State in node order (the State itself where nothing sets it).
/// Internal error for a graph with symbols or with nodes that are refused.
std::string stablehlo_text(const Graph& g, std::span<const HloAlias> aliases);

}  // namespace rlx::tpu
