// Exact values of elementwise functions and of their derivatives: tests/unit/elementwise/tables, which
// scripts/function_tables.py writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/tensor/dtype.h"

namespace rlx::test {

/// A number as the nearest double and the rest in units of its last place.
struct ExactNumber {
  double nearest = 0, rest = 0;
};
struct ExactPoint {
  double x = 0;
  ExactNumber value, slope, curvature;  // f, f', f''
};
struct FunctionTable {
  std::vector<ExactPoint> floats;  // points that are floats
  std::vector<ExactPoint> points;  // all points
};
/// The table of a function. Throws rlx::Error if there is none or it is empty.
FunctionTable function_table(std::string_view name);

/// The distance of `got` from `want` in units in the last place of `t` (F32 or F64) at `want`; infinite if one of the
/// two is NaN, infinite or a zero of the other sign and the other is not the same.
double ulps_from(DType t, double got, const ExactNumber& want);

/// What the error of a function in F64 may be beyond that of its formula. The definition of gelu_approx rounds u = 1.6
/// (x + 0.04 x^3), of which a unit in the last place changes the result by |u| of them. The definition of gelu rounds
/// x / sqrt(2), whose unit changes e^(-x^2 / 2) by x^2 of them. 0 for other functions.
double rounding_of_definition(std::string_view name, double x);

}  // namespace rlx::test
