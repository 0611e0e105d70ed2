// Products of run-time operands of F64, of F16 and BF16 with sums in F32, of complex numbers and of integers: blocks of
// both are packed as they are read, whatever their strides.
#pragma once

#include <utility>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/backends/cpu/quant/interleaved_kernels.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// C[.., M, N] = A[.., M, K] * B[.., K, N] as GemmStridedF32 says it, of dtypes that `a_type`, `b_type` and `c_type`
/// name: all F64, or each F32, F16 or BF16, or integers: each of 32 bits or less, or all of 64. Rows of C have adjacent
/// elements. The sum of an element is one chain of multiply-adds in the order of k, whatever M, the cut and the
/// instruction set's tile; it is rounded once, to C. Sums of integers wrap.
///
/// Complex products (`b_complex`) are of the parts of A and C, F32 or F64, with B in complex numbers: a row of A is
/// (re, im, re, ..), to which belong the rows (re, im) and i (re, im) of B. The last contracted axis is that of the
/// parts, of 2; all strides of B count complex numbers, and n the parts of columns.
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
  bool c_turned =
      false;  // C lies transposed: its rows have adjacent elements, its columns are `ldc` apart; not complex
  bool b_strips = false;  // B lies as matmul/bf16_kernels.h has it, whole strips; for products by pairs alone
  int num_contracted = 0, num_outer = 0;
  GemmAxis contracted[kGemmMaxAxes];
  GemmAxis outer[kGemmMaxAxes];
};

/// Rows at most of a product whose C is turned.
inline constexpr std::int64_t kTurnedRows = 8;
/// A product of few columns as one of few rows, whose other operand passes once: C^T = B^T A^T.
inline void turn_product(MatmulOperands& p) {
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.a_m_stride, p.b_n_stride);
  std::swap(p.a_type, p.b_type);
  for (int i = 0; i < p.num_contracted; ++i) std::swap(p.contracted[i].a, p.contracted[i].b);
  for (int i = 0; i < p.num_outer; ++i) std::swap(p.outer[i].a, p.outer[i].b);
  p.c_turned = true;
}

/// How one is cut: chunks are ranges of register tiles, and none of it changes a bit of a result.
struct MatmulPlan {
  std::int64_t chunks = 0;  // chunk = (outer index * row_chunks + row chunk) * panel_chunks + panel chunk
  std::int64_t k = 1;
  std::int64_t panels = 0, panels_per_chunk = 0, panel_chunks = 0;
  std::int64_t blocks = 0, blocks_per_chunk = 0, row_chunks = 0;
  // A that is not of the sums' dtype, or whose rows are not adjacent along k, is first packed: `pack_chunks` calls of
  // `pack` into `pack_bytes` that all chunks share. 0: it is read in place.
  std::int64_t pack_chunks = 0, pack_bytes = 0, blocks_per_pack = 0;
  std::int64_t pack_stride[kGemmMaxAxes] = {};  // of the outer axes, in elements (pairs: matrices); 0: A is repeated
  std::size_t scratch_bytes = 0;                // per concurrently running thread
};

struct MatmulKernels {
  MatmulPlan (*plan)(const MatmulOperands& product, int threads);
  void (*pack)(const MatmulOperands& product, const MatmulPlan& plan, std::int64_t chunk, void* packed);
  void (*run)(const MatmulOperands& product, const MatmulPlan& plan, std::int64_t chunk, const void* packed,
              void* scratch);
  /// Elements of one dtype as another: F16 or BF16 to F32 and back, `count` of them.
  void (*widen)(DType from, const void* x, float* y, std::int64_t count);
  void (*narrow)(DType to, const float* x, void* y, std::int64_t count);
  /// Runs `iterations` of a loop of multiply-adds on registers and returns the operations done: the peak of F64.
  std::int64_t (*peak_f64)(std::int64_t iterations);
};

/// With sums in F64, F32, I32 or I64.
const MatmulKernels& matmul_kernels(Isa isa, DType sums);

}  // namespace rlx::cpu
