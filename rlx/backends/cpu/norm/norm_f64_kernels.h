// F64 row kernels, and softmax along axes other than the last.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

struct F64RowKernels {
  void (*layer_norm_f64)(const NormF64& norm, std::int64_t row_begin, std::int64_t row_end);
  void (*rms_norm_f64)(const NormF64& norm, std::int64_t row_begin, std::int64_t row_end);
  /// Softmax and log-softmax as in kernels.h.
  void (*softmax_f64)(const double* x, std::int64_t ld_x, double* y, std::int64_t ld_y, std::int64_t cols,
                      std::int64_t row_begin, std::int64_t row_end);
  void (*log_softmax_f64)(const double* x, std::int64_t ld_x, double* y, std::int64_t ld_y, std::int64_t cols,
                          std::int64_t row_begin, std::int64_t row_end);
  /// The same for columns [col, col + cols) of x [r, inner], along r; `log`: log-softmax. y may alias x. The result of
  /// a column depends on that column alone.
  void (*softmax_columns_f32)(bool log, const float* x, float* y, std::int64_t r, std::int64_t inner, std::int64_t col,
                              std::int64_t cols);
  void (*softmax_columns_f64)(bool log, const double* x, double* y, std::int64_t r, std::int64_t inner,
                              std::int64_t col, std::int64_t cols);
};
const F64RowKernels& f64_row_kernels(Isa isa);

}  // namespace rlx::cpu
