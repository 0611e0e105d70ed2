// How far apart two values are, for tests: the one place that compares floats, and never blind to NaN. (max(worst,
// |a - b|) is: it drops a NaN difference. A house test keeps that form out.)
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

/// The largest of many differences; once one is infinite it stays so.
class Worst {
 public:
  /// Takes difference(got, want), in units of `unit` > 0.
  void add(double got, double want, double unit = 1) { add(difference(got, want) / unit); }
  /// Takes a distance; NaN counts as infinite.
  void add(double distance) {
    if (!(distance <= value_)) value_ = std::isnan(distance) ? kApart : distance;
  }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

/// Bits of the significand (the leading one included), exponent of the smallest normal number and of the largest
/// finite one, of a float dtype or the parts of a complex one; throws for others.
struct FloatFormat {
  int precision, min_exponent, max_exponent;
  double largest;   // finite
  bool infinities;  // false: what is too large is stored as the largest
};
FloatFormat float_format(DType t);

/// The unit of the last place of `t` at x: the distance of x's neighbours below the next power of two, never below that
/// of the subnormal numbers.
double last_place(DType t, double x);
/// The relative rounding unit of `t`: the last place at 1.
inline double epsilon_of(DType t) { return last_place(t, 1); }

/// The distance of `got`, a value of dtype `t`, from `want`, which may be known better than `t` can say, in units of
/// the last place at `want`. NaN is 0 from NaN alone. An infinite `got` stands one place above the largest finite
/// number, so that a `want` that rounds to it is at most half a place away; an infinite `want` is met by the same
/// alone.
double ulps(DType t, double got, double want);

/// Floats as F64, complex as C128, others as they are.
Tensor widened(const Tensor& t);

/// The element that is farthest from what was wanted.
struct Gap {
  double size = 0;
  std::int64_t index = -1;
  std::string text;  // "element 3 is 1.5, wanted 1.25: 2 units"; "shape ..." when the tensors cannot be compared
};

/// The largest distance of elements in units of the last place of got's dtype; integers and Bool by their difference,
/// complex numbers by parts in units at the larger part of `want`. The shapes must have equal dims, the dtypes be
/// equal or `want` the wider one of the same class (F64 for floats, C128 for complex).
Gap ulp_gap(const Tensor& got, const Tensor& want);

}  // namespace rlx::test
