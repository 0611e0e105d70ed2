// Elementwise functions in the dtype itself, once per instruction set.
#include "rlx/backends/cpu/elementwise/typed_kernels.h"

#include <type_traits>

#define RLX_KERNEL_FILE "rlx/backends/cpu/elementwise/typed.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const TypedKernels& typed_kernels([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  return isa == Isa::Avx512 ? avx512::typed_table() : isa == Isa::Avx2 ? avx2::typed_table() : sse4::typed_table();
#elif defined(__aarch64__)
  return neon::typed_table();
#else
  return generic::typed_table();
#endif
}

}  // namespace rlx::cpu
