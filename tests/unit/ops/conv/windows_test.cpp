// Windowed reductions and resampled axes: hand-computed values, NaN and ties, symbolic extents, refusals.
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::doubles;
using test::expect_close;
using test::infer_error;
using test::kInf;
using test::kNan;

ops::ReduceWindow windows(ReduceKind fn, std::vector<std::int64_t> window, std::vector<std::int64_t> strides = {},
                          std::vector<std::int64_t> low = {}, std::vector<std::int64_t> high = {},
                          std::vector<std::int64_t> base = {}, std::vector<std::int64_t> dilation = {}) {
  return {fn, window, strides, low, high, base, dilation};
}

TEST_CASE("windows reduce what stands in them, and nothing is their identity") {
  const Tensor x = doubles({5}, {1, 2, 3, 4, 5});
  const auto y = [&](const ops::ReduceWindow& op) { return test::run_op(op, {x})[0]; };
  expect_close(y(windows(ReduceKind::Sum, {3})), {6, 9, 12}, 0);
  expect_close(y(windows(ReduceKind::Sum, {2}, {2}, {1}, {2})), {1, 5, 9, 0}, 0);
  expect_close(y(windows(ReduceKind::Mean, {2}, {2}, {1}, {2})), {0.5, 2.5, 4.5, 0}, 0);  // divides by the whole window
  expect_close(y(windows(ReduceKind::Max, {2}, {2}, {1}, {2})), {1, 3, 5, -kInf}, 0);
  expect_close(y(windows(ReduceKind::Min, {2}, {2}, {1}, {2})), {1, 2, 4, kInf}, 0);
  expect_close(y(windows(ReduceKind::Prod, {2}, {2}, {1}, {2})), {1, 6, 20, 1}, 0);
  expect_close(y(windows(ReduceKind::Sum, {2}, {}, {-1}, {-1})), {5, 7}, 0);                     // cropped
  expect_close(y(windows(ReduceKind::Sum, {3}, {}, {}, {}, {}, {2})), {9}, 0);                   // every second element
  expect_close(y(windows(ReduceKind::Sum, {2}, {}, {}, {}, {2})), {1, 2, 2, 3, 3, 4, 4, 5}, 0);  // inserted gaps
  CHECK(y(windows(ReduceKind::Sum, {6})).num_elements() == 0);
}

TEST_CASE("an extremum knows the first place that it has, and NaN is one") {
  const Tensor x = doubles({2, 3}, {1, 4, 4, kNan, 4, kNan});
  const std::vector<Tensor> max = test::run_op(windows(ReduceKind::Max, {1, 2}), {x});
  expect_close(max[0], {4, 4, kNan, kNan}, 0);
  expect_close(max[1], {1, 1, 3, 5}, 0);
  CHECK(max[1].dtype() == DType::I32);
  const std::vector<Tensor> both = test::run_op(windows(ReduceKind::Min, {2, 2}, {}, {1, 0}, {2, 0}), {x});
  expect_close(both[0], {1, 4, kNan, kNan, kNan, kNan, kInf, kInf}, 0);
  expect_close(both[1], {0, 1, 3, 5, 3, 5, -1, -1}, 0);
  // The element is the maximum, not the padding next to it.
  expect_close(test::run_op(windows(ReduceKind::Max, {2}, {2}, {1}, {0}), {doubles({1}, {-kInf})})[1], {0}, 0);

  const ops::SelectAndScatter back{ReduceKind::Max, {1, 2}};
  expect_close(test::run_op(back, {x, doubles({2, 2}, {1, 10, 100, 1000})})[0], {0, 11, 0, 100, 0, 1000}, 0);
}

TEST_CASE("windows over symbols are those of every extent, derivatives too") {
  for (const ReduceKind fn : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Prod}) {
    const ops::ReduceWindow op = windows(fn, {1, 3}, {1, 2}, {0, 1}, {0, 1});
    const auto program = [&](Graph& g, const Dim& rows, const Dim& columns) {
      const Expr x = g.input("x", Shape({rows, columns}, DType::F32));
      g.set_outputs({g.sum(g.square(g.reduce_window(x, op)))});
      return value_and_grad(g, {"x"}).graph;
    };
    Graph symbolic;
    const Dim rows = symbolic.symbol("rows", {1, 8}), columns = symbolic.symbol("columns", {1, 64});
    auto f = Session(Device::Cpu).compile(program(symbolic, rows, columns));
    for (const std::int64_t n : {1, 2, 7, 10, 33}) {
      Graph known;
      const Graph g = program(known, Dim(2), Dim(n));
      const Tensor x = test::sequence({2, n}, 1, 0.25, DType::F32);
      const Tensor want = evaluate(g, {{"x", x}}).back(), got = f.run_typed({{"x", x}}).back();
      CAPTURE(n);
      CHECK(got.dims() == want.dims());
      expect_close(got, want, 1e-5);
    }
  }
}

TEST_CASE("windows that no axis has are refused") {
  const Shape x({4, 4}, DType::F32), b({4, 4}, DType::Bool), c({4, 4}, DType::C64), i({4, 4}, DType::I32);
  CHECK(contains(infer_error(windows(ReduceKind::Sum, {2}), {x}), "window has 1 numbers"));
  CHECK(contains(infer_error(windows(ReduceKind::Sum, {2, 0}), {x}), "window [2, 0] has 0"));
  CHECK(contains(infer_error(windows(ReduceKind::Sum, {2, 2}, {0, 1}), {x}), "strides [0, 1] has 0"));
  CHECK(contains(infer_error(windows(ReduceKind::Sum, {2, 2}, {1}), {x}), "strides has 1 numbers"));
  CHECK(contains(infer_error(windows(ReduceKind::Sum, {2, 2}, {}, {std::numeric_limits<std::int64_t>::max(), 0}), {x}),
                 "which is not in"));
  CHECK(contains(infer_error(windows(ReduceKind::Sum, {2, 2}, {}, {}, {}, {0, 1}), {x}), "base_dilation"));
  CHECK(contains(infer_error(windows(ReduceKind::Sum, {2, 2}, {}, {}, {}, {}, {1, -1}), {x}), "window_dilation"));
  CHECK(contains(infer_error(windows(ReduceKind::Sum, {2, 2}), {b}), "x is Bool"));
  CHECK(contains(infer_error(windows(ReduceKind::Mean, {2, 2}), {i}), "must be float or complex"));
  CHECK(contains(infer_error(windows(ReduceKind::Max, {2, 2}), {c}), "no order"));
  const ops::SelectAndScatter sum{ReduceKind::Sum, {2, 2}}, max{ReduceKind::Max, {2, 2}};
  CHECK(contains(infer_error(sum, {x, x}), "select must be max or min"));
  CHECK(contains(infer_error(max, {x, x}), "one element for each window of x"));
  CHECK(contains(infer_error(max, {c, x}), "must be a real tensor"));
  CHECK(contains(infer_error(max, {x, b}), "source must have a numeric dtype"));
}

TEST_CASE("resizes that no axis has are refused") {
  const Shape x({4, 0}, DType::F32), i({4}, DType::I32);
  ops::Interpolate op;
  op.axes = {0};
  CHECK(contains(infer_error(op, {x}), "0 sizes for 1 axes"));
  op.sizes = {0};
  CHECK(contains(infer_error(op, {x}), "size 0 of axis 0"));
  op.sizes = {3}, op.scales = {1, 2};
  CHECK(contains(infer_error(op, {x}), "2 scales for 1 axes"));
  op.scales = {-1};
  CHECK(contains(infer_error(op, {x}), "a scale must be a finite number"));
  op.scales = {}, op.cubic_a = kNan;
  CHECK(contains(infer_error(op, {x}), "cubic_a"));
  op.cubic_a = -0.5;
  CHECK(contains(infer_error(op, {i}), "must be float or complex"));
  op.axes = {1};
  CHECK(contains(infer_error(op, {x}), "has no elements"));
  op.axes = {1, 0}, op.sizes = {1, 1};
  CHECK(contains(infer_error(op, {x}), "must be sorted"));
  op.axes = {0}, op.sizes = {2};
  CHECK(contains(infer_error(op, {Shape({Dim::symbol("n")}, DType::F32)}), "is not known"));
}

TEST_CASE("an infinite element reaches only the places that it has a weight in") {
  ops::Interpolate op;
  op.axes = {0}, op.sizes = {8};
  const Tensor x = doubles({4}, {1, kInf, 3, 4});
  const Tensor y = test::run(op, {x});
  expect_close(y, {1, kInf, kInf, kInf, kInf, 3.25, 3.75, 4}, 1e-15);
  Graph g;
  g.set_outputs({g.add(op, {g.input("x", Shape({4}, DType::F32))})});
  auto f = Session(Device::Cpu).compile(std::move(g));
  expect_close(f.run_typed({{"x", x.cast(DType::F32)}})[0], y.cast(DType::F32), 1e-6);
}

}  // namespace
}  // namespace rlx
