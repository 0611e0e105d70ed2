// Small tensors with known values, and comparison with listed numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/tensor/tensor.h"
#include "tests/support/closeness.h"

namespace rlx::test {

/// Element i is ((7 i) mod 11 - 5) / 4 * scale + offset: distinct values of both signs, exact in F32 for the default
/// scale.
inline Tensor sequence(std::vector<std::int64_t> dims, double scale = 1, double offset = 0, DType dtype = DType::F64) {
  Tensor t = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), dtype));
  for (std::int64_t i = 0; i < t.num_elements(); ++i)
    t.set(i, static_cast<double>((7 * i) % 11 - 5) / 4 * scale + offset);
  return t;
}

inline constexpr double kInf = HUGE_VAL;
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// An F64 tensor of the listed values.
inline Tensor doubles(std::vector<std::int64_t> dims, const std::vector<double>& values) {
  return Tensor::of<double>(std::move(dims), values);
}

inline Tensor ints(std::vector<std::int64_t> dims, const std::vector<std::int32_t>& values) {
  return Tensor::of<std::int32_t>(std::move(dims), values);
}
/// 1 to 6 in two rows.
inline const Tensor k2x3 = doubles({2, 3}, {1, 2, 3, 4, 5, 6});

/// Checks every element against the listed value within `tolerance` (relative above 1, absolute below). NaN and
/// infinities must match.
inline void expect_close(const Tensor& actual, const std::vector<double>& expected, double tolerance = 1e-9) {
  REQUIRE(actual.num_elements() == static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = actual.at(static_cast<std::int64_t>(i)), e = expected[i];
    const bool close =
        difference(a, e) <= (std::fabs(e) > 1 && std::isfinite(e) ? tolerance * std::fabs(e) : tolerance);
    CHECK_MESSAGE(close, "element ", i, " is ", a, ", expected ", e);
  }
}
inline void expect_close(const Tensor& actual, const Tensor& expected, double tolerance = 1e-9) {
  REQUIRE(actual.shape().dims() == expected.shape().dims());
  expect_close(actual, expected.to_f64(), tolerance);
}

}  // namespace rlx::test
