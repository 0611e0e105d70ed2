// Rope against NumPy: both pairings, partial rotation, tables wider than needed, the inverse.
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
  expect_close(run_op(ops::Rope{6, 4, RopePairing::Half, HeadLayout::HeadsInner, false, {}}, {x, kCos, kSin})[0],
               kHalf);
  expect_close(run_op(ops::Rope{6, 4, RopePairing::Interleaved, HeadLayout::HeadsInner, false, {}}, {x, kCos, kSin})[0],
               kInterleaved);
  expect_close(
      run_op(ops::Rope{6, 4, RopePairing::Half, HeadLayout::Merged, false, {}}, {x.reshaped({1, 2, 6}), kCos, kSin})[0],
      kHalf);
  expect_close(run_op(ops::Rope{6, 4, RopePairing::Half, HeadLayout::HeadsFirst, false, {}},
                      {x.reshaped({1, 1, 2, 6}), kCos, kSin})[0],
               kHalf);
}

TEST_CASE("rope with a table per sequence") {
  Tensor x = Tensor::full(Shape({2, 1, 2}, DType::F64), 1);
  auto y = run_op(ops::Rope{2, 2, RopePairing::Half, HeadLayout::Merged, false, {}},
                  {x, doubles({2, 1, 1}, {1, 0}), doubles({2, 1, 1}, {0, 1})});
  expect_close(y[0], {1, 1, -1, 1});
}

TEST_CASE("the inverse undoes the rotation when cos^2 + sin^2 = 1") {
  const Tensor x = sequence({1, 2, 2, 4}), cos = doubles({2, 2}, {0.6, 0.8, 1, 0}),
               sin = doubles({2, 2}, {0.8, -0.6, 0, 1});
  for (RopePairing pairing : {RopePairing::Half, RopePairing::Interleaved}) {
    Tensor y = run_op(ops::Rope{4, 4, pairing, HeadLayout::HeadsInner, false, {}}, {x, cos, sin})[0];
    CHECK(std::fabs(y.at(0) - x.at(0)) > 0.1);
    expect_close(run_op(ops::Rope{4, 4, pairing, HeadLayout::HeadsInner, true, {}}, {y, cos, sin})[0], x);
  }
}

TEST_CASE("rope shape rules name what does not fit") {
  const Shape x({1, 2, 12}, DType::F32), t({2, 3}, DType::F32);
  auto op = [](std::int64_t head_dim, std::int64_t n_rot) {
    return ops::Rope{head_dim, n_rot, RopePairing::Half, HeadLayout::Merged, false, {}};
  };
  CHECK(infer_error(op(6, 6), {x, t, t}).empty());
  CHECK(contains(infer_error(op(6, 5), {x, t, t}), "n_rot"));
  CHECK(contains(infer_error(op(6, 8), {x, t, t}), "n_rot"));
  CHECK(contains(infer_error(op(6, 0), {x, t, t}), "n_rot"));
  CHECK(contains(infer_error(op(0, 0), {x, t, t}), "head_dim"));
  CHECK(contains(infer_error(op(8, 4), {x, t, t}), "cannot be split into heads of 8"));
  CHECK(contains(infer_error(op(12, 12), {x, t, t}), "n_rot / 2 = 6"));
  CHECK(contains(infer_error(op(6, 6), {x, Shape({1, 3}, DType::F32), Shape({1, 3}, DType::F32)}), "a row for each"));
  CHECK(contains(infer_error(op(6, 6), {x, t, Shape({2, 4}, DType::F32)}), "the same shape"));
  CHECK(contains(infer_error(op(6, 6), {x, Shape({2, 2, 3}, DType::F32), Shape({2, 2, 3}, DType::F32)}), "batch of x"));
}

TEST_CASE("rope with positions takes those rows of its tables, the nearest where there is none") {
  const Tensor x = sequence({2, 3, 8}), cos = sequence({5, 2}, 0.5, 0.1), sin = sequence({5, 2}, -0.4, 0.2);
  ops::Rope op{4, 4, RopePairing::Half, HeadLayout::Merged, false, {}};
  auto placed = op;
  placed.present.bits = 1U << 3;
  const auto table = [](const Tensor& t, const std::vector<std::int64_t>& rows, std::vector<std::int64_t> dims) {
    Tensor out = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), DType::F64));
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::int64_t j = 0; j < 2; ++j) out.set(static_cast<std::int64_t>(i) * 2 + j, t.at(rows[i] * 2 + j));
    return out;
  };
  expect_close(run_op(placed, {x, cos, sin, Tensor::of<std::int32_t>({3}, {4, 0, 2})})[0],
               run_op(op, {x, table(cos, {4, 0, 2}, {3, 2}), table(sin, {4, 0, 2}, {3, 2})})[0]);
  const std::vector<std::int64_t> rows{0, 0, 1, 4, 4, 3};
  expect_close(run_op(placed, {x, cos, sin, Tensor::of<std::int32_t>({2, 3}, {-1, 0, 1, 7, 4, 3})})[0],
               run_op(op, {x, table(cos, rows, {2, 3, 2}), table(sin, rows, {2, 3, 2})})[0]);
  // Decoding: one token at a position far beyond its own sequence length.
  expect_close(run_op(placed, {sequence({1, 1, 8}), cos, sin, Tensor::of<std::int32_t>({1}, {3})})[0],
               run_op(op, {sequence({1, 1, 8}), table(cos, {3}, {1, 2}), table(sin, {3}, {1, 2})})[0]);
  const Shape xs({2, 3, 8}, DType::F32), t({5, 2}, DType::F32);
  CHECK(infer_error(placed, {xs, t, t, Shape({2, 3}, DType::I32)}).empty());
  CHECK(contains(infer_error(placed, {xs, t, t, Shape({2}, DType::I32)}), "positions must be [3] or [2, 3], got [2]"));
  CHECK(contains(infer_error(placed, {xs, t, t, Shape({3}, DType::I64)}), "positions must be I32"));
  CHECK(contains(infer_error(placed, {xs, t, t}), "takes (x, cos, sin, positions)"));
  CHECK(
      contains(infer_error(placed, {xs, Shape({0, 2}, DType::F32), Shape({0, 2}, DType::F32), Shape({3}, DType::I32)}),
               "have no rows"));
}
