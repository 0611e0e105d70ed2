// Runs matmuls with packed B as the backend does.
#pragma once

#include "rlx/backends/cpu/matmul/driver.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {

/// Runs the matmul with B of elements of `type`, planned for `threads`, the last chunk first.
inline void run_packed(const KernelTable& t, const MatmulOperands& p, int threads,
                       PackedBType type = PackedBType::F32) {
  const MatmulKernel& kernel = packed_b_kernel(t, type);
  const MatmulPlan plan = plan_matmul(&kernel, p, threads);
  Buffer rows(plan.pack_bytes / 4, kNan);
  for (std::int64_t chunk = plan.pack_chunks - 1; chunk >= 0; --chunk)
    pack_matmul(&kernel, p, plan, chunk, rows.data());
  for (std::int64_t chunk = plan.chunks - 1; chunk >= 0; --chunk)
    run_matmul(&kernel, p, plan, chunk, rows.data(), nullptr);
  CHECK(rows.intact());
}

}  // namespace rlx::cpu::test
