// Attention kernels, once per instruction set.
#include <utility>

#include "rlx/backends/cpu/kernels/families.h"
#include "rlx/backends/cpu/kernels/strips.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/kernels/attention.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
void fill_attention_kernels(Isa isa, KernelTable& table) { RLX_FILL_FOR_ISA(isa, fill_attention, table); }
}  // namespace rlx::cpu
