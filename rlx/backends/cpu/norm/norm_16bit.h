// F16 and BF16 layer and RMS norms: rows are converted to f32 and use the f32 kernels.
#pragma once

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

const char* half_layer_norm_refuses(const Graph& g, NodeId id);
const char* half_rms_norm_refuses(const Graph& g, NodeId id);
void lower_half_layer_norm(LowerContext& c);
void lower_half_rms_norm(LowerContext& c);

}  // namespace rlx::cpu
