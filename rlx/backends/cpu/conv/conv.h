// Rows of convolutions.
#pragma once

#include <span>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// Of tuned kernels.
std::span<const Row> conv_rows();
/// Of integers and complex numbers, as products.
std::span<const Row> conv_column_rows();
/// Steps of a convolution of bf16 as a product of pairs; false where the machine has no instructions for them, or where
/// its products are too small.
bool lower_conv_of_pairs(LowerContext& c);
/// Of every dtype and any axes.
std::span<const Row> generic_conv_rows();

}  // namespace rlx::cpu
