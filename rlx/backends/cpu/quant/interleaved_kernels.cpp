// GEMM kernels for the interleaved block-quantized layout, once per instruction set, and with VNNI and AMX.
#include "rlx/backends/cpu/quant/interleaved_kernels.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/backends/cpu/machine_isa.h"
#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/error.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/quant/interleaved.inc"
#define RLX_WITH_BYTE_DOT
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

std::span<const Int8Matmul> int8_matmul(Isa isa) {
  static constexpr Int8Matmul kAll[] = {Int8Matmul::Pairs, Int8Matmul::Dot, Int8Matmul::Tiles};
#if defined(RLX_HAS_BYTE_DOT)
  if (isa == Isa::Avx512 && isa_supported(isa) && machine_has_avx512vnni())
    return std::span(kAll).first(has_tiles(TileType::Bytes) ? 3 : 2);
#else
  (void)isa;
#endif
  return std::span(kAll).first(1);
}

const InterleavedKernels& interleaved_kernels(Isa isa, Int8Matmul kind) {
  if (kind > int8_matmul(isa).back())
    throw Error(ErrorCode::Unsupported,
                concat_text("this machine has no int8 ", kind == Int8Matmul::Dot ? "dot-product" : "tile",
                            " instructions with ", isa_name(isa)));
#if defined(RLX_HAS_BYTE_DOT)
  if (kind == Int8Matmul::Tiles) return avx512vnni::tile_table();
  if (kind == Int8Matmul::Dot) return avx512vnni::interleaved_table();
#endif
  return RLX_FOR_ISA(isa, interleaved_table());
}

}  // namespace rlx::cpu
