// Some axes of a value, walked by one number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// The axes `axes` of `r`, of which a row-major number gives the elements: neighbours that can be walked as one are.
class Walk {
 public:
  Walk() = default;
  Walk(const Ref& r, const std::vector<int>& axes);
  /// The index of element `number` (a u32 expression) from where the axes begin. `name` names the function that
  /// computes it, where that takes one.
  std::string at(KernelBuilder& k, std::string_view name, std::string_view number) const;
  const Dim& extent() const { return extent_; }
  /// True when elements 4 i to 4 i + 3 lie together, at a multiple of 4 if where the walk begins is one.
  bool in_fours() const;
  /// True when all that the walk leads to are multiples of 4.
  bool by_fours() const;
  /// True when neighbours lie side by side, but for the ends of an axis.
  bool dense_last() const { return !ref_.strides.empty() && ref_.strides.back().is(1); }

 private:
  Ref ref_;  // of the joined axes
  Dim extent_ = 1;
};

/// Elements `index` to `index + 3` of `r` as a vec4 of the compute type: they lie together, `index` is a multiple of 4
/// and `r` begins at one. `name` names the function that loads them, where that takes one.
std::string load_quad(KernelBuilder& k, const Ref& r, std::string_view name, std::string_view index);
/// A statement that stores the vec4 `value` there.
std::string store_quad(KernelBuilder& k, const Ref& r, std::string_view index, std::string_view value);

}  // namespace rlx::codegen
