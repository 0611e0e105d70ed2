// Packers of packed B, once per instruction set.
#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/tensor/half.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/matmul/packed_b.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
void fill_packed_b_kernels(Isa isa, KernelTable& table) { RLX_FOR_ISA(isa, fill_packed_b(table)); }
}  // namespace rlx::cpu
