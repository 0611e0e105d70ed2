// The part of the driver (driver.h) for records of words.
#pragma once

#include "rlx/backends/cpu/matmul/matmul_kernels.h"

namespace rlx::cpu {

/// Fills in how the matmul is cut. `plan.k` is set.
void cut_words(const MatmulKernel& kernel, const MatmulOperands& p, int threads, MatmulPlan& plan);
void pack_word_rows(const MatmulKernel& kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                    void* packed);
void run_word_chunk(const MatmulKernel& kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                    const void* packed);

}  // namespace rlx::cpu
