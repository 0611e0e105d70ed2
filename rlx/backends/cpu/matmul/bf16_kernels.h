// bf16 GEMM with bf16 instructions of the processor: A is rounded to bf16, sums are F32.
//
// B has the bf16 pair (VNNI) layout: panels of 16 columns. Each panel is one stream of memory. For each two steps of k
// it has the pairs of its columns side by side. k is padded with zeros to a multiple of kBf16Group, columns to 16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rlx/backends/cpu/matmul/matmul_kernels.h"

namespace rlx::cpu {

/// Steps of k of an AMX tile.
inline constexpr std::int64_t kBf16Group = 32;
inline constexpr std::int64_t kBf16Lanes = 16;
constexpr std::int64_t padded_bf16(std::int64_t k) { return (k + kBf16Group - 1) / kBf16Group * kBf16Group; }
/// Bytes of a panel of a matrix with `k` rows.
constexpr std::int64_t bf16_panel_bytes(std::int64_t k) { return padded_bf16(k) * kBf16Lanes * 2; }

/// The instructions that are used.
enum class Bf16DotKind : std::uint8_t {
  Dot,    // AVX512_BF16
  Tiles,  // AMX
};

struct Bf16Kernels {
  Bf16DotKind kind;
  /// F32 C = epilogue(bf16(A) * B) with packed B. The order in which an element is summed over a block of kPairSumBlock
  /// steps of k is that of the processor's instructions, the same for every M and every plan. The processor flushes
  /// subnormal numbers of A, B and the sums to zero.
  MatmulKernel rounded;
  /// BF16 operands, C in BF16 or F32. An element whose chain has no subnormal number is the processor's chain; other
  /// elements are the chain of multiply-adds. Which one applies depends only on the element's own row of A and column
  /// of B.
  MatmulKernel exact;
  /// Runs `iterations` of the fastest loop on registers and returns the number of operations, to measure the peak.
  std::int64_t (*peak)(std::int64_t iterations);
};

/// The bf16 instructions of this machine for `isa`, the fastest last; empty without such instructions.
std::span<const Bf16DotKind> bf16_dot_kinds(Isa isa);
/// The fastest of them, where it is faster than the F32 GEMM.
std::optional<Bf16DotKind> fast_bf16_matmul(Isa isa);
/// Errors: Unsupported where this machine lacks the instructions.
const Bf16Kernels& bf16_kernels(Isa isa, Bf16DotKind kind);

}  // namespace rlx::cpu
