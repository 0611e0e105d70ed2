// Channel norm kernels, once per instruction set.
#include "rlx/backends/cpu/norm/channel_norms_kernels.h"

#include <utility>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/norm/channel_norms.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const ChannelNormKernels& channel_norm_kernels(Isa isa) { return RLX_FOR_ISA(isa, channel_norm_table()); }

}  // namespace rlx::cpu
