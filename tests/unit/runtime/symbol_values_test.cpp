// Symbols whose value is computed in the run: slices and reshapes by value, on the evaluator and compiled, with every
// symbol mode; text, binary form, verification, derivatives, refusals.
#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

// The first n of x [8], doubled, and their sum; n is the number of set flags.
Graph counted(bool with_sum = true) {
  Graph g("counted");
  const Expr x = g.input("x", Shape({8}, DType::F64)), flags = g.input("flags", Shape({8}, DType::I64));
  const Dim n = g.symbol("n", {0, 8}, g.sum(flags));
  const Expr part = g.slice(x, {0}, {n}) * 2.0;
  g.set_outputs(with_sum ? std::vector<Expr>{part, g.sum(part * part)} : std::vector<Expr>{g.sum(part * part)});
  return g;
}

Tensor flags(std::int64_t set) {
  Tensor t = Tensor::zeros(Shape({8}, DType::I64));
  for (std::int64_t i = 0; i < set; ++i) t.set_i64(7 - i, 1);
  return t;
}
Tensor one_to_eight() { return doubles({8}, {1, 2, 3, 4, 5, 6, 7, 8}); }

std::vector<Tensor> expected(std::int64_t n) {
  Tensor part = Tensor::zeros(Shape({n}, DType::F64));
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = 2.0 * static_cast<double>(i + 1);
    part.set(i, v);
    sum += v * v;
  }
  return {part, Tensor::scalar(DType::F64, sum)};
}

}  // namespace

TEST_CASE("a slice by value, on the evaluator and compiled with each mode of its symbol") {
  const Graph g = counted();
  for (const Diagnostic& d : verify(g, Level::Mir)) FAIL_CHECK(d.text());
  CHECK(g.symbol_sources().size() == 1);
  CHECK_FALSE(g.is_static());
  for (const auto& mode : {SymbolMode::specialise(), SymbolMode::runtime(8), SymbolMode::bucket({4, 8})}) {
    CompileOptions options;
    options.symbol_modes["n"] = mode;
    CompiledGraph f = Session().compile_with(Graph(g), options);
    for (std::int64_t n : {3, 8, 0, 1, 3}) {
      CAPTURE(n);
      const NamedTensors values{{"x", one_to_eight()}, {"flags", flags(n)}};
      const std::vector<Tensor> want = expected(n), exact = evaluate(g, values), got = f.run_typed(values);
      for (std::size_t i = 0; i < want.size(); ++i) {
        expect_close(exact[i], want[i]);
        expect_close(got[i], want[i]);
      }
    }
  }
}

TEST_CASE("a reshape by value; extents that follow from it") {
  Graph g("rows");
  const Expr x = g.input("x", Shape({6, 2}, DType::F32)), r = g.input("r", Shape({}, DType::I64));
  const Dim n = g.symbol("rows", {1, 12}, r);
  const Expr y = g.reshape(g.exp(x), {n, floordiv(Dim(12), n)});
  g.set_outputs({y, g.sum(y, {0})});
  CompiledGraph f = Session().compile(Graph(g));
  for (std::int64_t rows : {1, 2, 3, 4, 6, 12}) {
    const NamedTensors values{{"x", sequence({6, 2}, 1, 0, DType::F32)}, {"r", Tensor::scalar_i64(DType::I64, rows)}};
    const std::vector<Tensor> exact = evaluate(g, values), got = f.run_typed(values);
    CHECK(got[0].dims() == std::vector<std::int64_t>{rows, 12 / rows});
    for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], exact[i], 1e-6);
  }
  CHECK(contains(
      error_text([&] {
        (void)f.run_typed({{"x", sequence({6, 2}, 1, 0, DType::F32)}, {"r", Tensor::scalar_i64(DType::I64, 5)}});
      }),
      "reshape"));
}

TEST_CASE("the rows of a while that happened") {
  Graph g("trips");
  const Expr limit = g.input("limit", Shape({}, DType::F32));
  const LoopResult loop = g.while_loop(
      g.constant(Tensor::scalar(DType::F32, 1)), [&](Graph& b, const ExprList& c) { return b.lt(c[0], limit); },
      [](Graph& b, const ExprList& c) {
        const Expr next = b.mul(c[0], 2);
        return LoopStep{{next}, {next}};
      },
      {.max_iterations = 10});
  const Dim trips = g.symbol("trips", {0, 10}, loop.iterations);
  g.set_outputs({g.slice(loop.ys[0], {0}, {trips})});
  CompiledGraph f = Session().compile(Graph(g));
  for (double most : {1.0, 5.0, 100.0, 1e9}) {
    const NamedTensors values{{"limit", Tensor::scalar(DType::F32, most)}};
    const Tensor exact = evaluate(g, values)[0], got = f.run_typed(values)[0];
    expect_close(got, exact);
    CHECK(got.num_elements() == (most == 1 ? 0 : most == 5 ? 3 : most == 100 ? 7 : 10));
  }
}

TEST_CASE("text, bytes and passes keep the source of a symbol") {
  const Graph g = counted();
  CHECK(contains(print_text(g), "set_symbol n %2"));
  CHECK(same_graph(parse_text(print_text(g)), g));
  CHECK(same_graph(from_bytes(to_bytes(g)), g));
  Graph other = counted();
  other.set_symbol_source("n", Value(NodeId{0}));
  CHECK_FALSE(same_graph(g, other));
  CHECK_FALSE(fingerprint(g) == fingerprint(other));
  CHECK(roots(g).size() == 3);
  CHECK(contains(error_text([] { (void)parse_text("graph @g {\n  set_symbol n %0\n}\n"); }), "%0"));
  const auto parsed = [](const char* line) {
    return error_text([&] {
      (void)parse_text(
          std::string("graph @g {\n  symbol n\n  %0 = input() {name = \"i\"} : [] i64\n  set_symbol n %0\n") + line +
          "}\n");
    });
  };
  CHECK(parsed("").empty());
  CHECK(contains(parsed("  set_symbol n %0\n"), "is set twice"));
  CHECK(contains(parsed("  set_symbol m %0\n"), "is not declared"));
}

TEST_CASE("a symbol is used behind its source, which is an I64 scalar") {
  Graph g("early");
  const Dim n = g.symbol("n", {0, 8});
  const Expr x = g.input("x", Shape({n}, DType::F32));
  g.set_outputs({x});
  g.set_symbol_source("n", g.dim_size(x, 0).value());
  REQUIRE(verify(g, Level::Mir).size() == 1);
  CHECK(contains(verify(g, Level::Mir)[0].text(), "input 'x' has symbol n, whose value is computed"));
  Graph circle("circle");
  const Expr k = circle.input("k", Shape({}, DType::I64)), y = circle.input("y", Shape({8}, DType::I64));
  const Dim m = circle.symbol("m", {0, 8}, k);
  const Expr part = circle.slice(y, {0}, {m});
  circle.set_outputs({part});
  circle.set_symbol_source("m", circle.sum(part).value());
  REQUIRE(verify(circle, Level::Mir).size() == 1);
  CHECK(contains(verify(circle, Level::Mir)[0].text(), "symbol m is used before its source"));
  Graph wrong = counted();
  wrong.set_symbol_source("n", Value(NodeId{0}));
  CHECK(contains(verify(wrong, Level::Mir)[0].text(), "an extent must be an I64 scalar"));
}

TEST_CASE("derivatives and batches of slices by value") {
  const Graph g = counted(false);
  const GradResult d = value_and_grad(g, {"x"});
  TransformResult j = jvp(g, {"x"});
  CompiledGraph f = Session().compile(Graph(d.graph));
  for (std::int64_t n : {2, 5}) {
    NamedTensors values{{"x", one_to_eight()}, {"flags", flags(n)}};
    Tensor want = Tensor::zeros(Shape({8}, DType::F64));
    for (std::int64_t i = 0; i < n; ++i) want.set(i, 8.0 * static_cast<double>(i + 1));
    expect_close(evaluate(d.graph, values)[1], want);
    expect_close(f.run_typed(values)[1], want);
    values.emplace("tangent_x", Tensor::full(Shape({8}, DType::F64), 1));
    double slope = 0;
    for (std::int64_t i = 0; i < n; ++i) slope += want.at(i);
    expect_close(evaluate(j.graph, values)[1], {slope});
  }
  const TransformResult b = vmap(g, {{"x", 0}}, Dim(2));
  CHECK(evaluate(b.graph, {{"x", sequence({2, 8})}, {"flags", flags(3)}})[0].num_elements() == 2);
  CHECK(contains(error_text([&] { (void)vmap(g, {{"flags", 0}}, Dim(2)); }), "examples would differ in shape"));
}

TEST_CASE("a value out of bounds is an error that names symbol, value and node; a fixed symbol asks for none") {
  CompiledGraph f = Session().compile(counted());
  Tensor many = flags(8);
  many.set_i64(0, 2);
  CHECK(contains(error_text([&] { (void)f.run_typed({{"x", one_to_eight()}, {"flags", many}}); }), "symbol 'n' = 9"));
  CHECK(contains(error_text([&] { (void)f.run_typed({{"x", one_to_eight()}, {"flags", many}}); }), "sum("));
  CHECK(contains(error_text([&] {
                   (void)evaluate(counted(), {{"x", one_to_eight()}, {"flags", many}});
                 }),
                 "symbol 'n' = 9"));
  const std::vector<std::vector<std::int64_t>> dims{{8}, {8}};
  CHECK(contains(error_text([&] { f.prepare_shape(dims); }), "not known before a run"));
  CompileOptions fixed;
  fixed.dim_binding["n"] = 3;
  CHECK(Session().compile_with(counted(), fixed).outputs()[0].shape == Shape({3}, DType::F64));
}

}  // namespace rlx::test
