// Reductions of every real dtype but f32 (see kernels.h). F64 accumulates in double, F16 and BF16 in float, integers in
// their own width, which wraps as the definition does.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// y[o, j] = reduction of x[o, :, j]. x is [outer, r, inner]; x and y are row-major.
struct TypedReduce {
  ReduceKind kind = ReduceKind::Sum;
  DType dtype = DType::F64;
  std::int64_t outer = 1, r = 1, inner = 1;
  const void* x = nullptr;
  void* y = nullptr;
};
/// Most columns of a chunk when inner is not 1.
inline constexpr std::int64_t kReduceColumns = 256;

struct TypedReduceKernels {
  /// Columns [col, col + cols) of outer index o; cols <= kReduceColumns. With inner 1 it computes result o.
  void (*run)(const TypedReduce& reduce, std::int64_t o, std::int64_t col, std::int64_t cols);
  /// out[i] = element base[at + i * step], which is F32, F16, BF16 or an integer of at most 16 bits.
  void (*load)(DType t, const void* base, std::int64_t at, std::int64_t step, std::int64_t n, float* out);
  /// base[at + i * step] = in[i], rounded to F32, F16 or BF16.
  void (*store)(DType t, const float* in, std::int64_t n, void* base, std::int64_t at, std::int64_t step);
};

/// True when kernels for the dtype exist.
bool has_typed_reduce(DType t);
const TypedReduceKernels& typed_reduce_kernels(Isa isa);

}  // namespace rlx::cpu
