// Kernels that combine elements in an order of their own that is always the same: chains of one thread, trees of a
// group, and several passes where there are many elements.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// How elements become one: a type of WGSL of `words` words, and texts.
struct Reduction {
  std::string name;  // of kernels
  std::string type = "f32";
  int words = 1;
  std::function<std::string(KernelBuilder&)> identity;
  std::function<std::string(KernelBuilder&, const std::string& a, const std::string& b)> combine;
  /// What an element counts for: `x` in its compute type, `j` its place among those that are combined.
  std::function<std::string(KernelBuilder&, const std::string& x, const std::string& j)> term;
  /// The result, in the compute type of its dtype.
  std::function<std::string(KernelBuilder&, const std::string& all)> last;
};

/// The elements of one value as kept and combined axes: a Ref of each, of the same value.
struct Folded {
  Ref kept, combined;
  /// `x` with the sorted `axes` combined.
  Folded(const Ref& x, const std::vector<std::int64_t>& axes);
};

/// Adds kernels that combine x into `out`, which has the kept dims.
void reduce_elements(NodeKernels& node, const Reduction& r, const Folded& x, const Ref& out);

/// Sum, Prod, Max and Min of a dtype: type, identity, combine and term; `last` is what is left.
enum class Combining : std::uint8_t { Sum, Prod, Max, Min };
Reduction reduction_of(Combining fn, DType t);

/// Where results of `out` are made that threads cannot write one by one: `out` itself, or scratch of its compute type,
/// which `pack` then brings there.
Ref unpacked(NodeKernels& node, const Ref& out);
void pack(NodeKernels& node, const Ref& out, const Ref& from);

}  // namespace rlx::codegen
