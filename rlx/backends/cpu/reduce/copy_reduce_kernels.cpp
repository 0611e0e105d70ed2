// Reduction and copy kernels, once per instruction set.
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/tensor/half.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/reduce/copy_reduce.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
void fill_copy_reduce_kernels(Isa isa, KernelTable& table) { RLX_FOR_ISA(isa, fill_data(table)); }
}  // namespace rlx::cpu
