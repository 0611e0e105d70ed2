// The elementwise tape, once per instruction set.
#include <utility>

#include "rlx/backends/cpu/elementwise/tape_few.h"
#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/elementwise/tape.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
void fill_tape_kernels(Isa isa, KernelTable& table) { RLX_FOR_ISA(isa, fill_tape(table)); }
TapeFew tape_few(Isa isa) { return RLX_FOR_ISA(isa, few_table()); }
}  // namespace rlx::cpu
