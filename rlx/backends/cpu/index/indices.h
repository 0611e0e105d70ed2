// Shared by the kernel entries of gather, scatter and windows at run-time positions.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/index/indexed_kernels.h"
#include "rlx/ir/op_kind.h"

namespace rlx::cpu {

/// Fills in `b`, which must not move afterwards. Operands 1 and on are the indices.
void point_blocks(LowerContext& c, NamedBlocks& b, const View& x, const std::vector<std::int64_t>& axes,
                  IndexMode mode);
/// Refuses a gather or scatter with too many axes.
const char* index_refuses(const Graph& g, NodeId id);

/// Copies x to y unless the plan made them the same place.
void copy_unless_in_place(LowerContext& c, const View& x, const View& y);
/// The result may alias only the first operand: the others are read while elements are written.
bool over_first(const Graph& g, NodeId id, int operand, int result);

}  // namespace rlx::cpu
