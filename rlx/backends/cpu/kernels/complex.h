// Kernels of C64 arithmetic on runs of elements.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels/kernels.h"

namespace rlx::cpu {

enum class ComplexFn : std::uint8_t { Add, Sub, Mul, Neg };

struct ComplexKernels {
  /// y[i] = fn(a[i a_step], b[i b_step]) for i < n, elements of two floats; y may be a or b where its step is 1. A
  /// product is made in double, so each part is rounded once; where both parts come out as NaN it is that of C (Annex
  /// G), which knows infinite factors.
  void (*run)(ComplexFn fn, const float* a, std::int64_t a_step, const float* b, std::int64_t b_step, float* y,
              std::int64_t n);
};
const ComplexKernels& complex_kernels(Isa isa);

}  // namespace rlx::cpu
