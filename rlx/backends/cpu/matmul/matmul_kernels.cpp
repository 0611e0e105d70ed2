// Records of matmul kernels, once per instruction set.
#include "rlx/backends/cpu/matmul/matmul_kernels.h"

#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/tensor/half.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/matmul/matmul.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

void fill_matmul_kernels(Isa isa, KernelTable& table) { RLX_FOR_ISA(isa, fill_matmul(table)); }
}  // namespace rlx::cpu
