// Static graphs as StableHLO text, the program format of PJRT plug-ins (`mlir`).
//
// A 4-bit value enters and leaves a program as its bytes, U8 [(n + 1) / 2], as plug-ins store 4-bit elements
// differently. All other dtypes have a StableHLO element type.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "rlx/ir/graph.h"
#include "rlx/ir/op_set.h"

namespace rlx::tpu {

/// Every kind with a kernel entry, and the leaves.
const OpSet& stablehlo_kinds();
/// Null when the text can express this node, else the reason. The text is static.
const char* stablehlo_refuses(const Graph& g, NodeId id);

/// A donated argument whose buffer a result may reuse.
struct HloAlias {
  std::uint32_t argument = 0, result = 0;
};

/// The module of a graph. Its function @main takes the Inputs, States and Params of `g`, each in node order. It returns
/// the outputs and then the new value of each State in node order (the State itself where nothing sets it). Internal
/// error for a graph with symbols or with refused nodes.
std::string stablehlo_text(const Graph& g, std::span<const HloAlias> aliases);

}  // namespace rlx::tpu
