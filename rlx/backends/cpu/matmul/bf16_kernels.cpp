// bf16 GEMM kernels for the processors that have bf16 instructions.
#include "rlx/backends/cpu/matmul/bf16_kernels.h"

#include <type_traits>
#include <utility>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/backends/cpu/machine_isa.h"
#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/error.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/matmul/bf16.inc"
#define RLX_WITH_BF16_DOT
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

std::span<const Bf16DotKind> bf16_dot_kinds([[maybe_unused]] Isa isa) {
#if defined(RLX_HAS_BF16_DOT)
  static constexpr Bf16DotKind kAll[] = {Bf16DotKind::Dot, Bf16DotKind::Tiles};
  if (isa == Isa::Avx512 && isa_supported(isa) && machine_has_avx512bf16())
    return std::span(kAll).first(has_tiles(TileType::BF16) ? 2 : 1);
#endif
  return {};
}

std::optional<Bf16DotKind> fast_bf16_matmul(Isa isa) {
  const auto has = bf16_dot_kinds(isa);
  if (has.empty()) return std::nullopt;
#if defined(RLX_HAS_BF16_DOT)
  // The bf16 dot instruction takes two cycles on Intel: 119 Gop/s where F32 has 218 (Xeon, model 207).
  if (has.back() == Bf16DotKind::Dot && __builtin_cpu_is("intel") != 0) return std::nullopt;
#endif
  return has.back();
}

const Bf16Kernels& bf16_kernels(Isa isa, Bf16DotKind kind) {
#if defined(RLX_HAS_BF16_DOT)
  if (const auto has = bf16_dot_kinds(isa); !has.empty() && kind <= has.back())
    return kind == Bf16DotKind::Tiles ? avx512bf16::kBf16Kernels<true> : avx512bf16::kBf16Kernels<false>;
#endif
  throw Error(ErrorCode::Unsupported,
              concat_text("this machine has no bf16 ", kind == Bf16DotKind::Dot ? "dot-product" : "tile",
                          " instructions with ", isa_name(isa)));
}

}  // namespace rlx::cpu
