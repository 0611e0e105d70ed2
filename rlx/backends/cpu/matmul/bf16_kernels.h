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
#include "rlx/backends/cpu/quant/interleaved_kernels.h"

namespace rlx::cpu {

/// Steps of k of an AMX tile.
inline constexpr std::int64_t kBf16Group = 32;
inline constexpr std::int64_t kBf16Lanes = 16;
constexpr std::int64_t padded_bf16(std::int64_t k) { return (k + kBf16Group - 1) / kBf16Group * kBf16Group; }
/// Bytes of a panel of a matrix with `k` rows.
constexpr std::int64_t bf16_panel_bytes(std::int64_t k) { return padded_bf16(k) * kBf16Lanes * 2; }

/// C[M, N] = epilogue(bf16(A[M, K]) * B). Rows of A are `lda` floats apart; the elements of a row are contiguous. The
/// order in which an element is summed over a block of kPairSumBlock steps of k is that of the processor's
/// instructions, the same for every M and every plan. The processor flushes subnormal numbers of A, B and the sums to
/// zero, unless `row_least` is given.
struct Bf16Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const void* panels = nullptr;
  std::int32_t* quants = nullptr;  // packed A in bf16, `InterleavedPlan::packed_a_bytes`, shared by all chunks
  float* c = nullptr;
  std::int64_t ldc = 0;
  GemmEpilogue epilogue;
  std::uint16_t* halves = nullptr;  // C in BF16 instead of `c`, without an epilogue
  // The least exponent (base 2, bias 127) of the nonzero elements of each row of A and each column of B; kBf16Subnormal
  // where one is subnormal; 16 extra entries at the end. Elements of C whose partial sums may be subnormal are computed
  // as multiply-adds in the order of k instead.
  const std::int16_t *row_least = nullptr, *column_least = nullptr;
};
inline constexpr std::int16_t kBf16Subnormal = -1000;
/// bf16 numbers have 8 significant bits, so all products of two numbers with such exponents are multiples of 2^(sum -
/// 268), and so are rounded sums of them. If the sum of exponents is at least kBf16LeastSum, none of them is subnormal.
inline constexpr int kBf16LeastSum = 268 - 126;

/// The instructions that are used.
enum class Bf16DotKind : std::uint8_t {
  Dot,    // AVX512_BF16
  Tiles,  // AMX
};

struct Bf16Kernels {
  Bf16DotKind kind;
  InterleavedPlan (*plan)(const Bf16Gemm& gemm, int threads);
  /// Rounds the rows of some blocks of A. All chunks must run before any chunk of `run`.
  void (*quantize)(const Bf16Gemm& gemm, const InterleavedPlan& plan, std::int64_t chunk);
  void (*run)(const Bf16Gemm& gemm, const InterleavedPlan& plan, std::int64_t chunk);
  /// Runs `iterations` of the fastest loop on registers and returns the number of operations, to measure the peak.
  std::int64_t (*peak)(std::int64_t iterations);
};

/// The bf16 instructions of this machine for `isa`, the fastest last; empty without such instructions.
std::span<const Bf16DotKind> bf16_dot_kinds(Isa isa);
/// The fastest of them, where it is faster than the F32 GEMM.
std::optional<Bf16DotKind> fast_bf16_matmul(Isa isa);
/// Errors: Unsupported where this machine lacks the instructions.
const Bf16Kernels& bf16_kernels(Isa isa, Bf16DotKind kind);
/// The matmuls of matmul/matmul_kernels.h with the same instructions: BF16 operands, C in BF16 or F32. An element whose
/// chain has no subnormal number is the processor's chain; other elements are the chain of multiply-adds. Which one
/// applies depends only on the element's own row of A and column of B.
const MatmulDriver& bf16_pair_driver(Isa isa, Bf16DotKind kind);

}  // namespace rlx::cpu
