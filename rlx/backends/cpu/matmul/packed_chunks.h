// The part of the driver (driver.h) for packed B: the cut over threads, and the loops of a chunk.
#pragma once

#include "rlx/backends/cpu/matmul/matmul_kernels.h"

namespace rlx::cpu {

/// Fills in how the matmul is cut. `plan.k` is set.
void cut_packed_b(const MatmulKernel& kernel, const MatmulOperands& p, int threads, MatmulPlan& plan);
/// Widens some rows of A to `rows`, one after the other.
void widen_rows(const MatmulKernel& kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                void* rows);
/// `rows`: the widened rows of A, where tiles cannot read A in place.
void run_packed_chunk(const MatmulKernel& kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                      const void* rows);

}  // namespace rlx::cpu
