// F64 row kernels and softmax of columns, once per instruction set.
#include "rlx/backends/cpu/norm/norm_f64_kernels.h"

#include <math.h>  // NOLINT: kernels call the global names

#define RLX_KERNEL_FILE "rlx/backends/cpu/norm/norm_f64.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const F64RowKernels& f64_row_kernels(Isa isa) { return RLX_FOR_ISA(isa, f64_row_table()); }

}  // namespace rlx::cpu
