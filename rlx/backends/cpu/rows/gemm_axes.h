// Axes of strided products.
#pragma once

#include <vector>

#include "rlx/backends/cpu/kernels/kernels.h"

namespace rlx::cpu {

/// Drops axes of one element and makes one of neighbouring axes that walk everything in one stride.
inline std::vector<GemmAxis> folded(const std::vector<GemmAxis>& axes) {
  std::vector<GemmAxis> out;
  for (const GemmAxis& axis : axes) {
    if (axis.extent == 1) continue;
    GemmAxis* last = out.empty() ? nullptr : &out.back();
    if (last && last->a == axis.a * axis.extent && last->b == axis.b * axis.extent && last->c == axis.c * axis.extent)
      *last = {last->extent * axis.extent, axis.a, axis.b, axis.c};
    else
      out.push_back(axis);
  }
  return out;
}

}  // namespace rlx::cpu
