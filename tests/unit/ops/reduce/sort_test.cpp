// Sort and argsort: stability, NaN, signed zeros, values carried along, derivatives, the compiled kernel.
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/indexing.h"
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

Tensor places(std::int64_t n) {
  Tensor t = Tensor::zeros(Shape({n}, DType::I32));
  for (std::int64_t i = 0; i < n; ++i) t.set_i64(i, i);
  return t;
}

// Keys and positions by the reference rule and by the compiled program, whose bits must be equal.
std::vector<Tensor> sorted(const Tensor& keys, bool descending) {
  const std::vector<Tensor> by_rule =
      evaluate_op(ops::Sort{0, descending}, std::vector<Tensor>{keys, places(keys.num_elements())});
  Graph g;
  const Expr x = g.input("x", keys.shape());
  const ExprList both = g.sort(x, {g.iota(keys.shape().with_dtype(DType::I32), 0)}, 0, descending);
  g.set_outputs({both[0], both[1], g.argsort(x, 0, descending)});
  const std::vector<Tensor> run = Session().compile(std::move(g)).run_typed({{"x", keys}});
  for (int r = 0; r < 2; ++r) CHECK(run[static_cast<std::size_t>(r)].identical(by_rule[static_cast<std::size_t>(r)]));
  CHECK(run[2].identical(by_rule[1]));
  return by_rule;
}

TEST_CASE("sort is stable; NaN is above all numbers, -0 equals 0") {
  const double inf = HUGE_VAL;
  const Tensor x = doubles({9}, {0.0, NAN, -1, -0.0, inf, NAN, -inf, 2, 0.0});
  auto up = sorted(x, false);
  expect_close(up[1], {6, 2, 0, 3, 8, 7, 4, 1, 5}, 0);
  CHECK(std::signbit(up[0].at(3)));  // equal elements are moved, not replaced
  auto down = sorted(x, true);
  expect_close(down[1], {1, 5, 4, 7, 0, 3, 8, 2, 6}, 0);
  for (DType t : {DType::F32, DType::F16, DType::BF16}) expect_close(sorted(x.cast(t), false)[1], up[1], 0);
}

TEST_CASE("sort of integers at the ends of their range") {
  Tensor x = Tensor::zeros(Shape({4}, DType::I64));
  x.set_i64(0, std::numeric_limits<std::int64_t>::max());
  x.set_i64(1, std::numeric_limits<std::int64_t>::min());
  x.set_i64(2, -1);
  expect_close(sorted(x, false)[1], {1, 2, 3, 0}, 0);
  expect_close(sorted(x, true)[1], {0, 3, 2, 1}, 0);
  Tensor u = Tensor::zeros(Shape({3}, DType::U64));
  u.set_i64(0, -1);  // 2^64 - 1
  u.set_i64(1, 5);
  expect_close(sorted(u, false)[1], {2, 1, 0}, 0);
}

TEST_CASE("sort along any axis carries values of every dtype") {
  Graph g;
  const Expr keys = g.input("k", Shape({2, 3, 2}, DType::F32)), codes = g.input("c", Shape({2, 3, 2}, DType::U4));
  const ExprList s = g.sort(keys, {codes}, 1, true);
  g.set_outputs({s[0], g.cast(s[1], DType::I32)});
  const Tensor k = doubles({2, 3, 2}, {1, 6, 3, 5, 2, 4, 9, 7, 8, 8, 7, 9}).cast(DType::F32);
  const Tensor c = doubles({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).cast(DType::U4);
  const NamedTensors in{{"k", k}, {"c", c}};
  for (const std::vector<Tensor>& y : {evaluate(g, in), Session().compile(std::move(g)).run_typed(in)}) {
    expect_close(y[0].cast(DType::F64), {3, 6, 2, 5, 1, 4, 9, 9, 8, 8, 7, 7}, 0);
    expect_close(y[1].cast(DType::F64), {3, 2, 5, 4, 1, 6, 7, 12, 9, 10, 11, 8}, 0);
  }
}

TEST_CASE("the derivative of a sort goes back to the places that the elements had") {
  Graph g;
  const Expr x = g.input("x", Shape({4}, DType::F64)), v = g.input("v", Shape({4}, DType::F64));
  const ExprList s = g.sort(x, {v}, 0, true);
  g.set_outputs({g.sum(s[0] * g.constant(doubles({4}, {1, 10, 100, 1000})) +
                       s[1] * g.constant(doubles({4}, {2, 20, 200, 2000})))});
  const std::vector<Tensor> d =
      evaluate(grad(g, {"x", "v"}).graph,
               {{"x", doubles({4}, {3, 9, 1, 5})}, {"v", doubles({4}, {0, 0, 0, 0})}, {"d_output", doubles({}, {1})}});
  expect_close(d[0], {100, 1, 1000, 10}, 0);
  expect_close(d[1], {200, 2, 2000, 20}, 0);
}

TEST_CASE("sort refuses what has no order") {
  CHECK(contains(infer_error(ops::Sort{0}, {Shape({3}, DType::C64)}), "no order"));
  CHECK(contains(infer_error(ops::Sort{0}, {Shape({3}, DType::F8E4M3)}), "cast"));
  CHECK(contains(infer_error(ops::Sort{1}, {Shape({3}, DType::F32)}), "axis 1"));
  CHECK(contains(infer_error(ops::Sort{0}, {Shape({3}, DType::F32), Shape({4}, DType::F32)}),
                 "the dimensions of the keys"));
}

}  // namespace
}  // namespace rlx
