// Kernels of resampled axes, once per instruction set.
#include "rlx/backends/cpu/window/resize_kernels.h"

#include <utility>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/window/resize.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const ResizeKernels& resize_kernels(Isa isa) {
#if defined(__x86_64__)
  return isa == Isa::Avx512 ? avx512::resize_table() : isa == Isa::Avx2 ? avx2::resize_table() : sse4::resize_table();
#elif defined(__aarch64__)
  return static_cast<void>(isa), neon::resize_table();
#else
  return static_cast<void>(isa), generic::resize_table();
#endif
}

}  // namespace rlx::cpu
