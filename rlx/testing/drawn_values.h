// Values of samples. The same seed gives the same values everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/tensor/tensor.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

/// A tensor of `shape` with values drawn by `fill`. The same seed gives the same values everywhere.
Tensor draw(const Shape& shape, Fill fill, std::int64_t bound, std::uint64_t seed);
/// The operands of a sample. Each `variant` gives other values.
std::vector<Tensor> draw_operands(const Sample& sample, std::uint64_t variant = 0);

}  // namespace rlx::testing
