// Window kernels, once per instruction set.
#include "rlx/backends/cpu/window/windows_kernels.h"

#include <algorithm>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/window/windows.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const WindowKernels& window_kernels(Isa isa) { return RLX_FOR_ISA(isa, window_table()); }

}  // namespace rlx::cpu
