// Distances of two values, for tests. All float comparisons of tests are here, and none ignores NaN. The expression
// max(worst, |a - b|) drops a NaN difference; an architecture lint rejects it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "rlx/tensor/tensor.h"

namespace rlx::test {

inline constexpr double kApart = std::numeric_limits<double>::infinity();

/// |got - want|: 0 for equal values, two NaN and equal infinities; infinite when only one is NaN or infinite.
inline double difference(double got, double want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : kApart;
  return got == want ? 0 : std::fabs(got - want);
}

/// The largest of many differences. Once it is infinite it stays infinite.
class Worst {
 public:
  /// Adds difference(got, want), in units of `unit` > 0.
  void add(double got, double want, double unit = 1) { add(difference(got, want) / unit); }
  /// Adds a distance; NaN counts as infinite.
  void add(double distance) {
    if (!(distance <= value_)) value_ = std::isnan(distance) ? kApart : distance;
  }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

/// The significand bits (including the leading one), and the exponents of the smallest normal and of the largest finite
/// number, of a float dtype or of the parts of a complex one. Throws for other dtypes.
struct FloatFormat {
  int precision, min_exponent, max_exponent;
  double largest;   // finite
  bool infinities;  // too large values are stored as the largest
};
FloatFormat float_format(DType t);

/// The unit in the last place of `t` at x: the distance of x's neighbours below the next power of two, never below that
/// of the subnormal numbers.
double last_place(DType t, double x);
/// The relative rounding unit of `t`: the unit in the last place at 1.
inline double epsilon_of(DType t) { return last_place(t, 1); }

/// The distance of `got`, a value of dtype `t`, from `want`, which may be more precise than `t`, in units of the last
/// place at `want`. NaN has distance 0 to NaN only. An infinite `got` counts as one place above the largest finite
/// number, so a `want` that rounds to it is at most half a place away. An infinite `want` has distance 0 to itself
/// only.
double ulps(DType t, double got, double want);

/// Floats converted to F64, complex numbers to C128, others unchanged.
Tensor widened(const Tensor& t);

/// The element with the largest distance from the expected one.
struct Gap {
  double size = 0;
  std::int64_t index = -1;
  std::string text;  // "element 3 is 1.5, wanted 1.25: 2 units"; "shape ..." when the tensors cannot be compared
};

/// The largest distance of elements in units of the last place of got's dtype. Integers and Bool use their difference;
/// complex numbers use parts, in units at the larger part of `want`. The tensors must have equal dims. Their dtypes are
/// equal, or `want` has the widest dtype of the same class (F64 for floats, C128 for complex).
Gap ulp_gap(const Tensor& got, const Tensor& want);

}  // namespace rlx::test
