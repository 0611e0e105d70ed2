// Kernel entries of convolutions.
#pragma once

#include <span>

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// Tuned kernels.
std::span<const KernelEntry> conv_entries();
/// Convolutions of integers and complex numbers as im2col matmuls.
std::span<const KernelEntry> conv_column_entries();
/// Lowers a bf16 convolution as an im2col matmul of bf16 pairs. Returns false where the machine has no bf16
/// instructions or the matmuls are too small.
bool lower_conv_bf16(LowerContext& c);
/// Every dtype and any axes.
std::span<const KernelEntry> generic_conv_entries();

}  // namespace rlx::cpu
