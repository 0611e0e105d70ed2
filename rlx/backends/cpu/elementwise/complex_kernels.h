// C64 arithmetic on contiguous runs of elements.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

enum class ComplexFn : std::uint8_t { Add, Sub, Mul, Div, Neg };

struct ComplexKernels {
  /// y[i] = fn(a[i a_step], b[i b_step]) for i < n. Elements are two floats. y may alias a or b with a step of 1. Mul
  /// and Div are computed in double, so each part is rounded once. Where both parts are NaN, the result follows C
  /// (Annex G), which treats infinite operands and division by 0.
  void (*run)(ComplexFn fn, const float* a, std::int64_t a_step, const float* b, std::int64_t b_step, float* y,
              std::int64_t n);
  /// y[i] = e^x[i], computed in double. y may alias x.
  void (*exp)(const float* x, float* y, std::int64_t n);
  /// join: y[i] = (re[i re_step], im[i im_step]). part: y[i] = part `part` of x[i]. Elements of 4 and 8 bytes.
  void (*join_32)(const float* re, std::int64_t re_step, const float* im, std::int64_t im_step, float* y,
                  std::int64_t n);
  void (*join_64)(const double* re, std::int64_t re_step, const double* im, std::int64_t im_step, double* y,
                  std::int64_t n);
  void (*part_32)(const float* x, int part, float* y, std::int64_t n);
  void (*part_64)(const double* x, int part, double* y, std::int64_t n);
};
const ComplexKernels& complex_kernels(Isa isa);

}  // namespace rlx::cpu
