// Sort kernels, once per instruction set.
#include "rlx/backends/cpu/sort/sort_kernels.h"

#include <type_traits>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/sort/sort.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const SortKernels& sort_kernels(Isa isa) {
  const Isa checked = kernels_for(isa).isa;
  return RLX_FOR_ISA(checked, sort_table());
}

}  // namespace rlx::cpu
