// Loss kernels, once per instruction set.
#include "rlx/backends/cpu/norm/losses_kernels.h"

#include <utility>

#define RLX_KERNEL_FILE "rlx/backends/cpu/norm/losses.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const LossKernels& loss_kernels(Isa isa) { return RLX_FOR_ISA(isa, loss_table()); }

}  // namespace rlx::cpu
