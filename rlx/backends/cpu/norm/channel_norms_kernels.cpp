// Kernels of norms of channels, once per instruction set.
#include "rlx/backends/cpu/norm/channel_norms_kernels.h"

#include <utility>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/norm/channel_norms.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const ChannelNormKernels& channel_norm_kernels(Isa isa) {
#if defined(__x86_64__)
  return isa == Isa::Avx512 ? avx512::channel_norm_table()
         : isa == Isa::Avx2 ? avx2::channel_norm_table()
                            : sse4::channel_norm_table();
#elif defined(__aarch64__)
  return static_cast<void>(isa), neon::channel_norm_table();
#else
  return static_cast<void>(isa), generic::channel_norm_table();
#endif
}

}  // namespace rlx::cpu
