// Kernels of recurrences, once per instruction set.
#include "rlx/backends/cpu/sequence/recurrent_kernels.h"

#include <utility>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/sequence/recurrent.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const RecurrentKernels& recurrent_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::recurrent_table();
  if (isa == Isa::Avx2) return avx2::recurrent_table();
  return sse4::recurrent_table();
#elif defined(__aarch64__)
  static_cast<void>(isa);
  return neon::recurrent_table();
#else
  static_cast<void>(isa);
  return generic::recurrent_table();
#endif
}

}  // namespace rlx::cpu
