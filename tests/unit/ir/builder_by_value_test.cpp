// Builder functions whose result extents are values, against results of NumPy.
#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/verify.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

Tensor number(std::int64_t v) { return Tensor::scalar_i64(DType::I64, v); }

}  // namespace

TEST_CASE("the first rows, as many as a value says, along any axis and of any integer type") {
  for (const DType type : {DType::I64, DType::I32, DType::U8}) {
    Graph g("first");
    const Expr x = g.input("x", Shape({2, 3}, DType::F64)), n = g.input("n", Shape({}, type));
    g.set_outputs({g.first(x, n, -1), g.first(x, 1), g.first(x, g.dim_size(x, 1), 1)});
    CHECK(g.symbol_sources().size() == 1);  // a number and an extent need no symbol
    for (std::int64_t v : {0, 2, 3}) {
      const auto out = evaluate(g, {{"x", sequence({2, 3})}, {"n", Tensor::scalar_i64(type, v)}});
      CHECK(out[0].dims() == std::vector<std::int64_t>{2, v});
      CHECK(out[1].dims() == std::vector<std::int64_t>{1, 3});
      CHECK(out[2].dims() == std::vector<std::int64_t>{2, 3});
    }
    CHECK(contains(error_text([&] {
                     (void)evaluate(g, {{"x", sequence({2, 3})}, {"n", Tensor::scalar_i64(type, 4)}});
                   }),
                   "= 4 is outside [0, 3]"));
  }
}

TEST_CASE("compress keeps the rows of a mask, nonzero tells where x is not zero") {
  Graph g("mask");
  const Expr x = g.input("x", Shape({4, 2}, DType::F64)), mask = g.input("mask", Shape({4}, DType::Bool));
  g.set_outputs({g.compress(x, mask), g.nonzero(x), g.nonzero(mask), g.compress(g.t(x), mask, -1)});
  for (const Diagnostic& d : verify(g, Level::Mir)) FAIL_CHECK(d.text());
  const Tensor values = doubles({4, 2}, {0, 1, 2, 0, 0, 0, 3, 4});
  const auto run = [&](std::vector<std::int64_t> bits) {
    Tensor m = Tensor::zeros(Shape({4}, DType::Bool));
    for (std::size_t i = 0; i < bits.size(); ++i) m.set_i64(static_cast<std::int64_t>(i), bits[i]);
    return evaluate(g, {{"x", values}, {"mask", m}});
  };
  auto out = run({1, 0, 0, 1});
  expect_close(out[0], {0, 1, 3, 4});
  CHECK(out[1].dims() == std::vector<std::int64_t>{2, 4});
  CHECK(out[1].shape().dtype() == DType::I64);
  expect_close(out[1], {0, 1, 3, 3, 1, 0, 0, 1});
  expect_close(out[2], {0, 3});
  expect_close(out[3], {0, 3, 1, 4});
  out = run({0, 0, 0, 0});
  CHECK(out[0].dims() == std::vector<std::int64_t>{0, 2});
  out = run({1, 1, 1, 1});
  CHECK(out[0].dims() == std::vector<std::int64_t>{4, 2});
}

TEST_CASE("ys have the rows of trips that happened") {
  Graph g("trips");
  const Expr limit = g.input("limit", Shape({}, DType::I64));
  const LoopResult loop = g.while_loop(
      g.constant(number(1)), [&](Graph& b, const ExprList& c) { return b.lt(c[0], limit); },
      [](Graph& b, const ExprList& c) {
        return LoopStep{{b.mul(c[0], 2)}, {c[0], b.expand(c[0], {2})}};
      },
      {.max_iterations = 5, .truncate_ys = true});
  g.set_outputs({loop.ys[0], loop.ys[1]});
  CHECK(g.symbol_sources().size() == 1);
  const auto out = evaluate(g, {{"limit", number(8)}});
  expect_close(out[0], {1, 2, 4});
  expect_close(out[1], {1, 1, 2, 2, 4, 4});
  CHECK(evaluate(g, {{"limit", number(0)}})[0].num_elements() == 0);
  CHECK(evaluate(g, {{"limit", number(1000)}})[0].num_elements() == 5);
}

TEST_CASE("branches of different extents: each extent that differs is a symbol") {
  Graph g("ragged");
  const Dim rows = g.symbol("rows", {.min = 1, .max = 5});
  const Expr x = g.input("x", Shape({rows, 3}, DType::F64)), yes = g.input("yes", Shape({}, DType::Bool));
  const ExprList out = g.cond_ragged(
      yes, {x},
      [](Graph& b, const ExprList& v) {
        return ExprList{b.concat({v[0], v[0]}, 0), b.sum(v[0]), b.narrow(v[0], 1, 0, 2)};
      },
      [](Graph& b, const ExprList& v) {
        return ExprList{b.narrow(v[0], 1, 1, 1), b.reduce_max(v[0], {0, 1}), b.narrow(v[0], 1, 1, 2)};
      });
  CHECK(g.symbol_sources().size() == 2);
  g.set_outputs({out[0], out[1], out[2]});
  for (const Diagnostic& d : verify(g, Level::Mir)) FAIL_CHECK(d.text());
  const Tensor values = doubles({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto run = [&](bool b) { return evaluate(g, {{"x", values}, {"yes", Tensor::scalar_i64(DType::Bool, b)}}); };
  CHECK(run(true)[0].dims() == std::vector<std::int64_t>{4, 3});
  expect_close(run(true)[0], {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  CHECK(run(false)[0].dims() == std::vector<std::int64_t>{2, 1});
  expect_close(run(false)[0], {2, 5});
  expect_close(run(true)[2], {1, 2, 4, 5});
  expect_close(run(false)[1], {6});
  // Ranks and dtypes must still agree.
  CHECK(contains(error_text([&] {
                   (void)g.cond_ragged(
                       yes, {x}, [](Graph&, const ExprList& v) { return v; },
                       [](Graph& b, const ExprList& v) { return ExprList{b.sum(v[0])}; });
                 }),
                 "result 0 is"));
}

TEST_CASE("value_dim: what is known is no symbol; what is no extent is refused at the user's line") {
  Graph g("dims");
  const Expr x = g.input("x", Shape({Dim::symbol("seq"), 3}, DType::F64)), n = g.input("n", Shape({}, DType::I32));
  CHECK(g.value_dim(3, 5) == Dim(3));
  CHECK(g.value_dim(g.constant(number(4)), 5) == Dim(4));
  const Dim a = g.value_dim(n, 5), b = g.value_dim(n, 5, 1);
  CHECK_FALSE(a == b);
  CHECK(g.symbols().at(b.text()).min == 1);
  CHECK(contains(error_text([&] { (void)g.value_dim(6, 5); }), "6 is not in the valid range [0, 5]"));
  CHECK(contains(error_text([&] { (void)g.value_dim(2.5, 5); }), "is not in the valid range"));
  CHECK(contains(error_text([&] { (void)g.value_dim(x, 5); }), "an extent must be an integer scalar"));
  CHECK(contains(error_text([&] { (void)g.value_dim(n, 5, 6); }), "[6, 5]"));
  CHECK(contains(error_text([&] { (void)g.compress(x, g.gt(x, 0.0)); }), "one Bool for each row"));
  CHECK(contains(error_text([&] { (void)g.nonzero(n); }), "is a scalar"));
}

}  // namespace rlx::test
