// int8 GEMM kernels, once per instruction set, and with VNNI and AMX.
#include "rlx/backends/cpu/quant/int8_kernels.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/error.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/quant/int8.inc"
#define RLX_WITH_BYTE_DOT
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const MatmulKernel& byte_kernel(Isa isa, Int8Matmul kind) {
  if (kind > int8_matmul(isa).back())
    throw Error(ErrorCode::Unsupported,
                concat_text("this machine has no int8 matmul instructions of this kind with ", isa_name(isa)));
#if defined(RLX_HAS_BYTE_DOT)
  if (kind == Int8Matmul::Tiles) return avx512vnni::kByteKernel<true>;
  if (kind == Int8Matmul::Dot) return avx512vnni::kByteKernel<false>;
#endif
  return RLX_FOR_ISA(isa, kByteKernel<false>);
}

}  // namespace rlx::cpu
