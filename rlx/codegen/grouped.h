// Products of rows with the matrix of their group, many rows at a time.
#pragma once

#include <string>
#include <string_view>

#include "rlx/codegen/sorting.h"

namespace rlx::codegen {

/// The group of row `i`, a name, as a u32 expression; not below `groups` for a row of none.
std::string group_of_row(KernelBuilder& k, const Ref& ids, std::string_view i, const std::string& groups);
/// Adds kernels that bring the rows in the order of their groups: each key is a group, each place a row.
SortedRows rows_by_group(NodeKernels& node, const Ref& ids, const Dim& groups);

/// Adds the kernels of a GroupedDot of few rows: each is a product of one row, with the matrix of its group.
void write_grouped_gemv(NodeKernels& node);
/// Adds the kernels of a GroupedDot of rows: tiles of rows in the order of their groups, so that the weights of a group
/// are read once for all rows of a tile that are its own.
void write_grouped_tiles(NodeKernels& node);

}  // namespace rlx::codegen
