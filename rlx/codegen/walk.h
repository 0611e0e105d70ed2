// Some axes of a value, indexed by one number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// The axes `axes` of `r`, indexed by one row-major number. Contiguous neighbouring axes are joined.
class Walk {
 public:
  Walk() = default;
  Walk(const Ref& r, const std::vector<int>& axes);
  /// The offset of element `number` (a u32 expression) from the start of the axes. `name` is the name of the function
  /// that computes it, where a function is needed.
  std::string at(KernelBuilder& k, std::string_view name, std::string_view number) const;
  const Dim& extent() const { return extent_; }
  /// True when elements 4 i to 4 i + 3 are contiguous, at a multiple of 4 if the start of the axes is one.
  bool in_fours() const;
  /// True when all offsets of the walk are multiples of 4.
  bool by_fours() const;
  /// True when consecutive elements are contiguous, except across the ends of an axis.
  bool dense_last() const { return !ref_.strides.empty() && ref_.strides.back().is(1); }

 private:
  Ref ref_;  // of the joined axes
  Dim extent_ = 1;
};

/// Elements `index` to `index + 3` of `r` as a vec4 of the compute type. They are contiguous, and `index` and the start
/// of `r` are multiples of 4. `name` is the name of the function that loads them, where a function is needed.
std::string load_quad(KernelBuilder& k, const Ref& r, std::string_view name, std::string_view index);
/// A statement that stores the vec4 `value` in these elements.
std::string store_quad(KernelBuilder& k, const Ref& r, std::string_view index, std::string_view value);

}  // namespace rlx::codegen
