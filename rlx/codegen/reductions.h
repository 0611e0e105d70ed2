// Reduction kernels with a deterministic order: serial chains in one thread, trees in a workgroup, and several passes
// where there are many elements.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// How elements are combined: a WGSL type of `words` words, and texts.
struct Reduction {
  std::string name;  // of kernels
  std::string type = "f32";
  int words = 1;
  std::function<std::string(KernelBuilder&)> identity;
  std::function<std::string(KernelBuilder&, const std::string& a, const std::string& b)> combine;
  /// The term of an element: `x` in its compute type, `j` its index among the elements that are combined.
  std::function<std::string(KernelBuilder&, const std::string& x, const std::string& j)> term;
  /// The result, in the compute type of its dtype.
  std::function<std::string(KernelBuilder&, const std::string& all)> last;
};

/// The axes of one value as kept and combined axes: a Ref of each, of the same value.
struct Folded {
  Ref kept, combined;
  /// `x` with the sorted `axes` combined.
  Folded(const Ref& x, const std::vector<std::int64_t>& axes);
};

/// Adds kernels that combine x into `out`, which has the kept dims.
void reduce_elements(NodeKernels& node, const Reduction& r, const Folded& x, const Ref& out);

/// Sum, Prod, Max and Min of a dtype: type, identity, combine and term. The caller sets `last`.
enum class Combining : std::uint8_t { Sum, Prod, Max, Min };
Reduction reduction_of(Combining fn, DType t);

/// The value that threads write results of `out` to: `out` itself, or, where single elements cannot be written, scratch
/// of its compute type, which `pack` copies to `out`.
Ref unpacked(NodeKernels& node, const Ref& out);
void pack(NodeKernels& node, const Ref& out, const Ref& from);

}  // namespace rlx::codegen
