// Matmuls of two run-time operands: F64; F16 and BF16 with F32 accumulators; complex numbers; integers. Blocks of both
// operands are packed on the fly, so any strides are accepted.
#pragma once

#include <utility>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/backends/cpu/quant/interleaved_kernels.h"
#include "rlx/backends/cpu/sum_blocks.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// C[.., M, N] = A[.., M, K] * B[.., K, N], as GemmStridedF32 describes. `a_type`, `b_type` and `c_type` are the
/// dtypes: all F64; or each F32, F16 or BF16; or integers, either each of at most 32 bits or all of 64. Rows of C are
/// contiguous. The sum of an element is made in blocks of kSumBlock steps of k, each a chain of multiply-adds, the same
/// for every M, plan and register tile. It is rounded once, to C. Integer sums wrap.
///
/// Complex matmuls (`b_complex`) work on the parts of A and C, F32 or F64, with B in complex numbers. A row of A is
/// (re, im, re, ..); the matching rows of B are (re, im) and i (re, im). The last contracted axis has extent 2 and
/// counts the parts. All strides of B count complex numbers; n counts the parts of columns.
struct MatmulOperands {
  std::int64_t m = 0, n = 0;
  const void* a = nullptr;
  std::int64_t a_m_stride = 0;
  const void* b = nullptr;
  std::int64_t b_n_stride = 1;
  void* c = nullptr;
  std::int64_t ldc = 0;
  DType a_type = DType::F64, b_type = DType::F64, c_type = DType::F64;
  bool b_complex = false;
  bool c_transposed = false;  // C is transposed: its rows are contiguous, its columns are `ldc` apart; not complex
  bool b_packed = false;      // B is packed as in matmul/bf16_kernels.h, in whole panels; bf16 pair kernels only
  int num_contracted = 0, num_outer = 0;
  GemmAxis contracted[kGemmMaxAxes];
  GemmAxis outer[kGemmMaxAxes];
};

/// Most rows of a matmul whose C is transposed.
inline constexpr std::int64_t kTransposedRows = 8;
/// A matmul with few columns as a skinny GEMM, C^T = B^T A^T, which reads its other operand once.
inline void transpose_matmul(MatmulOperands& p) {
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.a_m_stride, p.b_n_stride);
  std::swap(p.a_type, p.b_type);
  for (int i = 0; i < p.num_contracted; ++i) std::swap(p.contracted[i].a, p.contracted[i].b);
  for (int i = 0; i < p.num_outer; ++i) std::swap(p.outer[i].a, p.outer[i].b);
  p.c_transposed = true;
}

/// How a matmul is split into chunks, which are ranges of register tiles. No bit of a result depends on the plan.
struct MatmulPlan {
  std::int64_t chunks = 0;  // chunk = (outer index * row_chunks + row chunk) * panel_chunks + panel chunk
  std::int64_t k = 1;
  std::int64_t panels = 0, panels_per_chunk = 0, panel_chunks = 0;
  std::int64_t blocks = 0, blocks_per_chunk = 0, row_chunks = 0;
  // A is packed first when it does not have the accumulator type or its rows are not contiguous along k: `pack_chunks`
  // calls of `pack` fill `pack_bytes` bytes that all chunks share. With 0 chunks A is read in place.
  std::int64_t pack_chunks = 0, pack_bytes = 0, blocks_per_pack = 0;
  std::int64_t pack_stride[kGemmMaxAxes] = {};  // of the outer axes, in elements (bf16 pairs: matrices); 0: broadcast
  std::size_t scratch_bytes = 0;                // per concurrently running thread
};

struct MatmulKernels {
  MatmulPlan (*plan)(const MatmulOperands& product, int threads);
  void (*pack)(const MatmulOperands& product, const MatmulPlan& plan, std::int64_t chunk, void* packed);
  void (*run)(const MatmulOperands& product, const MatmulPlan& plan, std::int64_t chunk, const void* packed,
              void* scratch);
  /// Converts `count` elements: F16 or BF16 to F32, and F32 to F16 or BF16.
  void (*widen)(DType from, const void* x, float* y, std::int64_t count);
  void (*narrow)(DType to, const float* x, void* y, std::int64_t count);
  /// Runs `iterations` of a register loop of multiply-adds and returns the number of operations: the F64 peak.
  std::int64_t (*peak_f64)(std::int64_t iterations);
};

/// Kernels with accumulators of type F64, F32, I32 or I64.
const MatmulKernels& matmul_kernels(Isa isa, DType sums);

}  // namespace rlx::cpu
