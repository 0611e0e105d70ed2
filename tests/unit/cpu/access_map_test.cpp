// The waits between steps, derived from the bytes that they access: every conflict of two halves of steps is ordered,
// directly or through a chain.
#include "rlx/backends/cpu/access_map.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace rlx::cpu {
namespace {

Access arena(std::size_t begin, std::size_t end, bool write, std::uint8_t halves = kBothHalves) {
  return {Place::Arena, 0, begin, end, write, halves};
}

HalfWaits same_half() { return half_waits(false, false) | half_waits(true, true); }

using Steps = std::vector<std::vector<Access>>;  // the accesses of steps 0, 1, ..

// The waits of each step.
std::vector<std::vector<Wait>> waits_of(const Steps& steps, const LirBufferPlan& plan = {}) {
  std::vector<Access> all;
  for (const std::vector<Access>& s : steps) all.insert(all.end(), s.begin(), s.end());
  AccessMap map(plan, all);
  std::vector<std::vector<Wait>> waits;
  for (std::size_t s = 0; s < steps.size(); ++s) waits.push_back(map.add(static_cast<std::int32_t>(s), steps[s]));
  return waits;
}

// Compares every two halves of different steps. Two halves that access the same byte, one of them writing, must be
// ordered.
void check_order(const Steps& steps) {
  const std::vector<std::vector<Wait>> waits = waits_of(steps);
  // after[a][b]: half-step a (2 step + half) runs after half-step b.
  const std::size_t n = 2 * steps.size();
  std::vector<std::vector<bool>> after(n, std::vector<bool>(n));
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const Wait& w : waits[s]) {
      REQUIRE(static_cast<std::size_t>(w.step) < s);
      for (const std::size_t half : {0U, 1U})
        for (const std::size_t other : {0U, 1U}) {
          if ((w.waits & half_waits(half == 1, other == 1)) == 0) continue;
          const std::size_t b = 2 * static_cast<std::size_t>(w.step) + other;
          std::vector<bool>& all = after[2 * s + half];
          all[b] = true;
          for (std::size_t c = 0; c < b; ++c)
            if (after[b][c]) all[c] = true;
        }
    }
  const auto meet = [&](std::size_t a, std::size_t b) {
    for (const Access& x : steps[a / 2])
      for (const Access& y : steps[b / 2])
        if ((x.halves >> (a % 2) & 1) && (y.halves >> (b % 2) & 1) && (x.write || y.write) && x.begin < y.end &&
            y.begin < x.end)
          return true;
    return false;
  };
  int conflicts = 0;
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < a - a % 2; ++b) {
      if (!meet(a, b)) continue;
      ++conflicts;
      CHECK_MESSAGE(after[a][b], "step ", a / 2, " half ", a % 2, " does not wait for step ", b / 2, " half ", b % 2);
    }
  CHECK(conflicts > 0);
}

}  // namespace

TEST_CASE("a half waits for the half whose bytes it reads, and for what it overwrites") {
  const std::vector<std::vector<Wait>> waits = waits_of(
      {{arena(0, 50, true, kLower), arena(50, 100, true, kUpper)},
       // Row by row from one buffer to another: each half waits for the same half.
       {arena(0, 50, false, kLower), arena(50, 100, false, kUpper), arena(100, 150, true, kLower),
        arena(150, 200, true, kUpper)},
       // Over the first buffer, in longer rows: the lower half ends in bytes that the upper half of step 1 reads.
       {arena(100, 150, false, kLower), arena(150, 200, false, kUpper), arena(0, 70, true, kLower),
        arena(70, 140, true, kUpper)}});
  CHECK(waits[0].empty());
  REQUIRE(waits[1].size() == 1);
  CHECK(waits[1][0].step == 0);
  CHECK(waits[1][0].waits == same_half());
  REQUIRE(waits[2].size() == 2);
  CHECK(waits[2][0].step == 0);
  CHECK(waits[2][1].step == 1);
  // The lower half waits for the read of the upper half. The upper half overwrites bytes from 100 on that the lower
  // half reads.
  CHECK((waits[2][1].waits & half_waits(false, true)) != 0);
  CHECK((waits[2][1].waits & half_waits(true, false)) != 0);
}

TEST_CASE("an output over a donated input is the same memory") {
  LirBufferPlan plan;
  plan.aliases.push_back({3, 1, ""});
  const std::vector<std::vector<Wait>> waits = waits_of({{{Place::Input, 3, 0, 8, false, kBothHalves}},
                                                         {{Place::Output, 0, 0, 8, true, kBothHalves}},
                                                         {{Place::Output, 1, 0, 8, true, kBothHalves}}},
                                                        plan);
  CHECK(waits[0].empty());
  CHECK(waits[1].empty());
  CHECK(waits[2].size() == 1);
}

TEST_CASE("every two halves that meet in a byte one of them writes are ordered") {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    INFO("round ", round);
    Steps steps(12);
    for (std::vector<Access>& s : steps)
      for (int i = 0, n = 1 + below(4); i < n; ++i) {
        const auto begin = static_cast<std::size_t>(below(24));
        const std::uint8_t halves = static_cast<std::uint8_t>(1 + below(3));
        s.push_back(arena(begin, begin + static_cast<std::size_t>(1 + below(8)), below(2) == 0, halves));
      }
    check_order(steps);
  }
}

TEST_CASE("they are where many have read the same bytes, and others read and write parts of them") {
  std::mt19937 random(11);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int round = 0; round < 10; ++round) {
    INFO("round ", round);
    constexpr std::size_t kBytes = 64;
    Steps steps{{arena(0, kBytes, true)}};
    for (int stage = 0; stage < 2; ++stage) {
      for (std::size_t i = 0, n = AccessHistory::kManyReaders + below(20); i < n; ++i)
        steps.push_back({arena(0, kBytes - below(2) * below(kBytes), false, static_cast<std::uint8_t>(1 + below(3)))});
      for (std::size_t i = 0; i < 20; ++i) {
        steps.emplace_back();
        for (std::size_t k = 0, n = 1 + below(3); k < n; ++k) {
          const std::size_t begin = below(kBytes);
          steps.back().push_back(arena(begin, std::min(kBytes, begin + 1 + below(12)), below(3) > 0,
                                       static_cast<std::uint8_t>(1 + below(3))));
        }
      }
    }
    check_order(steps);
  }
}

TEST_CASE("steps that overwrite parts of what many have read wait for one another, not each for all of these") {
  constexpr std::size_t n = 2'000;
  Steps steps{{arena(0, 64 * n, true)}};
  for (std::size_t i = 0; i < n; ++i) steps.push_back({arena(0, 64 * n, false)});
  for (std::size_t i = 0; i < n; ++i) steps.push_back({arena(64 * i, 64 * i + 64, true)});
  std::size_t waits = 0;
  for (const std::vector<Wait>& w : waits_of(steps)) waits += w.size();
  CHECK(waits < 20 * n);  // if each waited for all: n * n
}

}  // namespace rlx::cpu
