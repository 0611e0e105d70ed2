// KernelEntry kernels of F64 and softmax of columns, once per instruction set.
#include "rlx/backends/cpu/norm/norm_f64_kernels.h"

#include <math.h>  // NOLINT: kernels call the global names

#define RLX_KERNEL_FILE "rlx/backends/cpu/norm/norm_f64.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const F64RowKernels& f64_row_kernels([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  return isa == Isa::Avx512 ? avx512::f64_row_table()
         : isa == Isa::Avx2 ? avx2::f64_row_table()
                            : sse4::f64_row_table();
#elif defined(__aarch64__)
  return neon::f64_row_table();
#else
  return generic::f64_row_table();
#endif
}

}  // namespace rlx::cpu
