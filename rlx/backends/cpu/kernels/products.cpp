// Kernels of products of F64, F16 and BF16, once per instruction set.
#include "rlx/backends/cpu/kernels/products.h"

#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernels/families.h"
#include "rlx/tensor/half.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/kernels/products.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {
namespace {

struct FoundProducts {
  const ProductKernels* f64 = nullptr;
  const ProductKernels* f32 = nullptr;
};
FoundProducts found_products(Isa isa) {
  FoundProducts found;
  RLX_FILL_FOR_ISA(isa, find_products, found);
  return found;
}

}  // namespace

const ProductKernels& product_kernels(Isa isa, bool f64) {
  const FoundProducts found = found_products(isa);
  return f64 ? *found.f64 : *found.f32;
}

}  // namespace rlx::cpu
