// Losses of F32 rows.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// Cross entropy of rows of logits with a class per row or a distribution over the columns: see
/// ops::SoftmaxCrossEntropy. A row is read from memory once: first its maximum, then its sum of exponentials.
struct CrossEntropyF32 {
  const float* x = nullptr;
  std::int64_t ld_x = 0, cols = 0;
  const std::int32_t* labels = nullptr;  // exactly one of the three is set
  const std::int64_t* wide_labels = nullptr;
  const float* weights = nullptr;  // [rows, cols], one per column
  std::int64_t ld_weights = 0;
  float *loss = nullptr, *log_sum = nullptr;  // one value per row; null when nobody reads it
};

struct LossKernels {
  void (*cross_entropy_f32)(const CrossEntropyF32& t, std::int64_t row_begin, std::int64_t row_end);
};
const LossKernels& loss_kernels(Isa isa);

}  // namespace rlx::cpu
