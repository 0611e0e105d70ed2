// Rows of convolutions.
#pragma once

#include <span>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// Of tuned kernels.
std::span<const KernelEntry> conv_entries();
/// Of integers and complex numbers, as products.
std::span<const KernelEntry> conv_column_entries();
/// Steps of a convolution of bf16 as a product of pairs; false where the machine has no instructions for them, or where
/// its products are too small.
bool lower_conv_bf16(LowerContext& c);
/// Of every dtype and any axes.
std::span<const KernelEntry> generic_conv_entries();

}  // namespace rlx::cpu
