// The blocks in which products sum over a long contraction.
#pragma once

#include <cstdint>

namespace rlx::cpu {

/// Steps of k of a block. Each element of a product is the sum of its blocks in the order of k, and a block is one
/// chain of multiply-adds that starts from zero. So the rounding error grows with k / kSumBlock + kSumBlock, not with
/// k, and an element has the same bits in every kernel, row count and plan. A block costs a register tile one addition
/// to each of its sums; 512 steps hide it, and they are the steps of k that packed operands keep in cache.
inline constexpr std::int64_t kSumBlock = 512;
/// The same for the instructions that multiply pairs of bf16. An AMX tile of sums is outside of the vector registers,
/// so an addition costs more beside its multiplications.
inline constexpr std::int64_t kPairSumBlock = 4096;

}  // namespace rlx::cpu
