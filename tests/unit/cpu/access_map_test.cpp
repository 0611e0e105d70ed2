// What steps wait for, found from the bytes they touch: every conflict of two halves is ordered, through whatever
// chain.
#include "rlx/backends/cpu/access_map.h"

#include <random>
#include <set>
#include <utility>

#include <doctest/doctest.h>

namespace rlx::cpu {
namespace {

Access arena(std::size_t begin, std::size_t end, bool write, std::uint8_t halves = kBothHalves) {
  return {Place::Arena, 0, begin, end, write, halves};
}

HalfWaits same_half() { return half_waits(false, false) | half_waits(true, true); }

}  // namespace

TEST_CASE("a half waits for the half whose bytes it reads, and for what it overwrites") {
  AccessMap map((LirBufferPlan()));
  CHECK(map.add(0, {arena(0, 50, true, kLower), arena(50, 100, true, kUpper)}).empty());
  // Row by row from one buffer to another: halves wait for their own.
  auto waits = map.add(1, {arena(0, 50, false, kLower), arena(50, 100, false, kUpper), arena(100, 150, true, kLower),
                           arena(150, 200, true, kUpper)});
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].step == 0);
  CHECK(waits[0].waits == same_half());
  // Over the first buffer, with longer rows: its lower half ends in bytes that the upper half of step 1 reads.
  waits = map.add(2, {arena(100, 150, false, kLower), arena(150, 200, false, kUpper), arena(0, 70, true, kLower),
                      arena(70, 140, true, kUpper)});
  REQUIRE(waits.size() == 2);
  CHECK(waits[0].step == 0);
  CHECK(waits[1].step == 1);
  CHECK((waits[1].waits & half_waits(false, true)) != 0);  // lower waits for the upper half's reading
  CHECK((waits[1].waits & half_waits(true, false)) !=
        0);  // and the upper overwrites what the lower half reads of 100..
}

TEST_CASE("an output over a donated input is the same memory") {
  LirBufferPlan plan;
  plan.aliases.push_back({3, 1, ""});
  AccessMap map(plan);
  CHECK(map.add(0, {{Place::Input, 3, 0, 8, false, kBothHalves}}).empty());
  CHECK(map.add(1, {{Place::Output, 0, 0, 8, true, kBothHalves}}).empty());
  CHECK(map.add(2, {{Place::Output, 1, 0, 8, true, kBothHalves}}).size() == 1);
}

TEST_CASE("every two halves that meet in a byte one of them writes are ordered") {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    constexpr int kSteps = 12, kBytes = 24;
    AccessMap map((LirBufferPlan()));
    std::vector<std::vector<Access>> accesses(kSteps);
    // after[a] holds b: half-step a (2 step + half) runs after half-step b.
    std::vector<std::set<int>> after(2 * kSteps);
    for (int s = 0; s < kSteps; ++s) {
      for (int i = 0, n = 1 + below(4); i < n; ++i) {
        const auto begin = static_cast<std::size_t>(below(kBytes));
        const std::uint8_t halves = static_cast<std::uint8_t>(1 + below(3));
        accesses[static_cast<std::size_t>(s)].push_back(
            arena(begin, begin + static_cast<std::size_t>(1 + below(8)), below(2) == 0, halves));
      }
      for (const Wait& w : map.add(s, accesses[static_cast<std::size_t>(s)])) {
        REQUIRE(w.step < s);
        for (const int half : {0, 1})
          for (const int other : {0, 1}) {
            if ((w.waits & half_waits(half == 1, other == 1)) == 0) continue;
            const int b = 2 * w.step + other;
            auto& all = after[static_cast<std::size_t>(2 * s + half)];
            all.insert(b);
            all.insert(after[static_cast<std::size_t>(b)].begin(), after[static_cast<std::size_t>(b)].end());
          }
      }
    }
    const auto meet = [&](int a, int b) {
      for (const Access& x : accesses[static_cast<std::size_t>(a / 2)])
        for (const Access& y : accesses[static_cast<std::size_t>(b / 2)])
          if ((x.halves >> (a % 2) & 1) && (y.halves >> (b % 2) & 1) && (x.write || y.write) && x.begin < y.end &&
              y.begin < x.end)
            return true;
      return false;
    };
    int conflicts = 0;
    for (int a = 0; a < 2 * kSteps; ++a)
      for (int b = 0; b < a - a % 2; ++b) {
        if (!meet(a, b)) continue;
        ++conflicts;
        CHECK_MESSAGE(after[static_cast<std::size_t>(a)].count(b) == 1, "round ", round, ": step ", a / 2, " half ",
                      a % 2, " does not wait for step ", b / 2, " half ", b % 2);
      }
    CHECK(conflicts > 0);
  }
}

}  // namespace rlx::cpu
