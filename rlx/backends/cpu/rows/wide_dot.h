// The row of products that are computed in float or double after both operands are packed (kernels/wide_gemm.h).
#pragma once

#include "rlx/backends/cpu/rows.h"

namespace rlx::cpu {

const char* wide_dot_refuses(const Graph& g, NodeId id);
void lower_wide_dot(LowerContext& c);

}  // namespace rlx::cpu
