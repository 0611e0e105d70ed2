// Rope against NumPy: both pairings, partial rotation, tables wider than they need to be, the inverse.
#include <doctest/doctest.h>

#include "rlx/ir/ops/rope.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"

using namespace rlx;
using namespace rlx::test;

namespace {
// Two positions; the third column is never read when n_rot is 4.
const Tensor kCos = doubles({2, 3}, {0.5, 0.6, 9, 0.8, -0.7, 9}), kSin = doubles({2, 3}, {0.1, 0.2, 9, 0.3, 0.4, 9});
const std::vector<double> kHalf{-0.575, 0.05, -0.375, 0.85, 0.25, -0.75, 1.1, -0.3, -0.5, -0.525, -0.25, -1.25};
const std::vector<double> kInterleaved{-0.675, 0.125, -0.55, 0.65, 0.25, -0.75, 0.8, 0.3, 0.4, -0.925, -0.25, -1.25};
}  // namespace

TEST_CASE("partial rope: rows of the tables are as wide as the tables, the rest of the head is copied") {
  const Tensor x = sequence({1, 2, 1, 6});
  expect_close(run_op(ops::Rope{6, 4, RopePairing::Half, HeadLayout::HeadsInner, false}, {x, kCos, kSin})[0], kHalf);
  expect_close(run_op(ops::Rope{6, 4, RopePairing::Interleaved, HeadLayout::HeadsInner, false}, {x, kCos, kSin})[0],
               kInterleaved);
  expect_close(
      run_op(ops::Rope{6, 4, RopePairing::Half, HeadLayout::Merged, false}, {x.reshaped({1, 2, 6}), kCos, kSin})[0],
      kHalf);
  expect_close(run_op(ops::Rope{6, 4, RopePairing::Half, HeadLayout::HeadsFirst, false},
                      {x.reshaped({1, 1, 2, 6}), kCos, kSin})[0],
               kHalf);
}

TEST_CASE("rope with a table per sequence") {
  Tensor x = Tensor::full(Shape({2, 1, 2}, DType::F64), 1);
  auto y = run_op(ops::Rope{2, 2, RopePairing::Half, HeadLayout::Merged, false},
                  {x, doubles({2, 1, 1}, {1, 0}), doubles({2, 1, 1}, {0, 1})});
  expect_close(y[0], {1, 1, -1, 1});
}

TEST_CASE("the inverse undoes the rotation when cos^2 + sin^2 = 1") {
  const Tensor x = sequence({1, 2, 2, 4}), cos = doubles({2, 2}, {0.6, 0.8, 1, 0}),
               sin = doubles({2, 2}, {0.8, -0.6, 0, 1});
  for (RopePairing pairing : {RopePairing::Half, RopePairing::Interleaved}) {
    Tensor y = run_op(ops::Rope{4, 4, pairing, HeadLayout::HeadsInner, false}, {x, cos, sin})[0];
    CHECK(std::fabs(y.at(0) - x.at(0)) > 0.1);
    expect_close(run_op(ops::Rope{4, 4, pairing, HeadLayout::HeadsInner, true}, {y, cos, sin})[0], x);
  }
}

TEST_CASE("rope shape rules name what does not fit") {
  const Shape x({1, 2, 12}, DType::F32), t({2, 3}, DType::F32);
  auto op = [](std::int64_t head_dim, std::int64_t n_rot) {
    return ops::Rope{head_dim, n_rot, RopePairing::Half, HeadLayout::Merged, false};
  };
  CHECK(infer_error(op(6, 6), {x, t, t}).empty());
  CHECK(contains(infer_error(op(6, 5), {x, t, t}), "n_rot"));
  CHECK(contains(infer_error(op(6, 8), {x, t, t}), "n_rot"));
  CHECK(contains(infer_error(op(6, 0), {x, t, t}), "n_rot"));
  CHECK(contains(infer_error(op(0, 0), {x, t, t}), "head_dim"));
  CHECK(contains(infer_error(op(8, 4), {x, t, t}), "does not hold heads of 8"));
  CHECK(contains(infer_error(op(12, 12), {x, t, t}), "n_rot / 2 = 6"));
  CHECK(contains(infer_error(op(6, 6), {x, Shape({1, 3}, DType::F32), Shape({1, 3}, DType::F32)}), "a row for each"));
  CHECK(contains(infer_error(op(6, 6), {x, t, Shape({2, 4}, DType::F32)}), "one shape"));
  CHECK(contains(infer_error(op(6, 6), {x, Shape({2, 2, 3}, DType::F32), Shape({2, 2, 3}, DType::F32)}), "batch of x"));
}
