// Kernels of windows, once per instruction set.
#include "rlx/backends/cpu/window/windows_kernels.h"

#include <algorithm>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/window/windows.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const WindowKernels& window_kernels(Isa isa) {
#if defined(__x86_64__)
  return isa == Isa::Avx512 ? avx512::window_table() : isa == Isa::Avx2 ? avx2::window_table() : sse4::window_table();
#elif defined(__aarch64__)
  return static_cast<void>(isa), neon::window_table();
#else
  return static_cast<void>(isa), generic::window_table();
#endif
}

}  // namespace rlx::cpu
