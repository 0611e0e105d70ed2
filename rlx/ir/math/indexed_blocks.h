// Where the blocks lie that indices along some axes name: for the rules of Gather and Scatter, and for kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rlx {

/// Blocks of a row-major x of extents `dims`: [outer] x [count of indices] of them, each `rows` runs of `run`
/// neighbouring elements, which follow each other in what is picked.
struct IndexedBlocks {
  std::int64_t outer = 1, outer_stride = 1, run = 1;
  std::vector<std::int64_t> extents, strides;  // of the indexed axes
  std::vector<std::int64_t> rows;              // where each run begins inside a block
  IndexedBlocks() = default;
  IndexedBlocks(std::span<const std::int64_t> dims, const std::vector<std::int64_t>& axes);
  /// Elements of a block.
  std::int64_t size() const { return static_cast<std::int64_t>(rows.size()) * run; }
};

}  // namespace rlx
