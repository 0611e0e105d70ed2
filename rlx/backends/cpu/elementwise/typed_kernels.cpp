// Elementwise functions in the dtype itself, once per instruction set.
#include "rlx/backends/cpu/elementwise/typed_kernels.h"

#include <type_traits>

#define RLX_KERNEL_FILE "rlx/backends/cpu/elementwise/typed.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const TypedKernels& typed_kernels(Isa isa) { return RLX_FOR_ISA(isa, typed_table()); }

}  // namespace rlx::cpu
