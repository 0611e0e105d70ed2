// Products of two run-time operands of any layout: of f64, of dtypes narrower than f32, and of narrow integers.
//
// Both operands are copied into panels first, in the type that is computed in: float for F16, BF16 and integers of 8
// bits, double for F64 and integers of 16. Integers are exact: the sum of a block of k fits the type, and blocks are
// added as integers, which wrap.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels/kernels.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// Steps of k in a block: a panel of B fits the first cache, and 255 * 255 * 256 < 2^24.
inline constexpr std::int64_t kWideDepth = 256;

/// Where elements lie along an axis of the product (several axes of the operand make one): element i is at offsets[i],
/// which is i * step where that is not 0.
struct WideAxis {
  const std::int64_t* offsets = nullptr;
  std::int64_t extent = 1, step = 0;
};

/// y[batch, m, n] = a[batch, m, k] b[batch, k, n]; y lies row-major.
struct WideGemm {
  WideAxis a_batch, a_row, a_depth, b_batch, b_depth, b_col;
  DType a_type = DType::F64, b_type = DType::F64, y_type = DType::F64;
  const void *a = nullptr, *b = nullptr;
  void* y = nullptr;
  void *packed_a = nullptr, *packed_b = nullptr;  // WidePlan::a_bytes, b_bytes; 64-byte aligned
};

struct WidePlan {
  std::int64_t a_panels = 0, b_panels = 0;              // of one batch
  std::int64_t a_chunks = 0, b_chunks = 0, chunks = 0;  // of packing, and of the product
  std::int64_t a_per_chunk = 1, b_per_chunk = 1;        // panels
  std::int64_t row_panels = 1, col_panels = 1;          // of a chunk
  std::int64_t row_blocks = 1, col_blocks = 1;
  std::size_t a_bytes = 0, b_bytes = 0, scratch_bytes = 0;
};

struct WideKernels {
  WidePlan (*plan)(const WideGemm& g, int threads);
  /// All chunks of both come before any of `run`.
  void (*pack_a)(const WideGemm& g, const WidePlan& p, std::int64_t chunk);
  void (*pack_b)(const WideGemm& g, const WidePlan& p, std::int64_t chunk);
  void (*run)(const WideGemm& g, const WidePlan& p, std::int64_t chunk, void* scratch);
};

/// In double, else float. Errors: Unsupported for an instruction set that this machine has not.
const WideKernels& wide_kernels(Isa isa, bool in_double);

}  // namespace rlx::cpu
