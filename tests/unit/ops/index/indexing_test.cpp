// Gather, scatter_add, dynamic slices and top_k: hand-computed answers and refusals.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/indexing.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::doubles;
using test::expect_close;
using test::infer_error;
using test::run;

using test::ints;
Tensor i64(std::vector<std::int64_t> dims, const std::vector<std::int64_t>& values) {
  return Tensor::of<std::int64_t>(std::move(dims), values);
}

using test::k2x3;

TEST_CASE("gather picks rows and clamps indices") {
  expect_close(run(ops::Gather{{0}}, {k2x3, ints({3}, {1, 0, 1})}), {4, 5, 6, 1, 2, 3, 4, 5, 6}, 0);
  expect_close(run(ops::Gather{{0}}, {k2x3, i64({2}, {-5, 99})}), {1, 2, 3, 4, 5, 6}, 0);
  expect_close(run(ops::Gather{{0}}, {k2x3, i64({}, {1})}), {4, 5, 6}, 0);
}

TEST_CASE("gather along a later axis keeps the axes before it") {
  const Tensor y = run(ops::Gather{{1}}, {k2x3, ints({2, 2}, {2, 0, 1, 1})});
  CHECK(y.shape() == Shape({2, 2, 2}, DType::F64));
  expect_close(y, {3, 1, 2, 2, 6, 4, 5, 5}, 0);
}

TEST_CASE("gather refuses float indices, bad axes and empty tables") {
  const Shape table({2, 3}, DType::F32), ids({4}, DType::I32);
  CHECK(contains(infer_error(ops::Gather{{0}}, {table, Shape({4}, DType::F32)}), "cast"));
  CHECK(contains(infer_error(ops::Gather{{2}}, {table, ids}), "axis 2"));
  CHECK(contains(infer_error(ops::Gather{{-1}}, {table, ids}), "axis -1"));
  CHECK(contains(infer_error(ops::Gather{{0}}, {Shape({0, 3}, DType::F32), ids}), "empty"));
  CHECK(infer_error(ops::Gather{{0}}, {Shape({0, 3}, DType::F32), Shape({0}, DType::I32)}) == "");
}

TEST_CASE("scatter_add accumulates duplicates and drops indices out of range") {
  expect_close(run(ops::Scatter{ScatterKind::Add, {0}},
                   {doubles({3}, {10, 20, 30}), ints({5}, {1, 1, 0, -1, 3}), doubles({5}, {1, 2, 4, 8, 16})}),
               {14, 23, 30}, 0);
  expect_close(run(ops::Scatter{ScatterKind::Add, {1}}, {k2x3, i64({2}, {2, 2}), doubles({2, 2}, {10, 20, 30, 40})}),
               {1, 2, 33, 4, 5, 76}, 0);
  const Tensor wrapped =
      run(ops::Scatter{ScatterKind::Add, {0}}, {Tensor::scalar_i64(DType::I8, 127).reshaped({1}), ints({1}, {0}),
                                                Tensor::scalar_i64(DType::I8, 1).reshaped({1})});
  CHECK(wrapped.at_i64(0) == -128);
  const Shape x({3, 2}, DType::F32), ids({4}, DType::I32);
  CHECK(contains(infer_error(ops::Scatter{ScatterKind::Add, {0}}, {x, ids, Shape({4, 3}, DType::F32)}),
                 "must be [4, 2]"));
  CHECK(contains(infer_error(ops::Scatter{ScatterKind::Add, {0}}, {x, ids, Shape({4, 2}, DType::F64)}), "dtype"));
}

TEST_CASE("dynamic_slice clamps its window into x") {
  const Tensor x = doubles({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expect_close(run(ops::DynamicSlice{{2, 2}}, {x, ints({2}, {1, 1})}), {5, 6, 9, 10}, 0);
  expect_close(run(ops::DynamicSlice{{2, 2}}, {x, i64({2}, {2, -7})}), {4, 5, 8, 9}, 0);
  const Shape f({3, 4}, DType::F32), starts({2}, DType::I32);
  CHECK(contains(infer_error(ops::DynamicSlice{{4, 1}}, {f, starts}), "does not fit"));
  CHECK(contains(infer_error(ops::DynamicSlice{{1}}, {f, starts}), "ranks"));
  CHECK(contains(infer_error(ops::DynamicSlice{{1, 1}}, {f, Shape({3}, DType::I32)}), "one position for each axis"));
  CHECK(contains(infer_error(ops::DynamicSlice{{1, 1}}, {f, Shape({2}, DType::F32)}), "cast"));
}

TEST_CASE("dynamic_update_slice replaces its window") {
  const Tensor x = doubles({5}, {0, 1, 2, 3, 4}), update = doubles({2}, {8, 9});
  expect_close(run(ops::DynamicUpdateSlice{}, {x, update, ints({1}, {1})}), {0, 8, 9, 3, 4}, 0);
  expect_close(run(ops::DynamicUpdateSlice{}, {x, update, ints({1}, {4})}), {0, 1, 2, 8, 9}, 0);
  expect_close(x, {0, 1, 2, 3, 4}, 0);  // operands are never written
  CHECK(contains(
      infer_error(ops::DynamicUpdateSlice{}, {Shape({2}, DType::F32), Shape({3}, DType::F32), Shape({1}, DType::I32)}),
      "fit"));
}

TEST_CASE("top_k: descending, ties to the smaller index, NaN first") {
  const auto r = evaluate_op(ops::TopK{4}, std::vector<Tensor>{doubles({5}, {1, NAN, 3, 3, 2})});
  CHECK(std::isnan(r[0].at(0)));
  CHECK(r[0].at(1) == 3);
  CHECK(r[0].at(3) == 2);
  CHECK(r[1].dtype() == DType::I32);
  expect_close(r[1], {1, 2, 3, 4}, 0);
  const auto rows = evaluate_op(ops::TopK{2}, std::vector<Tensor>{k2x3});
  expect_close(rows[0], {3, 2, 6, 5}, 0);
  expect_close(rows[1], {2, 1, 2, 1}, 0);
  CHECK(contains(infer_error(ops::TopK{4}, {Shape({2, 3}, DType::F32)}), "k 4"));
  CHECK(contains(infer_error(ops::TopK{-1}, {Shape({2, 3}, DType::F32)}), "k -1"));
  CHECK(contains(infer_error(ops::TopK{1}, {Shape({}, DType::F32)}), "axis"));
}

}  // namespace
}  // namespace rlx
