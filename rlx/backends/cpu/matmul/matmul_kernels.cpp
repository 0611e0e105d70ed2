// Kernels of matmuls of two run-time operands, once per instruction set.
#include "rlx/backends/cpu/matmul/matmul_kernels.h"

#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/tensor/half.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/matmul/matmul.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
namespace {

struct FoundKernels {
  const MatmulKernels* f64 = nullptr;
  const MatmulKernels* f32 = nullptr;
  const MatmulKernels* i32 = nullptr;
  const MatmulKernels* i64 = nullptr;
};
FoundKernels found_kernels(Isa isa) {
  FoundKernels found;
  RLX_FOR_ISA(isa, find_kernels(found));
  return found;
}

}  // namespace

const MatmulKernels& matmul_kernels(Isa isa, DType sums) {
  const FoundKernels found = found_kernels(isa);
  switch (sums) {
    case DType::F64: return *found.f64;
    case DType::I32: return *found.i32;
    case DType::I64: return *found.i64;
    default: return *found.f32;
  }
}

}  // namespace rlx::cpu
