// Blocks that index tensors name, found and read one after the other.
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
/// Where the blocks lie that the index operands of a node name, one after the other.
struct NamedBlocks {
  struct Axis {
    Indices indices;
    std::vector<std::int64_t> strides;  // of the index tensor
  };
  IndexedBlocks blocks;
  std::vector<Axis> axes;
  std::vector<std::int64_t> dims;  // of the index tensors, neighbours merged; at least one
  std::int64_t count = 1;
  bool clamp = false;
  const IndexKernels* kernels = nullptr;

  /// Offsets are less than this.
  std::int64_t span() const {
    std::int64_t most = 1;
    for (std::size_t k = 0; k < axes.size(); ++k)
      most += std::max<std::int64_t>(0, blocks.extents[k] - 1) * blocks.strides[k];
    return most;
  }
};

/// Indices that lie `step` apart, of an axis whose elements lie `stride` apart.
struct IndexRow {
  const void* data = nullptr;
  bool wide = false;
  std::int64_t step = 1, extent = 0, stride = 1;
};

struct IndexKernels {
  /// at[j] = base + the sum of what index j of each row adds, -1 where one is out of range; `clamp`: none is, but where
  /// there is no element. count > 0.
  void (*places)(const IndexRow* rows, int count, bool clamp, std::int64_t base, std::int64_t n, std::int64_t* at);
  /// y[j] = x[at[j]], `fill` where that is -1; elements of 8 to 128 bits.
  void (*take)(int bits, const void* x, const std::int64_t* at, std::int64_t n, const void* fill, void* y);
};
const IndexKernels& index_kernels(Isa isa);

/// at[i] = where block begin + i lies behind its outer part, -1 when its index is out of range, up to block `end`.
void find_blocks(const NamedBlocks& b, std::int64_t begin, std::int64_t end, std::int64_t* at);

/// Blocks whose places are found together, where they are not kept.
inline constexpr std::int64_t kPlacesTogether = 256;
/// Calls f(i, where block i lies) for i in [begin, end).
template <class F>
void each_block(const NamedBlocks& b, std::int64_t begin, std::int64_t end, F f) {
  std::int64_t at[kPlacesTogether];
  for (std::int64_t i = begin; i < end; i += kPlacesTogether) {
    const std::int64_t n = std::min(kPlacesTogether, end - i);
    find_blocks(b, i, i + n, at);
    for (std::int64_t j = 0; j < n; ++j) f(i + j, at[j]);
  }
}

/// What a gather reads and writes: elements of `bits`, `fill` for what is out of range.
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
