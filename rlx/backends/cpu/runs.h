// Strided values as contiguous runs of elements.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// A view as contiguous runs of `length` elements, in row-major order.
class Runs {
 public:
  Runs() = default;
  explicit Runs(const View& v) {
    int axis = v.rank();
    for (; axis > 0; --axis) {
      const std::int64_t extent = v.dim(axis - 1);
      if (extent != 1 && v.stride(axis - 1) != length_) break;
      length_ *= extent;
    }
    for (int i = 0; i < axis; ++i) {
      if (v.dim(i) == 1) continue;
      // Merge an axis with the next one where their strides fold.
      if (!dims_.empty() && strides_.back() == v.stride(i) * v.dim(i)) {
        dims_.back() *= v.dim(i);
        strides_.back() = v.stride(i);
      } else {
        dims_.push_back(v.dim(i));
        strides_.push_back(v.stride(i));
      }
    }
    if (v.elements() == 0) length_ = 0;
  }

  std::int64_t length() const { return length_; }
  /// Offset of element `element` from the first element. The elements up to the end of its run follow it.
  std::int64_t at(std::int64_t element) const {
    std::int64_t run = element / length_, offset = element % length_;
    for (std::size_t i = dims_.size(); i-- > 0; run /= dims_[i]) offset += run % dims_[i] * strides_[i];
    return offset;
  }
  /// Calls f(offset, count, index - begin) for each contiguous part of elements [begin, end), where index is its first
  /// element.
  template <class F>
  void each(std::int64_t begin, std::int64_t end, F f) const {
    for (std::int64_t e = begin; e < end;) {
      const std::int64_t count = std::min(end - e, length_ - e % length_);
      f(at(e), count, e - begin);
      e += count;
    }
  }

 private:
  std::int64_t length_ = 1;
  std::vector<std::int64_t> dims_, strides_;  // over the runs
};

}  // namespace rlx::cpu
