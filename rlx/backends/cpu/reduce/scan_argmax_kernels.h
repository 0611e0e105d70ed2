// Argmax and argmin kernels, and scans: running sums, products, maxima and minima.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// A scan of any dtype but complex. Floats accumulate in double; integers accumulate in their width and wrap.
struct ScanArgs {
  ReduceKind kind = ReduceKind::Sum;
  DType dtype = DType::F32;
  bool exclusive = false, reverse = false;
  const void* x = nullptr;
  void* y = nullptr;
};

/// Most columns of a call.
inline constexpr std::int64_t kLineColumns = 256;

struct ScanArgmaxKernels {
  /// The index of the largest (smallest) of the n elements from `at` on. The first of equal elements wins; NaN is above
  /// all. n > 0.
  std::int64_t (*best)(DType t, bool maximum, const void* x, std::int64_t at, std::int64_t n);
  /// The same for `cols` columns of `rows` rows that are `ld` elements apart.
  void (*best_columns)(DType t, bool maximum, const void* x, std::int64_t at, std::int64_t ld, std::int64_t rows,
                       std::int64_t cols, std::int32_t* places);
  /// Scans the n elements from `at` on. A result depends only on the elements up to it.
  void (*scan)(const ScanArgs& scan, std::int64_t at, std::int64_t n);
  /// Scans `cols` columns of `rows` rows that are `ld` elements apart.
  void (*scan_columns)(const ScanArgs& scan, std::int64_t at, std::int64_t ld, std::int64_t rows, std::int64_t cols);
};

/// True when kernels for the dtype exist.
bool has_scan_argmax_kernels(DType t);
const ScanArgmaxKernels& scan_argmax_kernels(Isa isa);

}  // namespace rlx::cpu
