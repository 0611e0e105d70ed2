// Reductions of broadcast values give the results of the expanded form without its memory.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "rlx/compiler/pipeline.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/passes/passes.h"
#include "rlx/runtime/session.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

constexpr ReduceKind kKinds[] = {ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod};

bool takes(ReduceKind fn, DType t) {
  if (fn == ReduceKind::Mean) return is_inexact(t);
  if (fn == ReduceKind::Max || fn == ReduceKind::Min) return !is_complex(t);
  return t != DType::Bool;
}

// Equal numbers, with the sign of zeros. All NaN are equal: the sign of a NaN depends on the order of summation.
void check_same(double a, double b) {
  CHECK((a == b || (std::isnan(a) && std::isnan(b))));
  CHECK((std::isnan(a) || std::signbit(a) == std::signbit(b)));
}

// fn over `axes` of x expanded to `dims`.
Graph reduced(ReduceKind fn, const Shape& x, Dims dims, std::vector<std::int64_t> axes, bool keep = false) {
  Graph g("reduced");
  for (const Dim& d : dims)
    for (const std::string& name : d.symbols()) g.symbol(name, {.min = 0, .max = 64});
  g.set_outputs({g.add(ops::Reduce{fn, std::move(axes), keep}, {g.expand(g.input("x", x), std::move(dims))})});
  return g;
}

std::vector<double> specials(DType t, std::int64_t n) {
  const double real[] = {1.5, -0.0, test::kInf, -3, std::numeric_limits<double>::quiet_NaN(), 0, -test::kInf, 2};
  std::vector<double> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(is_inexact(t) ? real[i % 8] : static_cast<double>(i * 37 % 5));
  return v;
}

Tensor filled(DType t, const std::vector<std::int64_t>& dims) {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return Tensor::of<double>(dims, specials(t, n)).cast(t);
}

TEST_CASE("reduce-broadcasts keeps every value: dtypes, kinds, infinities, NaN, signs of zeros, extents of zero") {
  struct Case {
    std::vector<std::int64_t> x;
    Dims to;
    std::vector<std::int64_t> axes;
    bool keep;
  };
  const Case cases[] = {
      {{8, 1}, {8, 4}, {1}, false},         {{8, 1}, {8, 4}, {1}, true},        {{1, 8}, {4, 8}, {0}, false},
      {{8}, {2, 3, 8}, {0, 1}, false},      {{8}, {2, 3, 8}, {1}, true},        {{8, 1}, {2, 8, 3}, {0, 1}, false},
      {{1, 2, 4}, {1, 2, 4}, {0, 2}, true}, {{2, 1}, {2, 4}, {0, 1}, false},    {{8, 1}, {8, 0}, {1}, false},
      {{0, 1}, {0, 4}, {0, 1}, false},      {{0, 1}, {3, 0, 4}, {0, 2}, false}, {{1, 1}, {1, 3}, {0, 1}, false},
  };
  int fired = 0;
  for (const Case& c : cases)
    for (DType t :
         {DType::F32, DType::F64, DType::F16, DType::BF16, DType::U8, DType::I32, DType::I64, DType::Bool, DType::C64})
      for (ReduceKind fn : kKinds) {
        if (!takes(fn, t)) continue;
        CAPTURE(dtype_name(t));
        CAPTURE(enum_name(fn));
        CAPTURE(dims_text(c.to));
        CAPTURE(dims_text(c.axes));
        Dims from;
        for (std::int64_t d : c.x) from.emplace_back(d);
        const Graph g = reduced(fn, Shape(from, t), c.to, c.axes, c.keep);
        const std::optional<Graph> after = reduce_broadcasts.run(g, {});
        if (!after) continue;
        ++fired;
        const NamedTensors in = {{"x", filled(t, c.x)}};
        const Tensor want = evaluate(g, in)[0], got = evaluate(*after, in)[0];
        CHECK(got.shape() == want.shape());
        // A few numbers of few bits: sums are exact.
        for (std::int64_t i = 0; i < want.num_elements() && !is_complex(t); ++i) {
          CAPTURE(i);
          check_same(want.at(i), got.at(i));
        }
      }
  CHECK(fired > 150);
}

TEST_CASE("reduce-broadcasts: counts beyond what the dtype holds") {
  const auto value = [](const Graph& g, const Tensor& x) {
    return evaluate(*reduce_broadcasts.run(g, {}), {{"x", x}})[0];
  };
  // f16 cannot hold 100000, but 1e-7 times it is 0.01.
  const Tensor tiny = Tensor::full(Shape({}, DType::F64), 1e-7).cast(DType::F16);
  CHECK(value(reduced(ReduceKind::Sum, Shape({}, DType::F16), {100'000}, {0}), tiny).at(0) ==
        doctest::Approx(tiny.at(0) * 1e5).epsilon(1e-3));
  // 3 * 300 and 3 * 2^33 modulo 2^8 and 2^32.
  const Graph bytes = reduced(ReduceKind::Sum, Shape({}, DType::U8), {300}, {0});
  CHECK(value(bytes, Tensor::scalar_i64(DType::U8, 3)).at_i64(0) == 900 % 256);
  const Graph power = reduced(ReduceKind::Prod, Shape({}, DType::I32), {37}, {0});
  CHECK(value(power, Tensor::scalar_i64(DType::I32, -3)).at_i64(0) ==
        evaluate(power, {{"x", Tensor::scalar_i64(DType::I32, -3)}})[0].at_i64(0));
  const Graph wide = reduced(ReduceKind::Sum, Shape({}, DType::I32), {1 << 20, (1 << 13) + 1}, {0, 1});
  CHECK(value(wide, Tensor::scalar_i64(DType::I32, 3)).at_i64(0) == 3 << 20);
}

TEST_CASE("a reduction of repeated elements is planned and run without memory for them") {
  for (DType t : {DType::F32, DType::F16, DType::I32, DType::C64})
    for (ReduceKind fn : kKinds) {
      // Powers of floats and complex products with infinities differ from repeated multiplication, so these stay
      // expanded.
      if (!takes(fn, t) || (fn == ReduceKind::Prod && !is_int(t)) || (fn == ReduceKind::Sum && is_complex(t))) continue;
      CAPTURE(dtype_name(t));
      CAPTURE(enum_name(fn));
      const Graph g = reduced(fn, Shape({20'000, 1}, t), {20'000, 20'000}, {0, 1});  // 0.4 to 3 GB when expanded
      const CompileResult r = CompilePipeline(Session().target()).compile_graph(g);
      CHECK(r.lir.plan.arena_bytes < std::size_t{1} << 20);
    }
  CompiledGraph f = Session().compile(reduced(ReduceKind::Sum, Shape({3, 1}, DType::F32), {3, 1'000'000'000}, {1}));
  CHECK(f.run({{"x", {1, -2, 0.5f}}})[0] == std::vector<float>{1e9f, -2e9f, 5e8f});
}

TEST_CASE("reductions of what a symbol repeats: runtime extents give what specialised ones give, at 0 and 1 too") {
  const Dim n = Dim::symbol("n");
  for (ReduceKind fn : kKinds)
    for (DType t : {DType::F32, DType::F16, DType::I32})
      for (bool some_more : {false, true}) {
        if (!takes(fn, t)) continue;
        CAPTURE(enum_name(fn));
        CAPTURE(dtype_name(t));
        CAPTURE(some_more);
        // The length comes from a second input; x alone does not give it.
        Graph g("symbolic");
        g.symbol("n", {.min = 0, .max = 64});
        const Expr x = g.input("x", Shape({8, 1}, t)), y = g.input("y", Shape({n}, t));
        const Expr e = g.expand(x, {8, n});
        const auto axes = some_more ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{1};
        g.set_outputs({g.add(ops::Reduce{fn, axes, false}, {e}), g.add(ops::Reduce{ReduceKind::Max, {0}, false}, {y})});
        CompileOptions runtime;
        runtime.symbol_modes["n"] = SymbolMode::runtime(64);
        CompiledGraph general = Session().compile_with(g, runtime);
        for (std::int64_t extent : {0, 1, 2, 7, 64}) {
          CAPTURE(extent);
          const NamedTensors in = {{"x", filled(t, {8, 1})}, {"y", filled(t, {extent})}};
          const Tensor want = evaluate(g.bind({{"n", extent}}), in)[0];
          const Tensor got = general.run_typed(in)[0];
          const Tensor special = Session().compile(g.bind({{"n", extent}})).run_typed(in)[0];
          REQUIRE(got.shape() == special.shape());
          for (std::int64_t i = 0; i < special.num_elements(); ++i) check_same(got.at(i), special.at(i));
          // 64 factors round differently in f32 and in the evaluator.
          for (std::int64_t i = 0; i < want.num_elements() && (fn != ReduceKind::Prod || is_int(t)); ++i) {
            const double a = want.at(i), b = got.at(i);
            CHECK((a == b || (std::isnan(a) && std::isnan(b))));
          }
        }
      }
}

}  // namespace
}  // namespace rlx
