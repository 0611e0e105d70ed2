// Products of bytes, signed or not, with sums in 32 bits: exact, and modulo 2^32 beyond them.
//
// A is brought into codes once, B some strips of columns at a time, by each chunk for itself. Where the processor
// multiplies unsigned by signed bytes, codes of A are unsigned and those of B signed (128 more or less than the
// numbers), and what that adds is taken off the sums; tiles take the numbers, of either sign; elsewhere codes are the
// numbers in 16 bits. The sums are exact, so all ways give the same bits.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/quant/interleaved_kernels.h"

namespace rlx::cpu {

/// C[.., M, N] = A[.., M, K] * B[.., K, N] with any strides, in elements. K runs over the contracted axes, the last
/// fastest (none: K = 1), the product is made for every index of the outer axes. Columns of C are adjacent.
struct ByteGemm {
  std::int64_t m = 0, n = 0, k = 0, products = 1;
  const std::uint8_t *a = nullptr, *b = nullptr;
  bool a_signed = true, b_signed = true;
  std::int64_t a_m_stride = 0, b_n_stride = 0, ldc = 0;
  std::int32_t* c = nullptr;
  GemmAxis contracted[kGemmMaxAxes], outer[kGemmMaxAxes];
  int num_contracted = 0, num_outer = 0;
  std::byte* codes = nullptr;  // of A, `ByteGemmPlan::code_bytes`
};

/// How such a product is cut: chunk = (product * row_chunks + row chunk) * column_chunks + column chunk.
struct ByteGemmPlan {
  std::int64_t padded_k = 0, row_bytes = 0;  // of the codes of a row of A, behind which its correction stands
  std::int64_t code_bytes = 0, panel_bytes = 0;
  std::int64_t rows_per_chunk = 0, row_chunks = 0, strips_per_chunk = 0, column_chunks = 0, chunks = 0;
  std::int64_t rows_per_pack = 0, pack_chunks = 0;
  bool skinny = false;  // few rows: B is read as it lies
  bool tiles = false;   // which take either sign: codes are the numbers, in blocks of rows; so are packs and chunks
  std::int64_t blocks_per_chunk = 0;
};

struct ByteKernels {
  ByteGemmPlan (*plan)(const ByteGemm& gemm, int threads);
  /// Codes of some rows of A; all chunks come before any chunk of `run`.
  void (*pack)(const ByteGemm& gemm, const ByteGemmPlan& plan, std::int64_t chunk);
  /// `panel` is memory of the calling thread, `panel_bytes`.
  void (*run)(const ByteGemm& gemm, const ByteGemmPlan& plan, std::int64_t chunk, std::byte* panel);
};

/// Errors: Unsupported for what this machine has not.
const ByteKernels& byte_kernels(Isa isa, Int8Matmul products);

}  // namespace rlx::cpu
