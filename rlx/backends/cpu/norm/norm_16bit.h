// F16 and BF16 layer and RMS norms: rows are converted to f32 and use the f32 kernels.
#pragma once

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

const char* layer_norm_16bit_refuses(const Graph& g, NodeId id);
const char* rms_norm_16bit_refuses(const Graph& g, NodeId id);
void lower_layer_norm_16bit(LowerContext& c);
void lower_rms_norm_16bit(LowerContext& c);

}  // namespace rlx::cpu
