// Packed B: the packed layout of a matrix as matmul kernels read it, some columns side by side for each k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/device/target.h"
#include "rlx/ir/ops/lir.h"

namespace rlx::cpu {

/// Panels of `width` columns. The last panel has the remaining columns in whole vectors of `lanes`.
struct Panels {
  std::int64_t width = 0, lanes = 0;
  PackedBType type = PackedBType::F32;
};

/// The packed B layout of `m` for these kernels. 16-bit elements stay as they are; others are as small as the allowed
/// precision loss permits.
PackedLayout packed_b_layout(const KernelTable& kernels, const ConstantMatrix& m);
/// The bf16 pair (VNNI) layout, where the machine multiplies bf16 and the allowed precision loss includes rounding x.
std::optional<PackedLayout> bf16_pair_layout(const KernelTable& kernels, const ConstantMatrix& m);
/// The panels that `layout` describes; nullopt for other packed layouts.
std::optional<Panels> panels_of(const PackedLayout& layout);
/// Offset of the scales of packed I8, one for each column of the whole matrix.
std::int64_t packed_scales_at(const Panels& p, std::int64_t k, std::int64_t n);
/// True when these kernels read `layout` as one or several matrices [k, n], including bf16 pairs.
bool reads_packed_b(const KernelTable& kernels, const PackedLayout& layout, std::int64_t k, std::int64_t n);

/// Columns of `op`'s matrix that lie in one of its sources.
struct PanelSource {
  const ops::Relayout& op;
  ops::PackedSource source;
  std::int64_t first = 0;           // column of the matrix that `source` begins with
  std::int64_t begin = 0, end = 0;  // columns of the source to encode or decode
};
/// Columns of a matrix of `k` rows that a thread packs at a time: whole panels, some 256 KB of them.
std::int64_t panel_chunk(const Panels& p, std::int64_t k);
/// Packs the columns from `values`, which have dtype `from`, into the panels of their matrix at `to`.
void encode_packed_b(const KernelTable& kernels, const PanelSource& s, DType from, const std::byte* values,
                     std::byte* to);
/// The inverse: writes those elements of the source as dtype `to`.
void decode_packed_b(const PanelSource& s, const std::byte* panels, DType to, std::byte* values);

/// Reads column `j` of a packed matrix [k, n] as floats.
void read_panel_column(const Panels& p, std::int64_t k, std::int64_t n, std::int64_t j, const std::byte* panels,
                       float* to);

}  // namespace rlx::cpu
