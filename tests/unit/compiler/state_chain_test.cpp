// Chains of updates of a state. The whole chain is placed in the state, through views, loops, branches and regions.
// Every remaining copy is reported, and is an error with must_alias.
#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/inspect.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

const Shape kCache({6, 4}, DType::F32), kRow({1, 4}, DType::F32);

Expr at(Graph& g, std::int64_t row) {
  return g.constant(Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{row, 0}));
}

Tensor row_value() { return Tensor::of<float>({1, 4}, std::vector<float>{1, 2, 3, 4}); }

// Runs the program three times, on one and on three threads, and compares with the evaluator. Returns its plan.
LirBufferPlan check_runs(const Graph& g, NamedTensors inputs, bool must_alias) {
  LirBufferPlan plan;
  for (int threads : {1, 3}) {
    CAPTURE(threads);
    CompileOptions options;
    options.must_alias = must_alias;
    CompiledGraph f = Session().with_threads(threads).compile_with(Graph(g), options);
    NamedTensors values = inputs;
    for (int run = 0; run < 3; ++run) {
      const EvaluateResult exact = evaluate_with_states(g, values);
      const std::vector<Tensor> got = f.run_typed(inputs);
      for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], exact.outputs[i], 1e-5);
      for (const auto& [name, state] : exact.states) {
        expect_close(f.read_state(name), state, 1e-5);
        values.insert_or_assign(name, state);
      }
    }
    plan = f.compile_result().lir.plan;
  }
  return plan;
}

void expect_no_copy(const LirBufferPlan& plan) {
  CHECK(plan.state_copies.empty());
  CHECK(plan.update_copies.empty());
}

}  // namespace

TEST_CASE("a chain of updates lies in the state as a whole") {
  Graph g("chain");
  const Expr x = g.input("x", kRow);
  Expr s = g.state("cache", Tensor::zeros(kCache));
  for (std::int64_t row : {0, 2, 5}) s = g.dynamic_update_slice(s, x * static_cast<double>(row + 1), at(g, row));
  g.set_state("cache", s);
  g.set_outputs({g.sum(x)});
  const LirBufferPlan plan = check_runs(g, {{"x", row_value()}}, true);
  expect_no_copy(plan);
  CHECK(plan.arena_bytes < kCache.size_bytes());  // no second cache
}

TEST_CASE("a chain goes through views of the whole") {
  Graph g("views");
  const Expr x = g.input("x", kRow);
  const Expr s = g.state("cache", Tensor::zeros(kCache));
  const Expr flat = g.reshape(g.dynamic_update_slice(s, x, at(g, 1)), {24});
  const Expr start = g.constant(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{20}));
  g.set_state("cache", g.reshape(g.dynamic_update_slice(flat, g.reshape(x, {4}), start), kCache.dims()));
  g.set_outputs({g.sum(x)});
  expect_no_copy(check_runs(g, {{"x", row_value()}}, true));
}

TEST_CASE("a cache that is updated in the body of a scan, of a while, of both branches") {
  const Tensor rows = Tensor::of<float>({3, 1, 4}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  {
    Graph g("scan");
    const Expr xs = g.input("xs", Shape({3, 1, 4}, DType::F32)), n = g.constant(Tensor::scalar_i64(DType::I64, 1));
    const Expr s = g.state("cache", Tensor::zeros(kCache));
    const LoopResult r = g.scan({s, n}, xs, [](Graph& b, const ExprList& c, const ExprList& x) {
      const Expr zero = b.scalar(0, DType::I64);
      const Expr start = b.concat({b.reshape(c[1], {1}), b.reshape(zero, {1})}, 0);
      const Expr once = b.dynamic_update_slice(c[0], x[0], start);
      return LoopStep{
          {b.dynamic_update_slice(once, x[0] * 2.0, b.constant(Tensor::zeros(Shape({2}, DType::I64)))), c[1] + 1}, {}};
    });
    g.set_state("cache", g.dynamic_update_slice(r.carries[0], g.input("x", kRow), at(g, 5)));
    g.set_outputs({r.carries[1]});
    expect_no_copy(check_runs(g, {{"xs", rows}, {"x", row_value()}}, true));
  }
  {
    Graph g("while");
    const Expr x = g.input("x", kRow), n = g.constant(Tensor::scalar_i64(DType::I64, 0));
    const Expr s = g.state("cache", Tensor::zeros(kCache));
    const LoopResult r = g.while_loop(
        {s, n}, [](Graph& b, const ExprList& c) { return b.lt(c[1], 4); },
        [&](Graph& b, const ExprList& c) {
          const Expr start = b.concat({b.reshape(c[1], {1}), b.reshape(b.scalar(0, DType::I64), {1})}, 0);
          return LoopStep{{b.dynamic_update_slice(c[0], x, start), c[1] + 1}, {}};
        });
    g.set_state("cache", r.carries[0]);
    g.set_outputs({r.carries[1]});
    expect_no_copy(check_runs(g, {{"x", row_value()}}, true));
  }
  for (const double flag : {0.0, 1.0}) {
    Graph g("branches");
    const Expr x = g.input("x", kRow), p = g.input("p", Shape({}, DType::Bool));
    const Expr s = g.state("cache", Tensor::zeros(kCache));
    const ExprList r = g.cond(
        p, ExprList{s, x},
        [](Graph& b, const ExprList& in) {
          const Expr once = b.dynamic_update_slice(in[0], in[1], b.constant(Tensor::zeros(Shape({2}, DType::I64))));
          return ExprList{b.dynamic_update_slice(
              once, in[1] * 3.0, b.constant(Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{4, 0})))};
        },
        [](Graph&, const ExprList& in) { return ExprList{in[0]}; });  // unchanged
    g.set_state("cache", g.dynamic_update_slice(r[0], x, at(g, 2)));
    g.set_outputs({g.sum(x)});
    expect_no_copy(check_runs(g, {{"x", row_value()}, {"p", Tensor::scalar(DType::Bool, flag)}}, true));
  }
}

TEST_CASE("a region with several results writes each of them over its state") {
  Graph g("moments");
  const Expr x = g.input("x", kCache);
  const Expr m = g.state("m", Tensor::zeros(kCache)), v = g.state("v", Tensor::zeros(kCache)),
             w = g.state("w", Tensor::full(kCache, 1));
  const Expr m1 = m * 0.9 + x * 0.1, v1 = v * 0.99 + x * x * 0.01;
  g.set_state("m", m1);
  g.set_state("v", v1);
  g.set_state("w", w - m1 / (g.sqrt(v1) + 1e-3) * 0.01);
  g.set_outputs({g.sum(x)});
  expect_no_copy(check_runs(g, {{"x", sequence({6, 4}, 1, 0, DType::F32)}}, true));
}

TEST_CASE("a fill is no copy: what is made anew is made in the state from its first step on") {
  Graph g("fill");
  const Expr x = g.input("x", kRow);
  const Expr s = g.state("cache", Tensor::zeros(kCache));
  const Expr filled = g.expand(g.sum(s), kCache.dims()) * g.expand(x, kCache.dims());
  g.set_state("cache", g.dynamic_update_slice(filled, x, at(g, 3)));
  g.set_outputs({g.sum(x)});
  expect_no_copy(check_runs(g, {{"x", row_value()}}, true));
}

TEST_CASE(
    "an update of a value that is read later copies it, is told with the reason, and is an error with must_alias") {
  Graph g("late");
  const Expr x = g.input("x", kRow);
  const Expr s = g.state("cache", Tensor::zeros(kCache));
  const Expr s1 = g.dynamic_update_slice(s, x, at(g, 0)), s2 = g.dynamic_update_slice(s1, x, at(g, 1));
  g.set_state("cache", s2);
  g.set_outputs({g.sum(s2 * s1)});  // s1 is still read
  const LirBufferPlan plan = check_runs(g, {{"x", row_value()}}, false);
  CHECK(plan.state_copies.empty());
  CHECK(plan.update_copies.size() == 2);  // s1 has its own buffer, and s2 starts from a copy of it
  CompileOptions options;
  options.must_alias = true;
  const std::string text = error_text([&] { (void)Session().compile_with(Graph(g), options); });
  CHECK(contains(text, "must_alias"));
  CHECK(contains(text, "96 B"));
  CHECK(contains(text, "is still read by"));
  CHECK(
      contains(inspect_copies(Session().compile(Graph(g)).compile_result().lir), "are copied before they are updated"));
}

TEST_CASE("a chain over a donated input") {
  Graph g("donated");
  const Expr x = g.input("x", kRow), cache = g.input("cache", kCache);
  const Expr once = g.dynamic_update_slice(cache, x, at(g, 0));
  g.set_outputs({g.dynamic_update_slice(once, x, at(g, 1))});
  CompileOptions options;
  options.donate = {{"cache", 0}};
  options.must_alias = true;
  CompiledGraph f = Session().compile_with(Graph(g), options);
  CHECK(f.compile_result().lir.plan.arena_bytes < kCache.size_bytes());
  CHECK(f.compile_result().lir.plan.update_copies.empty());
  const NamedTensors values{{"x", row_value()}, {"cache", sequence({6, 4}, 1, 0, DType::F32)}};
  expect_close(f.run_typed(values)[0], evaluate(g, values)[0]);
}

}  // namespace rlx::test
