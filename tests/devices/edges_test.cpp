// Graphs at the edges of what kernels and texts promise, each of which was wrong on some device once: values that are
// their own indices, operands by the handful, extents of 0 that a run knows, copies without a step, numbers at the ends
// of their dtypes.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/transforms/reverse.h"
#include "tests/devices/test_device.h"
#include "tests/support/error_text.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

using test::device_here;
using test::f32;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Session session() { return Session(test::test_device()); }

CompiledGraph with_runtime_extent(const Graph& g, const std::string& symbol) {
  CompileOptions options;
  options.symbol_modes.emplace(symbol, SymbolMode::runtime());
  return session().compile_with(Graph(g), options);
}
void expect_at(CompiledGraph& f, const Graph& g, const std::string& symbol, std::int64_t extent) {
  INFO(symbol, " = ", extent);
  const Graph bound = g.bind({{symbol, extent}});
  const NamedTensors values = test::drawn(bound);
  test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(bound, values));
}

// Whole numbers that go round in 0 .. below - 1.
Tensor round_and_round(const Shape& s, std::int64_t below) {
  Tensor t = Tensor::zeros(s);
  for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set_i64(i, (i * 7 + i / 5) % below);
  return t;
}

}  // namespace

TEST_SUITE_BEGIN("conformance");

TEST_CASE("device: a scatter whose operand is also its updates or its indices does not write what it still reads") {
  if (!device_here()) return;
  Graph g("updates");
  const Expr x = g.input("x", f32({4})), at = g.input("at", {{4}, DType::I32}), y = g.exp(x);
  g.set_outputs({g.scatter(ScatterKind::Set, y, at, y), g.scatter(ScatterKind::Add, y, at, y)});
  test::check_run(session(), g,
                  {{"x", Tensor::of<float>({4}, {0, 1, 2, 3})}, {"at", Tensor::of<std::int32_t>({4}, {1, 2, 3, 0})}});
  Graph inverse("inverse");
  const Expr p = inverse.input("p", {{6}, DType::I32}), q = p * inverse.scalar(1, DType::I32) + p - p;
  inverse.set_outputs({inverse.scatter(ScatterKind::Set, q, q, inverse.iota({{6}, DType::I32}, 0))});
  test::check_run(session(), inverse, {{"p", Tensor::of<std::int32_t>({6}, {3, 5, 0, 1, 2, 4})}});
}

TEST_CASE("device: indices of many axes, few updates and many") {
  if (!device_here()) return;
  Graph g("along");
  const Expr x = g.input("x", f32({2, 4, 8, 16}));
  g.set_outputs({g.take_along_axis(x, g.input("at", {{2, 4, 8, 16}, DType::I32}), 2)});
  const Graph d = vjp(g, {"x"}).graph;
  NamedTensors values = test::drawn(d);
  values["at"] = round_and_round(values["at"].shape(), 8);
  CompiledGraph f = test::check_run(session(), d, values);
  CHECK_MESSAGE(test::host_part(f) == "", test::host_part(f));
  Graph wide("rank6");
  const Expr t = wide.input("x", f32({2, 2, 3, 2, 2, 3}));
  wide.set_outputs({wide.take_along_axis(t, wide.input("at", {{2, 2, 3, 2, 2, 3}, DType::I32}), 5)});
  const Graph back = vjp(wide, {"x"}).graph;
  values = test::drawn(back);
  values["at"] = round_and_round(values["at"].shape(), 3);
  test::check_run(session(), back, values);
}

TEST_CASE("device: a slice without strides") {
  if (!device_here()) return;
  for (DType t : {DType::F32, DType::F16, DType::U8}) {
    Graph g("slice");
    const Expr x = g.input("x", {{5, 6}, t});
    ops::Slice op;
    op.starts = {Dim(1), Dim(2)}, op.limits = {Dim(4), Dim(5)};
    g.set_outputs({g.add(op, {x + x})});
    test::check_run(session(), g, test::drawn(g));
  }
}

TEST_CASE("device: what is made of no elements where a run knows that there are none") {
  if (!device_here()) return;
  for (std::int64_t most : {40, 4096, 100000}) {
    Graph g("nothing");
    const Dim n = g.symbol("n", {.max = most});
    const Expr x = g.input("x", f32({8, n})), w = g.input("w", f32({n, 3})), narrow = g.cast(x, DType::F16);
    g.set_outputs({g.sum(x, {1}), g.add(ops::Reduce{ReduceKind::Mean, {1}}, {x}), g.reduce_max(x, {1}),
                   g.add(ops::Reduce{ReduceKind::Min, {1}}, {x}), g.add(ops::Reduce{ReduceKind::Prod, {1}}, {x}),
                   g.sum(x, {0, 1}), g.sum(narrow, {1}), g.reduce_max(w, {0}), g.matmul(x, w), g.softmax(x, 1),
                   g.cumsum(x, 1), g.sort(x, 1)});
    CompiledGraph f = with_runtime_extent(g, "n");
    for (std::int64_t of : {5, 0, 33, 0}) expect_at(f, g, "n", of);
    Graph keys("no_keys");
    const Dim k = keys.symbol("n", {.max = most});
    ops::Attention op;
    op.num_heads = op.kv_heads = 2, op.head_dim = 4;
    std::vector<Expr> results;
    for (std::int64_t queries : {1, 40}) {
      const Expr y = keys.add(op, {keys.input(concat_text("q", queries), f32({1, queries, 8})),
                                   keys.input(concat_text("k", queries), f32({1, k, 8})),
                                   keys.input(concat_text("v", queries), f32({1, k, 8}))});
      results.push_back(y), results.push_back(y.result(1));
    }
    keys.set_outputs(results);
    CompiledGraph a = with_runtime_extent(keys, "n");
    for (std::int64_t of : {5, 0, 33, 0}) expect_at(a, keys, "n", of);
  }
}

TEST_CASE("device: profiled runs copy what no step makes") {
  if (!device_here()) return;
  Graph g("copies");
  const Expr x = g.input("x", f32({4})), s = g.state("s", Tensor::zeros(f32({4})));
  g.state("t", Tensor::zeros(f32({4})));
  g.set_outputs({s, x});
  g.set_state("s", x);
  g.set_state("t", s);
  CompiledGraph f = session().compile(std::move(g));
  for (int i = 0; i < 3; ++i) {
    const Tensor in = Tensor::full(f32({4}), i + 1);
    const TensorView view = in.view();
    (void)f.profile({&view, 1});
  }
  CHECK(f.read_state("s").to_f32() == std::vector<float>(4, 3));
  CHECK(f.read_state("t").to_f32() == std::vector<float>(4, 2));
}

TEST_CASE("device: x - x and x / x of one value are no constants") {
  if (!device_here()) return;
  Graph g("self");
  const Expr x = g.input("x", f32({6}));
  CompileOptions apart;
  apart.fusion.skip_fusion = true;
  g.set_outputs({x - x, x / x});
  const Tensor values = Tensor::of<float>(
      {6}, {static_cast<float>(kInfinity), static_cast<float>(kNaN), 1, 0, -2, -static_cast<float>(kInfinity)});
  CompiledGraph f = session().compile_with(Graph(g), apart);
  test::expect_within_bound(f.run_typed({{"x", values}}), test::evaluate_bounded(g, {{"x", values}}));
}

TEST_CASE("device: what NaN a graph holds reaches the results of functions of it") {
  if (!device_here()) return;
  Graph g("nan");
  const Expr x = g.input("x", f32({35})), y = x + kNaN;
  std::vector<Value> outputs;
  for (ActivationKind fn : {ActivationKind::Tanh, ActivationKind::Exp, ActivationKind::Erf, ActivationKind::Sigmoid})
    outputs.push_back(g.reduce_min(g.activation(fn, y), {0}));
  g.set_outputs(outputs);
  CompiledGraph f = session().compile(Graph(g));
  for (const Tensor& t : f.run_typed({{"x", Tensor::full(Shape({35}, DType::F32), 0.5)}})) CHECK(std::isnan(t.at(0)));
}

TEST_CASE("device: views that fall together at some extents") {
  if (!device_here()) return;
  Graph g("views");
  const Dim s = g.symbol("s", {.min = 1, .max = 8});
  const Expr y = g.exp(g.input("x", f32({s, 64})));
  g.set_outputs({g.narrow(y, 0, 0, 1) + g.narrow(y, 0, s - 1, 1)});
  CompiledGraph f = with_runtime_extent(g, "s");
  for (std::int64_t of : {8, 1, 3, 1}) expect_at(f, g, "s", of);
}

TEST_CASE("device: steps of loops that give 8-bit floats") {
  if (!device_here()) return;
  for (DType t : {DType::F8E4M3, DType::F8E5M2, DType::F4E2M1, DType::I4}) {
    Graph g("narrow");
    const LoopResult r = g.scan({}, {g.input("x", f32({3, 4}))}, [&](Graph& b, const ExprList&, const ExprList& row) {
      return LoopStep{{}, {b.cast(row[0], t)}};
    });
    g.set_outputs({g.cast(r.ys[0], DType::F32)});
    test::check_run(session(), g, test::drawn(g));
  }
}

TEST_CASE("device: loops of up to as many trips as there are numbers, fills at the ends of a dtype") {
  if (!device_here()) return;
  for (std::int64_t most : {std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 62, std::int64_t{5}}) {
    Graph g("trips");
    WhileOptions options;
    options.max_iterations = most;
    const LoopResult r = g.while_loop(
        {g.input("x", f32({2}))}, [](Graph& b, const ExprList& c) { return b.lt(b.reduce_max(c[0]), 40); },
        [](Graph&, const ExprList& c) {
          return LoopStep{{c[0] * 2.0}, {}};
        },
        options);
    g.set_outputs({r.carries[0], r.iterations});
    test::check_run(session(), g, {{"x", Tensor::of<float>({2}, {1, 2})}});
  }
  for (const std::pair<DType, double>& c : {std::pair(DType::I64, -0x1p63),
                                            {DType::U64, 0x1p64 - 2048},
                                            {DType::I8, -128.0},
                                            {DType::F8E4M3, 448.0},
                                            {DType::F32, kInfinity}}) {
    const DType t = c.first;
    const double fill = c.second;
    INFO("fill of ", std::string(dtype_name(t)));
    Graph g("fill");
    ops::Gather op;
    op.mode = IndexMode::Fill, op.fill = fill;
    g.set_outputs({g.gather(g.input("table", {{3}, t}), {g.input("at", {{2}, DType::I32})}, op)});
    const NamedTensors values{{"table", Tensor::full({{3}, t}, 1)}, {"at", Tensor::of<std::int32_t>({2}, {1, 7})}};
    CompiledGraph f = session().compile(Graph(g));
    test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(g, values));
  }
}

TEST_CASE("device: views of elements of 4 bits at extents that a run knows") {
  if (!device_here()) return;
  for (DType t : {DType::I4, DType::F4E2M1}) {
    Graph g("nibbles");
    const Dim n = g.symbol("n", {.max = 64});
    const Expr x = g.input("x", {{n}, t});
    g.set_outputs({g.stop_gradient(x), g.optimization_barrier({x})[0]});
    CompiledGraph f = with_runtime_extent(g, "n");
    for (std::int64_t of : {7, 64, 2, 0}) {
      const Tensor v = round_and_round({{of}, DType::I32}, 5).cast(DType::F32).cast(t);
      for (const Tensor& y : f.run_typed({{"x", v}})) CHECK(y.cast(DType::F32).to_f32() == v.cast(DType::F32).to_f32());
    }
  }
}

TEST_CASE("device: integers beyond what a double tells apart, among the steps of a region") {
  if (!device_here()) return;
  Graph g("wide");
  const Expr x = g.input("x", {{4}, DType::I64});
  const std::int64_t number = (std::int64_t{1} << 53) + 1;
  g.set_outputs({(x + g.constant(Tensor::scalar_i64(DType::I64, number))) * x});
  const Tensor v = Tensor::of<std::int64_t>({4}, {1, 2, -3, 5});
  const Tensor y = session().compile(std::move(g)).run_typed({{"x", v}})[0];
  for (std::int64_t i = 0; i < 4; ++i) CHECK(y.at_i64(i) == (v.at_i64(i) + number) * v.at_i64(i));
}

TEST_CASE("device: an active extent of a tensor that lies on the device") {
  if (!device_here()) return;
  Graph g("rows");
  const Expr x = g.input("x", f32({g.symbol("batch", {.min = 1, .max = 8}), 4}));
  g.set_outputs({x + 1.0});
  CompiledGraph f = session().compile(std::move(g));
  const Tensor there = to(Tensor::full(f32({8, 4}), 2), test::test_device());
  REQUIRE(f.set_active_extent(ActiveExtent{3, 8}));
  if (session().open_device()->memory_model() == MemoryModel::Opaque)
    CHECK(test::contains(test::error_text([&] { (void)f.run_device({{"x", there}}); }), "transfers whole values only"));
  else
    CHECK(f.run_device({{"x", there}})[0].to_host().to_f32() == std::vector<float>(12, 3));
  f.set_active_extent(std::nullopt);
  CHECK(f.run_device({{"x", there}})[0].to_host().to_f32() == std::vector<float>(32, 3));
}

TEST_CASE("device: a reduction of a product with one number everywhere") {
  if (!device_here()) return;
  constexpr std::int64_t m = 4000, k = 1000, n = 2;  // fewer rows hide what was wrong
  Graph g("repeated");
  const Expr x = g.input("x", f32({m, k})), s = g.input("s", f32({}));
  g.set_outputs({g.sum(g.matmul(x, g.constant(Tensor::full(f32({k, n}), 1)))), g.sum(g.matmul(x, g.expand(s, {k, n}))),
                 g.reduce_max(g.matmul(x, g.expand(s * 2.0, {k, n})))});
  CompiledGraph f = session().compile(std::move(g));
  for (int run = 0; run < 3; ++run) {
    const std::vector<Tensor> got = f.run_typed({{"x", Tensor::full(f32({m, k}), 1)}, {"s", Tensor::full(f32({}), 2)}});
    CHECK(got[0].at(0) == m * k * n);
    CHECK(got[1].at(0) == 2 * m * k * n);
    CHECK(got[2].at(0) == 4 * k);
  }
}

TEST_CASE("device: loops beyond 65,535 steps, at which Mesa's rasterisers stop without a word") {
  if (!device_here()) return;
  constexpr std::int64_t n = 70000;
  Graph g("long");
  const Expr at = g.input("at", {{n}, DType::I32}), x = g.input("x", f32({2, 3 * n})), u = g.input("u", f32({n}));
  g.set_outputs({g.scatter(ScatterKind::Add, g.constant(Tensor::zeros(f32({3}))), at, u),
                 g.scatter(ScatterKind::Set, g.constant(Tensor::zeros(f32({3}))), at, u), g.softmax(x, 1),
                 g.layer_norm(x, std::nullopt, std::nullopt, 1e-5)});
  NamedTensors values{{"at", Tensor::zeros({{n}, DType::I32})}, {"u", Tensor::full(f32({n}), 1)}};
  values.emplace("x", test::draw(f32({2, 3 * n}), Fill::Unit, 1, 7));
  values.at("u").set(n - 1, 2);
  test::check_run(session(), g, values);
  Graph p("products");
  const Expr a = p.input("a", f32({6, n})), b = p.input("b", f32({n, 6}));
  p.set_outputs({p.matmul(a, b)});
  test::check_run(session(), p, {{"a", Tensor::full(f32({6, n}), 1)}, {"b", Tensor::full(f32({n, 6}), 1)}});
  Graph s("known_late");
  const Dim m = s.symbol("m", {.min = 1, .max = 1 << 20});
  s.set_outputs({s.softmax(s.input("x", f32({2, m})), 1)});
  CompiledGraph f = with_runtime_extent(s, "m");
  expect_at(f, s, "m", 1000);
  if (const std::string text = test::error_text([&] { expect_at(f, s, "m", 3 * n); }); !text.empty())
    CHECK(test::contains(text, "longer loops than Mesa's rasterisers run"));
  expect_at(f, s, "m", 1000);
}

TEST_CASE("device: kernels that were written for more rows than there are have the loops of many") {
  if (!test::generated_kernels_here()) return;
  const auto right_or_told = [](CompiledGraph& f, const NamedTensors& values, std::size_t n, float expected) {
    std::vector<Tensor> got;
    const std::string text = test::error_text([&] { got = f.run_typed(values); });
    if (!text.empty()) {
      CHECK(test::contains(text, "longer loops than Mesa's rasterisers run"));
      return;
    }
    REQUIRE(got[0].num_elements() == static_cast<std::int64_t>(n));
    for (const float y : got[0].values<float>()) CHECK(y == expected);
  };
  constexpr std::int64_t n = 100000;
  Graph a("attention");
  const Dim rows = a.symbol("rows", {.min = 1, .max = 64}), keys = a.symbol("keys", {.min = 1, .max = 1 << 17});
  const Expr k = a.input("k", f32({1, keys, 4}));
  ops::Attention op;
  op.head_dim = 4;
  a.set_outputs({a.attention(a.input("q", f32({1, rows, 4})), k, k, op)});
  CompileOptions of_attention, of_product;
  of_attention.symbol_modes = {{"rows", SymbolMode::runtime()}, {"keys", SymbolMode::runtime()}};
  CompiledGraph f = session().compile_with(std::move(a), of_attention);
  // The last 30,000 keys are those that count.
  std::vector<float> values(4 * n, 0);
  std::fill(values.end() - 4 * 30000, values.end(), 8.0F);
  right_or_told(f, {{"q", Tensor::full(f32({1, 1, 4}), 8)}, {"k", Tensor::of<float>({1, n, 4}, values)}}, 4, 8);

  Graph p("product");
  const Dim m = p.symbol("m", {.min = 1, .max = 64}), depth = p.symbol("k", {.min = 1, .max = 1 << 17});
  p.set_outputs({p.matmul(p.input("x", f32({m, depth})), p.input("w", f32({depth, 6})))});
  of_product.symbol_modes = {{"m", SymbolMode::runtime()}, {"k", SymbolMode::runtime()}};
  CompiledGraph d = session().compile_with(std::move(p), of_product);
  right_or_told(d, {{"x", Tensor::full(f32({2, n}), 1)}, {"w", Tensor::full(f32({n, 6}), 1)}}, 12, n);
}

TEST_CASE("device: what a device cannot hold between its kernels is the host's") {
  if (!test::generated_kernels_here()) return;
  // The last: keys and places of 128 MiB each, which a binding holds and one buffer does not.
  for (const Shape& s : {Shape({3, 9000000}, DType::F32), Shape({40000000}, DType::U8), f32({17000000})}) {
    Graph g("large");
    g.set_outputs({g.sort(g.input("x", s), -1)});
    const Session target = Session::for_target(Device::WebGpu);
    CHECK(test::host_part(target.compile(std::move(g))) != "");
  }
  Graph odd("odd");  // a result of 128 MB whose words need twice that, and rows of it are no whole fours
  odd.set_outputs(
      {odd.matmul(odd.input("x", Shape({8001, 64}, DType::F16)), odd.input("w", Shape({64, 8001}, DType::F16)))});
  CHECK(test::host_part(Session::for_target(Device::WebGpu).compile(std::move(odd))) != "");
}

TEST_SUITE_END();

}  // namespace rlx
