// Values of samples, the same for the same seed everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/tensor/tensor.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

/// A tensor of `shape` with values drawn as `fill` says; the same for the same seed everywhere.
Tensor draw(const Shape& shape, Fill fill, std::int64_t bound, std::uint64_t seed);
/// The operands of a sample; another `variant` gives other values.
std::vector<Tensor> draw_operands(const Sample& sample, std::uint64_t variant = 0);

}  // namespace rlx::testing
