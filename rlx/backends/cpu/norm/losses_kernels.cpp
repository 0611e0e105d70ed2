// Kernels of losses, once per instruction set.
#include "rlx/backends/cpu/norm/losses_kernels.h"

#include <utility>

#define RLX_KERNEL_FILE "rlx/backends/cpu/norm/losses.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const LossKernels& loss_kernels([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::Avx512: return avx512::loss_table();
    case Isa::Avx2: return avx2::loss_table();
    default: return sse4::loss_table();
  }
#elif defined(__aarch64__)
  return neon::loss_table();
#else
  return generic::loss_table();
#endif
}

}  // namespace rlx::cpu
