// Kernels of reductions in dtypes other than f32, once per instruction set.
#include "rlx/backends/cpu/reduce/typed_reduce_kernels.h"

#include <type_traits>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/reduce/typed_reduce.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

bool has_typed_reduce(DType t) { return is_int(t) || t == DType::F64 || t == DType::F16 || t == DType::BF16; }

const TypedReduceKernels& typed_reduce_kernels(Isa isa) {
  const Isa checked = kernels_for(isa).isa;
  return RLX_FOR_ISA(checked, typed_reduce_table());
}

}  // namespace rlx::cpu
