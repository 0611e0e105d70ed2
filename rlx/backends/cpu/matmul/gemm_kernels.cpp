// f32 GEMM kernels, once per instruction set.
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/backends/cpu/sum_blocks.h"
#include "rlx/tensor/half.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/matmul/gemm.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
void fill_gemm_kernels(Isa isa, KernelTable& table) { RLX_FOR_ISA(isa, fill_gemm(table)); }
}  // namespace rlx::cpu
