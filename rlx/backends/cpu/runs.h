// Strided values as runs of adjacent elements.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// A view whose last axis is adjacent, in row-major order: runs of `length` neighbours.
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
      // An axis whose steps go on where those of the next one end is one with it.
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
  /// Where element `element` lies, counted from the first; neighbours follow up to the end of its run.
  std::int64_t at(std::int64_t element) const {
    std::int64_t run = element / length_, offset = element % length_;
    for (std::size_t i = dims_.size(); i-- > 0; run /= dims_[i]) offset += run % dims_[i] * strides_[i];
    return offset;
  }
  /// Calls f(place of the first, how many, the first of them counted from `begin`) for the neighbours of [begin, end).
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
  std::vector<std::int64_t> dims_, strides_;  // of the runs
};

}  // namespace rlx::cpu
