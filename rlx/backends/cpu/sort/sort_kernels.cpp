// Kernels of order, once per instruction set.
#include "rlx/backends/cpu/sort/sort_kernels.h"

#include <type_traits>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/sort/sort.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const SortKernels& sort_kernels(Isa isa) {
  const Isa checked = kernels_for(isa).isa;
#if defined(__x86_64__)
  switch (checked) {
    case Isa::Avx512: return avx512::sort_table();
    case Isa::Avx2: return avx2::sort_table();
    default: return sse4::sort_table();
  }
#elif defined(__aarch64__)
  static_cast<void>(checked);
  return neon::sort_table();
#else
  static_cast<void>(checked);
  return generic::sort_table();
#endif
}

}  // namespace rlx::cpu
