// Kernels that move bits of any dtype, in units of 16 bytes, of a word, or of an element where neither fits.
#pragma once

#include <string>
#include <vector>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// `r` with elements of 1, 2 or 4 bytes (U8, U16, U32). A larger element becomes one more axis of words.
Ref as_words(Ref r);
/// Dense `r` with adjacent axes that are not in `special` merged into one axis. If the last axis is special, an axis of
/// extent 1 is appended.
Ref grouped_axes(const Ref& r, const std::vector<std::int64_t>& special);
/// The axis of `grouped_axes` that `axis` became, or became a part of.
std::size_t group_of(std::int64_t axis, const std::vector<std::int64_t>& special);

/// A kernel that makes each unit of `result` from a unit of other values, found by coordinates.
class Mover {
 public:
  /// `refs` are the values that are loaded and stored, as `as_words` makes them, of one dtype, result first. A unit is
  /// a run of elements along the last axis that is contiguous in all of them. Its length divides every one of
  /// `offsets`.
  Mover(NodeKernels& node, std::string name, const std::vector<Ref>& refs, std::vector<Dim> offsets = {});

  KernelBuilder& k() { return k_; }
  /// The number of elements in a unit.
  int elements() const { return elements_; }
  /// True when each unit is made of whole words, so that threads may skip units.
  bool owns_words() const { return bytes_ >= 4; }
  /// True when a unit is a vec4.
  bool wide() const { return bytes_ == 16; }
  /// `r` in units, as load and finish index it.
  Ref in_units(const Ref& r) const;
  /// `d` elements as a number of units.
  Dim in_units(const Dim& d) const { return *exact_div(d, Dim(elements_)); }
  /// The unit at `index`, an expression: vec4<u32>, or u32 with the bits of narrow elements lowest.
  std::string load(const Ref& in_units, std::string_view index);
  /// A unit of equal elements, each with the given words; `last` is the coordinate of the last axis.
  std::string fill(const std::vector<std::string>& words, std::string_view last) const;
  /// The words of one element: of a scalar value, and of a number of dtype `t`.
  std::vector<std::string> words_of(const Ref& scalar);
  static std::vector<std::string> words_of(DType t, double value);

  /// Statements that split `i` into coordinates c0, c1, .. over the dims of a result in units.
  std::string split(const Ref& in_units) { return k_.split("i", in_units.dims, names(in_units)); }
  static std::vector<std::string> names(const Ref& r);
  /// Ends the kernel: unit i of `result` gets `value` after the statements.
  void finish(const Ref& result, const std::string& statements, const std::string& value);
  /// The same for i below `count`, where the statements compute which unit `at` of `result` is written. Units must be
  /// whole words.
  void finish_at(const Ref& result, const Dim& count, const std::string& statements, std::string_view at,
                 const std::string& value);

 private:
  KernelBuilder k_;
  int bytes_ = 4, elements_ = 1;
};

/// The source slice of a copy: from `starts` on, every `steps`-th element of each axis. Empty means all elements.
struct Steps {
  Dims starts{};
  std::vector<std::int64_t> steps{};
};
/// Adds a kernel that copies elements of `from`, which has the rank of `result` and any strides, to `result`.
void copy_elements(NodeKernels& node, std::string name, const Ref& result, Ref from, const Steps& steps = {});

/// Index `i` of an I32 or I64 value, saturated to i32.
std::string load_index(KernelBuilder& k, const Ref& r, std::string_view i);

}  // namespace rlx::codegen
