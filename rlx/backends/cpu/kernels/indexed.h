// Blocks that index tensors name, found and read one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rlx/ir/indexed_blocks.h"

namespace rlx::cpu {

/// Reads an I32 or I64 index.
struct Indices {
  const void* data = nullptr;
  bool wide = false;
  std::int64_t at(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
};

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

  /// Calls f(i, offset of the block from its outer part, -1 when it is out of range) for i in [begin, end).
  template <class F>
  void each(std::int64_t begin, std::int64_t end, F f) const {
    const std::int64_t cols = dims.back();
    for (std::int64_t i = begin; i < end;) {
      // The row of the last axis that i lies in, from i on. Most of the indices of a row are one number, or one alone
      // changes.
      const std::int64_t col = i % cols, last = std::min(end, i - col + cols);
      std::int64_t starts[kMost], base = 0;
      std::size_t moving[kMost], moves = 0;
      for (std::size_t k = 0; k < axes.size(); ++k) {
        starts[k] = 0;
        std::int64_t rest = i;
        for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) starts[k] += rest % dims[d] * axes[k].strides[d];
        if (axes[k].strides.back() != 0)
          moving[moves++] = k;
        else if (base >= 0)
          base = joined(base, placed(k, axes[k].indices.at(starts[k])));
      }
      if (base < 0 || moves == 0) {
        for (; i < last; ++i) f(i, base);
      } else if (moves == 1) {
        const Axis& a = axes[moving[0]];
        if (a.indices.wide)
          walk(static_cast<const std::int64_t*>(a.indices.data) + starts[moving[0]], moving[0], base, i, last, f);
        else
          walk(static_cast<const std::int32_t*>(a.indices.data) + starts[moving[0]], moving[0], base, i, last, f);
        i = last;
      } else {
        for (std::int64_t j = 0; i < last; ++i, ++j) {
          std::int64_t offset = base;
          for (std::size_t m = 0; m < moves && offset >= 0; ++m) {
            const std::size_t k = moving[m];
            offset = joined(offset, placed(k, axes[k].indices.at(starts[k] + j * axes[k].strides.back())));
          }
          f(i, offset);
        }
      }
    }
  }

  /// Offsets are less than this.
  std::int64_t span() const {
    std::int64_t most = 1;
    for (std::size_t k = 0; k < axes.size(); ++k)
      most += std::max<std::int64_t>(0, blocks.extents[k] - 1) * blocks.strides[k];
    return most;
  }

 private:
  static constexpr std::size_t kMost = 16;  // axes: what rows take

  // What index `at` of axis k adds, -1 when it is out of range.
  std::int64_t placed(std::size_t k, std::int64_t at) const {
    const std::int64_t extent = blocks.extents[k];
    if (clamp) at = std::clamp<std::int64_t>(at, 0, extent - 1);
    return static_cast<std::uint64_t>(at) < static_cast<std::uint64_t>(extent) ? at * blocks.strides[k] : -1;
  }
  static std::int64_t joined(std::int64_t offset, std::int64_t more) { return more < 0 ? -1 : offset + more; }

  template <class I, class F>
  void walk(const I* p, std::size_t k, std::int64_t base, std::int64_t i, std::int64_t last, F& f) const {
    const std::int64_t extent = blocks.extents[k], stride = blocks.strides[k], step = axes[k].strides.back();
    if (clamp)
      for (; i < last; ++i, p += step) f(i, base + std::clamp<std::int64_t>(*p, 0, extent - 1) * stride);
    else
      for (; i < last; ++i, p += step) {
        const std::int64_t at = *p;
        f(i, static_cast<std::uint64_t>(at) < static_cast<std::uint64_t>(extent) ? base + at * stride : -1);
      }
  }
};

/// at[i] = where block i lies behind its outer part, -1 when its index is out of range, for i in [begin, end).
void find_blocks(const NamedBlocks& b, std::int64_t begin, std::int64_t end, std::int64_t* at);

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
