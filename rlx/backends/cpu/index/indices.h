// What the rows of gathers, scatters and windows at run-time positions have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/index/indexed_kernels.h"
#include "rlx/ir/op_kind.h"

namespace rlx::cpu {

/// The rows of one file each, which index_entries() joins.
std::span<const KernelEntry> gather_entries();
std::span<const KernelEntry> put_rows_entries();
std::span<const KernelEntry> scatter_entries();
std::span<const KernelEntry> window_at_entries();

/// Fills in `b`, which stays where it is; operands 1 and on are the indices.
void point_blocks(LowerContext& c, NamedBlocks& b, const View& x, const std::vector<std::int64_t>& axes,
                  IndexMode mode);
/// Why a gather or scatter has more axes than the rows take.
const char* index_refuses(const Graph& g, NodeId id);

/// Copies x to y unless the plan has put them into the same place.
void copy_unless_in_place(LowerContext& c, const View& x, const View& y);
/// In place over the first operand alone: the others are read while elements are written.
bool over_first(const Graph& g, NodeId id, int operand, int result);

}  // namespace rlx::cpu
