// int8 GEMM: signed or unsigned bytes with i32 accumulators. Sums are exact modulo 2^32.
//
// A is packed once; each chunk packs some panels of B at a time for itself. VNNI multiplies unsigned by signed bytes:
// packed A then has unsigned values and packed B signed ones (shifted by 128 where needed), and corrections remove the
// effect of the shift from the sums. AMX tiles accept either sign, without a shift. Elsewhere packed values are i16.
// Sums are exact, so all ways give the same bits.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/quant/interleaved_kernels.h"

namespace rlx::cpu {

/// C[.., M, N] = A[.., M, K] * B[.., K, N] with any strides, in elements. K runs over the contracted axes, the last one
/// fastest; without contracted axes K = 1. There is one matmul for each index of the outer axes. Rows of C are
/// contiguous.
struct ByteGemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  const std::uint8_t *a = nullptr, *b = nullptr;
  bool a_signed = true, b_signed = true;
  std::int64_t a_m_stride = 0, b_n_stride = 0, ldc = 0;
  std::int32_t* c = nullptr;
  GemmAxis contracted[kGemmMaxAxes], outer[kGemmMaxAxes];
  int num_contracted = 0, num_outer = 0;
  std::byte* quants = nullptr;  // packed A, `ByteGemmPlan::packed_a_bytes`
};

/// How an int8 GEMM is split into chunks: chunk = (matmul * row_chunks + row chunk) * column_chunks + column chunk.
struct ByteGemmPlan {
  std::int64_t padded_k = 0, row_bytes = 0;  // bytes of a row of packed A; corrections are stored after all rows
  std::int64_t packed_a_bytes = 0, panel_bytes = 0;
  std::int64_t rows_per_chunk = 0, row_chunks = 0, panels_per_chunk = 0, column_chunks = 0, chunks = 0;
  std::int64_t rows_per_pack = 0, pack_chunks = 0;
  bool skinny = false;  // skinny GEMM: B is read in place
  bool tiles =
      false;  // AMX, which accepts either sign: values are not shifted; packing and chunks go by blocks of rows
  std::int64_t blocks_per_chunk = 0;
};

struct ByteKernels {
  ByteGemmPlan (*plan)(const ByteGemm& gemm, int threads);
  /// Packs some rows of A. All chunks must run before any chunk of `run`.
  void (*pack)(const ByteGemm& gemm, const ByteGemmPlan& plan, std::int64_t chunk);
  /// `panel` is memory of the calling thread, `panel_bytes` bytes.
  void (*run)(const ByteGemm& gemm, const ByteGemmPlan& plan, std::int64_t chunk, std::byte* panel);
};

/// Errors: Unsupported where this machine lacks the instructions.
const ByteKernels& byte_kernels(Isa isa, Int8Matmul kind);

}  // namespace rlx::cpu
