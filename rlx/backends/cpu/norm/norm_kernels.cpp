// Row kernels: norms, softmax, pooling, rotary embedding; once per instruction set.
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/norm/norm.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
void fill_row_kernels(Isa isa, KernelTable& table) { RLX_FOR_ISA(isa, fill_rows(table)); }
}  // namespace rlx::cpu
