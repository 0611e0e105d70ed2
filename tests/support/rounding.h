// The rounding error that a computation may have: a graph is evaluated in F64 together with a bound for every element,
// so that a test need not guess a tolerance.
//
// The bound is a running error analysis. A node adds its own rounding error: `places` units in the last place of its
// result, and `terms` times eps times the sum of the absolute values of its terms (an F64 run of the node on absolute
// values). It propagates the bounds of its operands: sums, products and moves run the same op on them, and functions
// are evaluated at both ends of the operand's interval. A choice that rounding may decide (which of two
// indistinguishable numbers is larger) has an infinite bound: it is not checked, and counted. Composite ops are
// followed through their decomposition, so an attention or a norm has the bound of its sums, products and exponentials.
#pragma once

#include <string>
#include <vector>

#include "rlx/ir/evaluate.h"
#include "tests/support/closeness.h"

namespace rlx::test {

/// The error that one node may add. The final rounding of F16 and BF16 arithmetic, which is done in F32, adds half a
/// unit more.
struct Allowance {
  double places = 0;  // units in the last place of the result (of F32 for F16 and BF16)
  double terms = 0;   // multiples of eps * sum |terms|
};
/// The table of allowances, the only place where tests state how exact a kernel must be.
Allowance allowance_of(const OpBox& op);

/// A value in F64 (complex: C128; non-floats unchanged) and the bound of each of its elements (F64, same dims).
struct Bounded {
  Tensor value, slack;
  /// For a sum to which more terms may be added in any order (a matmul and its bias, three summands): the sum of the
  /// absolute values of its terms. Empty for other values.
  Tensor terms{};
};
struct BoundedResult {
  std::vector<Bounded> outputs;
  std::map<std::string, Bounded, std::less<>> states;
};

/// How kernels treat subnormal numbers of the dtype that they compute in (F32 for F16 and BF16).
enum class Subnormals : std::uint8_t { Kept, MayBeZero };
/// The smallest normal number of the dtype in which values of `t` are computed.
double smallest_normal(DType t);
/// `t` with subnormal numbers of the compute dtype (F64, else F32) replaced by 0 of the same sign, also in the parts of
/// complex numbers.
Tensor without_subnormals(const Tensor& t);
NamedTensors without_subnormals(const NamedTensors& values);

/// Evaluates `g` like evaluate_with_states, with bounds. The given values are exact.
BoundedResult evaluate_bounded(const Graph& g, const NamedTensors& values, Subnormals subnormals = Subnormals::Kept);

/// The largest distance of `got` from the exact value, in multiples of the bound (correct up to 1). NaN, infinities and
/// integers must be equal. Elements that rounding decides are skipped and added to `undecided`.
Gap gap_to(const Tensor& got, const Bounded& exact, std::int64_t* undecided = nullptr);

}  // namespace rlx::test
