// Kernels that resample an axis of f32 by sums of weighted elements.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// y [m, inner] of x [n, inner]: row o is the sum of weight[k][o] * x[index[k][o]] over k of `taps`. Of inner 1, x has
/// an element more behind its n, which is 0: terms that an output lacks point there.
struct ResizeF32 {
  std::int64_t n = 1, m = 1, inner = 1, taps = 1;
  const std::int32_t* index = nullptr;  // [taps, m]; n where there is no term
  const float* weight = nullptr;        // [taps, m]
};

struct ResizeKernels {
  /// Rows [begin, end) of y. Of inner 1 those are elements.
  void (*run)(const ResizeF32& r, const float* x, float* y, std::int64_t begin, std::int64_t end);
};
const ResizeKernels& resize_kernels(Isa isa);

}  // namespace rlx::cpu
