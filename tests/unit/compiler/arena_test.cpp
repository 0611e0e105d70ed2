// Offsets of arena buffers: live buffers do not overlap, and the arena is close to the largest sum of live bytes.
#include "rlx/compiler/arena.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace rlx {
namespace {

constexpr std::size_t kAlign = 64;

// Whether two buffers that are alive at the same step overlap. It goes through the steps with the live buffers sorted
// by offset.
bool overlaps(std::vector<ArenaBuffer> buffers) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const ArenaBuffer &a = buffers[i], &b = buffers[j];
      if (a.first <= b.last && b.first <= a.last && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
        return true;
    }
  return false;
}

std::vector<ArenaBuffer> random_buffers(std::size_t n, int steps, int longest, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<ArenaBuffer> out;
  for (std::size_t i = 0; i < n; ++i) {
    const auto first = static_cast<std::int32_t>(random() % static_cast<unsigned>(steps));
    const auto last =
        std::min<std::int32_t>(steps, first + static_cast<std::int32_t>(random() % static_cast<unsigned>(longest)));
    out.push_back({(1 + random() % 64) * 200, first, last});
  }
  return out;
}

double waste(std::vector<ArenaBuffer> buffers) {
  const ArenaSize size = place_in_arenas(buffers, kAlign).value();
  CHECK(!overlaps(buffers));
  for (const ArenaBuffer& b : buffers) CHECK(b.offset % kAlign == 0);
  CHECK(size.bytes >= size.live_peak);
  CHECK(size.bytes <= size.unshared);
  return static_cast<double>(size.bytes) / static_cast<double>(size.live_peak);
}

TEST_CASE("few buffers alive at a time: the largest first, within 6 % of the floor on average") {
  double sum = 0;
  for (unsigned seed = 0; seed < 20; ++seed) sum += waste(random_buffers(400, 200, 12, seed));
  CHECK(sum / 20 < 1.06);
}

TEST_CASE("thousands alive at a time: placed in the order of time, still near the floor") {
  // Fan-in and fan-out of equal sizes, and random lifetimes of random sizes.
  std::vector<ArenaBuffer> fan_in, fan_out;
  for (std::int32_t i = 0; i < 3'500; ++i) {
    fan_in.push_back({128, i, 3'500});
    fan_out.push_back({128, 0, i});
  }
  fan_in.push_back({3'500 * 128, 3'500, 3'501});
  CHECK(waste(fan_in) == 1);
  CHECK(waste(fan_out) == 1);
  CHECK(waste(random_buffers(6'000, 6'000, 4'000, 1)) < 1.05);
  CHECK(waste(random_buffers(6'000, 1'000, 900, 2)) < 1.05);
}

TEST_CASE("no buffers, empty buffers, one step") {
  std::vector<ArenaBuffer> none;
  CHECK(place_in_arenas(none, kAlign)->bytes == 0);
  std::vector<ArenaBuffer> empty(3, ArenaBuffer{0, 0, 5});
  CHECK(place_in_arenas(empty, kAlign)->bytes == 0);
  std::vector<ArenaBuffer> together(3, ArenaBuffer{100, 4, 4});
  CHECK(place_in_arenas(together, kAlign)->bytes == 3 * 128);
  CHECK(!overlaps(together));
}

TEST_CASE("sums of bytes that no memory holds do not wrap to small ones") {
  constexpr std::size_t kHuge = std::size_t{1} << 58;
  // Live at the same step: no arena fits. Live one after the other: the bytes of one buffer, and a sum that saturates.
  std::vector<ArenaBuffer> together(9, ArenaBuffer{kHuge, 0, 1});
  CHECK(!place_in_arenas(together, kAlign));
  std::vector<ArenaBuffer> in_turn;
  for (std::int32_t i = 0; i < 9; ++i) in_turn.push_back({kHuge, i, i});
  const std::optional<ArenaSize> size = place_in_arenas(in_turn, kAlign);
  REQUIRE(size);
  CHECK(size->bytes == kHuge);
  CHECK(size->live_peak == kHuge);
  CHECK(size->unshared == kMostArenaBytes);
  // The largest size that fits.
  std::vector<ArenaBuffer> most{{kMostArenaBytes - 63 - 128, 0, 1}, {128, 1, 2}, {kMostArenaBytes - 63 - 128, 2, 3}};
  REQUIRE(place_in_arenas(most, kAlign));
  CHECK(!overlaps(most));
}

}  // namespace
}  // namespace rlx
