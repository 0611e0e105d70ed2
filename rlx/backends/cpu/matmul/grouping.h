// Sorting of rows by group and its inverse: the start and end of grouped matmuls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// Most rows of a group that are multiplied together.
inline constexpr std::int64_t kGroupTileRows = 64;

/// Rows in the order of their groups. Group e has rows order[starts[e] .. starts[e + 1]); rows of no group follow from
/// starts[groups] on.
struct Grouping {
  const void* ids = nullptr;
  bool wide = false;
  std::int64_t rows = 0, groups = 0;
  std::int64_t *order = nullptr, *starts = nullptr;
  // Tiles of at most kGroupTileRows rows of one group: {group, first position in `order`}; `num_tiles` of them.
  std::int64_t *tiles = nullptr, *num_tiles = nullptr;

  std::int64_t group_of(std::int64_t row) const {
    const std::int64_t id =
        wide ? static_cast<const std::int64_t*>(ids)[row] : static_cast<const std::int32_t*>(ids)[row];
    return id < 0 || id >= groups ? groups : id;
  }
  std::int64_t most_tiles() const { return rows / kGroupTileRows + std::min(rows, groups); }
};

/// Adds a task that groups the rows of operand 2, ids.
Grouping& add_grouping(LowerContext& c, std::int64_t groups);
/// Adds a task that copies the rows of x to the order of groups, unchanged or transposed ([columns, rows]); returns the
/// copy.
const float* add_group_rows(LowerContext& c, const Grouping& g, const View& x, bool transposed);
/// Adds a task that copies rows [M, columns] back to their positions in the result. Rows of no group become zeros.
void add_ungroup_rows(LowerContext& c, const Grouping& g, const float* sorted, std::int64_t columns);
/// Where all sums are empty it adds a task that writes zeros and returns true.
bool add_zeros_for_nothing(LowerContext& c);

}  // namespace rlx::cpu
