// Regression tests: graphs whose passes, rules or runs were wrong. Patterns that widen an axis, slices without strides,
// counts that a narrow dtype does not hold, scales that are not numbers.
#include <doctest/doctest.h>

#include <limits>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

using test::f32;

const Session& session() {
  static const Session s(Device::Cpu);
  return s;
}

// The last output, with ones for every input without a given value.
Tensor last_of_ones(const Graph& g, NamedTensors values = {}) {
  for (NodeId id : g.leaves(OpKind::Input)) values.emplace(g.leaf_name(id), Tensor::full(g.shape(id), 1));
  return session().compile(Graph(g)).run_typed(values).back();
}

}  // namespace

TEST_CASE("a softmax and a norm of rows that an expand repeats are none") {
  Graph g("softmax");
  const Expr x = g.input("x", f32({1, 4}));
  const Expr e = g.exp(x - g.expand(g.reduce_max(x, {1}, true), {3, 1}));
  g.set_outputs({e / g.sum(e, {1}, true)});
  test::check_run(session(), g, test::drawn(g));
  Graph n("norm");
  const Expr y = n.input("x", f32({1, 4}));
  const auto mean = [&](Expr v) { return n.add(ops::Reduce{ReduceKind::Mean, {1}, true}, {v}); };
  const Expr d = y - n.expand(mean(y), {3, 1});
  n.set_outputs({d / n.sqrt(mean(d * d) + 1e-5)});
  test::check_run(session(), n, test::drawn(n));
}

TEST_CASE("a slice without strides of what is decoded") {
  for (const std::int64_t block : {0, 2}) {
    Graph g("codes");
    ops::Dequantize op;
    op.axis = block == 0 ? 0 : 1, op.block = block;
    const Expr scale = g.input("s", block == 0 ? f32({4}) : f32({4, 3}));
    const Expr d = g.dequantize(g.input("codes", {{4, 6}, DType::I8}), scale, op);
    ops::Slice cut;
    cut.starts = {Dim(0), Dim(2)}, cut.limits = {Dim(4), Dim(6)};
    g.set_outputs({g.add(cut, {d})});
    test::check_run(session(), g, test::drawn(g));
  }
}

TEST_CASE("derivatives of means and extrema of more elements than f16 counts") {
  for (ReduceKind fn : {ReduceKind::Mean, ReduceKind::Max}) {
    Graph g("many");
    g.set_outputs({g.add(ops::Reduce{fn, {0}}, {g.input("x", {{65536}, DType::F16})})});
    const Tensor dx = last_of_ones(vjp(g, {"x"}).graph);
    CHECK(dx.at(0) == 0x1p-16);
    CHECK(dx.at(65535) == 0x1p-16);
    CHECK(last_of_ones(jvp(g, {"x"}).graph).at(0) == 1);
  }
  Graph s("scatter");
  const Expr updates = s.input("u", {{65535}, DType::F16});
  s.set_outputs({s.scatter(ScatterKind::Max, s.input("x", {{1}, DType::F16}),
                           s.constant(Tensor::zeros({{65535}, DType::I32})), updates)});
  CHECK(last_of_ones(vjp(s, {"u"}).graph).at(7) == 0x1p-16);
  CHECK(last_of_ones(jvp(s, {"x", "u"}).graph).at(0) == 1);
}

TEST_CASE("derivatives whose parts leave the range and which do not") {
  const auto of = [](DType t, std::vector<double> x, auto build) {
    Graph g("range");
    const std::int64_t n = static_cast<std::int64_t>(x.size());
    g.set_outputs({build(g, g.input("x", {{n}, t}))});
    Tensor v = Tensor::zeros({{n}, t});
    for (std::int64_t i = 0; i < n; ++i) v.set(i, x[static_cast<std::size_t>(i)]);
    return last_of_ones(vjp(g, {"x"}).graph, {{"x", v}}).to_f64();
  };
  const auto product = [](Graph& g, Expr x) { return g.add(ops::Reduce{ReduceKind::Prod, {0}}, {x}); };
  CHECK(of(DType::F16, {300, 300, 1, 0.0009765625}, product)[2] == 87.875);
  CHECK(of(DType::F16, {300, 300, 1, 0}, product)[2] == 0);
  CHECK(of(DType::F16, {300, -300, 0}, [](Graph& g, Expr x) { return g.gelu_approx(x); }) ==
        std::vector<double>{1, 0, 0.5});
  CHECK(of(DType::F32, {-1, 0.5, 2}, [](Graph& g, Expr b) {
          return g.sum(g.pow(g.constant(Tensor::of<float>({3}, {0, -2, 1})), b), {0});
        }) == std::vector<double>{0, 0, 0});
}

TEST_CASE("a batch of zero points without a scale") {
  Graph g("zero_points");
  ops::Dequantize op;
  g.set_outputs({g.add_named(
      op, {{"codes", g.input("codes", {{3}, DType::I8})}, {"zero_point", g.input("z", {{}, DType::I8})}})});
  for (const char* whose : {"z", "codes"}) {
    const Graph b = vmap(g, {{whose, 0}}, 2).graph;
    test::check_run(session(), b, test::drawn(b));
  }
  const Graph both = vmap(g, {{"z", 0}, {"codes", 0}}, 2).graph;
  test::check_run(session(), both, test::drawn(both));
}

TEST_CASE("a batch of products with codes is no product of a matrix of codes") {
  for (const Dims& x : {Dims{2, 3}, Dims{2, 5, 3}}) {
    Graph g("batched");
    const Expr w = g.dequantize(g.input("codes", {{2, 3}, DType::I8}), g.input("s", f32({})));
    ops::DotGeneral op;
    op.lhs_contract = {static_cast<std::int64_t>(x.size()) - 1}, op.rhs_contract = {1},
    op.lhs_batch = op.rhs_batch = {0};
    g.set_outputs({g.add(op, {g.input("x", f32(x)), w})});
    NamedTensors values = test::drawn(g);
    values["codes"] = Tensor::of<std::int32_t>({2, 3}, {1, 2, 3, -4, 5, 60}).cast(DType::I8);
    test::check_run(session(), g, values);
  }
}

TEST_CASE("integers round once on their way to bf16, and codes of i64 keep their digits") {
  Graph g("cast");
  const Expr x = g.input("x", {{4}, DType::I32});
  g.set_outputs({g.cast(x, DType::BF16), g.cast(x + x, DType::BF16)});
  const std::int32_t n = (1 << 24) + (1 << 16) + 1;
  const NamedTensors values{{"x", Tensor::of<std::int32_t>({4}, {n, -n, n - 1, 3})}};
  const std::vector<Tensor> got = session().compile(std::move(g)).run_typed(values);
  CHECK(got[0].to_f64() == std::vector<double>{16908288, -16908288, 16777216, 3});
  CHECK(got[1].to_f64() == std::vector<double>{33816576, -33816576, 33554432, 6});
  Graph d("codes");
  const std::int64_t base = std::int64_t{1} << 53;
  d.set_outputs({d.add_named(ops::Dequantize{}, {{"codes", d.input("codes", {{2}, DType::I64})},
                                                 {"scale", d.input("s", f32({}))},
                                                 {"zero_point", d.input("z", {{}, DType::I64})}})});
  CHECK(session()
            .compile(std::move(d))
            .run_typed({{"codes", Tensor::of<std::int64_t>({2}, {base + 1, base - 3})},
                        {"s", Tensor::scalar(DType::F32, 1)},
                        {"z", Tensor::scalar_i64(DType::I64, base)}})[0]
            .to_f32() == std::vector<float>{1, -3});
}

TEST_CASE("windows as long as there are numbers; tables that turn out to have no rows") {
  Graph g("window");
  ops::Attention op;
  op.mask = MaskKind::SlidingWindow, op.window = std::numeric_limits<std::int64_t>::max();
  g.set_outputs(
      {g.add(op, {g.input("q", f32({1, 3, 1})), g.input("k", f32({1, 1, 1})), g.input("v", f32({1, 1, 1}))})});
  test::check_run(session(), g, test::drawn(g));
  Graph r("rope");
  const Dim rows = r.symbol("rows", {.max = 8});
  ops::Rope rope;
  rope.head_dim = rope.n_rot = 4;
  r.set_outputs({r.add_named(rope, {{"x", r.input("x", f32({1, 2, 4}))},
                                    {"cos", r.input("cos", f32({rows, 2}))},
                                    {"sin", r.input("sin", f32({rows, 2}))},
                                    {"positions", r.input("p", {{2}, DType::I32})}})});
  CompileOptions options;
  options.symbol_modes.emplace("rows", SymbolMode::runtime());
  CompiledGraph f = session().compile_with(std::move(r), options);
  const auto run = [&](std::int64_t n) {
    (void)f.run_typed({{"x", Tensor::full(f32({1, 2, 4}), 1)},
                       {"cos", Tensor::full(f32({n, 2}), 1)},
                       {"sin", Tensor::full(f32({n, 2}), 1)},
                       {"p", Tensor::zeros({{2}, DType::I32})}});
  };
  run(3);
  CHECK_THROWS_AS(run(0), Error);
}

TEST_CASE("attention by a scale that is no number is what its parts give") {
  Graph g("scale");
  const Expr q = g.input("q", f32({1, 2, 3, 4})), k = g.input("k", f32({1, 2, 3, 4})),
             v = g.input("v", f32({1, 2, 3, 4}));
  const Expr scores = g.matmul(q, g.transpose(k, {0, 1, 3, 2})) * std::numeric_limits<double>::infinity();
  g.set_outputs({g.matmul(g.softmax(scores, 3), v)});
  test::check_run(session(), g, test::drawn(g));
}

TEST_CASE("a batch of updates at their own places, of windows that turn out empty") {
  Graph g("update");
  const Dim n = g.symbol("n", {.max = 8});
  g.set_outputs(
      {g.dynamic_update_slice(g.input("x", f32({8})), g.input("u", f32({n})), g.input("at", {{1}, DType::I32}))});
  const Graph b = vmap(g, {{"at", 0}, {"u", 0}}, 3).graph;
  for (std::int64_t of : {0, 2, 8}) {
    const Graph bound = b.bind({{"n", of}});
    NamedTensors values = test::drawn(bound);
    values["at"] = Tensor::of<std::int32_t>({3, 1}, {0, 5, 7});
    test::check_run(session(), bound, values);
    CompileOptions options;
    options.symbol_modes.emplace("n", SymbolMode::runtime());
    CompiledGraph f = session().compile_with(Graph(b), options);
    test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(bound, values));
  }
}

TEST_CASE("slots of a committed run outlive the program at its extents") {
  Graph g("many");
  const Expr x = g.input("x", f32({g.symbol("n", {.min = 1, .max = 64})}));
  g.set_outputs({x + 1.0});
  CompiledGraph f = session().compile(std::move(g));
  f.commit_no_wait({{"x", Tensor::full(f32({1}), 1)}});
  for (std::int64_t n = 2; n < 64; ++n) (void)f.run_typed({{"x", Tensor::full(f32({n}), 1)}});
  const std::span<const Slot> slots = f.sync_pending();
  REQUIRE(slots.size() == 1);
  CHECK(slots[0].count == 1);
}

}  // namespace rlx
