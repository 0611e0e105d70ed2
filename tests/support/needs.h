// Requirements and costs of tests: whether a test is skipped or fails, and how often it repeats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/build_kind.h"

namespace rlx::test {

/// The folder of the all-MiniLM-L6-v2 model (RLX_MODEL_DIR, else .models/ of the repository), or "" when it is missing.
std::string model_dir();

/// The test suite of tests that use model_dir(): `TEST_CASE("..." * doctest::test_suite(kNeedsModel))`. ctest runs it
/// separately from the rest of its program (`unit.model`), so a skip is visible.
inline constexpr const char* kNeedsModel = "model";

/// The test suite of slow tests. It has its own ctest entry (`stress.slow`, label `slow`). It runs on optimized code,
/// and under the sanitizers only in full runs.
inline constexpr const char* kSlow = "slow";

/// Call before returning early from a test because `what` is missing. It prints that, and the program ends with
/// kSkippedStatus unless something failed. It fails the test when RLX_REQUIRE_ALL_TESTS is set, as scripts/test.sh
/// does.
void skip(const std::string& what);
bool anything_skipped();

/// The number of repetitions of a test with random cases: `full`, or an eighth of it under the sanitizers, which make a
/// program ten times as slow and check one run where others compare many.
#if defined(RLX_ADDRESS_SANITIZER) || defined(RLX_THREAD_SANITIZER)
template <class Int>
constexpr Int repetitions(Int full) {
  return full / 8 + 1;
}
#else
template <class Int>
constexpr Int repetitions(Int full) {
  return full;
}
#endif

/// The round number: RLX_TEST_ROUND, which scripts/test.sh sets from the commit, else 0. It selects the subset of cases
/// that the functions below run, so that over many commits every case runs.
std::size_t test_round();

/// The seeds 1 to n. When a round is set, and under the sanitizers, it is the eighth of them that the round selects.
/// With RLX_ALL_CASES it is all of them.
std::vector<std::uint64_t> seeds(std::size_t n);

/// A long list of cases runs one in this many: with RLX_TEST_SHARE one in `n`, under the sanitizers one in 2 n, else
/// all. With RLX_ALL_CASES, which scripts/test.sh --full sets, it is all.
std::size_t one_in(std::size_t n);

/// Selects from a sequence of cases: all, or, when a share is set, the first and about one in one_in(n) of the others.
/// The steps are n - 1, n and n + 1 in turn, so that no surrounding loop stays in phase. The round selects the first
/// step: n + 1 consecutive rounds take every case.
class Share {
 public:
  explicit Share(std::size_t n) : n_(one_in(n)), second_(n_ == 1 ? 1 : 1 + (n_ - 2 + test_round()) % (n_ + 1)) {}
  bool next() {
    if (--left_ > 0) return false;
    left_ = n_ == 1 ? 1 : taken_ == 0 ? second_ : n_ - 1 + taken_ % 3;
    ++taken_;
    return true;
  }

 private:
  std::size_t n_, second_, left_ = 1, taken_ = 0;
};

/// The exit status that ctest reports as "skipped" (SKIP_RETURN_CODE in tests/CMakeLists.txt).
inline constexpr int kSkippedStatus = 77;

}  // namespace rlx::test
