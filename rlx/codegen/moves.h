// Kernels that move bits: values of any dtype as units of 16 bytes, of a word, or, where neither fits, of an element.
#pragma once

#include <string>
#include <vector>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// `r` with elements of 1, 2 or 4 bytes (U8, U16, U32): of larger ones the words are one more axis.
Ref as_words(Ref r);
/// `r`, dense, with axes joined that are not in `special`; joined ones lie between these. A last axis that is special
/// is followed by one of extent 1.
Ref grouped_axes(const Ref& r, const std::vector<std::int64_t>& special);
/// The number of the axis of `grouped_axes` that `axis` has become, or a part of.
std::size_t group_of(std::int64_t axis, const std::vector<std::int64_t>& special);

/// A kernel that makes each unit of `result` from some unit of other values, found by coordinates.
class Mover {
 public:
  /// `refs` are what units are loaded from and stored to, as `as_words` makes them, of one dtype; result first. A unit
  /// is a run of neighbours along the last axis, on which all of them agree but for what is a multiple of `offsets`.
  Mover(NodeKernels& node, std::string name, const std::vector<Ref>& refs, std::vector<Dim> offsets = {});

  KernelBuilder& k() { return k_; }
  /// Elements of a unit.
  int elements() const { return elements_; }
  /// True when each unit has its own words, so that threads may leave some as they are.
  bool owns_words() const { return bytes_ >= 4; }
  /// True when a unit is a vec4.
  bool wide() const { return bytes_ == 16; }
  /// `r` in units: what is indexed by load and finish.
  Ref in_units(const Ref& r) const;
  /// `d` elements in units.
  Dim in_units(const Dim& d) const { return *exact_div(d, Dim(elements_)); }
  /// The unit at `index`, an expression: vec4<u32>, or u32 with the bits of narrow elements lowest.
  std::string load(const Ref& in_units, std::string_view index);
  /// A unit of equal elements, each the given words; `last` is the coordinate of the last axis.
  std::string fill(const std::vector<std::string>& words, std::string_view last) const;
  /// A choice between units.
  std::string select(std::string_view no, std::string_view yes, std::string_view condition) const;
  /// The words of one element: of a scalar, and of a number of dtype `t`.
  std::vector<std::string> words_of(const Ref& scalar);
  static std::vector<std::string> words_of(DType t, double value);

  /// Coordinates c0, c1, .. of `i` over the dims of a result in units, as statements.
  std::string split(const Ref& in_units) { return k_.split("i", in_units.dims, names(in_units)); }
  static std::vector<std::string> names(const Ref& r);
  /// Ends the kernel: for unit i of `result` the statements, and its value.
  void finish(const Ref& result, const std::string& statements, const std::string& value);
  /// The same where statements say which unit `at` of `result` is written, for i below `count`; units own words.
  void finish_at(const Ref& result, const Dim& count, const std::string& statements, std::string_view at,
                 const std::string& value);

 private:
  KernelBuilder k_;
  int bytes_ = 4, elements_ = 1;
};

/// Where a copy reads: from `starts` on, every `steps`-th element of each axis; empty: all.
struct Steps {
  Dims starts{};
  std::vector<std::int64_t> steps{};
};
/// Adds a kernel that copies elements of `from`, which has as many axes, to `result`; any strides.
void copy_elements(NodeKernels& node, std::string name, const Ref& result, Ref from, const Steps& steps = {});

/// Index `i` of an I32 or I64 value as i32, the nearest one where it has none.
std::string load_index(KernelBuilder& k, const Ref& r, std::string_view i);

}  // namespace rlx::codegen
