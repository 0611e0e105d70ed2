// Products of bf16 with bf16 where the processor has them: of A rounded to bf16, with sums in F32.
//
// B lies in strips of 16 columns, each one stream of memory: for each two steps of k, the pairs of numbers of the
// columns side by side. k is padded with zeros to a multiple of kPairGroup, the columns to 16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rlx/backends/cpu/matmul/matmul_kernels.h"
#include "rlx/backends/cpu/quant/interleaved_kernels.h"

namespace rlx::cpu {

/// Steps of k that a tile has.
inline constexpr std::int64_t kPairGroup = 32;
inline constexpr std::int64_t kPairLanes = 16;
constexpr std::int64_t padded_pairs(std::int64_t k) { return (k + kPairGroup - 1) / kPairGroup * kPairGroup; }
/// Bytes of a strip of a matrix with `k` rows.
constexpr std::int64_t bf16_panel_bytes(std::int64_t k) { return padded_pairs(k) * kPairLanes * 2; }

/// C[M, N] = epilogue(bf16(A[M, K]) * B). Rows of A are `lda` floats apart, elements of a row are adjacent. The sum of
/// an element is one chain over k, whatever M and the cut, but which chain the processor says; it takes subnormal
/// numbers as zeros, of A, B and the sums, unless `row_least` is given.
struct Bf16Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const void* strips = nullptr;
  std::int32_t* codes = nullptr;  // A in bf16, `InterleavedPlan::code_bytes`, shared by all chunks
  float* c = nullptr;
  std::int64_t ldc = 0;
  GemmEpilogue epilogue;
  std::uint16_t* halves = nullptr;  // C in BF16 in place of `c`, without an epilogue
  // The least exponent (of 2, with its bias of 127) among the numbers of each row of A and of each column of B but
  // zeros; kBf16Subnormal where one is subnormal, 16 entries behind the last. Elements in whose chain a subnormal
  // number may occur are then the chain of multiply-adds in the order of k.
  const std::int16_t *row_least = nullptr, *column_least = nullptr;
};
inline constexpr std::int16_t kBf16Subnormal = -1000;
/// Numbers of such exponents have 8 bits each, so all their products are multiples of 2^(sum - 268), and so is what
/// sums of them round to: none is subnormal from this sum on.
inline constexpr int kBf16LeastSum = 268 - 126;

/// By which instructions.
enum class Bf16DotKind : std::uint8_t {
  Dot,    // AVX512_BF16
  Tiles,  // AMX
};

struct Bf16Kernels {
  Bf16DotKind products;
  InterleavedPlan (*plan)(const Bf16Gemm& gemm, int threads);
  /// Rounds the rows of some blocks of A; all chunks come before any chunk of `run`.
  void (*quantize)(const Bf16Gemm& gemm, const InterleavedPlan& plan, std::int64_t chunk);
  void (*run)(const Bf16Gemm& gemm, const InterleavedPlan& plan, std::int64_t chunk);
  /// Runs `iterations` of the best loop on registers and returns the operations done; for measuring the peak.
  std::int64_t (*peak)(std::int64_t iterations);
};

/// What this machine has beside `isa`, the best last; none without such instructions.
std::span<const Bf16DotKind> bf16_dot_kinds(Isa isa);
/// The fastest of them, where it is faster than products of F32.
std::optional<Bf16DotKind> fast_bf16_matmul(Isa isa);
/// Errors: Unsupported for what this machine has not.
const Bf16Kernels& bf16_kernels(Isa isa, Bf16DotKind products);
/// By the same instructions the products of matmul/matmul_kernels.h, of BF16 with C in BF16 or F32. Elements whose
/// chain meets no subnormal number are the processor's chain, others the one of multiply-adds: which of them an element
/// is depends on its own row of A and column of B alone.
const MatmulKernels& bf16_strided_kernels(Isa isa, Bf16DotKind products);

}  // namespace rlx::cpu
