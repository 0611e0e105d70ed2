// Resize kernels, once per instruction set.
#include "rlx/backends/cpu/window/resize_kernels.h"

#include <utility>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/window/resize.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const ResizeKernels& resize_kernels(Isa isa) { return RLX_FOR_ISA(isa, resize_table()); }

}  // namespace rlx::cpu
