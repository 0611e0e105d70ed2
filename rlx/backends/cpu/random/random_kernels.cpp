// Random bit kernels, once per instruction set.
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/ir/math/threefry.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/random/random.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
void fill_random_kernels(Isa isa, KernelTable& table) { RLX_FOR_ISA(isa, fill_random(table)); }
}  // namespace rlx::cpu
