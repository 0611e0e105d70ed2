// Shared by the kernel entries of convolutions.
#pragma once

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// Lowers a bf16 convolution as an im2col matmul of bf16 pairs. Returns false where the machine has no bf16
/// instructions or the matmuls are too small.
bool lower_conv_bf16(LowerContext& c);

}  // namespace rlx::cpu
