// Runs matmuls with packed B as the backend does.
#pragma once

#include "rlx/backends/cpu/matmul/driver.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {

/// Runs the matmul, planned for `threads`, the last chunk first.
inline void run_packed(const MatmulKernel& kernel, const MatmulOperands& p, int threads) {
  const MatmulPlan plan = plan_matmul(&kernel, p, threads);
  Buffer rows(plan.pack_bytes / 4, kNan);
  for (std::int64_t chunk = plan.pack_chunks - 1; chunk >= 0; --chunk)
    pack_matmul(&kernel, p, plan, chunk, rows.data());
  for (std::int64_t chunk = plan.chunks - 1; chunk >= 0; --chunk)
    run_matmul(&kernel, p, plan, chunk, rows.data(), nullptr);
  CHECK(rows.intact());
}
/// The same with B of elements of `type`.
inline void run_packed(const KernelTable& t, const MatmulOperands& p, int threads,
                       PackedBType type = PackedBType::F32) {
  run_packed(packed_b_kernel(t, type), p, threads);
}

}  // namespace rlx::cpu::test
