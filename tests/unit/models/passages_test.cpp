// Splitting texts into passages and ranking them.
#include "rlx/models/passages.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/support/error_text.h"

using namespace rlx;
using namespace rlx::test;

TEST_CASE("passages: lines keep their numbers, blank ones are left out") {
  const auto lines = split_into_lines("\n  first \r\n\t\nsecond");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].text == "first");
  CHECK(lines[0].line == 2);
  CHECK(lines[1].text == "second");
  CHECK(lines[1].line == 4);
  CHECK(split_into_lines("").empty());
}

TEST_CASE("passages: paragraphs are joined with single spaces") {
  const auto p = split_into_paragraphs("a\n  b\n\n \nc\n");
  REQUIRE(p.size() == 2);
  CHECK(p[0].text == "a b");
  CHECK(p[0].line == 1);
  CHECK(p[1].text == "c");
  CHECK(p[1].line == 5);
}

TEST_CASE("passages: the best matches come first, equal ones in order") {
  const Tensor vectors = Tensor::of<float>({4, 2}, std::vector<float>{0, 1, 2, 0, 1, 1, 5, 0});
  const auto best = best_matches(Tensor::of<float>({2}, std::vector<float>{1, 0}), vectors, 3);
  REQUIRE(best.size() == 3);
  CHECK(best[0].index == 1);
  CHECK(best[0].score == doctest::Approx(1));
  CHECK(best[1].index == 3);
  CHECK(best[2].index == 2);
  CHECK(best[2].score == doctest::Approx(0.70710678));
  CHECK(best_matches(Tensor::of<float>({2}, std::vector<float>{1, 0}), vectors, 9).size() == 4);
  CHECK(contains(error_text([&] { (void)best_matches(Tensor::zeros(Shape({3}, DType::F32)), vectors, 1); }),
                 "does not match"));
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, inf, -inf})
    CHECK(contains(error_text([&] {
                     (void)best_matches(Tensor::of<float>({2}, std::vector<float>{1, bad}), vectors, 3);
                   }),
                   "the vector of the query has a NaN or an infinity"));
  const Tensor damaged = Tensor::of<float>({2, 2}, std::vector<float>{0, 1, nan, 0});
  CHECK(contains(error_text([&] {
                   (void)best_matches(Tensor::of<float>({2}, std::vector<float>{1, 0}), damaged, 1);
                 }),
                 "the score of passage 1 is NaN"));
}
