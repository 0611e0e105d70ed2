// Grouped matmuls: each row is multiplied by the matrix of its group.
#pragma once

#include <string>
#include <string_view>

#include "rlx/codegen/sorting.h"

namespace rlx::codegen {

/// The group of row `i`, a name, as a u32 expression; at least `groups` for a row without a group.
std::string group_of_row(KernelBuilder& k, const Ref& ids, std::string_view i, const std::string& groups);
/// Adds kernels that sort the rows by group: each key is a group, each place a row.
SortedRows rows_by_group(NodeKernels& node, const Ref& ids, const Dim& groups);

/// Adds the kernels of a GroupedDot with few rows: a GEMV per row with the matrix of its group.
void write_grouped_gemv(NodeKernels& node);
/// Adds the kernels of a GroupedDot in tiles of rows sorted by group. The weights of a group are read once for all its
/// rows in a tile.
void write_grouped_tiles(NodeKernels& node);

}  // namespace rlx::codegen
