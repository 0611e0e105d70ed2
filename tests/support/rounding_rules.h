// Shared parts of the running error analysis: elements of F64 tensors, and the bounds of each family of ops.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <vector>

#include "rlx/ir/op_def.h"
#include "tests/support/rounding.h"

namespace rlx::test::rounding {

using C = std::complex<double>;

inline constexpr double kFunctionPlaces = 4;  // for a function without a row of its own

// -- values and bounds, element by element --

/// `value` in every element, in F64 with the dims of t.
Tensor like(const Tensor& t, double value);
inline const double* reals(const Tensor& t) { return reinterpret_cast<const double*>(t.data()); }
inline double* reals(Tensor& t) { return reinterpret_cast<double*>(t.mutable_data()); }
inline std::size_t count(const Tensor& t) { return static_cast<std::size_t>(t.num_elements()); }
inline bool has_bound(DType t) { return is_inexact(t); }
bool stores_floats(DType t);
/// |x| of each element in F64. Infinite and NaN elements count as 0, so they add nothing to a bound.
Tensor magnitude(const Tensor& t);
double value_at(const Tensor& t, std::size_t i);
/// The distance of element i of two tensors of one dtype (F64 or C128).
double apart(const Tensor& a, const Tensor& b, std::size_t i);
Tensor run1(const OpBox& op, const std::vector<Tensor>& in);
Tensor add_up(const Tensor& a, const Tensor& b);
/// `a` expanded to the dims of `like_this`.
Tensor broadcast(const Tensor& a, const Tensor& like_this);
/// x + factor * `by`.
Tensor shifted(const Tensor& x, const Tensor& by, double factor);
bool any(const Tensor& slack);
/// 1 where an inexact element's interval contains 0, else 0.
Tensor around_zero(const Bounded& x);
/// 1 where an element is infinite, else 0.
Tensor infinite(const Bounded& x);
/// The result may be -0 or 0: a bound that contains both zeros and no other number.
void either_zero(Bounded& out, std::size_t i);
/// eps of the dtype in which sums are computed.
double sum_epsilon(DType t);

using Operands = std::vector<const Bounded*>;

// -- elementwise functions (rounding_elementwise.cpp) --

/// Elementwise functions, at the corners of the operands' intervals.
void elementwise(const Node& n, const Operands& in, const std::vector<Tensor>& values, std::vector<Bounded>& out);
/// x * sigmoid(x) is NaN at -inf as written, and -0 as the silu that a pass makes of it.
void vanishing_times_infinity(const std::vector<Tensor>& values, Bounded& out);
/// The error where the larger operand and the logarithm after it cancel.
void log_sum(DType t, const std::vector<Tensor>& values, Bounded& out);
/// The error below 0 where the terms of a reflection cancel.
void reflected(const Node& n, const std::vector<Tensor>& values, Bounded& out);
/// The error of x times a factor below the smallest number, which may be rounded to 0 before or after the product.
void vanishing_factor(const Node& n, const std::vector<Tensor>& values, Bounded& out);
/// A choice between 0 and -0.
void choose_zero(const std::vector<Tensor>& values, Bounded& out);
void compare(const Operands& in, Bounded& out);

// -- complex numbers and Fourier transforms (rounding_fourier.cpp) --

void complex_parts(const Node& n, const Operands& in, Bounded& out);
void fourier(const Node& n, const Bounded& x, Bounded& out);

// -- sums and products (rounding_sums.cpp) --

/// Terms may be added to a sum in another order than written. A scaled sum is still a sum.
void add_to_sum(const Node& n, const Operands& in, Bounded& out);
void reduce(const Node& n, const Bounded& x, Bounded& out);
void interpolate(const Node& n, const Bounded& x, Bounded& out);
void windows(const Node& n, const Bounded& x, std::vector<Bounded>& out);
void cumulative(const Node& n, const Bounded& x, Bounded& out);
void dot(const Node& n, const Operands& in, Bounded& out);
void scatter(const Node& n, const Operands& in, const std::vector<Tensor>& values, std::vector<Bounded>& out);

// -- factors of matrices (rounding_factors.cpp) --

/// Bounds from the factors of nearby matrices; `t` is the dtype that kernels compute in.
void factor(const Node& n, DType t, const Operands& in, const std::vector<Tensor>& values, std::vector<Bounded>& out);

// -- sorts and selections (rounding_order.cpp) --

/// Inexact keys may change places with any others: all keys then get the worst bound, and the other results are
/// undecided.
void sort(const Node& n, const Operands& in, const std::vector<Tensor>& values, std::vector<Bounded>& out);
void arg_reduce(const Node& n, const Bounded& x, Bounded& out);
void top_k(const Node& n, const Bounded& x, std::vector<Bounded>& out);

}  // namespace rlx::test::rounding
