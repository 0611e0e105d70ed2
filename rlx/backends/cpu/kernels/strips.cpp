// Kernels of products of block-quantised weights, once per instruction set, with sums of bytes as one instruction too.
#include "rlx/backends/cpu/kernels/strips.h"

#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernels/families.h"
#include "rlx/error.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/kernels/strips.inc"
#define RLX_WITH_BYTE_DOT
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

bool has_byte_dot(Isa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return isa == Isa::Avx512 && isa_supported(isa) && __builtin_cpu_supports("avx512vnni") != 0;
#else
  (void)isa;
  return false;
#endif
}

const StripKernels& strip_kernels(Isa isa, bool dot) {
  if (dot && !has_byte_dot(isa))
    throw Error(ErrorCode::Unsupported,
                concat_text("this machine has no sums of byte products beside ", isa_name(isa), " as one instruction"));
#if defined(__x86_64__)
  switch (isa) {
    case Isa::Avx512: return dot ? avx512vnni::strip_table() : avx512::strip_table();
    case Isa::Avx2: return avx2::strip_table();
    default: return sse4::strip_table();
  }
#elif defined(__aarch64__)
  return neon::strip_table();
#else
  return generic::strip_table();
#endif
}

}  // namespace rlx::cpu
