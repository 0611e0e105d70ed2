// The elements and weights that an Interpolate uses for each result element along an axis.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/ops/conv.h"

namespace rlx {

/// Element o is the sum of weight[t] * x[index[t]] over t in [begin[o], begin[o + 1]).
struct ResizeTaps {
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> index{};
  std::vector<double> weight{};
  std::int64_t outputs() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  /// The largest number of terms of an element.
  std::int64_t widest() const;
};

/// The taps along op.axes[i], where x has `extent` elements.
ResizeTaps resize_taps(const ops::Interpolate& op, std::size_t i, std::int64_t extent);

}  // namespace rlx
