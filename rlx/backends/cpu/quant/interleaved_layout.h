// The form "strips": block-quantised weights as products read them, codes and scales as they are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/backends/cpu/quant/interleaved_kernels.h"
#include "rlx/device/target.h"

namespace rlx::cpu {

/// Strips of `lanes` columns; with `int8` their products round x to 8 bits in blocks of 32 steps of k.
struct Strips {
  InterleavedKind kind = InterleavedKind::Q4_0;
  std::int64_t lanes = 0;
  bool int8 = false;
};

/// The strips of `m` for these kernels; none of a scheme that has none. Nothing is lost of the weights: what `m.leave`
/// says is taken of x.
std::optional<PackedLayout> interleaved_layout(const KernelTable& kernels, const ConstantMatrix& m);
/// The strips that `form` means, if it means some.
std::optional<Strips> interleaved_panels_of(const PackedLayout& form);
/// The block scheme of these strips; Affine of another form.
QuantScheme interleaved_scheme(const PackedLayout& form);
/// True when `form` is what these kernels read as a matrix [k, n], or as several.
bool reads_interleaved(const KernelTable& kernels, const PackedLayout& form, std::int64_t k, std::int64_t n);

/// Columns that one thread at a time encodes: whole strips, some 256 KB of them.
std::int64_t strip_chunk(const PackedLayout& form, std::int64_t k);
/// Writes the columns from `blocks`, the bytes of the source, into the strips of their matrix at `to`.
void encode_interleaved(const PanelSource& s, const std::byte* blocks, std::byte* to);
/// The way back: those blocks of the source, bit for bit.
void decode_interleaved(const PanelSource& s, const std::byte* strips, std::byte* blocks);

}  // namespace rlx::cpu
