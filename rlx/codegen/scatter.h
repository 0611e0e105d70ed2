// The kernels of Scatter.
#pragma once

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// Writes the kernels of a Scatter. Updates to one element are applied in their order, regardless of how threads are
/// scheduled.
void write_scatter(NodeKernels& node);

}  // namespace rlx::codegen
