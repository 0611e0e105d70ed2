// Shared helpers of the samples of matrix factors.
#pragma once

#include "rlx/testing/op_samples.h"

namespace rlx::testing {

/// Well-conditioned matrices: numbers in (-0.9, 0.9) with the extent added to the diagonal.
inline SampleInput dominant(Shape shape) {
  const std::int64_t n = shape.dim(-1).value();
  return SampleInput(std::move(shape), Fill::Unit, n + 1);
}

}  // namespace rlx::testing
