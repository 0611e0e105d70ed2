// Blocks addressed by index tensors: their offsets, and gather.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/math/indexed_blocks.h"

namespace rlx::cpu {

/// Reads an I32 or I64 index.
struct Indices {
  const void* data = nullptr;
  bool wide = false;
  std::int64_t at(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
};

struct IndexKernels;
/// The offsets of the blocks that the index operands of a node address, in order.
struct NamedBlocks {
  struct Axis {
    Indices indices;
    std::vector<std::int64_t> strides;  // of the index tensor
  };
  IndexedBlocks blocks;
  std::vector<Axis> axes;
  std::vector<std::int64_t> dims;  // of the index tensors, with adjacent dims merged; at least one
  std::int64_t count = 1;
  bool clamp = false;
  const IndexKernels* kernels = nullptr;

  /// An upper bound of offsets (exclusive).
  std::int64_t span() const {
    std::int64_t most = 1;
    for (std::size_t k = 0; k < axes.size(); ++k)
      most += std::max<std::int64_t>(0, blocks.extents[k] - 1) * blocks.strides[k];
    return most;
  }
};

/// Indices `step` apart, for an axis whose elements are `stride` apart.
struct IndexRow {
  const void* data = nullptr;
  bool wide = false;
  std::int64_t step = 1, extent = 0, stride = 1;
};

struct IndexKernels {
  /// at[j] = base + the sum of the offsets of index j of each row; -1 where an index is out of range. `clamp`: indices
  /// are clamped, and -1 occurs only where an axis is empty. count > 0.
  void (*places)(const IndexRow* rows, int count, bool clamp, std::int64_t base, std::int64_t n, std::int64_t* at);
  /// y[j] = x[at[j]]; `fill` where at[j] is -1. Elements have 8 to 128 bits.
  void (*take)(int bits, const void* x, const std::int64_t* at, std::int64_t n, const void* fill, void* y);
};
const IndexKernels& index_kernels(Isa isa);

/// at[i] = offset of block begin + i from its outer part, up to block `end`; -1 where its index is out of range.
void find_blocks(const NamedBlocks& b, std::int64_t begin, std::int64_t end, std::int64_t* at);

/// Blocks whose offsets are computed together, where the offsets are not stored.
inline constexpr std::int64_t kPlacesTogether = 256;
/// Calls f(i, offset of block i) for i in [begin, end).
template <class F>
void each_block(const NamedBlocks& b, std::int64_t begin, std::int64_t end, F f) {
  std::int64_t at[kPlacesTogether];
  for (std::int64_t i = begin; i < end; i += kPlacesTogether) {
    const std::int64_t n = std::min(kPlacesTogether, end - i);
    find_blocks(b, i, i + n, at);
    for (std::int64_t j = 0; j < n; ++j) f(i + j, at[j]);
  }
}

/// The operands and result of a gather: elements of `bits` bits; `fill` for indices out of range.
struct Gathered {
  NamedBlocks from;
  int bits = 8;
  alignas(16) std::byte fill[16] = {};
  const void* x = nullptr;
  void* y = nullptr;
};
/// Blocks [first, last) of outer index `outer`.
void gather_blocks(const Gathered& g, std::int64_t outer, std::int64_t first, std::int64_t last);

}  // namespace rlx::cpu
