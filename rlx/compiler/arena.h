// Arena placement: offsets of buffers that share arenas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace rlx {

/// Sums of bytes saturate here. No arena and no tensor of bytes is as large.
inline constexpr std::size_t kMostArenaBytes = std::numeric_limits<std::int64_t>::max() / 8;

/// A buffer that is alive from step `first` to step `last`, inclusive.
struct ArenaBuffer {
  std::size_t bytes = 0;
  std::int32_t first = 0, last = 0;
  std::size_t offset = 0;   // result: byte offset in the arena
  std::uint32_t arena = 0;  // result: index of the arena
};

struct ArenaSize {
  std::vector<std::size_t> arenas;  // bytes of each arena
  std::size_t bytes = 0;            // bytes of all arenas
  std::size_t live_peak = 0;        // the largest sum of live bytes: the lower bound of any arena
  std::size_t unshared = 0;         // the sum of the bytes of all buffers
};

/// Gives every buffer an arena and an offset in it that is a multiple of `alignment`. Buffers alive at the same step do
/// not overlap. There is one arena unless it would exceed `most_bytes`. Otherwise each arena has at most `most_bytes`,
/// or holds one buffer that is larger. Steps are counted from 0. Takes O(n log n) per arena plus the number of pairs of
/// buffers alive at the same step, as long as these are a few million. Returns none when the buffers need
/// kMostArenaBytes or more.
std::optional<ArenaSize> place_in_arenas(std::span<ArenaBuffer> buffers, std::size_t alignment,
                                         std::size_t most_bytes = ~std::size_t{0});

}  // namespace rlx
