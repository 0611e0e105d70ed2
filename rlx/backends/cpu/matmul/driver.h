// The matmul driver: cuts a matmul into chunks, packs operands, keeps sums between blocks of k, and runs the register
// tiles of a record. Compiled once; all vector code is in the records.
#pragma once

#include "rlx/backends/cpu/matmul/matmul_kernels.h"

namespace rlx::cpu {

MatmulPlan plan_matmul(const MatmulKernel* kernel, const MatmulOperands& p, int threads);
/// Packs some blocks of rows of A. All chunks must run before any chunk of `run_matmul`.
void pack_matmul(const MatmulKernel* kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                 void* packed);
/// `scratch`: `plan.scratch_bytes` of the calling thread, 64-byte aligned.
void run_matmul(const MatmulKernel* kernel, const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk,
                const void* packed, void* scratch);
/// Plans a matmul for one thread and runs it. `packed`: `plan.pack_bytes`, where A needs packing.
void run_whole_matmul(const MatmulKernel* kernel, const MatmulOperands& p, void* scratch, void* packed = nullptr);

}  // namespace rlx::cpu
