// Kernels of convolutions, once per instruction set.
#include "rlx/backends/cpu/kernels/conv.h"

#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernels/families.h"
#include "rlx/tensor/half.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/kernels/conv.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

namespace {
ConvKernels conv_table_of(Isa isa) {
  ConvKernels table{};
  RLX_FILL_FOR_ISA(isa, fill_conv, table);
  return table;
}
}  // namespace

const ConvKernels& conv_kernels(Isa isa) {
  static const ConvKernels tables[] = {conv_table_of(Isa::Generic), conv_table_of(Isa::Sse4), conv_table_of(Isa::Avx2),
                                       conv_table_of(Isa::Avx512), conv_table_of(Isa::Neon)};
  return tables[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
