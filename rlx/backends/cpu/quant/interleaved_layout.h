// The interleaved block-quantized layout: block-quantized weights as GEMM kernels read them, with quantized values and
// scales as stored in the blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/backends/cpu/quant/interleaved_kernels.h"
#include "rlx/device/target.h"

namespace rlx::cpu {

/// Panels of `lanes` columns. With `int8` their matmuls round x to int8 in blocks of 32 steps of k.
struct InterleavedPanels {
  InterleavedKind kind = InterleavedKind::Q4_0;
  std::int64_t lanes = 0;
  bool int8 = false;
};

/// The interleaved layout of `m` for these kernels; nullopt where the scheme has none. The weights lose nothing:
/// `m.allowed_loss` applies to x.
std::optional<PackedLayout> interleaved_layout(const KernelTable& kernels, const ConstantMatrix& m);
/// The panels that `layout` describes; nullopt for other packed layouts.
std::optional<InterleavedPanels> interleaved_panels_of(const PackedLayout& layout);
/// The block scheme of these panels; Affine for other packed layouts.
QuantScheme interleaved_scheme(const PackedLayout& layout);
/// True when these kernels read `layout` as one or several matrices [k, n].
bool reads_interleaved(const KernelTable& kernels, const PackedLayout& layout, std::int64_t k, std::int64_t n);

/// Columns that a thread encodes at a time: whole panels, some 256 KB of them.
std::int64_t encode_columns_at_a_time(const PackedLayout& layout, std::int64_t k);
/// Encodes the columns from `blocks`, the bytes of the source, into the panels of their matrix at `to`.
void encode_interleaved(const PanelSource& s, const std::byte* blocks, std::byte* to);
/// The inverse: the blocks of the source, bit for bit.
void decode_interleaved(const PanelSource& s, const std::byte* panels, std::byte* blocks);

}  // namespace rlx::cpu
