// Convolution kernels, once per instruction set.
#include "rlx/backends/cpu/conv/conv_kernels.h"

#include <new>
#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/tensor/half.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/conv/conv.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

namespace {
// Filled at first use, because the code that fills a table is compiled for its instruction set.
template <Isa kIsa>
const ConvKernels& conv_table() {
  static const ConvKernels table = [] {
    ConvKernels t{};
    RLX_FOR_ISA(kIsa, fill_conv(t));
    return t;
  }();
  return table;
}
}  // namespace

const ConvKernels& conv_kernels(Isa isa) {
  switch (isa) {
    case Isa::Generic: return conv_table<Isa::Generic>();
    case Isa::Sse4: return conv_table<Isa::Sse4>();
    case Isa::Avx2: return conv_table<Isa::Avx2>();
    case Isa::Avx512: return conv_table<Isa::Avx512>();
    case Isa::Neon: break;
  }
  return conv_table<Isa::Neon>();
}

}  // namespace rlx::cpu
