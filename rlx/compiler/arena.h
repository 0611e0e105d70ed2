// Offsets of buffers that share arenas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace rlx {

/// Sums of bytes stop here: no arena is as large, nor a tensor of bytes.
inline constexpr std::size_t kMostArenaBytes = std::numeric_limits<std::int64_t>::max() / 8;

/// A buffer that is alive from step `first` to step `last`, both included.
struct ArenaBuffer {
  std::size_t bytes = 0;
  std::int32_t first = 0, last = 0;
  std::size_t offset = 0;   // the answer,
  std::uint32_t arena = 0;  // in which arena
};

struct ArenaSize {
  std::vector<std::size_t> arenas;  // bytes of each
  std::size_t bytes = 0;            // of all
  std::size_t live_peak = 0;        // the largest sum of live bytes: the floor of any arena
  std::size_t unshared = 0;         // the sum of all buffers
};

/// Gives every buffer an arena and an offset there, a multiple of `alignment`, so that buffers alive at the same step
/// are apart. One arena, unless that would have more than `most_bytes`; then each has at most these, or holds one
/// buffer that has more. Steps are counted from 0. Takes O(n log n) for an arena plus, while they are few millions, the
/// pairs of buffers alive at the same step. None when they need kMostArenaBytes or more.
std::optional<ArenaSize> place_in_arenas(std::span<ArenaBuffer> buffers, std::size_t alignment,
                                         std::size_t most_bytes = ~std::size_t{0});

}  // namespace rlx
