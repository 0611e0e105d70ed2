// Recurrence kernels, once per instruction set.
#include "rlx/backends/cpu/sequence/recurrent_kernels.h"

#include <utility>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/sequence/recurrent.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const RecurrentKernels& recurrent_kernels(Isa isa) { return RLX_FOR_ISA(isa, recurrent_table()); }

}  // namespace rlx::cpu
