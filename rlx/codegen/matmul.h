// The kernels of matmuls.
#pragma once

#include "rlx/codegen/dot.h"

namespace rlx::codegen {

/// True for so few rows or columns that threads of a workgroup split K.
inline bool is_few(const Dim& d) { return d.is_static() && d.value() <= 4; }

/// Split-K: parts of `length`, whose sums a second kernel adds in order.
struct KParts {
  Dim count = 1, length = 0;
};
/// Splits K so that there are about as many workgroups as the dialect wants, where the matmul has `groups` without a
/// split. No part but the last is shorter than `least`.
KParts k_parts(const Dot& dot, const Dim& groups, std::int64_t least);

/// True when each part is a multiple of the quantized values' group (DotReader::group); false without groups.
bool whole_groups(const KParts& parts, int group);

/// Adds the kernels of a nonempty matmul: GEMV, tiles or blocks, depending on its extents.
void write_product(const Dot& dot);
/// GEMV and skinny GEMM of up to 4 rows, or with `columns` of up to 4 columns. Every weight is read once.
void write_gemv(const Dot& dot, bool columns);
/// GEMM in tiles of 64 by 64 that workgroups read into shared memory.
void write_tiles(const Dot& dot);
/// GEMM in tiles of 8 by 8 that each thread reads by itself: for software rasterizers, which have caches and expensive
/// barriers.
void write_blocks(const Dot& dot);

/// The scratch for the parts of a split matmul, which `finish_dot` sums; none when the first kernel finishes the matmul
/// itself.
std::optional<Ref> parts_of(const Dot& dot, const KParts& parts, bool stores_result);

}  // namespace rlx::codegen
