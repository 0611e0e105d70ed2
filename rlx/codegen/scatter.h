// The kernels of Scatter.
#pragma once

#include "rlx/codegen/kernel_builder.h"

namespace rlx::codegen {

/// Writes the kernels of a Scatter: updates to one element act in their order, whatever runs at the same time.
void write_scatter(NodeKernels& node);

}  // namespace rlx::codegen
