// How far rounding may carry a computation from the exact result: a graph evaluated in F64 together with a bound of
// every element, so that a test knows what to allow instead of guessing a tolerance.
//
// The bound is a running error analysis. A node adds what its own rounding may do: `places` units of the last place of
// its result, and `terms` times eps times the sum of the absolute values of what it adds up (an F64 run of the node on
// absolute values). It carries on the bounds of its operands: for sums, products and moves by running the same op on
// them, for functions by evaluating at both ends of the operand's interval. What rounding may decide (which of two
// numbers that cannot be told apart is larger) has an infinite bound: it is not checked, and counted. Composite ops are
// followed through their decomposition, so an attention or a norm has the bound of the sums, products and exponentials
// it stands for.
#pragma once

#include <string>
#include <vector>

#include "rlx/ir/evaluate.h"
#include "tests/support/closeness.h"

namespace rlx::test {

/// What one node may add, beyond half a unit for rounding the result of F16 and BF16 arithmetic, which is done in F32.
struct Allowance {
  double places = 0;  // units of the last place of the result (of F32 for F16 and BF16)
  double terms = 0;   // multiples of eps * sum |terms|
};
/// The table of allowances, the one place where tests say how exact a kernel has to be.
Allowance allowance_of(const OpBox& op);

/// A value in F64 (complex: C128; what is no float: as it is) and the bound of each of its elements (F64, same dims).
struct Bounded {
  Tensor value, slack;
  /// Of a sum that more may be added to in any order (a product and its bias, three summands): the sum of the absolute
  /// values of its terms. Empty for other values.
  Tensor terms{};
};
struct BoundedResult {
  std::vector<Bounded> outputs;
  std::map<std::string, Bounded, std::less<>> states;
};

/// What kernels make of subnormal numbers of the dtype that they compute in (F32 for F16 and BF16).
enum class Subnormals : std::uint8_t { Kept, MayBeZero };
/// The smallest normal number of what values of `t` are computed in.
double smallest_normal(DType t);
/// `t` with 0 of the same sign in place of the subnormal numbers of what is computed in: F64, else F32; parts of
/// complex numbers likewise.
Tensor without_subnormals(const Tensor& t);
NamedTensors without_subnormals(const NamedTensors& values);

/// Evaluates `g` as evaluate_with_states does, with bounds. The values given are exact.
BoundedResult evaluate_bounded(const Graph& g, const NamedTensors& values, Subnormals subnormals = Subnormals::Kept);

/// The largest distance of `got` from the exact value in multiples of the bound (at most 1 is right); NaN, infinities
/// and whole numbers have to be met exactly. Elements that rounding decides are left out and added to `undecided`.
Gap gap_to(const Tensor& got, const Bounded& exact, std::int64_t* undecided = nullptr);

}  // namespace rlx::test
