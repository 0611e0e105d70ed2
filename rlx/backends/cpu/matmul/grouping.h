// Rows brought together by group, and back: what products by group begin and end with.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// Rows of one group that are multiplied together, at most.
inline constexpr std::int64_t kGroupTileRows = 64;

/// The rows in the order of their groups: those of group e are order[starts[e] .. starts[e + 1]), those of none come
/// last, behind starts[groups].
struct Grouping {
  const void* ids = nullptr;
  bool wide = false;
  std::int64_t rows = 0, groups = 0;
  std::int64_t *order = nullptr, *starts = nullptr;
  // Tiles of at most kGroupTileRows rows of one group: {group, first place}, as many as `num_tiles` says.
  std::int64_t *tiles = nullptr, *num_tiles = nullptr;

  std::int64_t group_of(std::int64_t row) const {
    const std::int64_t id =
        wide ? static_cast<const std::int64_t*>(ids)[row] : static_cast<const std::int32_t*>(ids)[row];
    return id < 0 || id >= groups ? groups : id;
  }
  std::int64_t most_tiles() const { return rows / kGroupTileRows + std::min(rows, groups); }
};

/// A step that groups the rows of operand 2, ids.
Grouping& add_grouping(LowerContext& c, std::int64_t groups);
/// A step that copies the rows of x into the order of groups, as they are or transposed ([columns, rows]); gives the
/// copy.
const float* add_group_rows(LowerContext& c, const Grouping& g, const View& x, bool transposed);
/// A step that brings rows [M, columns] back to their places in the result; zeros for those of no group.
void add_ungroup_rows(LowerContext& c, const Grouping& g, const float* sorted, std::int64_t columns);
/// Where nothing is added up: a step that writes zeros, and true.
bool add_zeros_for_nothing(LowerContext& c);

}  // namespace rlx::cpu
