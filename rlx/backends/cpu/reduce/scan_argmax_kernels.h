// Kernels of lines of elements: where the largest or smallest lies, and running sums, products and extrema.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// A running reduction of every dtype but complex ones: of floats in double, of integers in their width, which wraps.
struct LineScan {
  ReduceKind kind = ReduceKind::Sum;
  DType dtype = DType::F32;
  bool exclusive = false, reverse = false;
  const void* x = nullptr;
  void* y = nullptr;
};

/// Columns that a call has at most.
inline constexpr std::int64_t kLineColumns = 256;

struct ScanArgmaxKernels {
  /// Which of the n elements from `at` on is the largest (smallest): the first of equal ones, NaN above all. n > 0.
  std::int64_t (*best)(DType t, bool maximum, const void* x, std::int64_t at, std::int64_t n);
  /// The same of `cols` columns of `rows` rows, `ld` elements apart.
  void (*best_columns)(DType t, bool maximum, const void* x, std::int64_t at, std::int64_t ld, std::int64_t rows,
                       std::int64_t cols, std::int32_t* places);
  /// The n elements from `at` on; the value of an element depends on those before it alone.
  void (*scan)(const LineScan& scan, std::int64_t at, std::int64_t n);
  /// `cols` columns of `rows` rows, `ld` elements apart.
  void (*scan_columns)(const LineScan& scan, std::int64_t at, std::int64_t ld, std::int64_t rows, std::int64_t cols);
};

/// True for the dtypes that there are kernels for.
bool has_scan_argmax_kernels(DType t);
const ScanArgmaxKernels& scan_argmax_kernels(Isa isa);

}  // namespace rlx::cpu
