// Factorisation kernels for c64.
#include <cstddef>
#include <utility>

#include "rlx/backends/cpu/linalg/factors_kernels.h"

#define RLX_FACTOR_NUMBER Cx<float>
#define RLX_KERNEL_FILE "rlx/backends/cpu/linalg/factors.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const FactorKernels& factor_kernels_c64(Isa isa) { return RLX_FOR_ISA(isa, factor_table()); }

}  // namespace rlx::cpu
