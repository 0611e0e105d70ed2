// The kernels of products.
#pragma once

#include "rlx/codegen/dot.h"

namespace rlx::codegen {

/// So few rows or columns that lanes share what is summed.
inline bool is_few(const Dim& d) { return d.is_static() && d.value() <= 4; }

/// How the contracted extent is cut: parts of `length`, whose sums a second kernel adds up in order.
struct KParts {
  Dim count = 1, length = 0;
};
/// Parts that make about as many groups as the dialect wants of a product that has `groups`, none shorter than `least`.
KParts k_parts(const Dot& dot, const Dim& groups, std::int64_t least);

/// True when each part is whole groups of codes (DotReader::group): of none, never.
bool whole_groups(const KParts& parts, int group);

/// Adds the kernels of a product with elements: the form that its extents ask for.
void write_product(const Dot& dot);
/// Up to 4 rows, or as many columns: `columns` says that it is those. Every weight is read once.
void write_gemv(const Dot& dot, bool columns);
/// Tiles of 64 by 64 that groups read into memory they share.
void write_tiles(const Dot& dot);
/// Tiles of 8 by 8 that each thread reads by itself: for rasterisers, which have caches and dear barriers.
void write_blocks(const Dot& dot);

/// Where the parts of a product are left that `finish_dot` takes on: none when its kernel ends it itself.
std::optional<Ref> parts_of(const Dot& dot, const KParts& parts, bool stores_result);

}  // namespace rlx::codegen
