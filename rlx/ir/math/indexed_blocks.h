// The locations of blocks that indices along some axes select, for the rules of Gather and Scatter and for kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rlx {

/// The blocks of a row-major x of extents `dims`: [outer] x [count of indices] blocks. Each block is `rows` runs of
/// `run` contiguous elements, and the runs are adjacent in the selected block.
struct IndexedBlocks {
  std::int64_t outer = 1, outer_stride = 1, run = 1;
  std::vector<std::int64_t> extents, strides;  // of the indexed axes
  std::vector<std::int64_t> rows;              // the start of each run inside a block
  IndexedBlocks() = default;
  IndexedBlocks(std::span<const std::int64_t> dims, const std::vector<std::int64_t>& axes);
  /// Elements of a block.
  std::int64_t size() const { return static_cast<std::int64_t>(rows.size()) * run; }
};

}  // namespace rlx
