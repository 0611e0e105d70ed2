// f32 pooling kernels: sums, extrema and products over windows, and the indices of extrema.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/math/windows.h"

namespace rlx::cpu {

inline constexpr int kWindowMaxAxes = 5;

/// Windows over the middle axes of x [outer, n.., inner]. With inner 1 a unit of work is a line of results along the
/// last axis; else it is one position with its `inner` results.
struct WindowF32 {
  ReduceKind fn = ReduceKind::Sum;
  int rank = 1;  // number of window axes
  WindowAxis axes[kWindowMaxAxes] = {};
  std::int64_t n[kWindowMaxAxes] = {}, m[kWindowMaxAxes] = {};  // extents of x and of the results
  std::int64_t outer = 1, inner = 1;
  float factor = 1;  // scale of the results, for means
  const float* x = nullptr;
  float* y = nullptr;             // may be null when `place` is set
  std::int32_t* place = nullptr;  // indices of extrema in x; may be null

  std::int64_t x_size() const {
    std::int64_t size = inner;
    for (int a = 0; a < rank; ++a) size *= n[a];
    return size;
  }
  /// Units of work per index of `outer`, and results per unit.
  std::int64_t units() const {
    std::int64_t count = 1;
    for (int a = 0; a + (inner == 1 ? 1 : 0) < rank; ++a) count *= m[a];
    return count;
  }
  std::int64_t unit() const { return inner == 1 ? m[rank - 1] : inner; }
};

struct WindowKernels {
  /// Bytes of scratch of a call of `run` or `scatter`.
  std::size_t (*scratch_bytes)(const WindowF32& w);
  /// Units [begin, end) of outer * units().
  void (*run)(const WindowF32& w, std::int64_t begin, std::int64_t end, void* scratch);
  /// Writes dx [outer, n.., inner] for outer [begin, end): zeros, plus each element of `source`, which has the dims of
  /// the results, at the extremum of its window of w.x. Only channels [first, last) of w.inner.
  void (*scatter)(const WindowF32& w, const float* source, float* dx, std::int64_t begin, std::int64_t end,
                  std::int64_t first, std::int64_t last, void* scratch);
};
const WindowKernels& window_kernels(Isa isa);

}  // namespace rlx::cpu
