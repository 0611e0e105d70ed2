// Kernels of windows of f32: sums, extrema and products, and the places of extrema.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/math/windows.h"

namespace rlx::cpu {

inline constexpr int kWindowMaxAxes = 5;

/// Windows over the middle axes of x [outer, n.., inner]. With inner 1 the unit of work is a line of results along the
/// last axis, else one place of all axes with its `inner` results.
struct WindowF32 {
  ReduceKind fn = ReduceKind::Sum;
  int rank = 1;  // axes of windows
  WindowAxis axes[kWindowMaxAxes] = {};
  std::int64_t n[kWindowMaxAxes] = {}, m[kWindowMaxAxes] = {};  // extents of x and of the results
  std::int64_t outer = 1, inner = 1;
  float factor = 1;  // of the results, for means
  const float* x = nullptr;
  float* y = nullptr;             // may be null beside `place`
  std::int32_t* place = nullptr;  // of extrema: where they lie in x; may be null

  std::int64_t x_size() const {
    std::int64_t size = inner;
    for (int a = 0; a < rank; ++a) size *= n[a];
    return size;
  }
  /// Units of work of one of `outer`, and results of a unit.
  std::int64_t units() const {
    std::int64_t count = 1;
    for (int a = 0; a + (inner == 1 ? 1 : 0) < rank; ++a) count *= m[a];
    return count;
  }
  std::int64_t unit() const { return inner == 1 ? m[rank - 1] : inner; }
};

struct WindowKernels {
  /// Bytes of scratch that a call of `run` or `scatter` needs.
  std::size_t (*scratch_bytes)(const WindowF32& w);
  /// Units [begin, end) of outer * units().
  void (*run)(const WindowF32& w, std::int64_t begin, std::int64_t end, void* scratch);
  /// dx [outer, n.., inner] of outer [begin, end): zeros, and each element of `source`, which has the dims of results,
  /// where the extremum of its window of w.x lies. Of w.inner channels those of [first, last) alone.
  void (*scatter)(const WindowF32& w, const float* source, float* dx, std::int64_t begin, std::int64_t end,
                  std::int64_t first, std::int64_t last, void* scratch);
};
const WindowKernels& window_kernels(Isa isa);

}  // namespace rlx::cpu
