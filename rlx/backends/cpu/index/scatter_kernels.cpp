// Scatter kernels, once per instruction set.
#include "rlx/backends/cpu/index/scatter_kernels.h"

#include <type_traits>

#include "rlx/backends/cpu/kernel_families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/index/scatter.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

bool rounds_updates(DType t, ScatterKind fn) {
  return (t == DType::F16 || t == DType::BF16) && (fn == ScatterKind::Add || fn == ScatterKind::Mul);
}
bool has_scatter_kernels(DType t, ScatterKind fn) {
  return dtype_bits(t) >= 8 && (fn == ScatterKind::Set || !is_complex(t));
}

const ScatterKernels& scatter_kernels(Isa isa) {
  const Isa checked = kernels_for(isa).isa;
  return RLX_FOR_ISA(checked, scatter_table());
}

}  // namespace rlx::cpu
