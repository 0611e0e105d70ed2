// Offsets of buffers that share one arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace rlx {

/// Sums of bytes stop here: no arena is as large, nor a tensor of bytes.
inline constexpr std::size_t kMostArenaBytes = std::numeric_limits<std::int64_t>::max() / 8;

/// A buffer that is alive from step `first` to step `last`, both included.
struct ArenaBuffer {
  std::size_t bytes = 0;
  std::int32_t first = 0, last = 0;
  std::size_t offset = 0;  // the answer
};

struct ArenaSize {
  std::size_t bytes = 0;      // of the arena
  std::size_t live_peak = 0;  // the largest sum of live bytes: the floor of any arena
  std::size_t unshared = 0;   // the sum of all buffers
};

/// Gives every buffer an offset, a multiple of `alignment`, so that buffers alive at the same step are apart. Steps are
/// counted from 0. Takes O(n log n) plus, while they are few millions, the pairs of buffers alive at the same step.
/// None when they need kMostArenaBytes or more.
std::optional<ArenaSize> place_in_arena(std::span<ArenaBuffer> buffers, std::size_t alignment);

}  // namespace rlx
