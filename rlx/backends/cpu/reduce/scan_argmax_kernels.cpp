// Argmax and scan kernels, once per instruction set.
#include "rlx/backends/cpu/reduce/scan_argmax_kernels.h"

#include <type_traits>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/reduce/scan_argmax.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

bool has_scan_argmax_kernels(DType t) { return !is_complex(t) && !is_storage_only(t); }

const ScanArgmaxKernels& scan_argmax_kernels(Isa isa) {
  const Isa checked = kernels_for(isa).isa;
  return RLX_FOR_ISA(checked, scan_argmax_table());
}

}  // namespace rlx::cpu
