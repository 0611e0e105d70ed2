// Rows of convolutions.
#pragma once

#include <span>

#include "rlx/backends/cpu/rows.h"

namespace rlx::cpu {

/// Of tuned kernels.
std::span<const Row> conv_rows();
/// Of integers and complex numbers, as products.
std::span<const Row> conv_column_rows();
/// Of every dtype and any axes.
std::span<const Row> generic_conv_rows();

}  // namespace rlx::cpu
