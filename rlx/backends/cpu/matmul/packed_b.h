// The form "panels": the matrix of a product as its kernels read it, some columns side by side for each k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/device/target.h"
#include "rlx/ir/ops/lir.h"

namespace rlx::cpu {

/// Panels of `width` columns; the last one has as many as are left, in whole vectors of `lanes`.
struct Panels {
  std::int64_t width = 0, lanes = 0;
  PackedBType type = PackedBType::F32;
};

/// The panels of `m` for these kernels: elements of 16 bits stay so, others get as few as there is leave for.
PackedLayout packed_b_layout(const KernelTable& kernels, const ConstantMatrix& m);
/// Panels of pairs, where the machine multiplies bf16 and there is leave to round x too.
std::optional<PackedLayout> bf16_pair_layout(const KernelTable& kernels, const ConstantMatrix& m);
/// The panels that `form` means, if it means some.
std::optional<Panels> panels_of(const PackedLayout& form);
/// True when `form` is what these kernels read as a matrix [k, n], or as several; pairs too.
bool reads_packed_b(const KernelTable& kernels, const PackedLayout& form, std::int64_t k, std::int64_t n);

/// Columns of `op`'s matrix that lie in one of its sources.
struct PanelSource {
  const ops::Relayout& op;
  ops::PackedSource source;
  std::int64_t first = 0;           // of its matrix, that `source` begins with
  std::int64_t begin = 0, end = 0;  // of the source, to be moved
};
/// Columns of a matrix of `k` rows that one thread at a time packs: whole panels, some 256 KB of them.
std::int64_t panel_chunk(const Panels& p, std::int64_t k);
/// Writes the columns from `values`, which are of dtype `from`, into the panels of their matrix at `to`.
void encode_packed_b(const KernelTable& kernels, const PanelSource& s, DType from, const std::byte* values,
                     std::byte* to);
/// The way back: those elements of the source, of dtype `to`.
void decode_packed_b(const PanelSource& s, const std::byte* panels, DType to, std::byte* values);

/// Column `j` of a matrix [k, n] in panels, as floats.
void read_panel_column(const Panels& p, std::int64_t k, std::int64_t n, std::int64_t j, const std::byte* panels,
                       float* to);

}  // namespace rlx::cpu
