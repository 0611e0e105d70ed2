// Kernels of lines, once per instruction set.
#include "rlx/backends/cpu/reduce/scan_argmax_kernels.h"

#include <type_traits>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/reduce/scan_argmax.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

bool has_scan_argmax_kernels(DType t) { return !is_complex(t) && !is_storage_only(t); }

const ScanArgmaxKernels& scan_argmax_kernels(Isa isa) {
  const Isa checked = kernels_for(isa).isa;
#if defined(__x86_64__)
  switch (checked) {
    case Isa::Avx512: return avx512::scan_argmax_table();
    case Isa::Avx2: return avx2::scan_argmax_table();
    default: return sse4::scan_argmax_table();
  }
#elif defined(__aarch64__)
  static_cast<void>(checked);
  return neon::scan_argmax_table();
#else
  static_cast<void>(checked);
  return generic::scan_argmax_table();
#endif
}

}  // namespace rlx::cpu
