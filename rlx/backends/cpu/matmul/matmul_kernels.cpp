// Records of matmul kernels, once per instruction set.
#include "rlx/backends/cpu/matmul/matmul_kernels.h"

#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/tensor/half.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/matmul/matmul.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const MatmulKernel& matmul_kernel(Isa isa, MatmulSums sums) {
  return RLX_FOR_ISA(isa, kMatmulKernels)[static_cast<int>(sums)];
}
const HalfConversions& half_conversions(Isa isa) { return RLX_FOR_ISA(isa, kHalfConversions); }

}  // namespace rlx::cpu
