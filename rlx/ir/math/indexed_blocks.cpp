// Positions of indexed blocks.
#include "rlx/ir/math/indexed_blocks.h"

#include <algorithm>

#include "rlx/tensor/tensor.h"

namespace rlx {

IndexedBlocks::IndexedBlocks(std::span<const std::int64_t> dims, const std::vector<std::int64_t>& axes) {
  const std::vector<std::int64_t> all = row_major_strides(dims);
  const auto first = static_cast<std::size_t>(axes.front()), last = static_cast<std::size_t>(axes.back());
  for (std::size_t a = 0; a < first; ++a) outer *= dims[a];
  outer_stride = dims[first] * all[first];
  run = all[last];
  for (std::int64_t a : axes) {
    extents.push_back(dims[static_cast<std::size_t>(a)]);
    strides.push_back(all[static_cast<std::size_t>(a)]);
  }
  // An x without elements may have huge other extents, so nothing is walked.
  bool empty = outer == 0 || run == 0;
  for (std::size_t a = first; a < last; ++a)
    empty = empty || (dims[a] == 0 && !std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(a)));
  if (empty) {
    outer = 0;
    return;
  }
  rows.push_back(0);
  for (std::size_t a = first; a < last; ++a) {
    if (std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(a))) continue;
    std::vector<std::int64_t> longer;
    for (std::int64_t row : rows)
      for (std::int64_t i = 0; i < dims[a]; ++i) longer.push_back(row + i * all[a]);
    rows = std::move(longer);
  }
}

}  // namespace rlx
