// Losses of rows of F32.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// Cross entropy of rows of logits beside a class each or a distribution over the columns: see
/// ops::SoftmaxCrossEntropy. A row is read from memory once: its largest element, then its sum of exponentials.
struct CrossEntropyF32 {
  const float* x = nullptr;
  std::int64_t ld_x = 0, cols = 0;
  const std::int32_t* labels = nullptr;  // one of the three
  const std::int64_t* wide_labels = nullptr;
  const float* weights = nullptr;  // [rows, cols], of each column
  std::int64_t ld_weights = 0;
  float *loss = nullptr, *log_sum = nullptr;  // a number a row; null: nobody reads them
};

struct LossKernels {
  void (*cross_entropy_f32)(const CrossEntropyF32& t, std::int64_t row_begin, std::int64_t row_end);
};
const LossKernels& loss_kernels(Isa isa);

}  // namespace rlx::cpu
