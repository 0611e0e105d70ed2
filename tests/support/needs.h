// What tests need or cost: the one place that decides between skipping and failing, and how often is often enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/sanitized.h"

namespace rlx::test {

/// Folder of the all-MiniLM-L6-v2 model (RLX_MODEL_DIR, else .models/ of the repository), or "" when it is not there.
std::string model_dir();

/// The test suite of tests that ask model_dir(): `TEST_CASE("..." * doctest::test_suite(kNeedsModel))`. ctest runs it
/// apart from the others of its program (`unit.model`), so that it is seen when it was skipped.
inline constexpr const char* kNeedsModel = "model";

/// The test suite of tests that only take long: an entry of its own for ctest (`stress.slow`, label `slow`). It runs on
/// optimised code, and under the sanitizers in full runs alone.
inline constexpr const char* kSlow = "slow";

/// Call before leaving a test early because `what` is missing. Prints that; the program then ends with kSkippedStatus,
/// unless something failed. Fails the test when RLX_REQUIRE_ALL_TESTS is set, as scripts/test.sh does.
void skip(const std::string& what);
bool anything_skipped();

/// How often to repeat what draws its cases: `full` times, an eighth of that under the sanitizers, which make a program
/// ten times as slow and look at one run where others compare many.
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

/// The number of the round: RLX_TEST_ROUND, which scripts/test.sh sets by the commit, else 0. It decides which part of
/// what the functions below cut is run, so that some commit runs each part.
std::size_t test_round();

/// The seeds 1 to n. Where a round is asked for, and under the sanitizers: the eighth of them that the round decides;
/// with RLX_ALL_CASES all.
std::vector<std::uint64_t> seeds(std::size_t n);

/// Of how many cases of a long list one is taken: where a share is asked for (RLX_TEST_SHARE) one in `n`, under the
/// sanitizers one in 2 n, else all; and all where RLX_ALL_CASES is set, as scripts/test.sh --full does.
std::size_t one_in(std::size_t n);

/// Picks from cases that are told one after the other: all, or where a share is asked for the first and about one in
/// one_in(n) of the others, by steps of n - 1, n and n + 1 in turn, so that no loop around them falls into step. The
/// round decides the first step: n + 1 rounds in a row take every case.
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

/// What ctest takes for "skipped" (SKIP_RETURN_CODE in tests/CMakeLists.txt).
inline constexpr int kSkippedStatus = 77;

}  // namespace rlx::test
