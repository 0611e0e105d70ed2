// Resampling of an f32 axis as weighted sums of elements.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// y [m, inner] from x [n, inner]: row o is the sum over k of `taps` of weight[k][o] * x[index[k][o]]. With inner 1, x
/// has one extra element after its n, which is 0; missing terms index it.
struct ResizeF32 {
  std::int64_t n = 1, m = 1, inner = 1, taps = 1;
  const std::int32_t* index = nullptr;  // [taps, m]; n for a missing term
  const float* weight = nullptr;        // [taps, m]
};

struct ResizeKernels {
  /// Rows [begin, end) of y. With inner 1 these are elements.
  void (*run)(const ResizeF32& r, const float* x, float* y, std::int64_t begin, std::int64_t end);
};
const ResizeKernels& resize_kernels(Isa isa);

}  // namespace rlx::cpu
