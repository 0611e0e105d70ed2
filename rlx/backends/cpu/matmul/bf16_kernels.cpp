// Kernels of products of bf16, of the processors that have them.
#include "rlx/backends/cpu/matmul/bf16_kernels.h"

#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/error.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/matmul/bf16.inc"
#define RLX_WITH_BF16_DOT
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

std::span<const PairProducts> pair_products([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  static constexpr PairProducts kAll[] = {PairProducts::Dot, PairProducts::Tiles};
  __builtin_cpu_init();
  if (isa == Isa::Avx512 && isa_supported(isa) && __builtin_cpu_supports("avx512bf16") != 0)
    return std::span(kAll).first(has_tiles(TileProducts::BF16) ? 2 : 1);
#endif
  return {};
}

std::optional<PairProducts> fast_pair_products(Isa isa) {
  const auto has = pair_products(isa);
  if (has.empty()) return std::nullopt;
#if defined(__x86_64__)
  // The instruction for pairs takes Intel's processors two cycles: 119 Gop/s where F32 has 218 (Xeon, model 207).
  if (has.back() == PairProducts::Dot && __builtin_cpu_is("intel") != 0) return std::nullopt;
#endif
  return has.back();
}

const PairKernels& pair_kernels(Isa isa, PairProducts products) {
#if defined(__x86_64__)
  if (const auto has = pair_products(isa); !has.empty() && products <= has.back())
    return products == PairProducts::Tiles ? avx512bf16::pair_tile_table() : avx512bf16::pair_table();
#endif
  throw Error(ErrorCode::Unsupported,
              concat_text("this machine has no ", products == PairProducts::Dot ? "dot products" : "tiles",
                          " of bf16 beside ", isa_name(isa)));
}

const ProductKernels& pair_product_kernels([[maybe_unused]] Isa isa, [[maybe_unused]] PairProducts products) {
#if defined(__x86_64__)
  if (const auto has = pair_products(isa); !has.empty() && products <= has.back())
    return products == PairProducts::Tiles ? avx512bf16::pair_product_table<true>()
                                           : avx512bf16::pair_product_table<false>();
#endif
  throw Error(ErrorCode::Unsupported, concat_text("this machine has no products of bf16 beside ", isa_name(isa)));
}

}  // namespace rlx::cpu
